"""Runs a command for a step of a recipe: in the box, over a copy of what the step sees; what it writes is dropped."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.measure.commands import program_for, run_in_copy
from pipeline.measure.measuring import UnmeasurableError
from pipeline.measure.project_tools import kit_of
from pipeline.outcomes import Reason
from pipeline.process import WORKSPACE, BoxError
from pipeline.programs import Program
from pipeline.progress import duration
from pipeline.recipes.step_table import StepEvent, StepSignal
from pipeline.reports.markdown import sections
from pipeline.reports.untrusted_text import fenced, one_line

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.measure.project_tools import Kit
    from pipeline.process import Completed
    from pipeline.steps.recipe_context import RecipeContext

_TIMEOUT_S: Final = 900
"""How long a command may take, unless the step says otherwise."""
_HEAD, _TAIL = 8_000, 24_000
"""Characters of what it printed that are kept: of the beginning, and of the end."""
_EXECUTABLE: Final = "100755"
_LONGEST: Final = 100_000
"""Bytes of one word; a system takes 131,072."""


async def run(ctx: RecipeContext) -> StepEvent:
    """Run the command of the step; return whether it ended as the step expects."""
    words = tuple(ctx.with_values(word) for word in ctx.step.run or ())
    if (fault := _fault(words)) is not None:
        return _said(ctx, StepSignal.CANNOT_PROCEED, fault, "")
    try:
        completed, output, errors = await _ended(ctx, words)
    except UserError as error:
        return _said(ctx, StepSignal.CANNOT_PROCEED, error.message, "")
    except (UnmeasurableError, BoxError) as error:
        return StepEvent(signal=StepSignal.ENV_BROKEN, note=str(error))
    told = sections(("Output", _cut(output)), ("Errors", _cut(errors)))
    if completed.truncated:
        told += "\n\nIt printed more than is kept.\n"
    return _said(ctx, _signal(ctx, completed), f"{_how(completed)}: {one_line(shlex.join(words))}", told)


async def _ended(ctx: RecipeContext, words: tuple[str, ...]) -> tuple[Completed, str, str]:
    kit = await _kit(ctx)
    what = f"{ctx.lane_name}: {one_line(shlex.join(words))[:200]}"
    ctx.say(f"    {what} ...")
    async with ctx.copies.one_at_a_time:  # beside another measurement it would take its time for its own
        with ctx.copies.lent(ctx.base) as folder, ctx.progress.doing(what) as took:
            program = _program(ctx, folder, words[0], kit)
            limit = ctx.step.timeout_s or _TIMEOUT_S
            found = await run_in_copy(ctx, folder, program, words[1:], kit, timeout_s=limit, shapes=True)
    ctx.say(f"    {what}: {_how(found[0])} ({took})")
    return found


async def _kit(ctx: RecipeContext) -> Kit | None:
    """Return the tools of the project's tests, None where it has none: a command may need nothing of them."""
    async with ctx.looking:
        try:
            return await kit_of(ctx)
        except UnmeasurableError:
            return None


def _program(ctx: RecipeContext, folder: Path, word: str, kit: Kit | None) -> Program:
    """Return what is started: a file of the tree where the word has a slash in it, else a program of the host."""
    path = PurePosixPath(word)
    if "/" not in word or path.is_absolute():
        return program_for(ctx, word, kit)
    modes = {entry.path: entry.mode for entry in ctx.repository.entries(ctx.base)}
    if modes.get(str(path)) != _EXECUTABLE:
        raise UserError(f"The tree that this step sees has no program {word}.", Reason.USAGE)
    return Program(ctx.box.inside(folder, WORKSPACE) / path)


def _signal(ctx: RecipeContext, completed: Completed) -> StepSignal:
    if completed.timed_out:
        return StepSignal.TIMED_OUT
    if completed.exit_code is None:
        return StepSignal.CANNOT_PROCEED  # killed: it neither passed nor failed
    met = (completed.exit_code == 0) == (ctx.step.expect != "fail")
    return StepSignal.MET if met else StepSignal.NOT_MET


def _how(completed: Completed) -> str:
    if completed.timed_out:
        return f"not ended after {duration(completed.seconds)}"
    return f"ended by signal {completed.signal}" if completed.exit_code is None else f"exit code {completed.exit_code}"


def _fault(words: tuple[str, ...]) -> str | None:
    """Return why no program can be started with these words: a value may be anything."""
    for word in words:
        if "\0" in word:
            return "a value has a null byte, which no program can be given"
        if len(word.encode(errors="surrogatepass")) > _LONGEST:
            return f"a value is longer than the {_LONGEST} bytes that one word may have"
    return None


def _cut(text: str) -> str:
    """Return what was printed, in a fence that nothing in it can end, without its middle where it is long."""
    left_out = len(text) - _HEAD - _TAIL
    if left_out > 0:
        text = f"{text[:_HEAD]}\n[... {left_out} characters are left out ...]\n{text[-_TAIL:]}"
    return fenced(text) if text.strip() else ""


def _said(ctx: RecipeContext, signal: StepSignal, note: str, told: str) -> StepEvent:
    name = ctx.write(f"steps/{ctx.lane_name}/{ctx.lane_name}.md", f"{note}\n{told}")
    return StepEvent(signal=signal, note="" if signal is StepSignal.MET else note, evidence=(name,))
