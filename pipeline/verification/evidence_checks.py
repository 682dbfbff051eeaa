"""Holds what the evidence of a commit claims against what was measured of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.evidence.compare import passed
from pipeline.evidence.red_classes import PASSED, RedClass
from pipeline.measure.measuring import UnmeasurableError
from pipeline.measure.probes.revert import not_red
from pipeline.verification.results import Problem, TestLine

if TYPE_CHECKING:
    from pipeline.evidence.observation import Observation
    from pipeline.evidence.red_tests import RedTests
    from pipeline.measure.probes.revert import Red


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
    others = [entry for entry, region in regions.items() if entry in seen and now[entry] != region]
    return [
        Problem(id=entry, why=f"is not the {'file' if entry in ledger.whole_files else 'test'} that was judged")
        for entry in others
    ]


def refuse_broken(ledger: RedTests, red: Red) -> None:
    """Return when the tests could be run: what is not installed here says nothing about them.

    Raises:
        UnmeasurableError: something is missing in the test environment.
    """
    for found in filter(None, map(red.of, ledger.red)):
        if found.cls is RedClass.ENV_BROKEN:
            raise UnmeasurableError(found.message)


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
