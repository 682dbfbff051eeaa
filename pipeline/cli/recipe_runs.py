"""Running a recipe whose steps are its own, and how such a run stands, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import typer

from pipeline.cli.run_actions import near, repository_here
from pipeline.cli.text import print_text, several_lines
from pipeline.outcomes import Outcome
from pipeline.terminal import print_document, visible_lines

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from pipeline.service.recipe_result import RecipeDocument
    from pipeline.steps.recipe_context import RecipeContext


def recipe_folder(name: str | None) -> Path | None:
    """Return the folder of the run that is named, if it is one of a recipe's own steps."""
    from pipeline.runs.recipe_run import is_of_recipe  # noqa: PLC0415
    from pipeline.runs.store import WORKFLOW  # noqa: PLC0415

    if name is None or "/" in name:
        return None
    top = repository_here().worktree / WORKFLOW
    return next((top / each for each in (name, f"run-{name}") if is_of_recipe(top / each)), None)


def show(folder: Path, *, as_document: bool) -> None:
    """Print how a run stands, from what is on disk."""
    from pipeline.runs.recipe_run import RecipeRun  # noqa: PLC0415
    from pipeline.service.recipe_result import recipe_document  # noqa: PLC0415
    from pipeline.steps.recipe_context import ReadRun  # noqa: PLC0415

    document = recipe_document(ReadRun(RecipeRun.load(folder, driving=False)))
    if as_document:
        print_document(document)
    else:
        print_text(visible_lines(steps_text(document)))


def steps(act: Callable[[], Awaitable[RecipeContext]], *, as_document: bool) -> NoReturn:
    """Drive a run, print how it stands, and leave with its exit code."""
    import anyio  # noqa: PLC0415

    from pipeline.service.recipe_result import recipe_document  # noqa: PLC0415

    document = recipe_document(anyio.run(act))
    if as_document:
        print_document(document)
    else:
        print_text(visible_lines(steps_text(document)))
    raise typer.Exit(document.exit_code)


def steps_text(document: RecipeDocument) -> str:
    """Return how a run stands, for a person."""
    from pipeline.service.recipe_result import counted_checkpoints  # noqa: PLC0415

    lines = [f"{document.run_id}: {document.outcome.value} ({document.reason.value}): {counted_checkpoints(document)}"]
    if document.note:
        lines.append(f"  {several_lines(document.note)}")
    lines += [
        f"  {line.step}: {line.checkpoint.value if line.checkpoint else 'not begun'}"
        for line in document.steps
        if document.outcome is not Outcome.COMPLETED
    ]
    if document.output:
        lines += ["", document.output.rstrip(), ""]
    lines.append(f"  {document.spent}")
    lines.append(f"  everything is in {near(document.run_dir)}")
    lines += [f"  next: {action}" for action in document.safe_next_actions]
    return "\n".join(lines)
