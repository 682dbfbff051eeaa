"""The quarantine of a run: which tests do not count today, and what is said of it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from pipeline.evidence.quarantine import Standing, standing
from pipeline.reports.markdown import bullets
from pipeline.steps.evidence_files import read_evidence
from pipeline.steps.sanity import baseline_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipeline.config.model import Config
    from pipeline.evidence.ledger import RedLedger
    from pipeline.evidence.observation import TestRecord
    from pipeline.steps.context import Context


def today() -> date:
    """Return the day for measurements that belong to no run."""
    return datetime.now(UTC).date()


def day_of(ctx: Context) -> date:
    """Return the day that counts for a run: that on which it began, so that resuming it judges alike."""
    return datetime.fromisoformat(ctx.run.info.started_at).date()


def quarantine(
    config: Config, records: Collection[TestRecord], day: date, ledgers: Collection[RedLedger] = ()
) -> Standing:
    """Return what the configured quarantine comes down to for these tests.

    Args:
        config: The configuration.
        records: All tests that there are.
        day: `day_of` a run, or `today`.
        ledgers: The evidence of the tasks in question: none of their tests is excused.
    """
    return standing(config.quarantine, records, day, ledgers)


def quarantine_of_run(ctx: Context) -> Standing:
    """Return what the quarantine comes down to for the tests of the baseline; none of an accepted task is excused."""
    found = [read_evidence(ctx, task.id) for task in ctx.state.done_tasks]
    ledgers = [evidence.ledger for evidence in found if evidence is not None and evidence.ledger is not None]
    return quarantine(ctx.config, tuple(baseline_of(ctx).records.values()), day_of(ctx), ledgers)


def quarantine_md(found: Standing) -> str:
    """Return the document for the final review, empty where nothing is quarantined."""
    lines = found.lines()
    head = "# Quarantined tests\n\nThese tests are run, and do not count until their day is over."
    return f"{head}\n\n{bullets(lines)}\n" if lines else ""
