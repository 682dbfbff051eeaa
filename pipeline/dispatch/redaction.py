"""Removes secrets from the output of agents and tests before it is written to disk.

Two kinds: values that we know, of the user's environment and `.env` files, in every spelling in which a program prints
them; and what has the shape of a well-known key. Shapes are those of their issuers' documentation and hold a prefix or
a frame each, so that hashes, UUIDs and base64 of anything else stay readable. Time is linear in the data.
"""

from __future__ import annotations

import re
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.backends.products import login_values
from pipeline.config.folders import home
from pipeline.languages.table import LANGUAGES
from pipeline.routing.vocabulary import Role
from pipeline.runs.files import disk, to_json, write_atomic
from pipeline.secret_encodings import SHORTEST, pattern, secret_encodings
from pipeline.trees import read_regular

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from pipeline.backends.protocol import AgentResult
    from pipeline.config.model import Config
    from pipeline.dispatch.gate import GateResult
    from pipeline.evidence.observation import Fault, Observation
    from pipeline.views.view import View

MARK: Final = b"[redacted]"
"""The text in place of a secret."""

_SECRET_NAME: Final = re.compile(
    r"PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|TOKEN(?!IZ)|BEARER|JWT"
    r"|_(?:PWD|PASS|PAT|DSN)$"
)
_MAYBE_SECRET_NAME: Final = re.compile(r"(?:^|_)(?:KEYS?|AUTH|COOKIES?)(?:_|$)")
_HARMLESS_NAME: Final = re.compile(
    r"_(?:SOCK|SOCKET|FILE|PATH|DIR|HOME|HOST|PORT|USER|USERNAME|NAME|TYPE|MODE|METHOD|VERSION|REGION|ENDPOINT|ISSUER"
    r"|ALGORITHM|TTL|TIMEOUT|LENGTH|LIMIT|LAYOUT)$|^SSH_AUTH_SOCK$|^XAUTHORITY$|^GIT_CONFIG_KEY_"
)
_DOTENV_BYTES: Final = 4_000_000
_EXAMPLES: Final = frozenset({".example", ".sample", ".template", ".dist"})
_WORD: Final = re.compile(r"[A-Za-z]{1,15}")
_IN_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:([^/\s@]+)@")

_END: Final = rb"(?![A-Za-z0-9_-])"
_SHAPES: Final[tuple[tuple[str, bytes], ...]] = (
    ("AKIA ASIA ABIA ACCA", rb"[A-Z0-9]{16}" + _END),  # AWS
    ("ghp_ gho_ ghu_ ghs_ ghr_", rb"[A-Za-z0-9]{36,255}"),  # GitHub
    ("github_pat_", rb"[A-Za-z0-9_]{22,255}"),
    ("glpat- gloas- gldt- glrt- glcbt- glptt- glft- glsoat- glagent-", rb"[A-Za-z0-9_.-]{20,}"),  # GitLab
    ("xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", rb"[A-Za-z0-9-]{10,}"),  # Slack
    ("npm_", rb"[A-Za-z0-9]{36,}"),
    ("pypi-AgE", rb"[A-Za-z0-9_-]{50,}"),
    ("sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or-", rb"[A-Za-z0-9_-]{20,}"),  # models
    ("sk-", rb"[A-Za-z0-9]{32,}"),
    ("AIza", rb"[A-Za-z0-9_-]{35}" + _END),
    ("ya29. GOCSPX-", rb"[A-Za-z0-9_-]{20,}"),
    ("gsk_ xai-", rb"[A-Za-z0-9]{40,}"),
    ("hf_ r8_", rb"[A-Za-z0-9]{34,}"),
    ("sk_live_ sk_test_ rk_live_ rk_test_", rb"[A-Za-z0-9]{16,}"),  # payment, mail, hosting
    ("whsec_", rb"[A-Za-z0-9+/=]{24,}"),
    ("SG.", rb"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    ("dop_v1_ doo_v1_ dor_v1_", rb"[a-f0-9]{64}"),
    ("dckr_pat_ hvs.", rb"[A-Za-z0-9_-]{20,}"),
    ("AGE-SECRET-KEY-1", rb"[A-Z0-9]{58}"),
    ("eyJ", rb"[A-Za-z0-9_-]{10,}+\.eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+"),  # JSON web tokens
)
"""The beginnings of known key formats, each with the pattern that must follow."""


def _shape(prefix: bytes, rest: bytes) -> re.Pattern[bytes]:
    # The prefix first, where the search is quick; then that it is the beginning of a word.
    return re.compile(re.escape(prefix) + rb"(?<![A-Za-z0-9_-]" + re.escape(prefix) + rb")" + rest)


_KEYS: Final = {prefix: _shape(prefix, rest) for prefixes, rest in _SHAPES for prefix in prefixes.encode().split()}
_BREAK: Final = rb"(?:\s|\\+[nr])"  # in JSON, and in JSON within JSON, a line break is letters
_PRIVATE_KEY: Final = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:" + _BREAK + rb"++(?:[A-Za-z0-9+/=]{16,}+|[A-Z][A-Za-z-]{2,20}: [^\r\n\\]{1,200}))+"
    rb"(?:" + _BREAK + rb"++=?[A-Za-z0-9+/=]{1,15}+(?![A-Za-z0-9]))?"
    rb"(?:" + _BREAK + rb"*+-----END [A-Z0-9 ]{1,60}-----)?"
)


def redact(data: bytes, secrets: Collection[str], *, shapes: bool = True) -> bytes:
    """Return *data* with `MARK` in place of known secrets and of texts that look like keys.

    Args:
        data: What an agent, a test or a program wrote; need not be text.
        secrets: Values to look for in every spelling (`secret_encodings`). Of fewer than 8 characters: ignored.
        shapes: Also what looks like a key. Not for what tests show: their keys are made up, and are compared.
    """
    if (known := _known(frozenset(secrets))) is not None:
        data = known.sub(MARK, data)
    if not shapes:
        return data
    for prefix, shape in _KEYS.items():
        if prefix in data:
            data = shape.sub(MARK, data)
    return _PRIVATE_KEY.sub(MARK, data) if b"PRIVATE KEY" in data else data


@lru_cache(maxsize=8)
def _known(secrets: frozenset[str]) -> re.Pattern[bytes] | None:
    forms = {form for secret in secrets if len(secret) >= SHORTEST for form in secret_encodings(secret)}
    return pattern([form for form in forms if form not in MARK])


def redacted_answer(answer: AgentResult, secrets: Collection[str]) -> AgentResult:
    """Return an agent's result with secrets redacted, before anything is read from it or stored."""
    return replace(
        answer,
        stdout=redact(answer.stdout, secrets),
        stderr=redact(answer.stderr, secrets),
        report_file=None if answer.report_file is None else redact(answer.report_file, secrets),
        complaint=None if answer.complaint is None else _redacted(answer.complaint, secrets, shapes=True),
        denials=tuple(_redacted(line, secrets, shapes=True) for line in answer.denials),
    )


def redacted_observation(observation: Observation, secrets: Collection[str]) -> Observation:
    """Return an observation without known secrets in its messages; ids and paths stay unchanged."""
    everything = observation.model_dump_json().encode()
    if redact(everything, secrets, shapes=False) == everything:
        return observation

    def of(fault: Fault) -> Fault:
        chain = (raised.model_copy(update={"message": _redacted(raised.message, secrets)}) for raised in fault.chain)
        return fault.model_copy(update={"chain": tuple(chain)})

    records = {
        entry: record.model_copy(
            update={
                "reason": _redacted(record.reason, secrets),
                "fault": of(record.fault) if record.fault is not None else None,
            }
        )
        for entry, record in observation.records.items()
    }
    errors = tuple(error.model_copy(update={"fault": of(error.fault)}) for error in observation.collection_errors)
    said = {"detail": _redacted(observation.detail, secrets), "tail": _redacted(observation.tail, secrets)}
    return observation.model_copy(update={"records": records, "collection_errors": errors, **said})


def _redacted(text: str, secrets: Collection[str], *, shapes: bool = False) -> str:
    return redact(text.encode(errors="surrogatepass"), secrets, shapes=shapes).decode(errors="surrogatepass")


def secrets_of(environ: Mapping[str, str]) -> frozenset[str]:
    """Return the values of variables with secret-sounding names, and the passwords in URLs.

    A name that says it for sure (PASSWORD, TOKEN ...) counts whatever the value; one that may be a setting (KEY, AUTH,
    COOKIE) counts unless the value is one plain word. Names of sockets, files and the like never count.
    """
    found = {value for name, value in environ.items() if _is_secret(name.upper(), value)}
    found.update(password for value in environ.values() for password in _IN_URL.findall(value))
    return frozenset(value for value in found if len(value) >= SHORTEST)


def dotenv(worktree: Path) -> dict[str, str]:
    """Return the variables in `.env` files at the top of *worktree*: `NAME=value` lines, quotes removed.

    Examples of such files hold no secrets, and a file that we cannot read tells nobody anything.
    """
    found: dict[str, str] = {}
    for path in sorted(worktree.glob(".env*")):
        if path.suffix not in _EXAMPLES:
            with suppress(OSError):
                content = read_regular(path.resolve(), _DOTENV_BYTES)
                found.update(_assignments(content[:_DOTENV_BYTES].decode(errors="replace")))
    return found


def _is_secret(name: str, value: str) -> bool:
    if _HARMLESS_NAME.search(name):
        return False
    if _SECRET_NAME.search(name):
        return True
    return _MAYBE_SECRET_NAME.search(name) is not None and _WORD.fullmatch(value) is None


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        value = value.strip()
        quoted = re.match(r"(['\"])(.*?)\1", value)
        if equals and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name.strip()):
            yield name.strip(), quoted[2] if quoted else value.partition(" #")[0].rstrip()


_SHOWN: Final = 4
_WIDTH: Final = 200
_WINDOW: Final = 64_000
"""How many characters are looked at for secrets: a key of many lines that ends among those shown begins among these."""


class LiveWords:
    """The words of one agent, in memory alone.

    Secrets are removed from more lines than are shown, and lines are cut to their width after that, so that no part of
    one is left. Of a secret of several lines each line counts, since the others may not have come yet.
    """

    def __init__(self, secrets: Collection[str]) -> None:
        lines = {line for secret in secrets for line in secret.splitlines() if len(line) >= SHORTEST}
        self._secrets = frozenset(secrets) | lines
        self._lines: deque[str] = deque()
        self._size = 0
        self._told: tuple[str, ...] | None = ()

    def hear(self, text: str) -> None:
        """Take what the agent said; empty lines do not count."""
        for line in text.splitlines():
            if line.strip():
                self._lines.append(line)
                self._size += len(line)
                self._told = None
        while self._size > _WINDOW and len(self._lines) > _SHOWN:
            self._size -= len(self._lines.popleft())

    def said(self) -> tuple[str, ...]:
        """Return the last lines, each cut to a width, without secrets."""
        if self._told is None:
            text = "\n".join(self._lines).encode(errors="replace")
            lines = redact(text, self._secrets).decode(errors="replace").splitlines()
            self._told = tuple(line.strip()[:_WIDTH] for line in lines[-_SHOWN:])
        return self._told


_COPY_LIMIT: Final = 1_000_000
"""The largest refused file, in bytes, that is copied; a larger one is only named."""


def secrets_of_run(worktree: Path, environ: Mapping[str, str], config: Config) -> frozenset[str]:
    """Return the secrets that must not be written: credentials, logins, values of the user's and others' variables.

    Args:
        worktree: The user's; its `.env` files are read.
        environ: The driver's environment.
        config: Names the variables and logins of agents, spares too, and the credentials of model services.
    """
    agents = [agent for role in Role for agent in config.candidates(role)]
    credentials = {environ.get(table.credential_env or "", "") for table in config.providers.values()} - {""}
    of_tests = [config.toolchains.settings_of(name).env for name in LANGUAGES]
    found = [secrets_of(each) for each in (environ, dotenv(worktree), *(agent.env for agent in agents), *of_tests)]
    logins = [login_values(agent, home(environ)) for agent in agents]
    return frozenset(credentials).union(*found, *logins)


@dataclass(frozen=True)
class Transcript:
    """The output files of one dispatch."""

    folder: Path
    secrets: frozenset[str]

    def keep(self, answer: AgentResult) -> None:
        """Write the agent's output; a mark shows where its middle is missing."""
        self._write(self.folder / "stdout.log", answer.stdout)
        self._write(self.folder / "stderr.log", answer.stderr)
        if answer.report_file is not None:
            self._write(self.folder / "report.raw", answer.report_file)
        if answer.truncated:
            (self.folder / "TRUNCATED").write_text("The middle of stdout or stderr is missing.\n", encoding="utf-8")

    def quarantine(self, folder: Path, view: View, gate: GateResult) -> None:
        """Store the refused changes in `folder` as evidence: their list, and the content of files."""
        index: list[dict[str, str]] = []
        for number, (path, violation) in enumerate(zip(gate.offending, gate.violations, strict=True), 1):
            line = {"path": violation.path, "rule": violation.rule, "why": violation.why}
            try:
                content = view.read(path)
            except (OSError, ValueError):
                content = None
            if content is not None and len(content) <= _COPY_LIMIT:
                line["content"] = f"{number:03}"
                self._write(folder / line["content"], content)
            index.append(line)
        write_atomic(folder / "violations.json", to_json(index))

    def _write(self, path: Path, content: bytes) -> None:
        with disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(redact(content, self.secrets))
