"""Finds the command that adds an extra to this installation of redfirst, by how it was installed."""

from __future__ import annotations

import importlib.metadata
import json
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


def install_command(extra: str) -> str:
    """Return the command that adds the extra to this program's environment."""
    return command_in(Path(sys.prefix), sys.executable, _origin(), extra, has_pip=find_spec("pip") is not None)


def command_in(prefix: Path, python: str, origin: str | None, extra: str, *, has_pip: bool) -> str:
    """Return the command that adds the extra to an environment.

    Args:
        prefix: The environment; uv and pipx leave a file in those that they made.
        python: Its interpreter.
        origin: What the installer noted of where it came from (`direct_url.json`), None where it was an index.
        extra: The name of the extra.
        has_pip: Whether pip is in that environment.
    """
    what = " ".join(shlex.quote(word) for word in _requirement(origin, extra))
    if (prefix / "uv-receipt.toml").is_file():
        return f"uv tool install {what}"
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx install --force {what}"
    if has_pip:
        return f"{shlex.quote(python)} -m pip install {what}"
    return f"uv pip install --python {shlex.quote(python)} {what}"


def _requirement(origin: str | None, extra: str) -> tuple[str, ...]:
    """Return the requirement to install, as pip, pipx and uv accept it."""
    noted: dict[str, Any] = json.loads(origin) if origin else {}
    place = urlsplit(str(noted.get("url", "")))
    if not noted:
        return (f"redfirst[{extra}]",)
    if "vcs_info" in noted:
        return (f"redfirst[{extra}] @ {noted['vcs_info']['vcs']}+{place.geturl()}@{noted['vcs_info']['commit_id']}",)
    if place.scheme != "file":
        return (f"redfirst[{extra}] @ {place.geturl()}",)
    folder = f"{unquote(place.path)}[{extra}]"
    return ("--editable", folder) if noted.get("dir_info", {}).get("editable") else (folder,)


def _origin() -> str | None:
    try:
        return importlib.metadata.distribution("redfirst").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:  # not installed: a checkout on the path
        folder = Path(__file__).resolve().parents[3]
        return json.dumps({"url": folder.as_uri(), "dir_info": {"editable": True}})
