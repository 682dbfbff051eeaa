"""Measures for the steps of a recipe: tests, what a writer's work keeps, commands in the box, proofs of findings."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, cast

from pydantic import JsonValue, ValidationError

from pipeline.errors import UserError
from pipeline.judge.evidence.compare import failing, judge_green, passed
from pipeline.judge.evidence.freeze import canonical
from pipeline.judge.evidence.observation import PASSING, Observation, RunState
from pipeline.judge.policy.rights import TestScope
from pipeline.judge.reports.markdown import bullets, sections
from pipeline.judge.reports.payloads import Findings, MeasuredTest, TestEvidence
from pipeline.judge.reports.untrusted_text import fenced, one_line
from pipeline.matrix.recipes.model import Kind, Step
from pipeline.matrix.recipes.step_table import StepEvent, StepSignal
from pipeline.outcomes import Reason
from pipeline.process import WORKSPACE, Completed, Mount
from pipeline.programs import Program
from pipeline.progress import counted, duration
from pipeline.run.ignored import include_ignored
from pipeline.steps.asking.grants import scope_without_task
from pipeline.steps.asking.proofs import measured_each
from pipeline.steps.publication.suite_check import kept_over
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.languages.table import SEVERAL
from pipeline.testing.measure import kept_runs, setup
from pipeline.testing.measure.measuring import UnmeasurableError, environment, measure
from pipeline.testing.measure.outcome_words import seen
from pipeline.testing.measure.project_tools import Kit, Tools, kit_of, program_for, run_in_copy, tools_for
from pipeline.testing.measure.proofs import Work
from pipeline.testing.measure.regression import confirm
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipeline.steps.recipe_context import RecipeContext

_COLLECTED: Final = "evidence/tests-at-start.json"


async def prepared(ctx: RecipeContext) -> None:
    """Make ready what measurements need besides a tree, once for each run.

    Raises:
        UnmeasurableError: the setup command failed.
    """
    async with ctx.looking:
        include_ignored(ctx.repository, ctx.checkout.root)
        await setup.run_once(ctx, ctx.write)


def has_tests(ctx: RecipeContext) -> bool:
    """Return whether anything is known to run tests here; else names alone say what one is."""
    return ctx.config.toolchains.use is not None or ctx.toolchain.detect(ctx.repository.worktree)


async def collected(ctx: RecipeContext) -> Observation:
    """Return which tests there are at the start, none of them run; found out before any role is asked.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    async with ctx.looking:
        if not ctx.path(_COLLECTED).is_file():
            start = ctx.run.info.start_tree
            what = "which tests there are before any change"
            found = await measure(ctx, start, Selection.nothing(), warm=True, what=what)
            ctx.write(_COLLECTED, canonical(found))
        return Observation.model_validate_json(ctx.run.read(_COLLECTED))


async def scope_of(ctx: RecipeContext) -> TestScope:
    """Return what counts as a test here, and is no writer's to change.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    if not has_tests(ctx):
        return TestScope()
    tree = [entry.path for entry in ctx.repository.entries(ctx.run.info.start_tree)]
    return scope_without_task(await collected(ctx), tree, ctx.toolchain.sources)


async def tools_of(ctx: RecipeContext) -> Callable[[Mount], Tools] | None:
    """Return what it takes to run the project's tests on a view; None where nothing is known to run any.

    Raises:
        UnmeasurableError: the project has no test environment.
    """
    return await tools_for(ctx, ()) if has_tests(ctx) else None


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
        await prepared(ctx)
        if any(step.agent == Role.MAKE for step in steps):
            await scope_of(ctx)
    return StepEvent(signal=StepSignal.OK)


async def tests(ctx: RecipeContext) -> StepEvent:
    """Measure the tests of the step; return whether they show what it expects."""
    async with ctx.looking:
        await environment(ctx)
    return await _measured(ctx, names_of(ctx, ctx.step))


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


async def accept(ctx: RecipeContext) -> StepEvent:
    """Return whether what the step wrote is what its `accept` asks for, with what is not."""
    name, base, tree = ctx.lane_name, ctx.base, ctx.tree
    found = await measure(ctx, tree, what=f"{name}: the whole suite over what it wrote, must pass")
    broken, flaky = await _broken(ctx, base, tree, found)
    wanted, shown = _wanted(ctx, found), Shown(found, None)
    lines = [
        *(f"has to pass: `{one_line(entry)}` {shown.how(entry)}" for entry in wanted),
        *(f"passed before: `{one_line(entry)}` {shown.how(entry)}" for entry in broken if entry not in wanted),
        *(
            (f"the tests came to no end: {found.state.value.replace('_', ' ')}",)
            if found.state is not RunState.COMPLETE
            else ()
        ),
    ]
    words = sections(
        (
            "In the way",
            bullets([*lines[:_SHOWN], *([f"{len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else [])]),
        ),
        ("Flaky before, not counted", bullets(flaky)),
        ("Output", fenced(found.tail) if lines and found.tail.strip() else ""),
    )
    met = "It is not what was to be measured of it" if lines else "All that was to be measured of it holds"
    md = ctx.write(f"steps/{name}/measured.md", f"# The work of {name}, attempt {ctx.lane.attempt}\n\n{met}.\n{words}")
    facts = {
        "schema": "redfirst.step-acceptance/1",
        "base_tree": base,
        "tree": tree,
        "command": list(found.command),
        "passing": sum(record.outcome in PASSING for record in found.records.values()),
        "not_passing": list(wanted),
        "broken": list(broken),
        "flaky": list(flaky),
    }
    evidence = (md, ctx.write_json(f"steps/{name}/accept-{ctx.lane.visit}.json", facts))
    signal = StepSignal.NOT_MET if lines else StepSignal.MET
    return StepEvent(signal=signal, note="; ".join(lines[:3]), evidence=evidence)


async def _broken(
    ctx: RecipeContext, base: str, tree: str, found: Observation
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what passed over the files that the step saw and does not now, and what is flaky."""
    if ctx.step.accept is None or not ctx.step.accept.regression or base == tree:
        return (), ()
    before = await measure(ctx, base, what=f"{ctx.lane_name}: the whole suite over what it saw, to compare with")
    failed = kept_runs.seen_failing(ctx.checkout.root, tree)
    verdict = judge_green(None, found, kept_over(ctx, before), unread_before=before.unread, seen_failing=failed)
    suspects = await confirm(ctx, verdict.regressions, tree, base, found)
    return (*suspects.broken, *verdict.missing, *verdict.uncollected), suspects.flaky


def _wanted(ctx: RecipeContext, found: Observation) -> tuple[str, ...]:
    """Return the tests that have to pass and do not; names that no test has, too."""
    named = ctx.step.accept.tests if ctx.step.accept is not None else None
    if named is None:
        return ()
    names = names_of(ctx, ctx.run.machine.steps[named])
    if ALL in names:
        return Shown(found, None).not_passing
    meant, unknown = meant_by(names, found)
    return (*Shown(found, meant).not_passing, *unknown)


_TIMEOUT_S: Final = 900
"""How long a command may take, unless the step says otherwise."""
_HEAD, _TAIL = 8_000, 24_000
"""Characters of what it printed that are kept: of the beginning, and of the end."""
_EXECUTABLE: Final = "100755"
_LONGEST: Final = 100_000
"""Bytes of one word; a system takes 131,072."""


async def command(ctx: RecipeContext) -> StepEvent:
    """Run the command of the step; return whether it ended as the step expects."""
    words = tuple(ctx.with_values(word) for word in ctx.step.run or ())
    if (fault := _fault(words)) is not None:
        return _said(ctx, StepSignal.CANNOT_PROCEED, fault, "")
    try:
        completed, output, errors = await _ended(ctx, words)
    except UserError as error:
        return _said(ctx, StepSignal.CANNOT_PROCEED, error.message, "")
    told = sections(("Output", _cut(output)), ("Errors", _cut(errors)))
    if completed.truncated:
        told += "\n\nIt printed more than is kept.\n"
    return _said(ctx, _signal_of(ctx, completed), f"{_how(completed)}: {one_line(shlex.join(words))}", told)


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


def _signal_of(ctx: RecipeContext, completed: Completed) -> StepSignal:
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


async def work_between(ctx: RecipeContext, start: str, tree: str) -> Work | str:
    """Return the work that made *tree* of *start*, as what proofs are about; or why no proof can be run here."""
    if not has_tests(ctx):
        return "nothing is known to run tests here"
    try:
        async with ctx.looking:
            await environment(ctx)
        found = await measure(ctx, tree, Selection.nothing(), what=f"{ctx.lane_name}: which tests there are")
    except UnmeasurableError as error:
        return f"the tests cannot be run: {error}"
    paths = [entry.path for entry in ctx.repository.entries(start)]
    return Work(tree, found.layout, scope_without_task(found, paths, ctx.toolchain.sources), start)


async def payload_proved(ctx: RecipeContext, payload: JsonValue) -> tuple[JsonValue, tuple[str, ...]]:
    """Return the findings of a change with what came of their proofs, and a sentence for each.

    What is proved is certain, and HIGH at least; what is refuted stays, and is filed by nobody.
    """
    change = ctx.run.info.change
    if change is None or not isinstance(payload, dict) or "findings" not in payload:
        return payload, ()
    try:
        said = Findings.model_validate_json(json.dumps(payload))
    except ValidationError:
        return payload, ()
    if not any(one.proof is not None for one in said.findings):
        return payload, ()
    work = await work_between(ctx, change.before, ctx.base)
    findings = list(said.findings)
    lines: list[str] = []
    async for place, title, measured in measured_each(ctx, [(one.proof, one.claim) for one in findings], work):
        lines.append(f"{measured.found}: {title}: {measured.why}")
        update: dict[str, object] = {"measured": measured}
        if measured.found == "proved":
            severity = "BLOCK" if findings[place].severity == "BLOCK" else "HIGH"
            update |= {"confidence": "certain", "severity": severity}
        findings[place] = findings[place].model_copy(update=update)
    made = said.model_copy(update={"findings": tuple(findings)})
    return cast("JsonValue", made.model_dump(mode="json", exclude_none=True)), tuple(lines)
