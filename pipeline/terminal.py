"""Prints for people: hidden characters as escapes, and colour only where it is wanted."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Final, Literal

from pipeline.characters import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

Colour = Literal["red", "green", "yellow", "cyan"]
_CODES: Final[dict[Colour, int]] = {"red": 31, "green": 32, "yellow": 33, "cyan": 36}


def visible_lines(text: str) -> str:
    """Return a text with hidden characters as escapes, but for line breaks and tabs."""
    return visible(text, keep="\n\t")


def colours() -> bool:
    """Return whether stdout may be coloured: it is a terminal, and the user did not forbid it (contract 1)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: Colour | None) -> str:
    """Return *text* in *colour* if stdout may be coloured, else unchanged."""
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if colour and colours() else text


def print_document(document: BaseModel) -> None:
    """Print a document as JSON in ASCII, so that nothing in it can control the terminal."""
    print_json(document.model_dump(mode="json", by_alias=True))


def print_json(document: Mapping[str, object]) -> None:
    """Print a value as JSON in ASCII."""
    echo(json.dumps(document, indent=2))


def echo(text: str, *, err: bool = False) -> None:
    """Print a line at once."""
    print(text, file=sys.stderr if err else sys.stdout, flush=True)
