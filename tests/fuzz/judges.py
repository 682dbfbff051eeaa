"""Programs that were not written here, asked for their opinion: git about paths, bash about words."""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

_EMPTY_BLOB: Final = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
_ENVIRONMENT: Final = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8", "GIT_CONFIG_GLOBAL": os.devnull}


def git_takes(path: str) -> bool:
    """Return whether git would store a file under this path, checked out on Linux, macOS or Windows."""
    folder = _repository().name
    (Path(folder) / ".git/index").unlink(missing_ok=True)
    protections = ("-c", "core.protectHFS=true", "-c", "core.protectNTFS=true")
    command = [
        "git",
        "-C",
        folder,
        *protections,
        "update-index",
        "--add",
        "--cacheinfo",
        f"100644,{_EMPTY_BLOB},{path}",
    ]
    return subprocess.run(command, env=_ENVIRONMENT, capture_output=True, timeout=300, check=False).returncode == 0


def bash_words(text: str) -> tuple[str, ...] | None:
    """Return the words that bash makes of a command line, None if it does not understand it.

    The shell is a restricted one that finds no programs: if the line holds more than words, nothing happens.
    """
    command = ["/bin/bash", "--norc", "--noprofile", "-r", "-c", f"set -f; printf '%s\\0' {text}"]
    environment = {**_ENVIRONMENT, "PATH": "/nonexistent"}
    done = subprocess.run(
        command, env=environment, cwd=_repository().name, capture_output=True, timeout=300, check=False
    )
    if done.returncode != 0 or done.stderr:
        return None
    return tuple(done.stdout.decode().split("\0")[:-1])


@cache
def _repository() -> tempfile.TemporaryDirectory[str]:
    """Return an empty repository for this process; it goes away with it."""
    folder = tempfile.TemporaryDirectory(prefix="redfirst-fuzz-")
    subprocess.run(["git", "init", "-q", folder.name], env=_ENVIRONMENT, check=True, timeout=300)
    return folder
