"""The mutation probe: puts small faults into changed lines, and reports those that no test detects to @check.

None is put where this platform runs nothing. What the text does not decide (a feature, a module of another platform) is
measured: what survives is code of the build only if the build breaks over it.

Bounded twice, in number and in time. A fault is tried with the task's own tests; what survives them is tried with all
tests that touch the same files, and is told only if none of them noticed it. A run that does not end counts as noticed,
if it had the time that it usually takes.
"""

from __future__ import annotations

import os
import re
from collections import Counter, deque
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.judge.evidence.compare import passed, passes
from pipeline.judge.evidence.observation import Layout, Observation, RunState
from pipeline.judge.policy.paths import is_tracker
from pipeline.progress import counted
from pipeline.repo import PLAIN, Entry, TreeChange
from pipeline.sandbox.redaction import redact
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.languages.readers import mutants, stopped
from pipeline.testing.languages.sources.faults import Mutant, Rank, spread
from pipeline.testing.languages.table import has_part
from pipeline.testing.measure.measuring import UnmeasurableError, changed_paths, environment, measure
from pipeline.testing.measure.task_evidence import MutationEvidence, Survivor

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from pipeline.config.tables import Probes
    from pipeline.testing.measure.measuring import MeasurementContext


UNBOXED: Final = "there is no box here, and faulty code could do damage outside of one"
_MOST: Final = 8
"""However many cores there are: each measurement has a copy of the project, and all that its tests start."""


def usable_cores() -> int:
    """Return how many cores this process may use, at most 8."""
    return min(len(os.sched_getaffinity(0)), _MOST)


_HUNK: Final = re.compile(r"@@ -\d+(?:,(?P<gone>\d+))? \+(?P<start>\d+)(?:,(?P<there>\d+))? @@")


def changed_lines(
    ctx: MeasurementContext, old: str, new: str, wanted: Callable[[str], bool]
) -> dict[str, frozenset[int]]:
    """Return the line numbers, from 1, that *new* has and *old* has not, by path; only for files that *wanted* accepts.

    A file that was moved counts as new. Files without such lines are left out.
    """
    paths = [path for path in changed_paths(ctx, old, new) if wanted(path)]
    found = {path: added_lines(ctx.repository.patch(old, new, path)) for path in paths}
    return {path: lines for path, lines in found.items() if lines}


def added_lines(patch: str) -> frozenset[int]:
    """Return the numbers, from 1, of the lines that a one-file unified patch adds; a binary one adds none."""
    added: set[int] = set()
    line = gone = there = 0
    for text in patch.split("\n"):  # never splitlines: a form feed in the code ends no line of a patch
        if gone <= 0 and there <= 0:
            hunk = _HUNK.match(text)
            if hunk is not None:
                line = int(hunk["start"])
                gone, there = (1 if hunk[name] is None else int(hunk[name]) for name in ("gone", "there"))
        elif text.startswith("+"):
            added.add(line)
            line, there = line + 1, there - 1
        elif text.startswith("-"):
            gone -= 1
        elif not text.startswith("\\"):
            line, there, gone = line + 1, there - 1, gone - 1
    return frozenset(added)


_PATIENCE: Final = 3.0
_STARTUP_S: Final = 2.0
_SHARE: Final = 0.3
_LONGEST_SOURCE: Final = 200
_ENOUGH: Final = 3
"""The least number of undetected faults that is reported of a function; one or two may change nothing."""
_COUNTED: Final = 100
"""So many possible faults of a file are counted; more are not told."""
_SMALL: Final = 20_000
"""Bytes of a file in which they are counted: each is parsed, and what takes too long would leave none to be tried."""


@dataclass(frozen=True)
class Judges:
    """The tests that should detect a fault: the task's own, and others that touch the same files.

    `seconds` is how long the own ones take by themselves, where they were run so and pass; 0 where they were not.
    """

    own: frozenset[str]
    others: frozenset[str] = frozenset()
    seconds: float = 0.0


class Fate(Enum):
    """The result of trying a fault."""

    KILLED = auto()
    SURVIVED = auto()
    UNFIT = auto()
    UNCOMPILED = auto()
    NOT_TRIED = auto()


async def mutation_probe(
    ctx: MeasurementContext, wanted: Probes, base: str, tree: str, judges: Judges, layout: Layout
) -> MutationEvidence:
    """Return which small faults in the changed lines the tests detect.

    Args:
        ctx: The run, or what measures without one.
        wanted: `[probes]`: its bounds. Of `seconds` it takes no more than what a box needs to end a run.
        base: The tree without the change.
        tree: The tree with it; the tests pass on it.
        judges: The tests to run.
        layout: Which files are tests: these are left alone.

    Raises:
        UnmeasurableError: the tests cannot be run on the tree as it is.
    """
    await environment(ctx)  # before the clock runs: it is looked for once per driver
    begun = anyio.current_time()
    sources = changed_sources(ctx, base, tree, layout)
    chosen, possible = choose(sources, wanted.mutants)
    if not chosen or not judges.own:
        return MutationEvidence()
    left = possible - len(chosen)
    of_all = f" of {possible} that are possible" if left else ""
    faults = f"{counted(len(chosen), 'small fault')} in the changed lines{of_all}"
    trial = Trial(ctx, tree, judges, wanted, begun)
    fates, trouble = await trial.run(chosen, f"{faults}, tests must notice")
    survivors = [mutant for mutant, fate in fates.items() if fate is Fate.SURVIVED]
    told = list(fates.values())
    return MutationEvidence(
        killed=told.count(Fate.KILLED),
        survivors=tuple(survivor_of(ctx, mutant, sources[mutant.path].content) for mutant in survivors),
        unfit=told.count(Fate.UNFIT),
        uncompiled=told.count(Fate.UNCOMPILED),
        not_tried=told.count(Fate.NOT_TRIED),
        not_chosen=left,
        seconds=round(anyio.current_time() - begun, 1),
        trouble=trouble,
        asked=trial.asked if survivors else 0,
        unnoticed=unnoticed_functions(fates),
    )


@dataclass(frozen=True)
class Source:
    """A production file with its changed lines."""

    content: bytes
    lines: frozenset[int]


def takes_faults(ctx: MeasurementContext, layout: Layout, path: str) -> bool:
    """Return whether a file is production code of a language that faults are known of."""
    known = has_part(path, "fault_sites") and path.endswith(ctx.toolchain.sources)
    tracker = is_tracker(path, ctx.config.tracker.folder)
    return known and not (layout.is_test_side(path) or tracker or ctx.toolchain.is_control_path(path))


def changed_sources(ctx: MeasurementContext, base: str, tree: str, layout: Layout) -> dict[str, Source]:
    """Return the production files, by path, with lines in *tree* that *base* has not."""
    lines = changed_lines(ctx, base, tree, lambda path: takes_faults(ctx, layout, path))
    entries = {e.path: e for e in ctx.repository.entries(tree, *lines) if e.mode in PLAIN} if lines else {}
    contents = ctx.repository.blobs(entry.oid for entry in entries.values())
    return {path: Source(contents[entry.oid], lines[path]) for path, entry in entries.items() if path in lines}


def choose(sources: Mapping[str, Source], most: int) -> tuple[tuple[Mutant, ...], int]:
    """Return the faults to try, taken in turn from each function of each file, and of how many they are chosen."""
    found: list[Mutant] = []
    possible = 0
    for path, source in sorted(sources.items()):
        counted_to = max(most, _COUNTED) if len(source.content) <= _SMALL else most
        of_file = mutants(path, source.content, source.lines, at_most=counted_to)
        possible += len(of_file)
        found += of_file[:most]
    return tuple(spread(found))[:most], possible


@dataclass
class Trial:
    """Tries the faults of one candidate until the time is over; `judge` says what a run of some tests shows of one."""

    ctx: MeasurementContext
    tree: str
    judges: Judges
    wanted: Probes
    begun: float
    judge: Callable[[Observation, Collection[str]], Fate] | None = None
    _usual: dict[frozenset[str], float] = field(default_factory=dict[frozenset[str], float])
    _trusted: frozenset[str] | None = None
    _all_asked: bool = True
    _looking: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def left(self) -> float:
        """Return how many seconds are left."""
        return self.begun + self.wanted.seconds - anyio.current_time()

    @property
    def asked(self) -> int:
        """Return the number of tests over which an undetected fault was tried."""
        return len(self.judges.own | (self._trusted or frozenset()))

    async def run(self, chosen: Iterable[Mutant], what: str) -> tuple[dict[Mutant, Fate], str]:
        """Return the fate of each fault, and why none was tried, nothing if some were; *what* they are is said.

        Raises:
            UnmeasurableError: the tests cannot be run.
            UserError: the disk does not take it.
        """
        what = f"{what} (at most {self.wanted.seconds:g} s)"
        self.ctx.say(f"    {what} ...")
        with self.ctx.progress.doing(what):
            trouble = await self._time_own()
            fates = dict.fromkeys(chosen, Fate.NOT_TRIED)
            return fates if trouble else fates | await self._of_all(fates), trouble

    async def _time_own(self) -> str:
        """Find out the time of the task's own tests; return why no fault can be tried, nothing if some can.

        Raises:
            UnmeasurableError: they cannot be run.
        """
        if self.judges.seconds:
            self._usual[self.judges.own] = self.judges.seconds
            return ""
        seen = await self._timed(self.judges.own, self.left)
        if seen.state is RunState.TIMED_OUT:
            return "the time is not enough for one run of the task's own tests"
        if any(not passes(seen, entry) for entry in self.judges.own):
            return "the task's own tests do not pass when they are run by themselves"
        return ""

    async def _of_all(self, chosen: Iterable[Mutant]) -> dict[Mutant, Fate]:
        """Return the fate of each fault that there was time for.

        Raises:
            UserError: the disk does not take it.
        """
        fates: dict[Mutant, Fate] = {}
        waiting = deque(chosen)

        async def work() -> None:
            while waiting and self.left > self._usual[self.judges.own]:
                mutant = waiting.popleft()
                fates[mutant] = await self._fate(mutant)

        async with self.ctx.copies.one_at_a_time:
            try:
                async with anyio.create_task_group() as tasks:
                    for _ in range(self.wanted.jobs or usable_cores()):
                        tasks.start_soon(work)
            except ExceptionGroup as failed:  # what the first has raised has cancelled the others
                raise failed.exceptions[0] from None
            return {**fates, **await self._uncompiled([m for m, fate in fates.items() if fate is Fate.SURVIVED])}

    async def _uncompiled(self, survivors: Iterable[Mutant]) -> dict[Mutant, Fate]:
        """Return those whose place is not compiled: the tests pass over what no compiler takes.

        It is asked last, with the time that is left. Without an answer, the fault counts as one that nobody notices.
        """
        seen: dict[str, Fate] = {}
        found: dict[Mutant, Fate] = {}
        for mutant in survivors:
            entry, content = self._content(mutant)
            text = stopped(mutant.path, content, mutant.start)
            if text is not None and (tree := self._with(entry, text)) and self.left > self._usual[self.judges.own]:
                if tree not in seen:
                    seen[tree] = await self._judged(tree, self.judges.own)
                if seen[tree] is Fate.SURVIVED:
                    found[mutant] = Fate.UNCOMPILED
        return found

    async def _timed(self, ids: frozenset[str], limit_s: float) -> Observation:
        begun = anyio.current_time()
        seen = await measure(self.ctx, self.tree, Selection(ids=ids), limit_s=limit_s)
        self._usual[ids] = anyio.current_time() - begun
        return seen

    async def _fate(self, mutant: Mutant) -> Fate:
        entry, content = self._content(mutant)
        tree = self._with(entry, mutant.apply(content))
        fate = await self._judged(tree, self.judges.own)
        if fate is Fate.SURVIVED and (others := await self._others()):
            fate = await self._judged(tree, others)
        # what only some of the tests were asked about, nobody knows to be unnoticed
        return Fate.NOT_TRIED if fate is Fate.SURVIVED and not self._all_asked else fate

    async def _others(self) -> frozenset[str]:
        """Return the other tests that pass on the unchanged tree; they are run when the first fault survives.

        Finding out takes no more than a part of the time that is left: what did not end by then is not asked.
        """
        async with self._looking:
            if self._trusted is None:
                self._trusted = frozenset()
                wanted = self.judges.others - self.judges.own
                self._all_asked = not wanted
                if wanted and self.left > self._usual[self.judges.own]:
                    seen = await self._timed(wanted, self.left * _SHARE)
                    self._trusted = frozenset(entry for entry in wanted if passes(seen, entry))
                    self._usual[self._trusted] = self._usual[wanted]
                    self._all_asked = seen.state is not RunState.TIMED_OUT
        return self._trusted

    async def _judged(self, tree: str, ids: frozenset[str]) -> Fate:
        fair = _PATIENCE * self._usual[ids] + _STARTUP_S
        limit = min(fair, self.left)
        if limit <= 0:
            return Fate.NOT_TRIED
        try:
            seen = await measure(self.ctx, tree, Selection(ids=ids), limit_s=limit)
        except UnmeasurableError:
            return Fate.UNFIT
        if seen.state is RunState.TIMED_OUT and limit < fair:
            return Fate.NOT_TRIED
        return (self.judge or fate_of)(seen, ids)

    def _content(self, mutant: Mutant) -> tuple[Entry, bytes]:
        (entry,) = (each for each in self.ctx.repository.entries(self.tree, mutant.path) if each.path == mutant.path)
        return entry, self.ctx.repository.blobs([entry.oid])[entry.oid]

    def _with(self, entry: Entry, content: bytes) -> str:
        """Return the tree with other content in a file."""
        changed = Entry(entry.path, entry.mode, self.ctx.repository.write_blob(content))
        return self.ctx.repository.build_tree(self.tree, [TreeChange(entry.path, changed)])


def unnoticed_functions(fates: Mapping[Mutant, Fate]) -> tuple[str, ...]:
    """Return the changed functions in which no test detects a fault, of at least three tried.

    Either three in one function, or three in all. What only changes a text says nothing, nor does what lies outside of
    functions: messages, names and declarations are often of no consequence.
    """
    tried = {m: fate for m, fate in fates.items() if fate in {Fate.KILLED, Fate.SURVIVED} and m.function}
    telling = [m for m in tried if m.rank is not Rank.TEXT]
    noticed = {(m.path, m.function) for m, fate in tried.items() if fate is Fate.KILLED}
    counted = Counter((m.path, m.function) for m in telling)
    least = 1 if not noticed and len(telling) >= _ENOUGH else _ENOUGH
    blind = {place for place, count in counted.items() if count >= least} - noticed
    return tuple(f"{path}: {function}" for path, function in sorted(blind))


def fate_of(seen: Observation, ids: Collection[str]) -> Fate:
    """Return the fate of a fault by a run of these tests, which all pass without it."""
    if seen.state is RunState.TIMED_OUT:
        return Fate.KILLED
    ran = [seen.records[entry] for entry in ids if entry in seen.records and seen.records[entry].ran]
    if any(not passed(record) for record in ran):
        return Fate.KILLED
    if seen.collection_errors or seen.state is RunState.UNUSABLE:
        return Fate.UNFIT
    return Fate.SURVIVED if len(ran) == len(set(ids)) else Fate.KILLED


def survivor_of(ctx: MeasurementContext, mutant: Mutant, content: bytes) -> Survivor:
    """Return a fault that no test detected, in words; *content* is the file without it."""
    line = content.splitlines()[mutant.line - 1].strip()
    source, what = (redact(text, ctx.secrets).decode("utf-8", "replace") for text in (line, mutant.what.encode()))
    return Survivor(path=mutant.path, line=mutant.line, what=what, source=source[:_LONGEST_SOURCE])
