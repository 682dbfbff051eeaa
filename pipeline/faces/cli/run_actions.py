"""Runs a command on a run, wherever its worktree is, and prints how the run stands afterwards."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import anyio
import typer

from pipeline.app import start
from pipeline.app.answer import AnsweredDocument, record
from pipeline.app.next_lines import advice_as_typed, document_as_typed, located
from pipeline.app.notices import beside
from pipeline.app.run_config import RunOptions
from pipeline.app.run_result import RunDocument, run_document
from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.faces.cli.arguments import named
from pipeline.faces.cli.show import tell_steps
from pipeline.faces.cli.status_line import opened_display
from pipeline.faces.cli.text import answer_rows, near, print_result, reading_rows, say, several_lines
from pipeline.outcomes import COMPLETED, Reason, stands_words
from pipeline.progress import duration
from pipeline.repo import Repository
from pipeline.reset_times import moment_words
from pipeline.run.records import is_of_recipe
from pipeline.steps.recipe_context import RecipeContext

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pipeline.app.live_view import Display
    from pipeline.app.start import Act
    from pipeline.steps.context import Context


_BY: Final = "`redfirst work` goes on with it by itself"


def answer(
    ctx: typer.Context,
    name: str | None,
    act: Act,
    options: RunOptions,
    foreign: tuple[Mapping[str, object], Mapping[str, object]],
    *,
    as_document: bool,
    plain: bool = False,
    no_drive: bool = False,
) -> None:
    """Answer a run, or go on with it, drive it unless it is only answered, and leave with its exit code.

    Args:
        ctx: The command that does it.
        name: The run, if one is named.
        act: What is done to the run.
        options: What the command line says.
        foreign: What is said that can mean nothing for a run of an issue, and for one of a recipe's own steps.
        as_document: Print JSON.
        plain: Redraw nothing.
        no_drive: Only answer.
    """
    here = Repository.find(Path.cwd())
    if no_drive:
        refuse_foreign({"--agent": options.agents, "--set": options.values}, "--no-drive only answers")
    repository, folder = located(here, named(ctx, here, name))
    if is_of_recipe(folder):
        why = (
            "of a recipe, whose approval points stand in it" if ctx.info_name == "resume" else "of a recipe's own steps"
        )
        refuse_foreign(foreign[1], f"{folder.name} is {why}", folder.name)
    else:
        refuse_foreign(foreign[0], f"{folder.name} is of an issue", folder.name)
    if no_drive:
        _record(here, repository, folder, act, as_document=as_document)
        return
    options = replace(options, environ=dict(os.environ))
    go_on = partial(start.go_on, repository, folder, options, act)
    drive(go_on, here, repository.worktree, folder.name, as_document=as_document, plain=plain)


def _record(here: Repository, repository: Repository, folder: Path, act: Act, *, as_document: bool) -> None:
    """Answer a run, and print how it stands then."""
    with advice_as_typed(here, repository.worktree, folder.name):
        document = record(repository, folder, act, say)
    document = document_as_typed(document, here, repository.worktree, folder.name)
    print_result(document, answers_text, as_document=as_document)


def answers_text(document: AnsweredDocument) -> str:
    """Return how a run stands that was only answered, for a person."""
    how = stands_words(document.outcome, document.reason) if document.outcome else "running"
    how = "queued" if document.queued else how
    lines = [f"{document.run_id}: {document.answer}: {how}"]
    return "\n".join([*lines, *(f"  next: {action}" for action in document.safe_next_actions)])


def going_on(agent: list[str] | None, values: list[str] | None) -> RunOptions:
    """Return the options of a run that goes on, with what the command line says of its configuration."""
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
    act: Callable[[Display], Awaitable[Context | RecipeContext]],
    here: Repository,
    worktree: Path,
    run: str = "",
    *,
    as_document: bool,
    plain: bool = False,
) -> NoReturn:
    """Drive a run, print how it stands, and leave with its exit code."""
    with beside(here, os.environ, lambda said: say(visible(said))):
        with advice_as_typed(here, worktree, run), opened_display(plain=plain) as display:
            ctx = anyio.run(act, display)
        if isinstance(ctx, RecipeContext):
            raise typer.Exit(tell_steps(ctx, here, as_document=as_document, driven=True).exit_code or 0)
        document = document_of(ctx, here, worktree)
        print_result(document, run_text, as_document=as_document)
        raise typer.Exit(document.exit_code)


def document_of(ctx: Context, here: Repository, worktree: Path) -> RunDocument:
    """Return how a run stands, with advice as it works where somebody stands."""
    return document_as_typed(run_document(ctx), here, worktree, ctx.run.info.run_id)


def run_text(document: RunDocument) -> str:
    """Return the same for a person."""
    if document.reason is Reason.INTERRUPTED:
        return f"{document.run_id}: paused: {several_lines(document.note)}. Go on: redfirst resume {document.run_id}"
    gate = document.at_gate
    how = f"at {gate.place}" if gate else f"({document.reason.value})"
    lines = [f"{document.run_id}: {document.outcome.value} {how}"]
    if document.note and document.outcome not in COMPLETED:
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
