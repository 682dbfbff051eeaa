"""Judges a task's tests from two runs: which are RED, and why others are not (matrix 5).

`before` is measured without the task's tests, `after` with them, both over the same production files.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence import freeze
from pipeline.judge.evidence.classify import classify, classify_collection
from pipeline.judge.evidence.observation import PASSING, Ended, Observation, TestRecord, Value
from pipeline.judge.evidence.red_classes import PASSED, Classified, Context, RedClass
from pipeline.judge.evidence.red_tests import RedEntry, RedTests
from pipeline.judge.evidence.renamed_tests import carried, held, moved
from pipeline.progress import few

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOLD: Final = 3
NO_NEW_TEST: Final = "no test was added or changed"


class Refusal(Value):
    """A refusal of an id, function or file as RED, in words for the agent that wrote it."""

    id: str
    cls: RedClass | None
    message: str


class RedFacts(Value):
    """The facts of a RED measurement; the step maps them to a signal in the order of matrix 1.

    `only_removed` are the tests that are gone, where that is all that was done and is enough; `only_moved` says the
    same of tests whose file got another name. `varied_before` are those of the unstable ones that another measurement
    of the same bytes saw differently.
    """

    new_ids: tuple[str, ...]
    env_broken: str | None = None
    all_new_pass: bool = False
    structural_only: bool = False
    illegal: tuple[Refusal, ...] = ()
    unstable: tuple[str, ...] = ()
    varied_before: tuple[str, ...] = ()
    changed_old: tuple[str, ...] = ()
    removed_old: tuple[str, ...] = ()
    only_removed: tuple[str, ...] = ()
    only_moved: bool = False
    ledger: RedTests

    @property
    def legal(self) -> bool:
        """Return whether the tests are RED: nothing refused or unstable, no old test touched without permission."""
        refused = self.env_broken or self.all_new_pass or self.structural_only or self.illegal
        return not (refused or self.unstable or self.changed_old or self.removed_old)


def derive_new_ids(before: Observation, after: Observation, allowed: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return the ids that are new or whose source changed, sorted.

    Of the tests that a task may change (`allowed`), also those that fail now though their own source is what it was:
    what they compare with (a golden file, a fixture) says something else now.
    """
    return tuple(
        sorted(
            entry
            for entry, record in after.records.items()
            if record.region_sha256  # a tool says it of the whole file, and nobody wrote it
            and (
                entry not in before.records
                or before.records[entry].region_sha256 != record.region_sha256
                or (may_change(record, allowed) and _fails_since(before.records[entry], record))
            )
        )
    )


def failing_since(before: Observation, after: Observation) -> frozenset[str]:
    """Return the ids of the tests that passed before and fail now, for whatever reason."""
    known = before.records
    return frozenset(e for e, record in after.records.items() if e in known and _fails_since(known[e], record))


def _fails_since(before: TestRecord, now: TestRecord) -> bool:
    return before.outcome in PASSING and now.ran and now.outcome not in PASSING


def judge_red(
    before: Observation,
    after: Observation,
    again: Observation | None,
    context: Context,
    *,
    task: str,
    tree: str,
    tests_to_change: frozenset[str] = frozenset(),
    asked: frozenset[str] = frozenset(),
    may_only_remove: bool = False,
    renames: Mapping[str, str] | None = None,
) -> RedFacts:
    """Return the facts of a task's RED measurement.

    Args:
        before: The tests of `task_start`, collected at least.
        after: The new tests over the same production, run.
        again: The same run repeated, or None when stability is not in question.
        context: The task, and which files existed before.
        task: The task's id.
        tree: The tree that `after` measured.
        tests_to_change: Ids, functions or files of old tests that the task may change or remove.
        asked: Tests that fail and files that cannot be collected though nothing in them changed, which are to be made
            to pass as they are: evidence where they fail for a legal reason, and nothing else is said of them.
        may_only_remove: Whether no behaviour changes, so that a removal of tests that may go, or their move, is enough.
        renames: The new path of each renamed test file, by its old one.
    """
    moves = moved(before.records, after.records, renames or {})
    tests_to_change |= {new for old, new in moves.items() if may_change(before.records[old], tests_to_change)}
    before = carried(before, after, moves)
    new_ids = derive_new_ids(before, after, tests_to_change)
    classes = {entry: classify(after.records[entry], context) for entry in new_ids}
    known_errors = before.unread
    errors = {error.path: classify_collection(error, context) for error in after.collection_errors}
    broken = {path: found for path, found in errors.items() if path not in known_errors}
    old = {entry: classify(after.records[entry], context) for entry in asked - set(new_ids) if entry in after.records}
    old |= {path: found for path, found in errors.items() if path in asked}
    everything = {**{entry: found for entry, found in old.items() if _is_red(found)}, **classes, **broken}
    kept, lost = held(before, after, moves.values())
    guards = dict.fromkeys(kept, Classified(RedClass.GUARD, legal=True, message="moved"))
    ledger = _ledger(after, again, {**guards, **everything}, task=task, tree=tree)
    ledger = ledger.model_copy(update={"renames": dict(renames or {})})
    everything = _without_skipped(after, everything)
    lost = {entry for entry in lost if not may_change(before.records[entry], tests_to_change)}
    changed_old = _changed_old(before, after, tests_to_change) | lost
    gone = sorted(_gone(before, after))
    only_moved = may_only_remove and bool(moves) and everything.keys() <= changed_old
    only_removed = tuple(gone) if may_only_remove and not everything else ()
    all_pass = bool(everything) and all(found.cls in PASSED for found in everything.values())
    lacking = (found.message for found in everything.values() if found.cls is RedClass.ENV_BROKEN)
    return RedFacts(
        new_ids=tuple(sorted(everything)),
        env_broken=after.environment_problem or next(lacking, None),
        all_new_pass=all_pass and not context.stubbed and not only_moved,
        structural_only=_only_structural(everything) or (all_pass and context.stubbed),
        illegal=() if only_removed or only_moved else _refusals(before, after, everything, old),
        unstable=_unstable(everything, after, again, context) if again is not None else (),
        changed_old=tuple(sorted(changed_old)),
        removed_old=tuple(entry for entry in gone if not may_change(before.records[entry], tests_to_change)),
        only_removed=only_removed,
        only_moved=only_moved,
        ledger=ledger,
    )


def with_other_ids(
    verdict: RedFacts, before: Observation, once: Observation, again: Observation, tests_to_change: frozenset[str]
) -> RedFacts:
    """Return the facts where cases have other ids in each of two runs of the same tests: these cannot be compared.

    Who wrote the task's tests mends its own. Of those that it may not change the project has to.

    Args:
        verdict: What was judged else.
        before: The tests of `task_start`.
        once: A run of the tests of the task.
        again: The next run of the same tests.
        tests_to_change: Ids, functions or files of old tests that the task may change or remove.
    """
    first, second = (
        {record.function: entry for entry, record in one.records.items() if entry not in other.records}
        for one, other in ((once, again), (again, once))
    )
    told = {
        function: f"{first[function]} was {second[function]} in the next run, so its cases cannot be compared. "
        "Give each case the same id in every run, as by fixed values"
        for function in sorted(first.keys() & second.keys())
    }
    kept = {record.function for record in before.records.values() if not may_change(record, tests_to_change)}
    refused = (Refusal(id=e, cls=RedClass.TEST_BROKEN, message=said) for e, said in told.items() if e not in kept)
    env_broken = verdict.env_broken or next((said for function, said in told.items() if function in kept), None)
    return verdict.model_copy(update={"env_broken": env_broken, "illegal": (*refused, *verdict.illegal)})


def _without_skipped(after: Observation, everything: Mapping[str, Classified]) -> dict[str, Classified]:
    """Return all but skipped cases beside others of their function: a project skips what a machine cannot run."""
    skipped = {entry for entry, found in everything.items() if found.cls is RedClass.SKIPPED}
    shown = {_function(after, entry) for entry in everything.keys() - skipped}
    return {e: found for e, found in everything.items() if e not in skipped or _function(after, e) not in shown}


def _only_structural(everything: Mapping[str, Classified]) -> bool:
    """Return whether every failure is structural, which does not show that a behaviour is missing."""
    failing = [found for found in everything.values() if found.cls not in PASSED]
    return bool(failing) and all(found.cls is RedClass.STRUCTURAL for found in failing)


def _refusals(
    before: Observation, after: Observation, everything: Mapping[str, Classified], old: Mapping[str, Classified]
) -> tuple[Refusal, ...]:
    """Return the refusals by function: one legal RED case excuses passing cases of the same function.

    An old test that passed and still does is a guard, announced or not: whether it may change is another question.
    """
    if not everything:
        taken = [Refusal(id=e, cls=found.cls, message=f"{e} {found.message}") for e, found in sorted(old.items())]
        return tuple(taken) or (Refusal(id="", cls=None, message=after.detail or _nothing_new(before, after)),)
    functions: dict[str, list[str]] = defaultdict(list)
    for entry in everything:
        functions[_function(after, entry)].append(entry)
    refused: list[Refusal] = []
    any_red = False
    for _, entries in sorted(functions.items()):
        found = {entry: everything[entry] for entry in entries}
        red = [one for one in found.values() if _is_red(one)]
        any_red = any_red or bool(red)
        refused += [
            Refusal(id=entry, cls=one.cls, message=f"{entry} {one.message}")
            for entry, one in sorted(found.items())
            if not one.legal and not (one.cls in PASSED and (red or _still_passes(before, after, entry)))
        ]
    if not any_red and not refused:
        refused.append(
            Refusal(id="", cls=None, message="every test is a guard; at least one must fail before the change")
        )
    return tuple(refused)


def _nothing_new(before: Observation, after: Observation) -> str:
    """Return a message that there is no new test, and how old tests that fail now come to count."""
    since = sorted({after.records[entry].function for entry in failing_since(before, after)})
    if not since:
        return NO_NEW_TEST
    return f"{NO_NEW_TEST}, but {few(since, _TOLD)} fails since: if that is meant, name the test in `tests`"


def _is_red(found: Classified) -> bool:
    return found.legal and found.cls not in PASSED


def _still_passes(before: Observation, after: Observation, entry: str) -> bool:
    """Return whether an old test still passes; one expected to fail by now (`xfail`) does not."""
    records = [observed.records.get(entry) for observed in (before, after)]
    return all(record is not None and record.outcome is Ended.PASSED for record in records)


def _function(after: Observation, entry: str) -> str:
    record = after.records.get(entry)
    return record.function if record is not None else entry


def _ledger(
    after: Observation, again: Observation | None, everything: Mapping[str, Classified], *, task: str, tree: str
) -> RedTests:
    red: dict[str, RedEntry] = {}
    guards: dict[str, str] = {}
    for entry, found in sorted(everything.items()):
        record = after.records.get(entry)
        region = record.region_sha256 if record is not None else after.files.get(entry, "")
        if found.cls in PASSED:
            guards[entry] = region
        elif found.legal:
            red[entry] = RedEntry(
                function=_function(after, entry),
                cls=found.cls,
                legal=True,
                message=found.message,
                region_sha256=region,
                tree=tree,
                granularity="id" if record is not None else "file",
            )
    frozen = freeze.freeze(after, everything.keys(), again)
    return RedTests(task=task, tree=tree, red=red, guards=guards, frozen=frozen)


def _unstable(
    everything: Mapping[str, Classified], after: Observation, again: Observation, context: Context
) -> tuple[str, ...]:
    """Return the ids and files with another result in the second run; a missing result counts as different.

    Only one of the two runs is traced: what a test reached is no difference that the other one could show.
    """
    reach = {entry: record.reach for entry, record in after.records.items()}
    second = {
        entry: classify(record.model_copy(update={"reach": record.reach or reach.get(entry)}), context)
        for entry, record in again.records.items()
        if entry in everything
    }
    second |= {error.path: classify_collection(error, context) for error in again.collection_errors}
    return tuple(
        sorted(
            entry for entry, found in everything.items() if entry not in second or second[entry].cls is not found.cls
        )
    )


def _changed_old(before: Observation, after: Observation, allowed: frozenset[str]) -> set[str]:
    """Return the old tests whose source changed without permission."""
    return {
        entry
        for entry, record in before.records.items()
        if entry in after.records
        and after.records[entry].region_sha256 != record.region_sha256
        and not (_is_same_case(record, after.records[entry]) or may_change(record, allowed))
    }


def _is_same_case(before: TestRecord, now: TestRecord) -> bool:
    """Return whether only the table around a case is another: a case more is no other old test."""
    return before.case is not None and now.case is not None and before.case.is_as(now.case)


def _gone(before: Observation, after: Observation) -> frozenset[str]:
    """Return the old tests that vanished; none where no test is left, which is more likely a broken run.

    Those in a file that cannot be collected count as its error instead.
    """
    if not after.records:
        return frozenset()
    hidden = after.unread
    vanished = before.records.keys() - after.records.keys()
    return frozenset(entry for entry in vanished if before.records[entry].path not in hidden)


def may_change(record: TestRecord, allowed: frozenset[str]) -> bool:
    """Return whether a task's `tests_to_change` names the test: by id, by function, or by file."""
    return not allowed.isdisjoint((record.id, record.function, record.path))
