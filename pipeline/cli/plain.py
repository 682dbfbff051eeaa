"""Text for people: what agents and issues say is shown, never obeyed by the terminal; colour only where wanted."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from typing import TYPE_CHECKING, Final, Literal

import typer

if TYPE_CHECKING:
    from pydantic import BaseModel

Colour = Literal["red", "green", "yellow", "cyan"]

# controls, invisible and direction marks, lone surrogates, the two Unicode line breaks
_UNPRINTABLE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BYTE: Final = 0x100
_BMP: Final = 0x10000


def plain(text: str, *, keep: str = "") -> str:
    """Return *text* with terminal controls, direction marks and invisible characters shown as escapes.

    Args:
        text: Anything that an agent, an issue or a file name may have brought.
        keep: Characters to leave as they are, for example a newline.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(char) if char not in keep else char for char in text)


def block(text: str) -> str:
    """Return a text of several lines, otherwise as `plain` does."""
    return plain(text, keep="\n\t")


def _shown(char: str) -> str:
    if unicodedata.category(char) not in _UNPRINTABLE:
        return char
    code = ord(char)
    if code < _BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _BMP else f"\\U{code:08x}"


def colours() -> bool:
    """Return whether stdout may be coloured: a terminal, and the user has nothing against it (contract 1)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: Colour | None) -> str:
    """Return *text* in *colour*, or as it is."""
    return typer.style(text, fg=colour) if colour and colours() else text


def print_document(document: BaseModel) -> None:
    """Print one JSON document, in ASCII, so that nothing in it can reach the terminal as a control."""
    typer.echo(json.dumps(document.model_dump(mode="json", by_alias=True), indent=2))
