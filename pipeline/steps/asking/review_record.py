"""Reads a review as it is kept on disk; `show` and `explain` load it without the code that asks for reviews."""

from __future__ import annotations

from pipeline.data_types import Frozen
from pipeline.judge.reports.findings import StageFindings
from pipeline.judge.reports.reviews import ToAnswer
from pipeline.vocabulary import Signal


class ReviewRecord(Frozen):
    """One review on disk; `revision` is the scope of the loop's counter: a new one begins with no findings.

    `unmet` has the criteria that a final review calls not met beside another finding: the next one answers for them.
    """

    revision: str
    review: int
    tree: str
    signal: Signal
    must_fix: tuple[str, ...]
    ledger: StageFindings
    unmet: tuple[ToAnswer, ...] = ()
