"""Takes the proof that a person gives with an answer: a test that fails over the result (evidence.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.measure.proofs import MOST_CHARACTERS, refusal_of_test
from pipeline.outcomes import Reason
from pipeline.reports.fields import path_problem
from pipeline.reports.proofs import ProvingTest
from pipeline.steps.asking.proofs import work_of

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.steps.context import Context


def given_in(file: Path, worktree: Path) -> tuple[str, str]:
    """Return the path in the project, or the name of a file that lies elsewhere, and the text of a proof.

    Raises:
        UserError: it cannot be read, or is no text.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(4 * MOST_CHARACTERS + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--proof {file} cannot be read: {error}", Reason.USAGE, path=str(file)) from error
    here = file.resolve()
    inside = here.is_relative_to(worktree.resolve())
    return here.relative_to(worktree.resolve()).as_posix() if inside else here.name, content


def placed(ctx: Context, given: tuple[str, str]) -> ProvingTest:
    """Return the proof with its place in the project: a bare name is put beside the tests of the last task.

    Raises:
        UserError: @test might not write that file either.
    """
    path, content = given
    work = work_of(ctx)
    homes = [change.path.rpartition("/")[0] for one in ctx.state.done_tasks for change in ctx.task(one.id).test_files]
    homes += [name.rpartition("/")[0] for name in sorted(work.layout.collected)]
    if "/" not in path and homes and not work.layout.is_test(path):
        path = f"{homes[0]}/{path}".lstrip("/")
    fault = path_problem(path)
    why = f"{path} {fault}" if fault is not None else None
    if why is None:
        why = refusal_of_test(ctx, ProvingTest.model_construct(path=path, content=content), work)
    if why is not None or not content.strip():
        raise UserError(
            f"The proof cannot be used: {why or 'it is empty'}. Nothing was answered.", Reason.USAGE, path=path
        )
    return ProvingTest(path=path, content=content)
