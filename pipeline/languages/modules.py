"""Finds the files that the name of a module or package means; each language has a `Part` for it."""

from __future__ import annotations

from pipeline.languages.table import part_for


def is_module(path: str, module: str) -> bool:
    """Return whether the file is the module, whatever folder sources are kept in."""
    names = part_for(path, "modules")
    return names is not None and names.is_module(path, module)


def is_part_of(path: str, module: str) -> bool:
    """Return whether the file is the module, or lies in the package of that name."""
    names = part_for(path, "modules")
    return names is not None and names.is_part_of(path, module)
