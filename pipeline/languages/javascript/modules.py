"""Finds the files that a JavaScript module path means, which has no ending and names a folder for its `index`."""

from __future__ import annotations

from pathlib import PurePosixPath


def is_module(path: str, module: str) -> bool:
    """Return whether a script is the module; in a subproject the name is relative to its own folder."""
    stem = str(PurePosixPath(path).with_suffix("")).removesuffix("/index")
    return bool(module) and (stem == module or stem.endswith(f"/{module}"))


is_part_of = is_module
