"""One commit, checked again: the evidence is the one that it names, its tests were RED before, and all is GREEN now.

The evidence tells which tests are meant and what they showed. Who wrote the commit may have written that, too: it
selects and explains. A commit is verified when its own tests, measured over its parent's code, showed at least one
legal RED, and all of it, measured in the commit, is GREEN with nothing lost.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import ValidationError

from pipeline.git import GitError, TooLargeError
from pipeline.measure.composing import shares_file, with_other_code, with_other_regions
from pipeline.measure.measuring import UnmeasurableError, changed_paths
from pipeline.measure.over_stubs import tried_over_stubs, with_stubs
from pipeline.measure.reverting import Wanted
from pipeline.measure.stand_ins import with_stand_ins
from pipeline.measure.suspicions import means_of_forgery
from pipeline.policy.paths import is_tracker
from pipeline.reports.decode import Malformed
from pipeline.reports.taskfile import parse_task_md
from pipeline.runs.info import RunInfo
from pipeline.verification.claimed import line_of, misjudged, not_claimed, problems_of_red, refuse_broken
from pipeline.verification.claims import RUN_ID, Claim, Kept, NoClaim, claim_of, kept_evidence, not_kept
from pipeline.verification.green import check_green
from pipeline.verification.old_tests import Runs, old_tests
from pipeline.verification.rebased import changed_by_others
from pipeline.verification.red import measure_red, measure_whole
from pipeline.verification.results import CommitCheck, Problem, Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.evidence.ledger import RedLedger
    from pipeline.evidence.observation import Layout, Observation
    from pipeline.measure.reverting import Red
    from pipeline.reports.tasks import Task
    from pipeline.verification.standalone import Standalone

_MOST_TASKS = 200

Over = Literal["parent", "start", "seam", "stubs", "stand-ins"]


class Unchecked(Exception):  # noqa: N818  (an answer, not a failure)
    """The commit cannot be checked here; the message says why and what helps."""


def unchecked(apparatus: Standalone, commit: str, error: Exception) -> CommitCheck:
    """Return that *commit* cannot be checked here, and why."""
    subject = apparatus.repository.subject(commit)
    return CommitCheck(commit=commit, subject=subject, status=Status.UNCHECKED, why=str(error))


async def recheck(apparatus: Standalone, commit: str) -> CommitCheck:
    """Return what is true of what *commit* claims."""
    claim = claim_of(apparatus.repository, commit)
    found = CommitCheck(commit=commit, subject=apparatus.repository.subject(commit), status=Status.UNCHECKED)
    try:
        if isinstance(claim, NoClaim):
            status = Status.UNCHECKED if claim.broken else Status.NOTHING_CLAIMED
            found = found.model_copy(update={"status": status, "why": claim.why, "run_id": claim.run_id})
            return found if claim.run_id is None or claim.broken else await _without_task(apparatus, found)
        apparatus.say(f"{commit[:12]}: task {claim.task} of {claim.run_id}")
        found = found.model_copy(update={"run_id": claim.run_id, "task": claim.task})
        return await _checked(apparatus, claim, found)
    except (Unchecked, UnmeasurableError, TooLargeError, GitError) as error:
        return found.model_copy(update={"status": Status.UNCHECKED, "why": str(error)})


async def _without_task(apparatus: Standalone, found: CommitCheck) -> CommitCheck:
    """Return the check of a commit that closes the issue, or tidies production: it touches no test and breaks none."""
    parents = [_tree_of(apparatus, commit) for commit in apparatus.repository.parents(found.commit)]
    tree = _tree_of(apparatus, found.commit)
    changed = [path for path in changed_paths(apparatus, parents[0], tree) if not is_tracker(path)] if parents else []
    if not changed:
        return found
    before = await measure_whole(apparatus, parents[0], "the parent")
    after = await measure_whole(apparatus, tree, "the commit")
    green = await check_green(apparatus, None, before, after, (parents[0], tree), frozenset())
    tests = [path for path in changed if after.layout.is_test_side(path)]
    why = "serves tests, and is changed by a commit of the run that has no evidence"
    problems = (*green.problems, *(Problem(id=path, why=why) for path in tests))
    status = Status.REFUTED if problems else found.status
    means = means_of_forgery(apparatus, parents[0], tree, after.layout)
    notes = (*green.notes, f"changes {', '.join(changed)}; nothing that passed before is lost", *means)
    return found.model_copy(
        update={"status": status, "kept": green.kept, "problems": problems, "notes": () if problems else notes}
    )


async def _checked(apparatus: Standalone, claim: Claim, found: CommitCheck) -> CommitCheck:
    repository = apparatus.repository
    kept = kept_evidence(repository, claim)
    if not isinstance(kept, Kept):
        if kept.left_out:
            number, first = len(kept.left_out), kept.left_out[0]
            raise Unchecked(
                f"there is more evidence of {claim.run_id} here than is looked into; left out: {first}"
                f"{f' and {number - 1} more' if number > 1 else ''}. Remove the refs that nobody needs: "
                f"git for-each-ref | grep {claim.run_id}"
            )
        if not kept.others:
            raise Unchecked(not_kept(repository, claim))
        why = f"the evidence in {', '.join(kept.others)} is not the one that the trailer Red-Evidence names"
        return found.model_copy(update={"status": Status.REFUTED, "problems": (Problem(why=why),)})
    parents = repository.parents(found.commit)
    if len(parents) != 1:
        raise Unchecked(f"the commit of a task has one parent, and this one has {len(parents)} here")
    case = _Case(
        apparatus,
        claim,
        kept,
        tasks=_tasks(kept, claim),
        parent=_tree_of(apparatus, parents[0]),
        tree=_tree_of(apparatus, found.commit),
        start=_red_base(apparatus, claim, found.commit),
    )
    return await case.check(found.model_copy(update={"evidence": kept.store.where}))


def _tree_of(apparatus: Standalone, commit: str) -> str:
    """Return the tree of a commit.

    Raises:
        TooLargeError: it names paths without number; git would never end to compare it.
    """
    tree = apparatus.repository.tree_of(commit)
    apparatus.repository.entries(tree)
    return tree


def _red_base(apparatus: Standalone, claim: Claim, commit: str) -> str | None:
    """Return the tree that a fix of tests alone was measured over: that of the start of its run."""
    if claim.red_base is None:
        return None
    base = apparatus.repository.resolve(f"{claim.red_base}^{{commit}}")
    if base is None or not apparatus.repository.is_ancestor(base, commit):
        raise Unchecked(f"the trailer Red-Base names {claim.red_base}, which is not in the history of this commit")
    for each in apparatus.repository.history(f"{base}..{commit}"):  # over an old enough commit every test is RED
        if (RUN_ID, claim.run_id) not in apparatus.repository.trailers(each):
            told = f"{each[:12]} ({apparatus.repository.subject(each)})"
            raise Unchecked(f"the trailer Red-Base names {base[:12]}; since then came {told}, not of {claim.run_id}")
    return _tree_of(apparatus, base)


def _tasks(kept: Kept, claim: Claim) -> tuple[Task, ...]:
    """Return the tasks whose symbols were missing when RED was measured, the one in question first."""
    others = [name for name in kept.store.tasks() if name != claim.task] if claim.red_base is not None else []
    if len(others) > _MOST_TASKS:
        raise Unchecked(f"{kept.store.where} has {len(others)} tasks, more than any run")
    found: list[Task] = []
    for name in (claim.task, *others):
        content = kept.store.read(f"task-{name}.md")
        task = None if content is None else parse_task_md(content.decode("utf-8", "replace"))
        if isinstance(task, Malformed) or task is None:
            why = "is missing" if task is None else f"cannot be read: {task.sentence}"
            raise Unchecked(f"task-{name}.md in {kept.store.where} {why}")
        if name == claim.task and not _is_named(claim.task_file, content or b""):
            why = "is not the one that the trailer Task-File names"
            raise Unchecked(f"task-{name}.md in {kept.store.where} {why}")
        found.append(task)
    return tuple(found)


def _is_named(trailer: str | None, content: bytes) -> bool:
    """Return whether a task file is the one that a trailer names; commits of older versions name none."""
    return trailer is None or trailer == f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass(frozen=True)
class _Case:
    """One commit with its evidence; `parent`, `tree` and `start` are trees."""

    apparatus: Standalone
    claim: Claim
    kept: Kept
    tasks: tuple[Task, ...]
    parent: str
    tree: str
    start: str | None

    @property
    def task(self) -> Task:
        return self.tasks[0]

    @property
    def may_change(self) -> frozenset[str]:
        return frozenset(test.id for test in self.task.tests_to_change)

    async def check(self, found: CommitCheck) -> CommitCheck:
        """Return the check of the commit.

        Raises:
            UnmeasurableError: the tests cannot be run here.
            UserError: the disk does not take it.
        """
        ledger = self.kept.evidence.ledger
        if ledger is not None and not self._is_here(ledger.tree):
            raise Unchecked(f"the tests were judged on the tree {ledger.tree[:12]}, which is not here")
        if ledger is not None:
            self.apparatus.repository.entries(ledger.tree)
        misnamed = self._misnamed()
        before = await measure_whole(self.apparatus, self.parent, "the parent")
        after = await measure_whole(self.apparatus, self.tree, "the commit")
        others = self._by_others(ledger) if ledger is not None else frozenset[str]()
        green = await check_green(
            self.apparatus, ledger, before, after, (self.parent, self.tree), self.may_change, others
        )
        gone = {problem.id for problem in green.problems}
        old = old_tests(self.apparatus, Runs((self.parent, self.tree), before, after), ledger, self.may_change)
        means = means_of_forgery(self.apparatus, self.parent, self.tree, after.layout)
        told = [
            f"{path} was changed by others, too; what this commit does to it is what was judged"
            for path in sorted(others)
        ]
        notes = (*green.notes, *old.notes, *told, *self._made(after.layout), *means)
        found = found.model_copy(update={"kept": green.kept, "notes": notes})
        problems = [*misnamed, *green.problems, *(each for each in old.problems if each.id not in gone)]
        if ledger is None:
            reason = (self.kept.evidence.not_testable or {}).get("reason", "no reason")
            note = f"NOT_TESTABLE ({reason}): no test was RED; only that nothing broke is measured"
            return _judged(found, problems, Status.NOT_TESTABLE, notes=(note, *notes))
        problems += [*not_claimed(ledger), *misjudged(ledger, after, others), *self._changed_since(ledger, after)]
        if not ledger.red:
            note = "tests moved, and no test was RED; only that nothing broke is measured"
            return _judged(found, problems, Status.NOT_TESTABLE, notes=(note, *notes))
        over, red = await self._red(ledger, after.layout)
        refuse_broken(ledger, red)
        problems += problems_of_red(ledger, red)
        problems += await self._structural(ledger, red, before, after)
        tests = tuple(line_of(entry, ledger, red, after) for entry in (*ledger.red, *ledger.guards))
        if over == "seam":
            notes = (
                *notes,
                "RED is measured over the seam that the commit brings; over its parent no such test passes",
            )
        if over == "stand-ins":
            notes = (
                *notes,
                "RED is measured over the parent with stand-ins for new names; without them its tests are not imported",
            )
        if over == "stubs":
            notes = (
                *notes,
                "RED is measured over stubs of what the run introduced; with Red-Base the tests do not compile",
            )
        return _judged(found, problems, red_over=over, tests=tests, notes=notes)

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

    def _is_here(self, tree: str) -> bool:
        return self.apparatus.repository.resolve(f"{tree}^{{tree}}") is not None

    def _may_make(self) -> frozenset[str]:
        """Return the files that @make may change and @test may not."""
        return frozenset(each.path for each in self.task.files) - {each.path for each in self.task.test_files}

    def _made(self, layout: Layout) -> list[str]:
        """Return a note for each file that looks like a test's and is taken for code, since the task says so."""
        changed = self._may_make().intersection(changed_paths(self.apparatus, self.parent, self.tree))
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
        changed = changed_paths(self.apparatus, old, self.tree)
        beside = with_other_regions(self.apparatus, old, self.tree, changed, layout)
        named = {each.path for each in self.task.test_files if not shares_file(each.path, layout)}
        tests = [p for p in changed if p not in made and (p in named or layout.is_test_side(p))]
        return frozenset((*tests, *beside))

    def _by_others(self, ledger: RedLedger, paths: Iterable[str] | None = None) -> frozenset[str]:
        """Return those of *paths*, the files of the judged tests if it is None, in which others made the difference."""
        judged, commit = (self.kept.evidence.production, ledger.tree), (self.parent, self.tree)
        return changed_by_others(self.apparatus, judged, commit, ledger.frozen.files if paths is None else paths)

    def _changed_since(self, ledger: RedLedger, after: Observation) -> list[Problem]:
        """Return the files of tests that are not as they were when these were judged."""
        paths = self._test_paths(self.parent, after.layout) - set(ledger.frozen.files)
        changed = paths.intersection(changed_paths(self.apparatus, ledger.tree, self.tree))
        since = {path for path in changed if not shares_file(path, after.layout)}
        since.update(with_other_regions(self.apparatus, ledger.tree, self.tree, sorted(changed), after.layout))
        return [
            Problem(id=path, why="was changed after the tests were judged")
            for path in sorted(since - self._by_others(ledger, since))
        ]

    async def _red(self, ledger: RedLedger, layout: Layout) -> tuple[Over, Red]:
        """Return what the tests show over the code before, and which code that was."""
        wanted = Wanted.of(ledger, self.tasks)
        ids = {*ledger.red, *ledger.guards}
        production = self.start or self.parent
        paths = self._test_paths(production, layout)
        red = await measure_red(self.apparatus, (self.tree, production), paths, ids, wanted, layout)
        if self.start is not None:
            return await self._red_on_stubs(ledger, red, wanted, layout) or ("start", red)
        if not problems_of_red(ledger, red) or any(map(red.passes, ledger.red)):
            return "parent", red
        seam = self._seam(ledger, paths, layout)
        if seam is not None:
            return "seam", await measure_red(self.apparatus, (self.tree, seam), paths, ids, wanted, layout)
        hidden = any(entry not in red.observation.records for entry in ledger.red)
        errors = red.observation.collection_errors
        standing = with_stand_ins(self.apparatus, self.tasks, production, errors) if hidden and errors else None
        if standing is None:
            return "parent", red
        return "stand-ins", await measure_red(self.apparatus, (self.tree, standing), paths, ids, wanted, layout)

    async def _red_on_stubs(
        self, ledger: RedLedger, red: Red, wanted: Wanted, layout: Layout
    ) -> tuple[Over, Red] | None:
        """Return what tests show over stubs that cannot be compiled with the start; None where that is not the case."""
        unread = [entry for entry in ledger.red if entry not in red.observation.records]
        if not unread or not problems_of_red(ledger, red) or any(map(red.passes, ledger.red)) or self.start is None:
            return None
        bare = with_stubs(self.apparatus, self.tasks, self.tree, self.start, layout)
        if bare is None:
            return None
        ids = {*ledger.red, *ledger.guards}
        return "stubs", await measure_red(self.apparatus, (self.tree, bare), (), ids, wanted, layout)

    def _seam(self, ledger: RedLedger, test_paths: frozenset[str], layout: Layout) -> str | None:
        """Return the tree with the seam that the tests were written over, if this commit brings one."""
        brought = set(with_other_code(self.apparatus, self.parent, ledger.tree, test_paths, layout))
        ours = brought and brought <= set(changed_paths(self.apparatus, self.parent, self.tree))
        return ledger.tree if ours else None

    async def _structural(self, ledger: RedLedger, red: Red, before: Observation, after: Observation) -> list[Problem]:
        """Return the tests of files that could not be imported before, and that assert nothing about what is new."""
        files = ledger.provisional_files
        own = [e for e, record in after.records.items() if record.path in files and e not in before.records]
        if not own:
            return []
        passing, _ = await tried_over_stubs(self.apparatus, self.task, self.tree, red.production, own, after.layout)
        return [Problem(id=entry, why="passes although what it tests is only a stub") for entry in passing]


def _judged(
    found: CommitCheck, problems: list[Problem], holds: Status = Status.VERIFIED, **facts: object
) -> CommitCheck:
    status = Status.REFUTED if problems else holds
    return found.model_copy(update={"status": status, "problems": tuple(dict.fromkeys(problems)), **facts})
