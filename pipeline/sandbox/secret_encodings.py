"""Computes a secret's spellings in common encodings, and one pattern that finds all of them.

What is found is a spelling of the whole secret. Encodings of encodings are not among them, but for JSON in JSON.
"""

from __future__ import annotations

import base64
import json
import re
from itertools import groupby
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

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
