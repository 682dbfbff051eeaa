"""Which files Go means by the path of a package: every file of a folder is its package (`.` for the root)."""

from __future__ import annotations

from pathlib import PurePosixPath


def is_module(path: str, module: str) -> bool:
    """Return whether the file is a package's production code; a project below the top names it from its own folder."""
    folder = str(PurePosixPath(path).parent)
    return not path.endswith("_test.go") and (folder == module or folder.endswith(f"/{module}"))


is_part_of = is_module
