"""Finds the user's folders: home, configuration and state (XDG)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def home(environ: Mapping[str, str]) -> Path:
    """Return the user's home folder."""
    return Path(environ["HOME"]) if environ.get("HOME") else Path.home()


def config_folder(environ: Mapping[str, str]) -> Path:
    """Return `$XDG_CONFIG_HOME/redfirst`."""
    return _xdg(environ, "XDG_CONFIG_HOME", ".config")


def state_folder(environ: Mapping[str, str]) -> Path:
    """Return `$XDG_STATE_HOME/redfirst`."""
    return _xdg(environ, "XDG_STATE_HOME", ".local/state")


def _xdg(environ: Mapping[str, str], name: str, otherwise: str) -> Path:
    folder = Path(environ.get(name, ""))
    # The base directory specification: a relative path is to be ignored.
    return (folder if folder.is_absolute() else home(environ) / otherwise) / "redfirst"


def short(path: Path, environ: Mapping[str, str]) -> str:
    """Return a path as a person would type it: relative to the working directory or to `~`, else absolute."""
    place = Path(os.path.abspath(path))  # noqa: PTH100  (a link in it stays one)
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return str(place)
    if place.is_relative_to(here):
        return str(place.relative_to(here))
    own = home(environ)
    return f"~/{place.relative_to(own)}" if place != own and place.is_relative_to(own) else str(place)
