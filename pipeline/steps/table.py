"""Maps each step of the matrix, and each place of a recipe's step, to what is done there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.judge.reports.markdown import bullets, sections
from pipeline.judge.reports.untrusted_text import one_line
from pipeline.matrix.recipes.step_table import At, Checkpoint, StepEvent, StepSignal
from pipeline.progress import few
from pipeline.steps import (
    build,
    failure,
    final_review,
    implement,
    integrate,
    issue,
    judgements,
    plan,
    publish,
    recipe_ask,
    recipe_publish,
    recipe_review,
    recipe_tests,
    sanity,
    split,
    stub,
    write_tests,
)
from pipeline.steps.publication.trees import put_on
from pipeline.steps.recipe_context import RecipeContext, base_of
from pipeline.testing.measure.measuring import changed_paths
from pipeline.vocabulary import Step

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from pipeline.matrix.routing.state import Event
    from pipeline.steps.context import Context


STEPS: Final[Mapping[Step, Callable[[Context], Awaitable[Event]]]] = {
    Step.SANITY: sanity.run,
    Step.ISSUE: issue.run,
    Step.PLAN: plan.run,
    Step.REVIEW_PLAN: plan.review,
    Step.SPLIT: split.run,
    Step.REVIEW_SPLIT: split.review,
    Step.STUB: stub.make_stubs,
    Step.WRITE_TESTS: write_tests.run,
    Step.CHECK_TESTS: judgements.check_tests,
    Step.SEAM: stub.make_seam,
    Step.IMPLEMENT: implement.run,
    Step.BUILD: build.run,
    Step.DIAGNOSE: judgements.diagnose,
    Step.INTEGRATE: integrate.run,
    Step.FINAL_REVIEW: final_review.run,
    Step.PUBLISH: publish.run,
    Step.FAILURE: failure.run,
}
"""Every step. GATE is no step of ours: a person takes it."""


async def note(ctx: RecipeContext) -> StepEvent:
    """Tell what the note says; it waits for nobody."""
    ctx.write(f"steps/{ctx.lane_name}/{ctx.lane_name}.md", f"{ctx.with_values(ctx.step.prompt or '').strip()}\n")
    return StepEvent(signal=StepSignal.OK)


def approved(ctx: RecipeContext, answer: str) -> StepEvent:
    """Return the event of a gate that a person has let the run through; *answer* is what they gave, if anything."""
    name = ctx.lane_name
    words = ctx.write(f"steps/{name}/{name}.md", f"{answer.strip() or 'Approved.'}\n")
    return StepEvent(signal=StepSignal.APPROVED, lane=name, evidence=(words,))


def rejected(ctx: RecipeContext, feedback: str, number: int) -> StepEvent:
    """Return the event of a gate at which a person has said no."""
    name = ctx.lane_name
    told = f"# Feedback of a person, at the gate {name}\n\n{feedback.strip()}\n"
    words = ctx.write(f"feedback-{number}.md", told)
    ctx.write(f"steps/{name}/{name}.md", f"Rejected.\n\n{feedback.strip()}\n")
    return StepEvent(signal=StepSignal.REJECTED, lane=name, note=feedback.strip().splitlines()[0], evidence=(words,))


async def apply(ctx: RecipeContext) -> StepEvent:
    """Put the patch of a step that worked in a scratch copy on what a step sees: all of it, or nothing.

    By hashes: each file has to be as the scratch step saw it, or as it left it. Two changes of one file are not merged.
    """
    state, name, tree = ctx.run.state, ctx.lane_name, ctx.base
    in_the_way: dict[str, None] = {}
    for source in ctx.run.machine.names(state, ctx.step.apply_from or ""):
        if state.settled.get(source) is Checkpoint.READY and source in state.trees:
            put = put_on(ctx.repository, tree, base_of(ctx, source), state.trees[source])
            in_the_way |= dict.fromkeys((*put.conflicts, *put.merged))
            tree = put.tree
    if in_the_way:
        words = _md("Nothing was applied: these files are not as they were when it began.", "In the way", in_the_way)
        evidence = (ctx.write(f"steps/{name}/{name}.md", words),)
        note = f"not as they were: {few(in_the_way)}"
        return StepEvent(signal=StepSignal.NOT_MET, note=note, evidence=evidence)
    words = _md(f"The patch of {ctx.step.apply_from} is applied.", "Changed", changed_paths(ctx, ctx.base, tree))
    patch = ctx.write(f"steps/{name}/{name}.patch", ctx.repository.patch(ctx.base, tree))
    evidence = (ctx.write(f"steps/{name}/{name}.md", words), patch)
    return StepEvent(signal=StepSignal.MET, tree=tree, evidence=evidence)


def _md(said: str, title: str, paths: Iterable[str]) -> str:
    return f"{said}\n{sections((title, bullets(f'`{one_line(path)}`' for path in paths) or 'Nothing.'))}"


RUNNERS: Final = {
    At.BEGIN: recipe_tests.begun,
    At.ASK: recipe_ask.ask,
    At.ACCEPT: recipe_tests.accept,
    At.REVIEW: recipe_review.review,
    At.APPLY: apply,
    At.RUN: recipe_tests.command,
    At.TESTS: recipe_tests.tests,
    At.HOLD: note,
    At.FILE: recipe_publish.file,
    At.PUBLISH: recipe_publish.publish,
}
"""A function for each place: it dispatches or measures, and returns one event."""
