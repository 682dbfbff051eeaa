"""Splits a text into lines that keep their ends, so that joining them gives the text back."""

from __future__ import annotations

import re
from typing import Final

_LINES: Final = re.compile(r"[^\r\n]*(?>\r\n|\n|\r)|[^\r\n]+")
_LIST_LINE: Final = re.compile(r"[ \t]|(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)")


def split_lines(text: str) -> list[str]:
    r"""Return the lines with their ends: \n, \r\n or \r, and no other character."""
    return _LINES.findall(text)


def newline_of(lines: list[str]) -> str:
    r"""Return the line end of the first line, \n if it has none."""
    first = lines[0] if lines else ""
    return first[len(first.rstrip("\r\n")) :] or "\n"


def last_filled(lines: list[str], start: int, end: int) -> int:
    """Return the index of the last line in the range that is not blank, `start - 1` when all are."""
    return next((index for index in range(end - 1, start - 1, -1) if lines[index].strip()), start - 1)


def insert_after(lines: list[str], index: int, added: list[str], newline: str) -> list[str]:
    """Return the lines with `added` (without line ends) after `index`; a missing final line end stays missing."""
    ended = [line + newline for line in added]
    if index >= 0 and not lines[index].endswith(("\r", "\n")):
        ended[-1] = added[-1]
        return [*lines[:index], lines[index] + newline, *ended]
    return [*lines[: index + 1], *ended, *lines[index + 1 :]]


def is_list_line(line: str) -> bool:
    """Return whether the line begins or continues a list item, so that an item may follow without a blank line."""
    return _LIST_LINE.match(line.rstrip("\r\n")) is not None
