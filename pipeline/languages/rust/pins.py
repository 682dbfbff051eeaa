"""Reads which toolchain a Rust project asks rustup for; rustup itself would also accept a path in the project."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from pipeline.languages.environments.pins import PLAIN, text_of, upwards
from pipeline.languages.protocol import Missing
from pipeline.toml_text import toml_table

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES: Final = ("rust-toolchain", "rust-toolchain.toml")
"""The files that name a toolchain, in rustup's order."""


def pinned_toolchain(folder: Path) -> str | Missing | None:
    """Return the name of a folder's toolchain, None for rustup's default.

    As rustup decides: the user's variable, then from the folder upwards the user's override and the project's file.
    A file that does not name a toolchain plainly is a reason to run none: to rustup it may mean something else.
    """
    if os.environ.get("RUSTUP_TOOLCHAIN"):
        return None  # it is handed on as it is
    overrides = _overrides()
    for place in upwards(folder):
        if str(place) in overrides:
            return overrides[str(place)]
        for name in _NAMES:
            if os.path.lexists(place / name):
                return _named(place / name)
    return None


def _named(file: Path) -> str | Missing | None:
    try:
        text = text_of(file)
        if text is None:
            return _refused(file, "is no regular file")
        is_older_form = not file.suffix and "[" not in text  # nothing but the name
        table: object = {"channel": text.strip()} if is_older_form else toml_table(text).get("toolchain", {})
    except ValueError:
        return _refused(file, "cannot be read as TOML")
    if not isinstance(table, dict):
        return _refused(file, "has no table [toolchain]")
    said = cast("dict[str, object]", table)
    if "path" in said:
        return _refused(file, "names a toolchain by its path, which would run a program of the project's choice")
    channel = said.get("channel")
    if channel is None:
        return None
    if not isinstance(channel, str) or not PLAIN.fullmatch(channel):
        return _refused(file, f"names no toolchain by a plain name: {channel!r}")
    return channel


def _refused(file: Path, why: str) -> Missing:
    return Missing(f"{file.name} {why}.")


def _overrides() -> Mapping[str, str]:
    """Return the toolchains set by the user's `rustup override set`, by folder."""
    home = Path(os.environ.get("RUSTUP_HOME") or Path.home() / ".rustup")
    try:
        found: Any = tomllib.loads((home / "settings.toml").read_text(encoding="utf-8")).get("overrides", {})
        return {str(folder): str(name) for folder, name in found.items()}
    except (OSError, ValueError, AttributeError):
        return {}
