"""Finds the files of a module or package by name; each language has a `Part` for it."""

from __future__ import annotations

from pipeline.languages.table import part_for


def is_module(path: str, module: str) -> bool:
    """Return whether a file is the module of a name, in whatever source folder."""
    names = part_for(path, "modules")
    return names is not None and names.is_module(path, module)


def is_part_of(path: str, module: str) -> bool:
    """Return whether a file is the module of a name, or lies in the package of that name."""
    names = part_for(path, "modules")
    return names is not None and names.is_part_of(path, module)
