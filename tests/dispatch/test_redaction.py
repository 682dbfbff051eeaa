"""Secrets are taken out, in every spelling and every well-known shape; what only looks technical stays."""

from __future__ import annotations

import base64
import hashlib
import json
import string
import time
from typing import TYPE_CHECKING

import pytest
from encoded import ENCODINGS
from hypothesis import given
from hypothesis import strategies as st

from pipeline.agents.dispatch.transcript import redacted_report
from pipeline.judge.evidence.observation import CollectionError, Fault, Observation, Raised, RunState, TestRecord
from pipeline.judge.evidence.observation import Ended as Outcome
from pipeline.run.info import RunInfo
from pipeline.sandbox.redaction import MARK, dotenv, redact, redacted_observation, secrets_of

if TYPE_CHECKING:
    import uuid
    from pathlib import Path

VALUES = st.text(string.ascii_letters + string.digits + "+/=-_.~!@$%&*'\"\\ üé", min_size=8, max_size=40).filter(
    lambda text: text.encode() not in MARK
)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(VALUES)
@pytest.mark.slow
@pytest.mark.broad(but_first=2)
def test_no_known_value_is_left_in_any_encoding(encoding: str, secret: str) -> None:
    hidden = ENCODINGS[encoding](secret)
    clean = redact(f"before {hidden} after".encode(), [secret])
    _, mark, rest = clean.partition(MARK)
    assert mark
    assert clean.startswith(b"before ")
    left = rest.removesuffix(b" after").split(MARK)[-1]
    assert len(left) <= (len("LCBhbmQgbW9yZQ==") if "in a text" in encoding else 4)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_short_value_is_not_looked_for_in_any_encoding(encoding: str) -> None:
    short = '/q"9;z1'
    text = f"before {ENCODINGS[encoding](short)} after".encode()
    assert redact(text, [short]) == text


@given(st.dictionaries(st.sampled_from("abc"), VALUES, min_size=1), VALUES)
def test_a_report_stays_json_with_only_the_secret_gone(report: dict[str, str], secret: str) -> None:
    report["key"] = f"<{secret}>"
    clean = json.loads(redact(json.dumps(report).encode(), [secret]))
    assert clean["key"] == f"<{MARK.decode()}>"
    assert clean.keys() == report.keys()


def test_a_report_tells_no_secret_and_does_as_it_says() -> None:
    edit = {"path": "app/dev-secret-1.py", "old": "dev-secret-1", "new": "x"}
    told = {"problem": "the token is dev-secret-1", "tests": ["t.py::test_dev-secret-1"], "proof": {"edit": edit}}
    redacted = redacted_report({"findings": [told], "output": {"risks": ["dev-secret-1"]}}, ["dev-secret-1"])
    assert redacted == {
        "findings": [{**told, "problem": "the token is [redacted]"}],
        "output": {"risks": ["[redacted]"]},
    }


def test_an_observation_is_quiet_in_what_it_says_and_keeps_its_facts() -> None:
    chain = (Raised(kind="AssertionError", message="'correct-horse-battery' != 'x'"), Raised(kind="E", message="fine"))
    id_ = "tests/test_a.py::test_a[correct-horse-battery]"
    record = TestRecord(
        id=id_, function="test_a", path="tests/test_a.py", region_sha256="0", reason="correct-horse-battery",
        outcome=Outcome.FAILED, fault=Fault(chain=chain),
    )  # fmt: skip
    error = CollectionError(path="tests/test_b.py", fault=Fault(chain=chain))
    seen = Observation(
        state=RunState.COMPLETE, records={id_: record}, collection_errors=(error,), tail="a correct-horse-battery b"
    )
    redacted = redacted_observation(seen, ["correct-horse-battery"])
    assert redacted.tail == "a [redacted] b"
    fault = redacted.records[id_].fault
    assert fault is not None
    assert [raised.message for raised in fault.chain] == ["'[redacted]' != 'x'", "fine"]
    assert redacted.records[id_].reason == "[redacted]"
    assert redacted.collection_errors[0].fault == fault
    assert redacted.records[id_].id == id_
    assert redacted_observation(redacted, ["other-secret"]) is redacted


def test_run_json_names_the_variables_of_agents_and_holds_none_of_their_values() -> None:
    names = dict.fromkeys(
        ("run_id", "workflow_version", "workflow_hash", "redfirst_version", "issue", "branch", "base_branch",
         "start_commit", "start_tree", "config_hash", "prompts_hash"), "x",
    )  # fmt: skip
    config: dict[str, object] = {
        "agents": {"env": {"A_KEY": "secret"}, "check": {"env": {"B": "secret"}, "argv": ["x"]}},
        "base": None,
    }
    info = RunInfo.model_validate({**names, "started_at": "2026-01-01T00:00:00Z", "config": config})
    assert "secret" not in info.model_dump_json()
    assert info.config["agents"] == {"env": {"A_KEY": "(hidden)"}, "check": {"env": {"B": "(hidden)"}, "argv": ["x"]}}


def test_a_short_value_would_take_out_ordinary_words() -> None:
    assert redact(b"pass the test", ["pass", "test"]) == b"pass the test"


def test_the_longest_of_two_values_is_taken_out_whole() -> None:
    assert redact(b"correct-horse-battery", ["correct-horse", "correct-horse-battery"]) == MARK


def _letters(count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return (alphabet * (count // len(alphabet) + 1))[:count]


# Put together here, so that no scanner takes this file for a leak.
KEYS = {
    "aws": "AK" + "IA" + _letters(16, string.ascii_uppercase),
    "github": "gh" + "p_" + _letters(36),
    "github fine grained": "github" + "_pat_" + _letters(82),
    "gitlab": "gl" + "pat-" + _letters(20),
    "slack": "xo" + "xb-" + "123456789012-" + _letters(24),
    "npm": "np" + "m_" + _letters(36),
    "pypi": "py" + "pi-AgEIcHlwaS5vcmc" + _letters(80),
    "model": "sk" + "-ant-api03-" + _letters(90),
    "model, plain": "sk" + "-" + _letters(48),
    "model, project": "sk" + "-proj-" + _letters(60),
    "google": "AI" + "za" + _letters(35),
    "payment": "sk" + "_live_" + _letters(24),
    "mail": "S" + "G." + _letters(22) + "." + _letters(43),
    "web token": ".".join(("ey" + "J" + _letters(20), "ey" + "J" + _letters(40), _letters(43))),
    "private key": "-----BEGIN RSA " + "PRIVATE KEY-----\n" + (_letters(64) + "\n") * 3
    + "abc=\n-----END RSA PRIVATE KEY-----",
    "private key, in json": "-----BEGIN " + "PRIVATE KEY-----\\n" + (_letters(64) + "\\n") * 3
    + "-----END PRIVATE KEY-----",
    "private key, locked": "-----BEGIN RSA " + "PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB\n\n"
    + _letters(64) + "\n-----END RSA PRIVATE KEY-----",
    "private key, cut off": "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n" + (_letters(70) + "\n") * 2 + _letters(30),
}  # fmt: skip


@pytest.mark.parametrize("case", KEYS)
@pytest.mark.parametrize(
    ("before", "after"), [("key = '", "' # x"), ("", ""), ('{"a": "', '"}'), ("https://t:", "@h/")]
)
def test_a_key_is_known_by_its_shape(case: str, before: str, after: str) -> None:
    clean = redact(f"{before}{KEYS[case]}{after}".encode(), ())
    assert clean == before.encode() + MARK + after.encode()


HARMLESS = {
    "code that names a key": b'if text.startswith("-----BEGIN PRIVATE KEY-----"): return "a private key file"',
    "prose about keys": b"-----BEGIN PRIVATE KEY-----\nis the first line, and then come the letters.\n",
    "a public key": b"-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
    "a style sheet": b"sk-fading-circle-container-of-dots, task-proj-management-overview-page-one",
    "names": b"test_ghp_prefix npm_config_registry hf_hub_download AKIA eyJ sk-learn xoxo- SG.txt glpat-",
    "a path": b"/usr/lib/python3.11/site-packages/pypi-AgE/r8_utils.py",
    "a lock file": b"sha512-" + base64.b64encode(hashlib.sha512(b"x").digest()),
    "an encoded object": base64.urlsafe_b64encode(json.dumps({"a": list(range(40))}).encode()),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_what_only_resembles_a_key_stays(case: str) -> None:
    assert redact(HARMLESS[case], ["correct-horse-battery"]) == HARMLESS[case]


@given(st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=8), st.uuids())
def test_hashes_uuids_and_base64_stay(pieces: list[bytes], some: uuid.UUID) -> None:
    words = [str(some).encode(), some.hex.upper().encode()]
    for piece in pieces:
        words += [hashlib.sha1(piece).hexdigest().encode(), hashlib.sha256(piece).hexdigest().encode()]  # noqa: S324  (git's)
        words += [
            base64.b64encode(piece),
            base64.b32encode(piece),
            base64.urlsafe_b64encode(piece),
            piece.hex().encode(),
        ]
    text = b"\n".join(words)
    assert redact(text, ["correct-horse-battery"]) == text


WORST = {
    "nothing": b"a",
    "beginnings of private keys": b"-----BEGIN PRIVATE KEY-----\n",
    "a private key without end": b"A" * 64 + b"\n",
    "beginnings of web tokens": b"eyJaaaaaaaaaaaa.",
    "beginnings of tokens": b"ghp_ sk- xoxb- AKIA ",
    "secrets": b"correct-horse-battery ",
    "most of a secret": b"correct-horse-batter",
}


@pytest.mark.slow
@pytest.mark.parametrize("case", WORST)
@pytest.mark.broad(but_first=1)
def test_the_time_grows_with_the_data_and_no_faster(case: str) -> None:
    secrets = [f"correct-horse-battery-{number}" for number in range(20)]

    def seconds(size: int) -> float:
        head = b"-----BEGIN PRIVATE KEY-----\n" if "without end" in case else b""
        data = (head + WORST[case] * (size // len(WORST[case]) + 1))[:size]
        began = time.process_time()
        redact(data, secrets)
        return time.process_time() - began

    small = min(seconds(1_000_000) for _ in range(3))
    assert seconds(8_000_000) < 8 * small * 4 + 0.5


NAMES = {
    "secret": {
        "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "ANTHROPIC_API_KEY", "PGPASSWORD", "MYSQL_PWD", "db_password",
        "COOKIE", "SESSION_COOKIE", "CREDENTIALS", "TWINE_PASSWORD", "HTTP_AUTH", "SIGNING_KEY", "GITLAB_PAT",
        "OPENAI_APIKEY", "NPM_TOKEN",
    },
    "harmless": {
        "SSH_AUTH_SOCK", "XAUTHORITY", "PATH", "PWD", "OLDPWD", "GIT_AUTHOR_NAME", "TOKENIZERS_PARALLELISM", "KEYBOARD",
        "GOOGLE_APPLICATION_CREDENTIALS_FILE", "PASSWORD_STORE_DIR", "GIT_CONFIG_KEY_0", "SSH_ASKPASS", "COMPASS",
        "MONKEY_BAR", "SECRET_NAME", "XKB_DEFAULT_LAYOUT", "DESKTOP_SESSION",
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", NAMES)
def test_a_name_says_whether_its_value_is_secret(kind: str) -> None:
    environ = {name: f"{name.lower()}-0123" for name in NAMES[kind]}
    assert secrets_of(environ) == (frozenset(environ.values()) if kind == "secret" else frozenset())


def test_a_setting_and_a_short_value_are_no_secrets() -> None:
    assert secrets_of({"AUTH": "required", "SORT_KEY": "lastname", "API_TOKEN": "short", "PASSWORD": ""}) == frozenset()
    assert secrets_of({"AUTH": "required1", "PASSWORD": "required2"}) == {"required1", "required2"}


def test_a_plain_word_is_no_secret_since_nobody_could_say_it() -> None:
    words = {"DB_PASSWORD": "password", "JWT_HEADER": "Authorization", "URL": "postgres://app:postgres@localhost/shop"}
    assert secrets_of(words) == frozenset()
    assert secrets_of({"DB_PASSWORD": "pAssWorD", "API_TOKEN": "abcdefghijklmnop"}) == {"pAssWorD", "abcdefghijklmnop"}


def test_the_password_in_a_url_is_secret_whatever_the_name() -> None:
    assert secrets_of({"DATABASE": "postgres://ada:lovelace99@db.example/x"}) == {"lovelace99"}
    assert secrets_of({"HOMEPAGE": "https://ada.example:8080/x@y"}) == frozenset()


def test_an_env_file_is_read_simply(tmp_path: Path) -> None:
    lines = [
        "# secrets", "export API_TOKEN='single quoted'", 'B_SECRET="double # quoted" # said', "C_KEY=bare1234 # a word",
        "no assignment", "=nothing", "9=x", "D_TOKEN=", "\ufeffE=1",
    ]  # fmt: skip
    (tmp_path / ".env").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / ".env.local").write_bytes(b"F_TOKEN=\xff-binary-\xff\r\n")
    (tmp_path / ".env.example").write_text("G_TOKEN=changeme", encoding="utf-8")
    (tmp_path / ".env.d").mkdir()
    found = dotenv(tmp_path)
    assert found["API_TOKEN"] == "single quoted"
    assert (found["B_SECRET"], found["C_KEY"], found["D_TOKEN"]) == ("double # quoted", "bare1234", "")
    assert "G_TOKEN" not in found
    assert {"9", ""}.isdisjoint(found)
    assert {"single quoted", "double # quoted", "bare1234"} < secrets_of(found)
    assert dotenv(tmp_path / "nowhere") == {}
