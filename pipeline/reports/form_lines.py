"""Writes a text into the lines of a form, and reads it back: plain where the form keeps it as it stands."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

MARGIN: Final = ">|"
"""Stands before each line of a text that is meant to the letter, with the blanks and quotes around it."""
_BLOCKS: Final = ("|", "|-", ">", ">-")
"""YAML's markers of multi-line text; a form ignores them."""


def joined(rest: str, below: Sequence[str]) -> str:
    """Return a field's text: the rest of its line, and the lines below without their indentation."""
    if rest in _BLOCKS:
        rest = ""
    exact = [line.lstrip() for line in below if line.strip()]
    if not rest and exact and all(line.startswith(MARGIN) for line in exact):
        return "\n".join(line.removeprefix(MARGIN) for line in exact)
    more = textwrap.dedent("\n".join(below)).strip("\n")
    text = "\n".join(filter(None, (rest, more))).strip()
    for quote in "\"'":
        if len(text) > 1 and text[0] == text[-1] == quote and quote not in text[1:-1]:
            return text[1:-1]
    return text


def written(field: str, text: str, indent: str) -> list[str]:
    """Return the lines of a field with its text, from which `joined` reads the same text.

    Args:
        field: What stands before it: `name:`, or the dash of an entry, with its indentation.
        text: The text; empty for an empty field.
        indent: The indentation of lines below.
    """
    lines = text.split("\n")
    if len(lines) == 1 and joined(text, ()) == text:
        return [f"{field} {text}".rstrip()]
    margin = "" if joined("", lines) == text else MARGIN
    return [field, *(f"{indent}{margin}{line}" if margin or line else "" for line in lines)]
