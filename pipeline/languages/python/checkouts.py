"""Finds environments inside a checkout of a Python project, or those that its lock makes: see `protocol.Checkouts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.languages.python import probe
from pipeline.languages.python.environment import PLACES, lock_tool, pythons

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["BUILT", "INSTEAD", "LOCK", "MADE_BY", "PLACES", "first_run", "has_runner", "interpreters", "is_locked"]

LOCK: Final = "uv.lock"
MADE_BY: Final = "uv sync --frozen"
BUILT: Final = "uv runs what builds the project, on the host; no environment with pytest is there yet"
INSTEAD: Final = "or make the environment yourself: uv sync"


def is_locked(folder: Path, search_path: str) -> bool:
    """Return whether a run would create the environment from a lock file."""
    return lock_tool(folder, search_path) is not None


def interpreters(folders: Iterable[Path], *, locked: bool) -> tuple[Path, ...]:
    """Return the interpreters of the environments in these checkouts, in the order in which they are tried."""
    return pythons(folders, locked=locked)


def has_runner(interpreter: Path, folder: Path, search_path: str) -> bool:
    """Return whether an environment has pytest; no code of the project is run."""
    facts = probe.ask(interpreter, folder, {"PATH": search_path})
    return facts is not None and bool(facts.pytest)


def first_run(interpreter: Path) -> tuple[str, ...]:
    """Return the command that runs tests in an environment, without creating one."""
    return (str(interpreter), "-m", "pytest")
