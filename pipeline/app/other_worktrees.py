"""Acts on runs of other worktrees there, and words its advice for where the command was typed."""

from __future__ import annotations

import os
import re
import shlex
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.run.runs_of_repository import Roster, find_run, seen_from
from pipeline.run.store import WORKFLOW
from pipeline.search_path import without_the_repository

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence
    from pathlib import Path

    from pipeline.repo import Repository
    from pipeline.run.gates import GateAnswer, OpenGate

_ANYWHERE: Final = frozenset(
    {
        *("runs", "show", "explain", "diff", "resume", "approve", "reject", "answer", "stop", "abandon", "land"),
        *("hand-in", "desk", "agents", "routes", "schema", "--help"),
    }
)
"""The commands that name a run, or mean no worktree."""
_WITHIN_TEXT: Final = re.compile(r"\b(?:git (?=cherry-pick|switch|stash|log|status)|redfirst (?=issue|verify))")
"""Where a command begins, within a sentence, that means the worktree in which it is typed."""


def located(here: Repository, name: str) -> tuple[Repository, Path]:
    """Return the run called *name*: the repository as seen from the worktree that keeps it, and its folder.

    Programs are looked up for it as if somebody stood there.

    Raises:
        UserError: there is no such run, or more than one.
    """
    folder = find_run(here, name)
    repository = seen_from(here, folder)
    if repository is not here and "PATH" in os.environ:
        os.environ["PATH"] = without_the_repository(os.environ["PATH"], repository.worktree)
    return repository, folder


def as_typed(actions: Iterable[str], here: Repository, worktree: Path, run: str = "") -> tuple[str, ...]:
    """Return commands as they work where somebody stands.

    Args:
        actions: As they work in the worktree.
        here: The repository as seen from where somebody stands.
        worktree: What keeps the run.
        run: The name of its folder, once it has one.
    """
    spoken = Roster(here).spoken(worktree / WORKFLOW / run)
    named = [_with_name(action, run, spoken) for action in actions] if run else list(actions)
    if worktree.resolve() != here.worktree.resolve():
        named = [_from_elsewhere(action, shlex.quote(str(worktree))) for action in named]
    standing = f" -C {shlex.quote(str(here.worktree))} "  # nobody has to be told where they stand
    return tuple(each.replace(standing, " ") for each in named)


def text_as_typed(text: str, here: Repository, worktree: Path, run: str = "") -> str:
    """Return a text with the commands in it as they work where somebody stands."""
    return texts_as_typed((text,), here, worktree, run)[0]


def texts_as_typed(texts: Sequence[str], here: Repository, worktree: Path, run: str = "") -> tuple[str, ...]:
    """Return texts with the commands in them as they work where somebody stands."""
    if not any(texts):
        return tuple(texts)
    spoken = Roster(here).spoken(worktree / WORKFLOW / run)
    named = [_with_name(text, run, spoken) for text in texts] if run else list(texts)
    if worktree.resolve() == here.worktree.resolve():
        return tuple(named)
    there = shlex.quote(str(worktree))
    return tuple(
        _WITHIN_TEXT.sub(
            lambda found: f"git -C {there} " if found[0].startswith("git") else f"cd {there} && {found[0]}", text
        )
        for text in named
    )


def gate_as_typed(gate: OpenGate | None, here: Repository, worktree: Path, run: str) -> OpenGate | None:
    """Return an open gate with its answers as they work where somebody stands."""
    if gate is None:
        return None
    return replace(gate, answers=answers_as_typed(gate.answers, here, worktree, run))


def answers_as_typed(
    answers: Sequence[GateAnswer], here: Repository, worktree: Path, run: str
) -> tuple[GateAnswer, ...]:
    """Return the answers of a gate as they work where somebody stands."""
    commands = as_typed((one.command for one in answers), here, worktree, run)
    return tuple(replace(one, command=command) for one, command in zip(answers, commands, strict=True))


@contextmanager
def advice_as_typed(here: Repository, worktree: Path, run: str = "") -> Generator[None]:
    """Let the commands of an error, and those in its message, be those that work where somebody stands."""
    try:
        yield
    except UserError as error:
        if not worktree.is_dir():  # one that was made for a run which was then refused: nothing can be typed there
            raise
        for each in (error, *error.also):
            each.actions = as_typed(each.actions, here, worktree, run)
            each.message = text_as_typed(each.message, here, worktree, run)
        raise


def _with_name(action: str, name: str, spoken: str) -> str:
    return action if name == spoken else re.sub(rf"(?<=\s){re.escape(name)}(?=[\s,;:]|\.?\Z)", lambda _: spoken, action)


def _from_elsewhere(action: str, there: str) -> str:
    program, _, rest = action.partition(" ")
    if program == "git" and not rest.startswith("-C "):
        return f"git -C {there} {rest}"
    if program == "redfirst" and rest.partition(" ")[0] not in _ANYWHERE:
        return f"cd {there} && {action}"
    return action
