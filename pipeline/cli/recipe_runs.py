"""Running a recipe whose steps are its own, and how such a run stands, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import typer

from pipeline.cli.gate_text import near
from pipeline.cli.text import print_text, several_lines
from pipeline.outcomes import Outcome
from pipeline.terminal import print_document, visible_lines

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from pipeline.git import Repository
    from pipeline.service.progress import Display
    from pipeline.service.recipe_result import RecipeDocument
    from pipeline.steps.recipe_context import RecipeContext, Words


def show(folder: Path, here: Repository, *, as_document: bool) -> None:
    """Print how a run stands, from what is on disk, with advice as it works where somebody stands."""
    from pipeline.runs.recipe_run import RecipeRun  # noqa: PLC0415
    from pipeline.steps.recipe_context import ReadRun  # noqa: PLC0415

    _tell(ReadRun(RecipeRun.load(folder, driving=False)), here, as_document=as_document)


def drive_steps(
    act: Callable[[Display], Awaitable[RecipeContext]],
    here: Repository,
    worktree: Path,
    run: str = "",
    *,
    as_document: bool,
) -> NoReturn:
    """Drive a run, print how it stands, and leave with its exit code."""
    import anyio  # noqa: PLC0415

    from pipeline.cli.status_line import opened_display  # noqa: PLC0415
    from pipeline.service.other_worktrees import advice_as_typed  # noqa: PLC0415

    with advice_as_typed(here, worktree, run), opened_display() as display:
        ctx = anyio.run(act, display)
    raise typer.Exit(_tell(ctx, here, as_document=as_document).exit_code)


def _tell(ctx: Words, here: Repository, *, as_document: bool) -> RecipeDocument:
    from pipeline.service.other_worktrees import as_typed, text_as_typed  # noqa: PLC0415
    from pipeline.service.recipe_result import recipe_document  # noqa: PLC0415

    found, worktree = recipe_document(ctx), ctx.run.folder.parents[1]
    actions = as_typed(found.safe_next_actions, here, worktree, found.run_id)
    note = text_as_typed(found.note, here, worktree, found.run_id)
    document = found.model_copy(update={"safe_next_actions": actions, "note": note})
    if as_document:
        print_document(document)
    else:
        print_text(visible_lines(steps_text(document)))
    return document


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
