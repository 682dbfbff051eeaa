"""Prints for people: hidden characters are shown as escapes, and colour is used only where it is wanted."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Literal

import typer

from pipeline.policy.characters import visible

if TYPE_CHECKING:
    from pydantic import BaseModel

Colour = Literal["red", "green", "yellow", "cyan"]


def visible_lines(text: str) -> str:
    """Return a text of several lines with what is hidden in it as escapes, but for its line breaks and tabs."""
    return visible(text, keep="\n\t")


def colours() -> bool:
    """Return whether stdout may be coloured: a terminal, and the user has nothing against it (contract 1)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: Colour | None) -> str:
    """Return *text* in *colour*, or as it is."""
    return typer.style(text, fg=colour) if colour and colours() else text


def print_document(document: BaseModel) -> None:
    """Print one JSON document, in ASCII, so that nothing in it can reach the terminal as a control."""
    typer.echo(json.dumps(document.model_dump(mode="json", by_alias=True), indent=2))
