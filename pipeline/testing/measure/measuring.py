"""Measures trees with `measure`: the test files of one tree over the production files of another (matrix 5).

Every RED and GREEN comes from here, in a run and outside of one: a copy that holds exactly the tree, the harness's own
test run in the box.

The repository that tests may ask is the copy's own decoy, mounted read-only over the top of the view: what runs can
change nothing in it, and it is no part of the copy, so nothing of it is collected afterwards. The user's repository
stays out of reach.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from pipeline.characters import as_utf8
from pipeline.matrix.routing.state import Event
from pipeline.process import WORKSPACE, Box, BoxError, Mount
from pipeline.progress import Progress, duration
from pipeline.run.checkout import PrivateCheckout, remove_tree
from pipeline.run.journal_kinds import MeasuredTests
from pipeline.sandbox.escapes import without_escape
from pipeline.sandbox.redaction import redacted_observation
from pipeline.sandbox.views.copies import Copies, shown_repository
from pipeline.testing.languages.projects.combined import find_environment, first_tree, left_out, missing_for
from pipeline.testing.languages.protocol import Cache, FoundInputs, Lookup, Measurement, Missing, OtherBox, View
from pipeline.testing.measure import kept_runs
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from pathlib import Path

    from pipeline.config.model import Config
    from pipeline.judge.evidence.observation import Observation
    from pipeline.matrix.engine.journal_kinds import JournalEvent
    from pipeline.repo import Repository
    from pipeline.sandbox.views.renames import Traces
    from pipeline.testing.languages.protocol import Environment, Selection
    from pipeline.testing.languages.toolchain import Toolchain


CACHE = "pycache"
"""The folder in the run's checkout for compiled code and other caches that the baseline leaves for later runs."""

FOUND: Final = "found-inputs"
"""The folder in the run's checkout for the inputs that tests have found: no copy of a tree, so of no commit."""

TRACED: Final = 3
"""The factor by which a traced run may exceed the time limits: tracing makes tests two or three times slower."""


@dataclass
class Learnt:
    """What is learnt while somebody measures, once for all who share it: how this project's tests are run."""

    environment: Environment | None = None


@dataclass(kw_only=True)
class MeasurementContext:
    """What a measurement needs. Whoever drives a run, and `VerificationContext`, have it."""

    repository: Repository
    checkout: PrivateCheckout
    config: Config
    box: Box
    toolchain: Toolchain
    search_path: str
    environ: Mapping[str, str]
    say: Callable[[str], None]
    secrets: frozenset[str] = frozenset()
    """What is never written down."""
    progress: Progress = field(default_factory=Progress)
    learnt: Learnt = field(default_factory=Learnt)

    def __post_init__(self) -> None:
        self.copies = Copies(self.checkout, "measured", self.box, partial(without_escape, self.repository))
        """What tests and checks run in; no agent ever gets one of them."""

    def note(self, event: JournalEvent) -> None:
        """Record an event about a measurement, where there is a journal."""


class UnmeasurableError(Exception):
    """The tests could not be run at all, which says nothing about them. `event` is what the step reports."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.event = Event(signal=Signal.ENV_BROKEN, note=why)


def changed_paths(ctx: MeasurementContext, old: str | None, new: str | None) -> tuple[str, ...]:
    """Return the paths that differ between two trees; none if either is missing."""
    if old is None or new is None or old == new:
        return ()
    return tuple(change.path for change in ctx.repository.diff(old, new))


async def environment(ctx: MeasurementContext) -> Environment:
    """Return the environment of the project's tests; it is looked for once per driver.

    Of several toolchains each has its own; one that is missing, and that nobody asks for, is left out and said.

    Raises:
        UnmeasurableError: there is no way to run them; the message says what to do.
    """
    if ctx.learnt.environment is None:
        found = await _look_for_environment(ctx)
        if isinstance(found, Missing):
            raise UnmeasurableError(found.sentence)
        for name, why in left_out(found).items():
            ctx.say(f"    {name} is left out, its tests are not measured: {why}")
        ctx.learnt.environment = found
    return ctx.learnt.environment


async def _look_for_environment(ctx: MeasurementContext) -> Environment | Missing:
    def lookup_of(name: str) -> Lookup:
        """Return where to look for a toolchain's environment: if it has a setup, in the private checkout."""
        table = ctx.config.toolchains.settings_of(name)
        worktree = ctx.checkout.tree if table.setup is not None else ctx.repository.worktree
        main, root = ctx.repository.main_checkout, ctx.checkout.root
        return Lookup(worktree, main, table.command, root, ctx.search_path, table.env)

    return await find_environment(ctx.toolchain, lookup_of)


def require_measurable(env: Environment, toolchain: Toolchain, paths: Iterable[str]) -> None:
    """Check that the tests of these files can be run.

    Raises:
        UnmeasurableError: one is a source of a toolchain that is left out.
    """
    why = missing_for(toolchain, env, paths)
    if why is not None:
        raise UnmeasurableError(why)


def _tell_nobody(_: object) -> None:
    pass


async def measure(
    ctx: MeasurementContext,
    tree: str,
    selection: Selection | None = None,
    *,
    trace: bool = False,
    again: bool = False,
    warm: bool = False,
    what: str = "the tests",
    limit_s: float | None = None,
    timed: Callable[[float], object] = _tell_nobody,
) -> Observation:
    """Return the observation of the tests of *tree*, run in a fresh copy.

    Args:
        ctx: The run, or what measures without one.
        tree: The (composed) tree to measure.
        selection: Which tests to run; None runs all, and is kept by its tree.
        trace: Note which production code each test reaches; that is our doing, and so is the time that it takes.
        again: Measure even if this tree was measured before.
        warm: Only for the baseline: fill the cache of compiled code that later runs share read-only.
        what: Which tests over which code, and what is expected of them, in words: told when it begins, and with what
            came of it and how long it took.
        limit_s: For one of many small measurements: no run takes longer, and it is neither told nor journalled.
        timed: Is told how many seconds it took, without those in which other measurements were waited for.

    Raises:
        UnmeasurableError: the environment is broken (matrix 1, ENV_BROKEN).
    """
    whole = selection is None and not trace
    if whole and not again and (known := kept_runs.whole_run(ctx.checkout.root, tree)) is not None:
        return known
    env = await environment(ctx)
    _require_nothing_left_out(ctx, env, tree)
    limits = ctx.config.toolchains.settings_of(ctx.toolchain.name)
    longest = math.inf if limit_s is None else max(1, math.ceil(limit_s))
    slower = TRACED if trace else 1
    if warm:
        forget_cache(ctx)
    cache = Cache(ctx.checkout.root / CACHE, warm=warm)
    cache.folder.mkdir(parents=True, exist_ok=True)
    found = FoundInputs(ctx.checkout.root / FOUND, keeps=limit_s is None and (again or not trace))
    say = ctx.say if limit_s is None else _tell_nobody
    say(f"    {what} ...")

    traces: list[Traces] = []
    whole_s, each_s = (min(limit, longest) * slower for limit in (limits.timeout_s, limits.test_timeout_s))
    # who makes many small ones holds the lock for all of them
    async with ctx.copies.one_at_a_time if limit_s is None else contextlib.nullcontext():
        began = ctx.progress.clock()
        doing = ctx.progress.doing(what) if limit_s is None else contextlib.nullcontext()
        with working_box(), doing, ctx.copies.lent(tree, traces.append) as folder:
            view = View(Mount(folder, ctx.box.inside(folder, WORKSPACE), writable=True))
            box = with_repository(ctx.box, folder)
            asked = Measurement(box, view, env, selection, trace, whole_s, each_s, cache, found=found)
            observation = await ctx.toolchain.run_tests(asked)
        seconds = ctx.progress.clock() - began
    timed(seconds)
    observation = observation.model_copy(update=_traced(say, traces, observation))
    observation = redacted_observation(observation, ctx.secrets)
    if limit_s is None:
        _journal(ctx, tree, selection, observation, what, seconds)
    if observation.environment_problem is not None:
        raise UnmeasurableError(observation.environment_problem)
    if trace:  # that can make a test fail, which is our doing
        kept_runs.keep_reach(ctx.checkout.root, observation)
    elif limit_s is None:
        kept_runs.keep(ctx.checkout.root, tree, observation, whole=whole)
    return observation


@contextlib.contextmanager
def working_box() -> Generator[None]:
    """Turn a failure of the box into an UnmeasurableError.

    Raises:
        UnmeasurableError: the box did not work.
    """
    try:
        yield
    except BoxError as error:
        raise UnmeasurableError(f"the sandbox did not work: {error}") from error


def _require_nothing_left_out(ctx: MeasurementContext, env: Environment, tree: str) -> None:
    if left_out(env):
        require_measurable(env, ctx.toolchain, changed_paths(ctx, first_tree(ctx.toolchain, tree), tree))


def _traced(say: Callable[[str], None], traces: Iterable[Traces], seen: Observation) -> dict[str, tuple[str, ...]]:
    """Return the observation's fields about files written or moved during the run; report what could not be watched."""
    touched, moved = set(seen.touched), set(seen.moved)
    for each in traces:
        touched |= each.touched
        moved |= each.renames.moved
        if each.renames.unwatched:
            say(f"    folders that are renamed while tests run are not all seen: {each.renames.unwatched}")
    named = {"touched": sorted(touched), "moved": sorted(moved), "command": seen.command}
    return {field: tuple(map(as_utf8, names)) for field, names in named.items()}


async def measure_types(ctx: MeasurementContext, tree: str) -> Observation:
    """Return the compile and type errors of *tree* as collection errors; nothing of it is run on purpose.

    Raises:
        UnmeasurableError: the environment is broken (matrix 1, ENV_BROKEN).
    """
    env = await environment(ctx)
    _require_nothing_left_out(ctx, env, tree)
    limits = ctx.config.toolchains.settings_of(ctx.toolchain.name)
    what = "whether every file compiles, no test is run"
    async with ctx.copies.one_at_a_time:
        with working_box(), ctx.copies.lent(tree) as folder, ctx.progress.doing(what) as took:
            view = View(Mount(folder, ctx.box.inside(folder, WORKSPACE), writable=True))
            box = with_repository(ctx.box, folder)
            seen = await ctx.toolchain.check_types(Measurement(box, view, env, timeout_s=limits.timeout_s))
    seen = redacted_observation(seen, ctx.secrets)
    failed = f"{len(seen.collection_errors)} file(s) do not" if seen.collection_errors else "all do"
    ctx.say(f"    {what}: {failed} ({took})")
    if seen.environment_problem is not None:
        raise UnmeasurableError(seen.environment_problem)
    return seen


def forget_cache(ctx: MeasurementContext) -> None:
    """Remove the shared cache: a full disk makes Python write broken bytecode into it, which later runs fail on."""
    remove_tree(ctx.checkout.root / CACHE)


def _journal(
    ctx: MeasurementContext, tree: str, selection: Selection | None, seen: Observation, what: str, seconds: float
) -> None:
    measured = MeasuredTests(
        what=what,
        tree=tree,
        selected=None if selection is None else tuple(sorted(selection.ids or selection.files or ())),
        state=seen.state.value,
        outcomes=Counter(str(record.outcome) for record in seen.records.values() if record.ran),
        collection_errors=tuple(error.path for error in seen.collection_errors),
        command=tuple(seen.command),
        seconds=round(seconds, 3),
    )
    ctx.note(measured)
    ctx.say(f"    {what}: {measured.result} ({duration(seconds)})")


def with_repository(box: Box, folder: Path) -> Box:
    """Return the box that shows its repository in a copy that is lent out; where nothing is mounted it has one."""
    repository = shown_repository(folder, box.inside(folder, WORKSPACE))
    return OtherBox(box, lambda command: replace(command, mounts=(*command.mounts, repository)))
