"""Removes secrets from the output of agents and tests before it is written to disk.

Two kinds: values that we know, of the user's environment and `.env` files, in every spelling in which a program prints
them; and what has the shape of a well-known key. Shapes are those of their issuers' documentation and hold a prefix or
a frame each, so that hashes, UUIDs and base64 of anything else stay readable. Time is linear in the data.
"""

from __future__ import annotations

import base64
import json
import re
from contextlib import suppress
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

from pipeline.trees import read_regular

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipeline.judge.evidence.observation import Fault, Observation

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
_PLAIN_WORD: Final = re.compile(r"[A-Za-z][a-z]{0,14}|[A-Z]{1,15}")
"""What passwords of development are: `password`, `postgres`. Without it nobody could say the word."""
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


def redacted_observation(observation: Observation, secrets: Collection[str]) -> Observation:
    """Return an observation without known secrets in its messages; ids and paths stay unchanged."""
    everything = observation.model_dump_json().encode()
    if redact(everything, secrets, shapes=False) == everything:
        return observation

    def of(fault: Fault) -> Fault:
        chain = (
            raised.model_copy(update={"message": redacted_text(raised.message, secrets)}) for raised in fault.chain
        )
        return fault.model_copy(update={"chain": tuple(chain)})

    records = {
        entry: record.model_copy(
            update={
                "reason": redacted_text(record.reason, secrets),
                "fault": of(record.fault) if record.fault is not None else None,
            }
        )
        for entry, record in observation.records.items()
    }
    errors = tuple(error.model_copy(update={"fault": of(error.fault)}) for error in observation.collection_errors)
    said = {"detail": redacted_text(observation.detail, secrets), "tail": redacted_text(observation.tail, secrets)}
    return observation.model_copy(update={"records": records, "collection_errors": errors, **said})


def redacted_text(text: str, secrets: Collection[str], *, shapes: bool = False) -> str:
    """Return a text with secrets redacted, and what has the shape of a key if *shapes*."""
    return redact(text.encode(errors="surrogatepass"), secrets, shapes=shapes).decode(errors="surrogatepass")


def secrets_of(environ: Mapping[str, str]) -> frozenset[str]:
    """Return the values of variables with secret-sounding names, and the passwords in URLs.

    A name that says it for sure (PASSWORD, TOKEN ...) counts, and one that may be a setting (KEY, AUTH, COOKIE) unless
    the value is one word. Names of sockets, files and the like never count, nor does a plain word as value.
    """
    found = {value for name, value in environ.items() if _is_secret(name.upper(), value)}
    found.update(password for value in environ.values() for password in _IN_URL.findall(value))
    return frozenset(value for value in found if len(value) >= SHORTEST and not _PLAIN_WORD.fullmatch(value))


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


SHORTEST: Final = 8
"""The length from which other encodings of a secret are searched; shorter ones may be ordinary words."""

_UNQUOTED: Final = ("", "/", "!'()*", ";,/?:@&=+$#!'()*")
"""The characters that each kind of URL quoting keeps besides letters: none, in paths, and JavaScript's two
functions."""


def secret_encodings(secret: str) -> frozenset[bytes]:
    """Return the byte sequences that reveal the secret; for a short one only those that hardly differ from it."""
    raw = secret.encode(errors="surrogateescape")
    return frozenset({*_quoted(secret, raw), *(_encoded(secret, raw) if len(secret) >= SHORTEST else ())}) - {b""}


def pattern(forms: Collection[bytes]) -> re.Pattern[bytes] | None:
    """Return a pattern for any of the forms, longer ones first; None if there are no forms.

    Forms that begin alike are compared once, so the time depends on the text, hardly on how many there are.
    """
    return re.compile(_either(sorted(set(forms)))) if forms else None


def _quoted(secret: str, raw: bytes) -> Iterator[bytes]:
    yield raw
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        for text in (once, json.dumps(once)[1:-1], once.replace("/", r"\/")):
            yield text.encode(errors="surrogateescape")
    for text in (*(quote(raw, safe=safe) for safe in _UNQUOTED), quote_plus(raw)):
        yield text.encode()
        yield re.sub(r"%[0-9A-F]{2}", lambda code: code[0].lower(), text).encode()


def _encoded(secret: str, raw: bytes) -> Iterator[bytes]:
    yield secret[::-1].encode(errors="surrogateescape")
    for digits in (raw.hex(), raw.hex().upper()):
        yield digits.encode()
        yield "".join(f"%{digits[at : at + 2]}" for at in range(0, len(digits), 2)).encode()
    for offset in range(3):  # base64 of a longer text shows the same value in three ways, by where it begins
        # Letters that also hold bits of the neighbours are left out, and so is what fills the end up.
        first, last = -(-8 * offset // 6), 8 * (offset + len(raw)) // 6
        for alphabet in (base64.b64encode, base64.urlsafe_b64encode):
            yield alphabet(b"\0" * offset + raw)[first:last]


def _either(forms: Sequence[bytes]) -> bytes:
    """Return a regular expression for any of the forms, which are sorted and distinct; an empty one comes first."""
    ways: list[bytes] = []
    for _, alike in groupby((form for form in forms if form), key=lambda form: form[:1]):
        group = list(alike)
        same = _alike(group[0], group[-1])  # sorted: what these two have in common all have
        rest = _either([form[same:] for form in group]) if len(group) > 1 else b""
        ways.append(re.escape(group[0][:same]) + rest)
    return b"(?:%b)%b" % (b"|".join(ways), b"" if forms[0] else b"?")


def _alike(one: bytes, other: bytes) -> int:
    """Return the length of the common beginning of two forms."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
