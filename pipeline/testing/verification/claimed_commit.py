"""Reads one commit with its evidence: which tests were RED over the code before, and what is GREEN in it.

Of a rebased commit only its own work is held against it. The evidence has a file as it was judged, and the tree that
it was judged over. A rebase brings the change between the two onto what others made of the file. Where exactly that
gives the file of the commit, nothing of its own differs.

Evidence and task file say which old tests may change, and whoever made the commit may have written both. So they
decide what is refuted, and never what is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from pipeline.judge.evidence.compare import passed
from pipeline.judge.evidence.observation import Ended
from pipeline.judge.evidence.red import may_change
from pipeline.judge.evidence.red_classes import PASSED, RedClass
from pipeline.judge.evidence.renamed_tests import moved
from pipeline.progress import counted
from pipeline.run.info import RunInfo
from pipeline.testing.measure.composed_trees import both, shares_file, with_other_code, with_other_regions
from pipeline.testing.measure.measuring import MeasurementContext, UnmeasurableError, changed_paths
from pipeline.testing.measure.noticing import Passing, noticing_probe
from pipeline.testing.measure.old_tests import Sides, leave_of
from pipeline.testing.measure.outcome_words import noticed_lines
from pipeline.testing.measure.red import tried_over_stubs, with_own_signatures, with_stand_ins, with_stubs
from pipeline.testing.measure.revert import Red, Wanted, not_red
from pipeline.testing.measure.suspicions import means_of_forgery
from pipeline.testing.measure.task_evidence import NoticingEvidence
from pipeline.testing.verification.red_green import Runs, check_green, composed_for, measure_both, measure_red
from pipeline.testing.verification.results import CommitCheck, Problem, Status, TestLine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from pipeline.judge.evidence.observation import Layout, Observation, TestRecord
    from pipeline.judge.evidence.red_tests import RedTests
    from pipeline.judge.reports.tasks import Task
    from pipeline.testing.verification.claims import Claim, Kept
    from pipeline.testing.verification.results import Over


def changed_by_others(
    ctx: MeasurementContext, judged: tuple[str, str], commit: tuple[str, str], paths: Iterable[str]
) -> frozenset[str]:
    """Return those of *paths* in which others alone made the difference between what was judged and the commit.

    Args:
        ctx: What has the repository.
        judged: The tree that the tests were written over, and the one that they were judged in.
        commit: The trees of the commit's parent and of the commit.
        paths: Files of tests, or that serve them.
    """
    if any(ctx.repository.resolve(f"{tree}^{{tree}}") is None for tree in judged):
        return frozenset()
    wanted = sorted(paths)
    before = {path: (base, theirs) for path, base, theirs in both(ctx, judged[0], commit[0], wanted)}
    found: set[str] = set()
    for path, own, now in both(ctx, judged[1], commit[1], wanted):
        base, theirs = before[path]
        if base is None or theirs is None or own is None or base == theirs:
            continue  # nobody else was there, or the file came or went
        if now is not None and ctx.repository.merged(base, theirs, own) == now:
            found.add(path)
    return frozenset(found)


def not_claimed(ledger: RedTests) -> list[Problem]:
    """Return why evidence claims nothing, whatever its entries show.

    Where test files were renamed it need not name a RED, nor where all its tests passed before: they notice faults.
    """
    passed_too = [entry for entry, red in ledger.red.items() if red.cls in PASSED or entry in ledger.guards]
    found = [Problem(id=entry, why="is said to have been RED and to have passed") for entry in passed_too]
    claims = ledger.red or ledger.renames or ledger.guards
    return found or ([] if claims else [Problem(why="the evidence names no test that was RED")])


def misjudged(ledger: RedTests, after: Observation, by_others: frozenset[str]) -> list[Problem]:
    """Return the tests of the evidence that are others in the commit; those that are gone are judged by GREEN.

    A file that could not be collected when it was judged has no region on record: what changed in it since is found
    by comparing trees. Files *by_others* differ by the work of others alone.
    """
    regions = {**ledger.guards, **{entry: red.region_sha256 for entry, red in ledger.red.items()}}
    unread = {entry for entry in ledger.whole_files if not regions[entry]}
    now = {**after.files, **{entry: record.region_sha256 for entry, record in after.records.items()}}
    seen = now.keys() - unread - by_others
    # earlier versions wrote down the whole file of a test that code makes
    whole = {entry: after.files.get(record.path) for entry, record in after.records.items()}
    return [
        Problem(id=entry, why=f"is not the {'file' if entry in ledger.whole_files else 'test'} that was judged")
        for entry, region in regions.items()
        if entry in seen and region not in {now[entry], whole.get(entry)}
    ]


def refuse_unrun(ledger: RedTests, red: Red, after: Observation, problems: Iterable[Problem]) -> None:
    """Return when the tests were run, or something else is wrong with the commit.

    What is not installed here says nothing about the tests. Tests that skip themselves over both trees say nothing
    either: mostly a part is missing here that is built and not in git.

    Raises:
        UnmeasurableError: something is missing in the test environment.
    """
    measured = {entry: found for entry in ledger.red if (found := red.of(entry)) is not None}
    for found in measured.values():
        if found.cls is RedClass.ENV_BROKEN:
            raise UnmeasurableError(found.message)
    skipped_now = {entry for entry, record in after.records.items() if record.outcome is Ended.SKIPPED}
    skipped = {entry for entry, found in measured.items() if found.cls is RedClass.SKIPPED} & skipped_now
    if skipped and all(problem.id in skipped for problem in problems):
        entry = min(skipped)
        raise UnmeasurableError(
            f"{entry} is skipped here, over the code before and in the commit"
            f" ({after.records[entry].reason}); run `redfirst verify` where its parts are installed or built"
        )


def problems_of_red(ledger: RedTests, red: Red) -> list[Problem]:
    """Return the tests that do not show over the code before what the evidence says they did."""
    return [Problem(id=entry, why=why) for entry, why in not_red(ledger, red)]


def line_of(entry: str, ledger: RedTests, red: Red, after: Observation) -> TestLine:
    """Return one id of the evidence with what was measured of it."""
    recorded = ledger.red.get(entry)
    found = red.of(entry)
    granularity = "id" if recorded is None else recorded.granularity
    now = [r for r in after.records.values() if r.id == entry or (granularity == "file" and r.path == entry)]
    cls = RedClass.GUARD if recorded is None else recorded.cls
    return TestLine(
        id=entry,
        granularity=granularity,
        recorded=cls.value,
        measured=None if found is None else found.cls.value,
        before_holds=found is not None and found.legal and found.cls is cls,
        after_holds=bool(now) and all(passed(record) for record in now),
    )


def old_tests(
    ctx: MeasurementContext, runs: Runs, ledger: RedTests | None, allowed: frozenset[str]
) -> tuple[list[Problem], tuple[str, ...]]:
    """Return what is not allowed of what was done to tests, and what is to be told of them and of what serves them.

    Args:
        ctx: What has the repository.
        runs: The parent and the commit.
        ledger: The evidence, if the commit has tests.
        allowed: Ids, functions or files of tests that the task may change.
    """
    renames: Mapping[str, str] = ledger.renames if ledger is not None else {}
    moves = moved(runs.before.records, runs.after.records, renames)
    problems: list[Problem] = []
    notes = [f"{counted(len(moves), 'test')} moved: {old} is {new} now" for old, new in renames.items()]
    there = {record.function for record in runs.after.records.values()}
    for entry, old in runs.before.records.items():
        now = runs.after.records.get(moves.get(entry, entry))
        if not _is_suite(old, runs.before.layout) or (now is not None and now.region_sha256 == old.region_sha256):
            continue
        what = f"is an old test that this commit {'removes' if now is None else 'changes'}"
        if may_change(old, allowed):
            done = "changes" if old.function in there else "removes"  # what lacks a case of before is there
            notes.append(f"{old.function} is an old test that this commit {done}, with leave of its task")
        elif now is not None and ledger is not None and ledger.owns(now):
            notes.append(
                f"{old.function} {what}, and the evidence has it as {'RED' if now.id in ledger.red else 'kept'}"
            )
        else:
            problems.append(Problem(id=entry, why=f"{what}, and the evidence does not speak of it"))
    known = {*runs.before.records, *moves.values()}
    fresh = [record for entry, record in runs.after.records.items() if entry not in known]
    notes += [
        f"{record.function} is new, and the evidence does not have it"
        for record in fresh
        if _is_suite(record, runs.after.layout) and (ledger is None or not ledger.owns(record))
    ]
    return problems, tuple(dict.fromkeys((*notes, *_around(ctx, runs))))


def _around(ctx: MeasurementContext, runs: Runs) -> list[str]:
    """Return a line for each changed file that holds no tests and has a part in them."""
    holding = {record.path for seen in (runs.before, runs.after) for record in seen.records.values()}
    lines: list[str] = []
    for path in changed_paths(ctx, *runs.trees):
        if path not in holding and runs.after.layout.is_test_side(path):
            lines.append(f"{path} serves tests, and this commit changes it")
        elif ctx.toolchain.is_control_path(path):
            lines.append(f"{path} controls how tests run, and this commit changes it")
    return lines


def _is_suite(record: TestRecord, layout: Layout) -> bool:
    """Return whether the test is one of the test side; an example in the documentation of production code is none."""
    is_example = "::doc::" in record.id
    return layout.is_test_side(record.path) or (shares_file(record.path, layout) and not is_example)


_NOTES: Final[Mapping[Over, tuple[str, ...]]] = {
    "seam": ("RED is measured over the seam that the commit brings; over its parent no such test passes",),
    "stand-ins": ("RED is measured over the parent with stand-ins for new names, which its tests import",),
    "signatures": (
        "RED is measured over the parent with this commit's signatures; over it as it is its tests do not compile",
    ),
    "stubs": ("RED is measured over stubs of what the run introduced; with Red-Base the tests do not compile",),
}
"""What is said of the code that RED was measured over, where there is something to say."""


class Unchecked(Exception):  # noqa: N818  (an answer, not a failure)
    """The commit cannot be checked here; the message says why and what helps."""


@dataclass(frozen=True)
class ClaimedCommit:
    """One commit with its evidence; `parent`, `tree` and `start` are trees."""

    ctx: MeasurementContext
    claim: Claim
    kept: Kept
    tasks: tuple[Task, ...]
    parent: str
    tree: str
    start: str | None

    @property
    def task(self) -> Task:
        """Return the task that the commit names."""
        return self.tasks[0]

    @property
    def may_change(self) -> frozenset[str]:
        """Return the old tests that the task lets change."""
        return frozenset(test.id for test in self.task.tests_to_change)

    async def check(self, found: CommitCheck) -> CommitCheck:
        """Return the check of the commit.

        Raises:
            UnmeasurableError: the tests cannot be run here.
            UserError: the disk does not take it.
        """
        ledger = self.kept.evidence.ledger
        if ledger is not None:
            if self.ctx.repository.resolve(f"{ledger.tree}^{{tree}}") is None:
                raise Unchecked(f"the tests were judged on the tree {ledger.tree[:12]}, which is not here")
            self.ctx.repository.entries(ledger.tree)
        misnamed = self._misnamed()
        runs = await measure_both(self.ctx, {"the parent": self.parent, "the commit": self.tree})
        before, after = runs.before, runs.after
        others = self._by_others(ledger) if ledger is not None else frozenset[str]()
        seen = self.kept.evidence.green
        flaky = frozenset(seen.flaky) if seen is not None else frozenset[str]()
        moved: Mapping[str, str] = ledger.renames if ledger is not None else {}
        sides = Sides(*runs.trees, before.layout, self.kept.evidence.test_paths, self._may_make(), moved)
        leave = leave_of(self.task)
        green = await check_green(self.ctx, ledger, runs, self.may_change, others, flaky, sides=sides, leave=leave)
        is_measured = seen is None or seen.as_they_were is not None
        # an earlier version did not ask it; whoever lists tests in its evidence could leave that out as well
        unasked = () if is_measured else tuple(f"{one.id} {one.why}" for one in green.hidden)
        gone = {problem.id for problem in green.problems}
        touched, said = old_tests(self.ctx, runs, ledger, self.may_change)
        means = means_of_forgery(self.ctx, self.parent, self.tree, after.layout)
        told = [
            f"{path} was changed by others, too; what this commit does to it is what was judged"
            for path in sorted(others)
        ]
        notes = (*green.notes, *unasked, *said, *told, *self._made(after.layout), *means)
        found = found.model_copy(update={"kept": green.kept, "notes": notes})
        hidden = green.hidden if is_measured else ()
        problems = [*misnamed, *green.problems, *hidden, *(each for each in touched if each.id not in gone)]
        if ledger is None:
            reason = (self.kept.evidence.not_testable or {}).get("reason", "no reason")
            note = f"NOT_TESTABLE ({reason}): no test was RED; only that nothing broke is measured"
            return _judged(found, problems, Status.NOT_TESTABLE, notes=(note, *notes))
        problems += [*not_claimed(ledger), *misjudged(ledger, after, others), *self._changed_since(ledger, after)]
        if not ledger.red and not ledger.renames:
            return await self._without_red(found, ledger, after, problems)
        if not ledger.red:
            note = "tests moved, and no test was RED; only that nothing broke is measured"
            return _judged(found, problems, Status.NOT_TESTABLE, notes=(note, *notes))
        over, red = await self._red(ledger, after.layout)
        problems += problems_of_red(ledger, red)
        refuse_unrun(ledger, red, after, problems)
        problems += await self._structural(ledger, red, before, after)
        tests = tuple(line_of(entry, ledger, red, after) for entry in (*ledger.red, *ledger.guards))
        notes = (*notes, *_NOTES.get(over, ()))
        return _judged(found, problems, red_over=over, tests=tests, notes=notes)

    async def _without_red(
        self, found: CommitCheck, ledger: RedTests, after: Observation, problems: list[Problem]
    ) -> CommitCheck:
        """Return the check of tests that passed over the code before: what they notice stands in the place of RED."""
        wanted, layout = Wanted.of(ledger, self.tasks), after.layout
        paths = self._test_paths(self.parent, layout)
        over: Over = "parent"
        production = self.parent
        red = await measure_red(self.ctx, (self.tree, production), paths, ledger.guards, wanted, layout)
        seam = self._seam(ledger, paths, layout) if problems_of_red(ledger, red) else None
        if seam is not None:
            over, production = "seam", seam
            red = await measure_red(self.ctx, (self.tree, production), paths, ledger.guards, wanted, layout)
        problems = [*problems, *problems_of_red(ledger, red)]
        tests = tuple(line_of(entry, ledger, red, after) for entry in ledger.guards)
        found = found.model_copy(
            update={"red_over": over, "tests": tests, "notes": (*found.notes, *_NOTES.get(over, ()))}
        )
        if problems:
            return _judged(found, problems)
        composed = composed_for(self.ctx, (self.tree, production), paths, layout)
        functions = {entry: after.records[entry].function for entry in ledger.guards if entry in after.records}
        kept = self.kept.evidence.noticing or NoticingEvidence(tests={})
        about = {*kept.about, *(change.path for task in self.tasks for change in task.files)}
        passing = Passing(composed, functions, about, layout, edits=kept.edits)
        noticing = await noticing_probe(self.ctx, self.ctx.config.probes, passing)
        told = next(noticed_lines(noticing))
        notes = (*found.notes, f"no test was RED: all pass over the code before; {told}")
        if noticing.not_tried and not noticing.notices:
            raise Unchecked(f"{told}. `seconds` of [probes] says how long faults are tried")
        if noticing.trouble:
            return _judged(found, problems, Status.NOT_TESTABLE, notes=notes)
        if not noticing.notices:
            problems.append(Problem(why="its tests pass over the code before, and none of them notices a fault in it"))
        return _judged(found, problems, notes=notes)

    def _misnamed(self) -> list[Problem]:
        """Return what the trailers say otherwise than the record of the run."""
        content = self.kept.store.read("run.json")
        if content is None or self.claim.issue is None:
            return []
        try:
            issue = RunInfo.model_validate_json(content).issue
        except ValidationError as error:
            raise Unchecked(f"run.json in {self.kept.store.where} is none that a run has written") from error
        if issue == self.claim.issue:
            return []
        return [Problem(why=f"the trailer Issue says {self.claim.issue}, and the run worked on {issue}")]

    def _may_make(self) -> frozenset[str]:
        """Return the files that @make may change and @test may not."""
        return frozenset(each.path for each in self.task.files) - {each.path for each in self.task.test_files}

    def _made(self, layout: Layout) -> list[str]:
        """Return a note for each file that looks like a test's and is taken for code, since the task says so."""
        changed = self._may_make().intersection(changed_paths(self.ctx, self.parent, self.tree))
        return [
            f"{path} is taken for code: its task lets @make change it"
            for path in sorted(filter(layout.is_test_side, changed))
        ]

    def _test_paths(self, old: str, layout: Layout) -> frozenset[str]:
        """Return the files that serve tests and differ from *old* in the commit; what @make may change is none.

        What the task names as a test file is one: a text with examples does not look like one. Production files
        whose test regions differ are among them, whoever may change their code.
        """
        made = self._may_make()
        changed = changed_paths(self.ctx, old, self.tree)
        beside = with_other_regions(self.ctx, old, self.tree, changed, layout)
        named = {each.path for each in self.task.test_files if not shares_file(each.path, layout)}
        tests = [p for p in changed if p not in made and (p in named or layout.is_test_side(p))]
        return frozenset((*tests, *beside))

    def _by_others(self, ledger: RedTests, paths: Iterable[str] | None = None) -> frozenset[str]:
        """Return those of *paths*, the files of the judged tests if it is None, in which others made the difference."""
        judged, commit = (self.kept.evidence.production, ledger.tree), (self.parent, self.tree)
        return changed_by_others(self.ctx, judged, commit, ledger.frozen.files if paths is None else paths)

    def _changed_since(self, ledger: RedTests, after: Observation) -> list[Problem]:
        """Return the files of tests that are not as they were when these were judged."""
        paths = self._test_paths(self.parent, after.layout) - set(ledger.frozen.files)
        changed = paths.intersection(changed_paths(self.ctx, ledger.tree, self.tree))
        since = {path for path in changed if not shares_file(path, after.layout)}
        since.update(with_other_regions(self.ctx, ledger.tree, self.tree, sorted(changed), after.layout))
        return [
            Problem(id=path, why="was changed after the tests were judged")
            for path in sorted(since - self._by_others(ledger, since))
        ]

    async def _red(self, ledger: RedTests, layout: Layout) -> tuple[Over, Red]:
        """Return what the tests show over the code before, and which code that was."""
        wanted, ids = Wanted.of(ledger, self.tasks), {*ledger.red, *ledger.guards}

        async def shown_over(production: str, paths: Iterable[str]) -> Red:
            return await measure_red(self.ctx, (self.tree, production), paths, ids, wanted, layout)

        production = self.start or self.parent
        paths = self._test_paths(production, layout)
        red = await shown_over(production, paths)
        first: Over = "parent" if self.start is None else "start"
        if not problems_of_red(ledger, red) or any(map(red.passes, ledger.red)):
            return first, red
        hidden = any(entry not in red.observation.records for entry in ledger.red)
        if self.start is not None:
            bare = with_stubs(self.ctx, self.tasks, self.tree, self.start, layout) if hidden else None
            return (first, red) if bare is None else ("stubs", await shown_over(bare, ()))
        if self.kept.evidence.writers is not None:
            found = await self._red_over_signatures(ledger, lambda bare: shown_over(bare, paths), paths, layout)
            if found is not None:
                return "signatures", found
        seam = self._seam(ledger, paths, layout)
        if seam is not None:
            return "seam", await shown_over(seam, paths)
        errors = red.observation.collection_errors
        standing = with_stand_ins(self.ctx, self.tasks, production, errors) if hidden and errors else None
        return (first, red) if standing is None else ("stand-ins", await shown_over(standing, paths))

    async def _red_over_signatures(
        self, ledger: RedTests, shown_over: Callable[[str], Awaitable[Red]], paths: frozenset[str], layout: Layout
    ) -> Red | None:
        """Return what tests of one writer show over the parent with the commit's own signatures, where they do.

        These are made anew from the commit: that of the run is not believed.
        """
        found: Red | None = None
        for kept in (True, False):
            bare = with_own_signatures(self.ctx, self.parent, self.tree, sorted(paths), layout, kept=kept)
            if bare is None:
                break
            found = await shown_over(bare)
            if not problems_of_red(ledger, found):
                break
        return found

    def _seam(self, ledger: RedTests, test_paths: frozenset[str], layout: Layout) -> str | None:
        """Return the tree with the seam that the tests were written over, if this commit brings one."""
        brought = set(with_other_code(self.ctx, self.parent, ledger.tree, test_paths, layout))
        ours = brought and brought <= set(changed_paths(self.ctx, self.parent, self.tree))
        return ledger.tree if ours else None

    async def _structural(self, ledger: RedTests, red: Red, before: Observation, after: Observation) -> list[Problem]:
        """Return the tests of files that could not be imported before, and that assert nothing about what is new."""
        files = ledger.whole_files
        own = [e for e, record in after.records.items() if record.path in files and e not in before.records]
        if not own:
            return []
        passing, _ = await tried_over_stubs(self.ctx, self.task, self.tree, red.production, own, after.layout)
        return [Problem(id=entry, why="passes although what it tests is only a stub") for entry in passing]


def _judged(
    found: CommitCheck, problems: list[Problem], holds: Status = Status.VERIFIED, **facts: object
) -> CommitCheck:
    status = Status.REFUTED if problems else holds
    return found.model_copy(update={"status": status, "problems": tuple(dict.fromkeys(problems)), **facts})
