"""Asks a Python interpreter about its environment, without running any code of a repository.

An interpreter is started as `-I -S`, in the root, and computes its answer from files (`environment_facts.py`). Which
interpreter a `pytest` program belongs to is read from its first lines.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.languages.environments.pins import chosen_versions

if TYPE_CHECKING:
    from collections.abc import Mapping

_FACTS: Final = Path(__file__).with_name("environment_facts.py")
_LIMIT_S: Final = 60.0
_HEAD: Final = 2048
_EXEC: Final = re.compile(rb"'''exec' (?P<words>[^\n]+)")
_BESIDE: Final = re.compile(r""""\$\(dirname -- "\$\(realpath -- "\$0"\)"\)"/'?(?P<name>[\w.-]+)'?""")
_DROPPED: Final = ("PYTHON", "PYTEST", "VIRTUAL_ENV", "CONDA_", "UV_PROJECT", "NIX_PYTHON")


class Facts(BaseModel):
    """The facts that an interpreter reports about its environment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    executable: str
    prefix: str
    base_prefix: str
    python: str
    pytest: str
    plugins: tuple[str, ...]
    path: tuple[str, ...]
    mapped: tuple[str, ...]
    editable: tuple[str, ...]


def ask(python: Path, worktree: Path, environ: Mapping[str, str]) -> Facts | None:
    """Return an interpreter's facts, None if it does not run.

    Args:
        python: The interpreter, or a version manager's script in its place.
        worktree: Whose version files choose between versions, where such a script asks for them.
        environ: Variables for it, PATH among them.
    """
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-c", _FACTS.read_text(encoding="utf-8")],  # pyenv looks for versions beside a file
            cwd="/",
            env=cleaned({**chosen_versions("python", worktree), **environ}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_LIMIT_S,
            process_group=0,  # Ctrl-C at a terminal is for the driver
            check=False,
        )
        return Facts.model_validate_json(done.stdout)
    except (OSError, subprocess.SubprocessError, ValidationError):
        return None


def cleaned(more: Mapping[str, str]) -> dict[str, str]:
    """Return the user's variables and *more*, without those that point Python or uv at another environment."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}, **more}


def interpreter_of(script: Path, search_path: str) -> Path | None:
    """Return the interpreter in a `pytest` script's first lines; None if they name none.

    Args:
        script: What an installer wrote: `#!/path/python`, or a line for `sh` where that would be too long; or a
            version manager's script, beside which there is one for the interpreter.
        search_path: Where `#!/usr/bin/env python` is looked up.
    """
    if script.parent.name == "shims":
        return script.with_name("python")
    try:
        with script.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    first, _, rest = head.partition(b"\n")
    words = os.fsdecode(first).removeprefix("#!").split() if first.startswith(b"#!") else []
    if not words:
        return None
    if Path(words[0]).name == "env":
        found = shutil.which(words[-1], path=search_path)
        return Path(found) if found is not None and len(words) > 1 else None
    if Path(words[0]).name in {"sh", "bash", "dash"}:
        line = _EXEC.match(rest)
        return _behind(os.fsdecode(line["words"]), script) if line else None
    return _absolute(os.fsdecode(first).removeprefix("#!").strip(), script)


def _behind(words: str, script: Path) -> Path | None:
    """Return the program in `'''exec' /path/python "$0" "$@"`, quoted or not, or relative to the script."""
    relocatable = _BESIDE.match(words)
    if relocatable:
        return script.resolve().parent / relocatable["name"]
    return _absolute(words.removesuffix('"$@"').rstrip().removesuffix('"$0"').strip().strip("\"'"), script)


def _absolute(path: str, script: Path) -> Path | None:
    found = Path(path if os.access(path, os.X_OK) else path.split(" ", maxsplit=1)[0])
    return found if found.is_absolute() and found != script else None
