"""Puts a value into a text that a role is asked: as it is, or by the name of a file that has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_LONGEST: Final = 200
"""Characters of a value that stands in a text; what is longer, or of several lines, is a file."""


def in_text(name: str, said: str, keep: Callable[[str, str], Path], files: list[Path]) -> str:
    """Return what stands for a value: it is never read as words of the recipe.

    Args:
        name: Of the file, if it is to be one.
        said: The value.
        keep: Writes the file.
        files: Takes it.
    """
    if len(said) <= _LONGEST and "\n" not in said:
        return said
    files.append(keep(name, said))
    return f"(the file {name} among the artifacts `inputs`)"
