"""Which files JavaScript means by a path: it goes without the ending, an `index` by that of its folder."""

from __future__ import annotations

from pathlib import PurePosixPath


def is_module(path: str, module: str) -> bool:
    """Return whether a script is the module; a project below the top names it from its own folder."""
    stem = str(PurePosixPath(path).with_suffix("")).removesuffix("/index")
    return bool(module) and (stem == module or stem.endswith(f"/{module}"))


is_part_of = is_module
