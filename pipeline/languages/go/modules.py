"""Finds the files that a Go package path means: every file of the folder (`.` for the root)."""

from __future__ import annotations

from pathlib import PurePosixPath


def is_module(path: str, module: str) -> bool:
    """Return whether a file is a package's production code; in a subproject the name is relative to its own folder."""
    folder = str(PurePosixPath(path).parent)
    return not path.endswith("_test.go") and (folder == module or folder.endswith(f"/{module}"))


is_part_of = is_module
