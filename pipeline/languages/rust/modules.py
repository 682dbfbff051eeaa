"""Finds the files that a Rust module path means within its crate."""

from __future__ import annotations


def is_module(path: str, module: str) -> bool:  # noqa: ARG001  (every language has it)
    """Return False: a file alone does not tell, since a name may be that of an item in it."""
    return False


def is_part_of(path: str, module: str) -> bool:
    """Return whether a file is the module, or of a module in it; the name may begin with the crate's."""
    *folders, name = path.removesuffix(".rs").split("/")
    if "src" not in folders or name in {"lib", "main"}:
        return False
    place = folders[len(folders) - folders[::-1].index("src") :] + ([name] if name != "mod" else [])
    words = module.replace("::", ".").split(".")
    return any(place[: len(tail)] == tail for tail in (words, words[1:]) if any(tail))
