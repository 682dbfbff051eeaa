"""The noticing probe: do tests that pass over the code as it is notice small faults in what they look at?

Tests that a task adds to code which is right have no RED. What stands in its place is this: of faults in the functions
that they enter, at least one makes a test fail by its own judgement (`classify.fails_by_itself`). A test that asserts
nothing ends, too, when the code throws; that shows nothing of the test. Bounded in number and in time by `[probes]`.
Edits that proved what the tests are written for (a finding that tests accept wrong code) are tried before these.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.judge.evidence.classify import fails_by_itself
from pipeline.judge.evidence.red_classes import Context
from pipeline.progress import counted
from pipeline.repo import PLAIN, Entry
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.languages import names
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.languages.readers import mutants
from pipeline.testing.languages.sources.faults import Mutant, spread
from pipeline.testing.measure.measuring import MeasurementContext, environment, measure
from pipeline.testing.measure.mutation import UNBOXED, Fate, Judges, Trial, fate_of, survivor_of, takes_faults
from pipeline.testing.measure.task_evidence import NoticingEvidence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from pipeline.config.tables import Probes
    from pipeline.judge.evidence.observation import Layout, Observation, TestRecord
    from pipeline.judge.reports.proofs import Edit


_MOST_READ: Final = 24
_PER_TEST: Final = 3
_PER_FILE: Final = 100
_OFF: Final = "`[probes] mutants` is 0"
_TIME_OVER: Final = "the time was over before a fault was tried (`[probes] seconds`)"
_UNKNOWN: Final = "no fault is known of the code that they look at"


@dataclass(frozen=True)
class Passing:
    """Tests that pass over the code as it is.

    Args:
        tree: The tests over that code.
        tests: Their ids, with the function of each: where one has several cases, any of them may notice a fault.
        about: The files of the tests' subject, which come first: a test through a public function enters much else.
        layout: Which files are tests.
        traced: A run of these tests over that tree, traced, where there is one.
        edits: The edits that proved the findings which these tests answer, by the ids of the findings.
    """

    tree: str
    tests: Mapping[str, str]
    about: Collection[str]
    layout: Layout
    traced: Observation | None = None
    edits: Mapping[str, Edit] = field(default_factory=dict[str, "Edit"])


async def noticing_probe(ctx: MeasurementContext, wanted: Probes, passing: Passing) -> NoticingEvidence:
    """Return which of these tests notice small faults in the code that they look at.

    Args:
        ctx: The run, or what measures without one.
        wanted: `[probes]`: how many faults, and how long.
        passing: The tests.

    Raises:
        UnmeasurableError: the environment broke meanwhile.
    """
    if wanted.mutants and ctx.box.name != NoBox.name:
        return await faults_noticed(ctx, wanted, passing)
    trouble = UNBOXED if wanted.mutants else _OFF
    return NoticingEvidence(tests=dict.fromkeys(sorted(set(passing.tests.values())), 0), trouble=trouble)


async def faults_noticed(ctx: MeasurementContext, wanted: Probes, passing: Passing) -> NoticingEvidence:
    """Return the same wherever it is: whoever asks knows that faulty code does no damage."""
    tree, tests, layout, traced = passing.tree, passing.tests, passing.layout, passing.traced
    functions = sorted(set(tests.values()))
    await environment(ctx)  # before the clock runs: it is looked for once per driver
    begun = anyio.current_time()
    if traced is None:
        what = "the added tests, traced, must pass"
        traced = await measure(ctx, tree, Selection(ids=frozenset(tests)), trace=True, what=what)
    records = {entry: traced.records[entry] for entry in sorted(tests) if entry in traced.records}
    entries = {entry.path: entry for entry in ctx.repository.entries(tree) if entry.mode in PLAIN}
    looked = _Looked(ctx, entries, layout, passing.about)
    most = max(wanted.mutants, _PER_TEST * len(functions))
    chosen = tuple(dict.fromkeys((*looked.proofs(passing.edits), *looked.faults(records.values(), most))))
    if not chosen:
        unsure = any(_may_reach_anything(record) for record in records.values())
        return NoticingEvidence(tests=dict.fromkeys(functions, 0), trouble=_UNKNOWN if unsure else "")
    context = Context(symbols=(), existing=frozenset(entries), layout=layout, names=names)
    noticed: Counter[str] = Counter()

    def judge(seen: Observation, ids: Collection[str]) -> Fate:
        failing = {
            tests[entry]
            for entry in ids
            if entry in seen.records and fails_by_itself(_traced_as(seen.records[entry], records[entry]), context)
        }
        noticed.update(failing)
        if failing:
            return Fate.KILLED
        fate = fate_of(seen, ids)
        return fate if fate is Fate.SURVIVED else Fate.UNFIT  # it crashed: that is no judgement of a test

    trial = Trial(ctx, tree, Judges(frozenset(records)), wanted, begun, judge)
    faults = f"{counted(len(chosen), 'small fault')} in what the added tests look at"
    fates, trouble = await trial.run(chosen, faults)
    told = list(fates.values())
    if not trouble and set(told) <= {Fate.NOT_TRIED}:
        trouble = _TIME_OVER
    survivors, thrown = (
        tuple(survivor_of(ctx, mutant, looked.text(mutant.path)) for mutant in chosen if fates[mutant] is fate)
        for fate in (Fate.SURVIVED, Fate.UNFIT)
    )
    return NoticingEvidence(
        tests={function: noticed[function] for function in functions},
        killed=told.count(Fate.KILLED),
        survivors=survivors,
        unfit=told.count(Fate.UNFIT),
        thrown=thrown,
        edits=passing.edits,
        about=tuple(sorted(passing.about)),
        not_tried=told.count(Fate.NOT_TRIED),
        seconds=round(anyio.current_time() - begun, 1),
        trouble=trouble,
    )


class _Looked:
    """Finds faults in what tests look at; each file is read once."""

    def __init__(
        self, ctx: MeasurementContext, entries: Mapping[str, Entry], layout: Layout, about: Collection[str]
    ) -> None:
        self._ctx = ctx
        self._entries = entries
        self._sources = [path for path in sorted(entries) if takes_faults(ctx, layout, path)]
        self._about = about
        self._texts: dict[str, bytes] = {}
        self._read: dict[tuple[str, frozenset[str] | None], tuple[Mutant, ...]] = {}

    def text(self, path: str) -> bytes:
        """Return the content of a file."""
        if path not in self._texts:
            oid = self._entries[path].oid
            self._texts[path] = self._ctx.repository.blobs([oid])[oid]
        return self._texts[path]

    def faults(self, records: Iterable[TestRecord], most: int) -> Iterator[Mutant]:
        """Yield at most so many faults: one for each test function in turn, the nearest to it first."""
        by_function: dict[str, list[TestRecord]] = {}
        for record in records:
            by_function.setdefault(record.function, []).append(record)
        series = [list(self._of(cases)) for cases in by_function.values()]
        turns = chain.from_iterable(zip_longest(*series))
        yield from list(dict.fromkeys(mutant for mutant in turns if mutant is not None))[:most]

    def proofs(self, edits: Mapping[str, Edit]) -> Iterator[Mutant]:
        """Yield the edits that are of these sources still, each as one fault, and a few faults of its lines."""
        for finding, edit in edits.items():
            old, text = edit.old.encode(), self.text(edit.path) if edit.path in self._sources else b""
            if text.count(old) == 1:
                at, what = text.index(old), f"the edit that proves {finding}"
                line = text.count(b"\n", 0, at) + 1
                yield Mutant(edit.path, line, what, at, at + len(old), edit.new.encode())
                lines = range(line, line + old.rstrip(b"\n").count(b"\n") + 1)
                yield from mutants(edit.path, text, lines, at_most=_PER_TEST)

    def _of(self, cases: Iterable[TestRecord]) -> Iterator[Mutant]:
        """Yield the faults of one test function: in what it enters of its subject, in what it names, in the rest."""
        reaches = [record.reach for record in cases if record.reach is not None]
        entered = {place for reach in reaches for place in map(_place, reach.functions) if place[0] in self._sources}
        named = {_place(entry) for reach in reaches for entry in reach.references}
        files = {path for path, _ in named}
        subject = {place for place in entered if place[0] in self._about}
        near = {place for place in entered if place[0] in files} | {place for place in named if place[1]}
        found = [*self._in(subject), *self._in(near - subject), *self._in(entered - near - subject)]
        # what runs when a file is imported is what a test looks at only where it enters nothing
        yield from found or self._in({(path, "") for path in files})
        if not entered and any(map(_may_reach_anything, cases)):
            first = [path for path in self._sources if path in self._about]
            rest = [path for path in self._sources if path not in self._about]
            yield from spread(chain.from_iterable(map(self._all, (*first, *rest))))

    def _in(self, places: Collection[tuple[str, str]]) -> Iterator[Mutant]:
        names_in: defaultdict[str, list[str]] = defaultdict(list)
        for path, name in places:
            names_in[path].append(name)
        there = (path for path in self._sources if path in names_in)
        yield from spread(mutant for path in there for mutant in self._all(path, frozenset(names_in[path])))

    def _all(self, path: str, within: frozenset[str] | None = None) -> tuple[Mutant, ...]:
        read, text = (path, within), self.text(path)
        if read not in self._read and len(self._read) < _MOST_READ:
            every = range(1, text.count(b"\n") + 2)
            self._read[read] = mutants(path, text, every, at_most=_PER_FILE, within=within)
        return self._read.get(read, ())


def _may_reach_anything(record: TestRecord) -> bool:
    return record.reach is None or "process" in record.reach.doors


def _traced_as(record: TestRecord, traced: TestRecord) -> TestRecord:
    """Return the record with what the test reached where nothing was wrong: over a fault nobody traces it."""
    return record if record.reach is not None else record.model_copy(update={"reach": traced.reach})


def _place(entry: str) -> tuple[str, str]:
    """Return path and dotted name of what a test enters or refers to."""
    path, _, name = entry.partition("::")
    return path, name.replace("::", ".").replace(".<locals>", "")
