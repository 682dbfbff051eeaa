"""Asks nix which variables a `flake.nix` or `shell.nix` declares for its development shell, and advises how to use one.

A shell has variables of the project's own, such as where test data is, that no list of ours can name. Those that the
derivation declares are no secrets: they lie in the store, for everybody to read. What a hook of the shell sets is not
among them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SHELLS: Final[Mapping[str, tuple[str, ...]]] = {
    "flake.nix": ("nix", "develop", "-c"),
    "shell.nix": ("nix", "develop", "-f", "shell.nix", "-c"),
}
_DEVELOP: Final = "develop"
_STARTS: Final = frozenset({"-c", "--command"})
_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_NOT_TAKEN: Final = re.compile(
    r"(HOME|TMP|TMPDIR|TEMP|TEMPDIR|SHELL|SHLVL|TERM|USER|LOGNAME|PATH|HOST_PATH|PWD|OLDPWD|CONFIG_SHELL|IFS|ENV|BASH_ENV"
    r"|LD_PRELOAD|LD_AUDIT|NODE_OPTIONS|CARGO_TARGET_DIR|GOCACHE|GOTMPDIR)"
    r"|(NIX|PYTHON|PYTEST|GIT|SSH|XDG|BASH|REDFIRST)_?.*"
)
"""Variables that belong to the nix build, to the user, or to the measurement."""


def asking(wrapper: Sequence[str]) -> tuple[str, ...] | None:
    """Return the arguments for nix that print a wrapper's declared variables; None for other wrappers."""
    words = tuple(wrapper)
    if Path(words[0]).name != "nix" or _DEVELOP not in words:
        return None
    at = words.index(_DEVELOP)
    rest = words[at + 1 : -1] if words[-1] in _STARTS else words[at + 1 :]
    return (*words[1:at], "print-dev-env", "--json", *rest)


def declared(said: str | None) -> dict[str, str]:
    """Return the variables in the output of `nix print-dev-env --json`; none if it is something else."""
    try:
        document: Any = json.loads(said or "")
        found: dict[str, dict[str, Any]] = document["variables"]
        values = {name: one.get("value") for name, one in found.items() if one.get("type") == "exported"}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return {name: value for name, value in values.items() if isinstance(value, str) and _is_projects(name)}


def _is_projects(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and _NOT_TAKEN.fullmatch(name) is None


def advice(worktree: Path, *runner: str) -> str:
    """Return advice for a project whose development shell is not used; empty if it has none."""
    file = next((name for name in _SHELLS if (worktree / name).is_file()), None)
    if file is None:
        return ""
    words = json.dumps([*_SHELLS[file], *runner])
    return f" The project has a {file}: with its shell that is command = {words}."
