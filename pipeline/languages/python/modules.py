"""Finds the files that a dotted Python name means."""

from __future__ import annotations

from pathlib import PurePosixPath


def is_module(path: str, module: str) -> bool:
    """Return whether a file is the module (or the package's `__init__.py`), in whatever source folder."""
    name = module.strip(".")
    return bool(name) and _dotted(path).endswith(f".{name}.")


def is_part_of(path: str, module: str) -> bool:
    """Return whether a file is the module, or lies in the package of that name."""
    name = module.strip(".")
    return bool(name) and f".{name}." in _dotted(path)


def _dotted(path: str) -> str:
    parts = PurePosixPath(path).with_suffix("").parts
    return f".{'.'.join(parts)}.".removesuffix(".__init__.") + ("." if parts[-1] == "__init__" else "")
