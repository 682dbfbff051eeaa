"""Runs a command on a run, wherever its worktree is, and prints how the run stands afterwards."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from pipeline.cli.text import answer_rows, near, print_text, reading_rows, say, several_lines
from pipeline.errors import UserError
from pipeline.outcomes import Outcome, Reason
from pipeline.progress import duration
from pipeline.reset_times import moment_words
from pipeline.terminal import print_document, visible_lines

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pipeline.git import Repository
    from pipeline.service.progress import Display
    from pipeline.service.run_config import RunOptions
    from pipeline.service.run_result import RunDocument
    from pipeline.steps.context import Context
    from pipeline.steps.recipe_context import RecipeContext

    OfRecipe = Callable[[Repository, Path, RunOptions, Display], Awaitable[RecipeContext]]

_BY: Final = "`redfirst work` goes on with it by itself"


def answer(
    command: str,
    name: str | None,
    prepare: Callable[[Context], None],
    options: RunOptions,
    as_document: bool,
    *,
    of_recipe: OfRecipe | None = None,
    plain: bool = False,
) -> None:
    """Answer a run, or go on with it, and leave with its exit code.

    Args:
        command: What is done.
        name: The run, if one is named.
        prepare: What answers a run of an issue.
        options: What the command line says.
        as_document: Print JSON.
        of_recipe: What drives a run that is one of a recipe's own steps, seen from the worktree that keeps it.
        plain: Redraw nothing.
    """
    from pipeline.cli.recipe_runs import drive_steps  # noqa: PLC0415
    from pipeline.runs.records import is_of_recipe  # noqa: PLC0415
    from pipeline.service import composition  # noqa: PLC0415
    from pipeline.service.other_worktrees import located  # noqa: PLC0415

    here = repository_here()
    repository, folder = located(here, named(command, here, name))
    options = replace(options, environ=dict(os.environ))
    if of_recipe is not None and is_of_recipe(folder):
        drive_steps(
            lambda display: of_recipe(repository, folder, options, display),
            here,
            repository.worktree,
            folder.name,
            as_document=as_document,
            plain=plain,
        )
    drive(
        lambda display: composition.go_on(repository, folder, options, display, prepare),
        here,
        repository.worktree,
        folder.name,
        as_document=as_document,
        plain=plain,
    )


def going_on(agent: list[str] | None, values: list[str] | None) -> RunOptions:
    """Return the options of a run that goes on, with what the command line says of its configuration."""
    from pipeline.service.run_config import RunOptions  # noqa: PLC0415

    return RunOptions("", agents=tuple(agent or ()), values=tuple(values or ()))


def refuse_foreign(foreign: Mapping[str, object], why: str, run: str | None = None) -> None:
    """Refuse options that can mean nothing here.

    Args:
        foreign: What was said, by the words of the command line.
        why: What is meant is none of what they belong to, in words.
        run: The run that is meant.

    Raises:
        UserError: one is given; nothing was changed.
    """
    said = [name for name, value in foreign.items() if value]
    if said:
        actions = () if run is None else (f"redfirst show {run}",)
        raise UserError(
            f"{why}: {' and '.join(said)} can mean nothing here. Nothing was changed.", Reason.USAGE, actions=actions
        )


def drive(
    start: Callable[[Display], Awaitable[Context]],
    here: Repository,
    worktree: Path,
    run: str = "",
    *,
    as_document: bool,
    plain: bool = False,
) -> None:
    """Drive a run, print how it stands, and leave with its exit code."""
    document = acted(start, here, worktree, run, plain=plain)
    tell(document, as_document=as_document)
    raise typer.Exit(document.exit_code)


def acted(
    act: Callable[[Display], Awaitable[Context]],
    here: Repository,
    worktree: Path,
    run: str = "",
    *,
    plain: bool = False,
) -> RunDocument:
    """Act on a run, in its worktree; return how it stands, with advice as it works where somebody stands."""
    import anyio  # noqa: PLC0415

    from pipeline.cli.status_line import opened_display  # noqa: PLC0415
    from pipeline.service.other_worktrees import advice_as_typed, as_typed, gate_as_typed, text_as_typed  # noqa: PLC0415
    from pipeline.service.run_result import run_document  # noqa: PLC0415

    with advice_as_typed(here, worktree, run), opened_display(plain=plain) as display:
        document = run_document(anyio.run(act, display))
    actions = as_typed(document.safe_next_actions, here, worktree, document.run_id)
    gate = gate_as_typed(document.at_gate, here, worktree, document.run_id)
    note = text_as_typed(document.note, here, worktree, document.run_id)
    return document.model_copy(update={"safe_next_actions": actions, "at_gate": gate, "note": note})


def tell(document: RunDocument, *, as_document: bool) -> None:
    """Print how a run stands."""
    if as_document:
        print_document(document)
    else:
        print_text(visible_lines(run_text(document)))


def named(command: str, repository: Repository, name: str | None) -> str:
    """Return the run that a command is to change, and say which one it is where nobody named it."""
    from pipeline.service.meant_run import meant_by  # noqa: PLC0415

    if name is not None:
        return name
    rest = sys.argv[sys.argv.index(command) + 1 :] if command in sys.argv else []
    found, why = meant_by(command, repository, [word for word in rest if word != "--json"])
    say(f"{found}: {why}")
    return found


def repository_here() -> Repository:
    """Return the repository that somebody stands in."""
    from pipeline.git import Repository  # noqa: PLC0415

    return Repository.find(Path.cwd())


def run_text(document: RunDocument) -> str:
    """Return the same for a person."""
    if document.reason is Reason.INTERRUPTED:
        return f"{document.run_id}: paused: {several_lines(document.note)}. Go on: redfirst resume {document.run_id}"
    gate = document.at_gate
    how = f"at {gate.place}" if gate else f"({document.reason.value})"
    lines = [f"{document.run_id}: {document.outcome.value} {how}"]
    if document.note and document.outcome not in {Outcome.COMPLETED, Outcome.COMPLETED_WITH_BLOCKERS}:
        lines.append(f"  {several_lines(document.note)}")
    if document.not_before is not None:
        lines.append(f"  not before {moment_words(document.not_before)}: then the limit of the account ends, and {_BY}")
    lines += [f"  commit {commit[:12]} on {document.branch}" for commit in document.commits]
    lines += [f"  filed {issue}" for issue in document.follow_ups]
    lines += [f"  tests dropped: {several_lines(line)}" for line in document.dropped_tests]
    lines += [f"  blocker on record: {finding}" for finding in document.blockers]
    lines += [f"  {label}: {text}" for label, text in (reading_rows(gate) if gate else ())]
    lines.append(f"  {duration(document.seconds)}, {document.spent}")
    lines.append(f"  everything is in {near(document.run_dir)}")
    if gate:
        lines += [f"  {label}: {text}" if label else f"        {text}" for label, text in answer_rows(gate)]
    else:
        lines += [f"  next: {action}" for action in document.safe_next_actions]
    return "\n".join(lines)
