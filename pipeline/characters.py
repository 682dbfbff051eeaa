"""Lists invisible characters and those that steer a terminal, and writes them as visible escapes.

An agent, an issue, a file name or a test's output may hold terminal controls, direction marks that reorder a line, and
invisible letters that only a model reads (zero-width, Unicode tags). Wherever such a text is shown or handed on, these
characters are written as escapes: nothing is lost, and nothing is hidden (issue "text is data").
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

HIDDEN: Final = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0, DEL, C1: terminals obey them
    "\u2028\u2029\ud800-\udfff"  # line breaks that split no line here and do elsewhere; halves of a surrogate pair
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f"  # without width
    "\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\U00013430-\U0001343f"  # format, drawn by some
    "\U000e0000-\U000e0fff"  # tags, and selectors that can carry bytes
    "]"
    "|(?<=[\ufe0e\ufe0f])[\ufe0e\ufe0f]"  # one says how an emoji is drawn; more carry data
)
"""Every control, format and surrogate character, and characters drawn as nothing."""

_SPACE: Final = re.compile(r"\s+")
_ORDINARY: Final = frozenset("\t\r\f\v")
_WIDE: Final = frozenset("WF")
_WITHOUT_WIDTH: Final = frozenset({"Mn", "Me", "Cf"})
_BYTE: Final = 0x100
_BMP: Final = 0x10000


def visible(text: str, *, keep: str = "") -> str:
    r"""Return *text* with hidden characters as escapes such as ``\x1b`` and ``\u202e``, but for those in *keep*."""
    if text.isprintable() and text.isascii():
        return text
    return HIDDEN.sub(lambda found: found[0] if found[0] in keep else escaped(found[0]), text)


def on_one_line(text: str) -> str:
    """Return a text on one line: a line break with the blanks around it is one blank, and so is a tab.

    Runs of blanks within a line stay, since they may be what is meant, as in an example of code.
    """
    return _SPACE.sub(lambda found: " " if found[0].strip(" ") else found[0], text).strip()


def hidden_places(before: str, after: str) -> tuple[str, ...]:
    """Return the hidden characters on lines that *after* has and *before* has not, as `LINE:COLUMN U+202E`."""
    known = frozenset(before.split("\n"))
    return tuple(
        f"{number}:{found.start() + 1} U+{ord(found[0]):04X}"
        for number, line in enumerate(after.split("\n"), 1)
        if line not in known
        for found in HIDDEN.finditer(line)
        if found[0] not in _ORDINARY and (number, found.start(), found[0]) != (1, 0, "\ufeff")
    )


def columns(text: str) -> int:
    """Return the width of a text in terminal columns: wide characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(map(_columns_of, text))


def _columns_of(char: str) -> int:
    if unicodedata.category(char) in _WITHOUT_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1


def as_utf8(path: str) -> str:
    """Return a path with bytes that are no UTF-8 as escapes, fit for JSON documents."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")


def escaped(char: str) -> str:
    """Return the escape of one character."""
    code = ord(char)
    if code < _BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _BMP else f"\\U{code:08x}"
