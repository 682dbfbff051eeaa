"""Judges GREEN: the task's tests pass untouched, and no test that passed before is lost (matrix 5).

A first stage of the tests can only condemn: that nothing is lost is said by the run of all.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence.freeze import Thaw, thaw
from pipeline.judge.evidence.observation import PASSING, Ended, Observation, TestRecord, Value
from pipeline.judge.evidence.red import may_change
from pipeline.judge.evidence.renamed_tests import moved

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pipeline.judge.evidence.red_tests import RedTests

_KEPT: Final[Mapping[Ended, frozenset[Ended]]] = {
    Ended.PASSED: PASSING,
    Ended.XPASSED: PASSING,
    Ended.SKIPPED: PASSING | {Ended.SKIPPED},
    Ended.XFAILED: PASSING | {Ended.XFAILED},
}
"""The outcomes that each baseline outcome may turn into; a baseline outcome not listed may turn into any."""

FINE: Final = frozenset({Ended.PASSED, Ended.XPASSED, Ended.SKIPPED, Ended.XFAILED})
"""The outcomes that are no failure."""

CONFIRMING_RUNS: Final = 2
NOTHING: Final[Mapping[str, TestRecord]] = {}


class RepeatResult(StrEnum):
    """The result of repeating a suspected regression (2 of 2 rule)."""

    REGRESSION = "regression"
    FLAKY = "flaky"


class GreenFacts(Value):
    """The facts of a GREEN measurement. `new_ids` come from production (parameters, doctests) and must pass.

    `regressions` are suspects until `confirm_regression` has seen two runs of both trees. What passes now and failed in
    an earlier measurement of the same bytes is among them; of the task's own tests it is `unstable`.
    `whole_file_ids` are the ids of test files that could not be imported at RED; each must fail once the task's symbols
    are stubbed.
    `changed_regions` are tests whose source changed, or the values of whose case did where these stand beside it;
    `other_cases` have other values that production may have made: for @check to read, nothing follows from them.
    `uncollected` are files that cannot be collected, and could before: nobody knows what their tests would show.
    `cut_short` says how a run ended that did not come to its end, where no test that was kept explains it: whatever its
    tests said before, nobody knows whether they ran in a sound process.
    """

    not_green: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    changed_regions: tuple[str, ...] = ()
    changed_files: tuple[str, ...] = ()
    uncollected: tuple[str, ...] = ()
    cut_short: tuple[str, ...] = ()
    new_ids: tuple[str, ...] = ()
    regressions: tuple[str, ...] = ()
    stale_xfail: tuple[str, ...] = ()
    unstable: tuple[str, ...] = ()
    whole_file_ids: tuple[str, ...] = ()
    other_cases: tuple[str, ...] = ()
    env_broken: str | None = None

    @property
    def own_green(self) -> bool:
        """Return whether the task's own tests hold, regressions and stale xfails aside."""
        lost = self.not_green or self.missing or self.changed_regions or self.changed_files or self.uncollected
        return not (lost or self.cut_short or self.env_broken)

    @property
    def green(self) -> bool:
        """Return whether the candidate is GREEN, and no regression is suspected."""
        return self.own_green and not (self.regressions or self.stale_xfail or self.unstable)


def judge_green(
    ledger: RedTests | None,
    observation: Observation,
    baseline: Mapping[str, TestRecord],
    *,
    tests_to_change: frozenset[str] = frozenset(),
    unread_before: Collection[str] = (),
    must_pass: Collection[str] = (),
    seen_failing: Mapping[str, TestRecord] = NOTHING,
    is_part: bool = False,
) -> GreenFacts:
    """Return the facts of a candidate's GREEN measurement.

    A test that the task may change passes as it is now, or is gone: leave to change it is none to let it fail. One
    whose file the ledger has under another name is gone if the same test holds there.

    Args:
        ledger: The task's RED evidence; None for a task that is judged by regression only.
        observation: The run of the candidate.
        baseline: What must be kept, from `expectations`.
        tests_to_change: Ids, functions or files that this task may change.
        unread_before: Files that could not be collected before either.
        must_pass: Tests that failed before, and that the task is to make pass.
        seen_failing: Tests that failed in another measurement of the same bytes: to pass now clears none of them.
        is_part: Whether only some tests were run: one that was not proves nothing. Everything is collected in any case,
            so a test that is gone is gone, and one that was changed was changed.
    """
    records = observation.records
    unproven = {entry for entry, record in records.items() if is_part and not record.ran}
    baseline = {entry: record for entry, record in baseline.items() if entry not in unproven}
    unread = observation.unread
    suspects, stale, lost = _against(baseline, ledger, records, seen_failing)
    failing = {entry for entry in must_pass if entry in records and not passes_at_once(records[entry])}
    lost = tuple(dict.fromkeys((*lost, *(entry for entry in must_pass if entry not in records))))
    verdict = GreenFacts(
        uncollected=tuple(sorted(unread.difference(unread_before))),
        cut_short=() if suspects else observation.cut_short,
        regressions=suspects,
        stale_xfail=stale,
        env_broken=observation.environment_problem,
    )
    moved = thaw(ledger.frozen, observation) if ledger is not None else Thaw()
    hidden = {entry for entry, record in baseline.items() if record.path in unread}
    gone = {
        entry
        for entry in {*moved.missing, *lost} - hidden
        if entry in baseline and may_change(baseline[entry], tests_to_change)
    }
    gone |= kept_under_new_names(baseline, records, ledger.renames if ledger is not None else {}, tests_to_change)
    if ledger is None:
        found = {"missing": tuple(sorted({*lost} - gone)), "not_green": tuple(sorted(failing - unproven))}
        found["unstable"] = _passing_now(must_pass, records, seen_failing)
        return verdict.model_copy(update=found)
    own_ids = _ids_of_whole_files(ledger, observation)
    wanted = [entry for entry, red in ledger.red.items() if red.granularity == "id"] + list(ledger.guards)
    empty = [path for path in ledger.whole_files if not any(records[entry].path == path for entry in own_ids)]
    judged = {*wanted, *own_ids, *moved.added}
    shown = {records[entry].function for entry in judged if entry in records and passed(records[entry])}
    beside = {e for e in own_ids if records[e].outcome is Ended.SKIPPED and records[e].function in shown}
    own_ids = tuple(entry for entry in own_ids if entry not in beside)  # as RED leaves such cases out
    not_green = [entry for entry in judged - beside if entry in records and not passes_at_once(records[entry])]
    return verdict.model_copy(
        update={
            "not_green": tuple(sorted({*not_green, *empty, *failing} - unproven)),
            "missing": tuple(
                sorted({*(entry for entry in wanted if entry not in records), *({*moved.missing, *lost} - gone)})
            ),
            "changed_regions": tuple(sorted({*moved.changed_regions, *moved.changed_cases})),
            "changed_files": moved.changed_files,
            "unstable": _passing_now({*judged, *must_pass}, records, seen_failing),
            "new_ids": moved.added,
            "whole_file_ids": tuple(entry for entry in own_ids if entry not in unproven),
            "other_cases": moved.other_cases,
        }
    )


def still_passing(expected: Mapping[str, TestRecord], observation: Observation, ledger: RedTests | None) -> int:
    """Return how many tests passed before and still pass; the task's own are not counted."""
    return sum(
        passed(before) and entry in observation.records and passed(observation.records[entry])
        for entry, before in expected.items()
        if ledger is None or not ledger.owns(before)
    )


def expectations(
    baseline: Observation, accepted: Iterable[Observation] = (), *, may: frozenset[str] = frozenset()
) -> dict[str, TestRecord]:
    """Return the results that must be kept: of the baseline and of accepted tasks' GREEN runs, minus what may change.

    A test that is gone from an accepted run was removed with leave. One that failed there was flaky: what is expected
    of it stays as it was.
    """
    kept = {entry: record for entry, record in baseline.records.items() if record.ran}
    for green in accepted:
        kept = {entry: record for entry, record in kept.items() if entry in green.records}
        ran = {entry: record for entry, record in green.records.items() if record.ran}
        kept |= {entry: record for entry, record in ran.items() if entry not in kept or _is_kept(kept[entry], record)}
    return {entry: record for entry, record in kept.items() if not may_change(record, may)}


def confirm_regression(
    test: str, candidate_runs: Sequence[Observation], baseline_runs: Sequence[Observation]
) -> RepeatResult:
    """Return REGRESSION if a test failed in two of two candidate runs and held in two of two baseline runs, else FLAKY.

    A test that is missing from a run of the candidate has failed there; one missing from the baseline was not kept.
    """
    enough = len(candidate_runs) >= CONFIRMING_RUNS and len(baseline_runs) >= CONFIRMING_RUNS
    before = [run.records.get(test) for run in baseline_runs]
    kept = [record is not None and record.outcome in _KEPT for record in before]
    reference = before[0]
    failed = reference is not None and all(not _is_kept(reference, run.records.get(test)) for run in candidate_runs)
    return RepeatResult.REGRESSION if enough and all(kept) and failed else RepeatResult.FLAKY


def judge_stubs(whole_file_ids: Iterable[str], stubbed: Observation) -> tuple[str, ...]:
    """Return the ids in whole test files that pass though the task's symbols are stubs: they assert nothing."""
    records = stubbed.records
    return tuple(sorted(entry for entry in whole_file_ids if entry in records and passed(records[entry])))


def failing(observation: Observation) -> tuple[str, ...]:
    """Return the ids of tests that ran and did not pass, skip or xfail, and files that could not be collected."""
    bad = [r.id for r in observation.records.values() if r.outcome is not None and r.outcome not in FINE]
    return tuple(sorted({*bad, *observation.unread}))


def passed(record: TestRecord) -> bool:
    """Return whether the test passed."""
    return record.outcome in PASSING


def passes_at_once(record: TestRecord) -> bool:
    """Return whether the test passed, and not only when its plugin ran it again: that serves old tests alone."""
    return passed(record) and record.fault is None


def passes(seen: Observation, entry: str) -> bool:
    """Return whether the test exists in a run and passed."""
    return entry in seen.records and passed(seen.records[entry])


def _passing_now(
    tests: Collection[str], records: Mapping[str, TestRecord], seen_failing: Mapping[str, TestRecord]
) -> tuple[str, ...]:
    return tuple(sorted(e for e in tests if e in seen_failing and e in records and passed(records[e])))


def _ids_of_whole_files(ledger: RedTests, observation: Observation) -> tuple[str, ...]:
    files = ledger.whole_files
    return tuple(sorted(entry for entry, record in observation.records.items() if record.path in files))


def _against(
    baseline: Mapping[str, TestRecord],
    ledger: RedTests | None,
    records: Mapping[str, TestRecord],
    seen_failing: Mapping[str, TestRecord],
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return (suspected regressions, stale xfails, missing ids) of the tests that are not the task's own."""
    suspects: list[str] = []
    stale: list[str] = []
    gone: list[str] = []
    for entry, before in baseline.items():
        if ledger is not None and ledger.owns(before):
            continue
        after = records.get(entry)
        if before.outcome is Ended.XFAILED and after is not None and after.outcome is Ended.STRICT_XPASS:
            stale.append(entry)
        elif after is None:
            gone.append(entry)
        elif not (_is_kept(before, after) and _is_kept(before, seen_failing.get(entry, after))):
            suspects.append(entry)
    return tuple(sorted(suspects)), tuple(sorted(stale)), tuple(sorted(gone))


def kept_under_new_names(
    baseline: Mapping[str, TestRecord],
    records: Mapping[str, TestRecord],
    renames: Mapping[str, str],
    allowed: frozenset[str] = frozenset(),
) -> set[str]:
    """Return the old ids of tests that still hold under a new name: unchanged ones, or those that may change.

    Args:
        baseline: The tests of before.
        records: The tests as they are now.
        renames: The new path of each renamed test file, by its old one.
        allowed: Ids, functions or files of tests that may be others.
    """
    return {
        old
        for old, new in moved(baseline, records, renames).items()
        if _is_kept(baseline[old], records[new])
        and (
            baseline[old].region_sha256 == records[new].region_sha256
            or may_change(baseline[old], allowed)
            or may_change(records[new], allowed)
        )
    }


def _is_kept(before: TestRecord, after: TestRecord | None) -> bool:
    allowed = _KEPT.get(before.outcome) if before.outcome is not None else None
    return allowed is None or (after is not None and after.outcome in allowed)


WORTH_S = 10.0
"""The shortest test run, in seconds, that is worth two stages: starting one costs a second or two."""
SHARE = 0.3
"""The largest share of the whole run that a first stage may take, which is wasted where the candidate is GREEN."""


def is_long(seconds: Mapping[str, float]) -> bool:
    """Return whether a run of all tests is long enough for a first stage; not if their times are unknown.

    Args:
        seconds: How long the tests of each file take.
    """
    return sum(seconds.values()) >= WORTH_S


def first_stage(own: Collection[str], near: Iterable[str], seconds: Mapping[str, float]) -> frozenset[str]:
    """Return the test files of the first stage: the task's own, then the nearest others that fit into the share.

    Empty where two stages save nothing: the whole is short, its length is unknown, or the own files are most of it.

    Args:
        own: The files of the task's own tests.
        near: The files of impacted tests, the nearest first.
        seconds: How long the tests of each file take; one that is unknown counts as nothing.
    """
    limit = sum(seconds.values()) * SHARE
    taken = sum(seconds.get(path, 0.0) for path in set(own))
    if not own or not is_long(seconds) or taken > limit:
        return frozenset()
    chosen = set(own)
    for path in near:
        if path not in chosen and taken + seconds.get(path, 0.0) <= limit:
            taken += seconds.get(path, 0.0)
            chosen.add(path)
    return frozenset(chosen)
