"""Which files a language means by the name of a module or package."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

_GO: Final = ".go"
_RUST: Final = ".rs"
_GO_TEST: Final = "_test.go"
_SCRIPTS: Final = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")


def is_module(path: str, module: str) -> bool:
    """Return whether the file is the module (or the package's `__init__.py`), whatever folder sources are kept in.

    In Go every file of a folder is its package, which goes by the folder's path (`.` for the root). A script goes by
    its path without the ending, an `index` by that of its folder. Of Rust nothing is said: see `is_part_of`.
    """
    if path.endswith(_GO):
        return _is_in_package(path, module)
    if path.endswith(_SCRIPTS):
        return _is_script(path, module)
    return bool(module.strip(".")) and _dotted(path).endswith(f".{module.strip('.')}.")


def is_part_of(path: str, module: str) -> bool:
    """Return whether the file is the module, or lies in the package of that name."""
    if path.endswith(_GO):
        return _is_in_package(path, module)
    if path.endswith(_SCRIPTS):
        return _is_script(path, module)
    if path.endswith(_RUST):
        return _is_in_crate(path, module)
    return bool(module.strip(".")) and f".{module.strip('.')}." in _dotted(path)


def _is_in_package(path: str, package: str) -> bool:
    """Return whether a Go file is a package's production code; a project below the top names it from its own folder."""
    folder = str(PurePosixPath(path).parent)
    return not path.endswith(_GO_TEST) and (folder == package or folder.endswith(f"/{package}"))


def _is_script(path: str, module: str) -> bool:
    """Return whether a script is the module; a project below the top names it from its own folder."""
    stem = str(PurePosixPath(path).with_suffix("")).removesuffix("/index")
    return bool(module) and (stem == module or stem.endswith(f"/{module}"))


def _is_in_crate(path: str, module: str) -> bool:
    """Return whether a Rust file is the module, or of a module in it; the name may begin with that of the crate."""
    *folders, name = path.removesuffix(_RUST).split("/")
    if "src" not in folders or name in {"lib", "main"}:
        return False
    place = folders[len(folders) - folders[::-1].index("src") :] + ([name] if name != "mod" else [])
    words = module.replace("::", ".").split(".")
    return any(place[: len(tail)] == tail for tail in (words, words[1:]) if any(tail))


def _dotted(path: str) -> str:
    parts = PurePosixPath(path).with_suffix("").parts if path.endswith(".py") else ()
    return f".{'.'.join(parts)}.".removesuffix(".__init__.") + ("." if parts and parts[-1] == "__init__" else "")
