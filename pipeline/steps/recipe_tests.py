"""Measures tests for a step of a recipe over what it sees, and holds the result against what it expects."""

from __future__ import annotations

import shlex
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.evidence.compare import failing, passed
from pipeline.evidence.observation import RunState
from pipeline.languages.protocol import Selection
from pipeline.languages.table import SEVERAL
from pipeline.measure.measuring import UnmeasurableError, environment, measure
from pipeline.measure.outcome_words import seen
from pipeline.process import BoxError
from pipeline.progress import counted
from pipeline.recipes.model import Kind
from pipeline.recipes.step_table import StepEvent, StepSignal
from pipeline.reports.markdown import bullets, sections
from pipeline.reports.payloads import MeasuredTest, TestEvidence
from pipeline.reports.untrusted_text import fenced, one_line
from pipeline.routing.vocabulary import Role
from pipeline.steps.recipe_project import has_tests, prepared, scope_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.evidence.observation import Observation
    from pipeline.recipes.model import Step
    from pipeline.steps.recipe_context import RecipeContext

ALL: Final = "all"
_SHOWN: Final = 50
"""Tests whose failure is told in words; the payload has all of them."""


async def begun(ctx: RecipeContext) -> StepEvent:
    """Make ready what measurements need, before any role is asked: later it would look like a role's doing."""
    steps = ctx.run.recipe.steps
    if ctx.run.info.change is not None and has_tests(ctx):  # a finding on it may bring a proof
        with suppress(UnmeasurableError):  # without it nothing is proved, and it is said why
            await prepared(ctx)
    if any(step.writes or step.kind in {Kind.RUN, Kind.TESTS} for step in steps):
        try:
            await prepared(ctx)
            if any(step.agent == Role.MAKE for step in steps):
                await scope_of(ctx)
        except UnmeasurableError as error:
            return StepEvent(signal=StepSignal.ENV_BROKEN, note=str(error))
    return StepEvent(signal=StepSignal.OK)


async def run(ctx: RecipeContext) -> StepEvent:
    """Measure the tests of the step; return whether they show what it expects."""
    names = names_of(ctx, ctx.step)
    try:
        async with ctx.looking:
            await environment(ctx)
        return await _measured(ctx, names)
    except (UnmeasurableError, BoxError) as error:
        return StepEvent(signal=StepSignal.ENV_BROKEN, note=str(error))


def names_of(ctx: RecipeContext, step: Step) -> tuple[str, ...]:
    """Return what a step names: ids, functions or files of tests, or `all`; of a text each line is a name."""
    said = step.tests or ALL
    texts = [ctx.with_values(text) for text in ((said,) if isinstance(said, str) else said)]
    lines = (line.strip() for text in texts for line in text.splitlines())
    return tuple(dict.fromkeys(filter(None, lines)))


@dataclass(frozen=True)
class Shown:
    """What tests showed: those that are meant, by id, or files that cannot be collected; None means all."""

    observation: Observation
    meant: frozenset[str] | None

    @property
    def failing(self) -> tuple[str, ...]:
        """Return the tests that fail, and the files that cannot be collected."""
        return tuple(entry for entry in failing(self.observation) if self._is_meant(entry))

    @property
    def passing(self) -> tuple[str, ...]:
        """Return the tests that pass."""
        records = self.observation.records
        return tuple(entry for entry, record in records.items() if self._is_meant(entry) and passed(record))

    @property
    def not_passing(self) -> tuple[str, ...]:
        """Return what is named and does not pass, skipped tests too; of all tests those that fail."""
        return self.failing if self.meant is None else tuple(sorted(self.meant - set(self.passing)))

    def how(self, entry: str) -> str:
        """Return how a test ended, in words."""
        return "cannot be collected" if entry in self.observation.unread else seen(self.observation.records.get(entry))

    def _is_meant(self, entry: str) -> bool:
        return self.meant is None or entry in self.meant


async def _measured(ctx: RecipeContext, names: tuple[str, ...]) -> StepEvent:
    expects = f"must {ctx.step.expect or 'pass'}"
    here = _limited(ctx)
    again = ctx.run.state.resumes > 0  # who asks again does not want what is kept
    if ALL in names:
        what = f"{ctx.lane_name}: the whole suite, {expects}"
        return _event(ctx, Shown(await measure(here, ctx.base, again=again, what=what), None))
    listed = await measure(here, ctx.base, Selection.nothing(), what=f"{ctx.lane_name}: which tests there are")
    meant, unknown = meant_by(names, listed)
    if unknown or not meant:
        note = f"no test is called {', '.join(unknown)}" if unknown else "the step names no test"
        ctx.write(f"steps/{ctx.lane_name}/{ctx.lane_name}.md", f"{one_line(note)}\n")
        return StepEvent(signal=StepSignal.CANNOT_PROCEED, note=note)
    ids = meant & listed.records.keys()
    what = f"{ctx.lane_name}: {counted(len(ids), 'test')}, {expects}"
    found = await measure(here, ctx.base, Selection(ids=ids), what=what) if ids else listed
    return _event(ctx, Shown(found, meant))


def _limited(ctx: RecipeContext) -> RecipeContext:
    """Return the ports with the time that the step gives its tests."""
    if ctx.step.timeout_s is None:
        return ctx
    tables, found = ctx.config.toolchains, copy(ctx)
    changed = {
        name: tables.settings_of(name).model_copy(update={"timeout_s": ctx.step.timeout_s})
        for name in ctx.toolchain.name.split(SEVERAL)
    }
    found.config = ctx.config.model_copy(update={"toolchains": tables.model_copy(update=changed)})
    return found


def meant_by(names: Iterable[str], listed: Observation) -> tuple[frozenset[str], list[str]]:
    """Return the ids of the tests that are named, files that cannot be collected too, and the names of none."""
    meant: set[str] = set()
    unknown: list[str] = []
    for name in names:
        below = f"{name.rstrip('/')}/"
        found = {
            r.id for r in listed.records.values() if name in {r.id, r.function, r.path} or r.path.startswith(below)
        }
        found |= {path for path in listed.unread if path == name or path.startswith(below)}
        meant |= found
        unknown += [] if found else [name]
    return frozenset(meant), unknown


def _event(ctx: RecipeContext, shown: Shown) -> StepEvent:
    name, signal = ctx.lane_name, _signal(ctx, shown)
    said = f"{len(shown.failing)} failed, {len(shown.passing)} passed"
    if shown.observation.state is not RunState.COMPLETE:
        said += f", and the run {shown.observation.state.value.replace('_', ' ')}"
    listed = [f"`{one_line(entry)}` {shown.how(entry)}" for entry in shown.not_passing[:_SHOWN]]
    more = len(shown.not_passing) - len(listed)
    told = sections(
        ("Not passing", bullets([*listed, *([f"{more} more, in {name}.json"] if more > 0 else [])])),
        ("Run again with", fenced(shlex.join(shown.observation.command)) if shown.observation.command else ""),
        ("Output", fenced(shown.observation.tail) if shown.failing and shown.observation.tail.strip() else ""),
    )
    words = ctx.write(f"steps/{name}/{name}.md", f"{said}.\n{told}")
    payload = ctx.write_json(f"steps/{name}/{name}.json", _evidence(ctx, shown).model_dump(mode="json"))
    return StepEvent(signal=signal, note="" if signal is StepSignal.MET else said, evidence=(words, payload))


def _signal(ctx: RecipeContext, shown: Shown) -> StepSignal:
    whole = shown.observation.state is RunState.COMPLETE
    if not whole and not shown.failing:
        return StepSignal.CANNOT_PROCEED  # it shows neither that they pass nor that they fail
    met = shown.failing if ctx.step.expect == "fail" else shown.passing and not shown.not_passing
    return StepSignal.MET if met else StepSignal.NOT_MET


def _evidence(ctx: RecipeContext, shown: Shown) -> TestEvidence:
    entries = shown.not_passing if shown.meant is None else tuple(sorted(shown.meant))
    records, state = shown.observation.records, shown.observation.state
    whole = state is RunState.COMPLETE
    return TestEvidence(
        command=tuple(shown.observation.command),
        status=("failed" if shown.failing else "passed") if whole else state.value,
        passed=len(shown.passing),
        failed=len(shown.failing),
        tests=tuple(
            MeasuredTest(
                id=entry,
                outcome=str(records[entry].outcome or "not run") if entry in records else "not collected",
            )
            for entry in entries
        ),
        tree=ctx.base,
    )
