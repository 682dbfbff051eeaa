"""Remembers which new tests varied over the code before: no later measurement of the same bytes makes them RED."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.evidence.compare import passes
from pipeline.measure import kept_runs

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.evidence.observation import Observation
    from pipeline.evidence.red import RedFacts


def with_varied(root: Path, tree: str, verdict: RedFacts, seen: Observation) -> RedFacts:
    """Return the facts in which tests that varied in any measurement of the tree are unstable; that is kept.

    A test that passes now and was seen failing over the same bytes is one of them, whatever it failed with.

    Args:
        root: The run's own folder.
        tree: The tests, composed with the production that they were measured over.
        verdict: What this measurement alone shows.
        seen: The new tests as they ended in it.

    Raises:
        UserError: the disk does not take it.
    """
    failed = kept_runs.seen_failing(root, tree)
    before = kept_runs.seen_varying(root, tree) | {entry for entry in failed if passes(seen, entry)}
    before = (before - {*verdict.unstable}) & {*verdict.new_ids}
    kept_runs.keep_varying(root, tree, {*verdict.unstable, *before})
    if not before:
        return verdict
    return verdict.model_copy(
        update={
            "unstable": tuple(sorted({*verdict.unstable, *before})),
            "varied_before": tuple(sorted(before)),
            "all_new_pass": False,
            "illegal": tuple(refusal for refusal in verdict.illegal if refusal.id not in {*before, ""}),
        }
    )
