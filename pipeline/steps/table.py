"""Maps the name of each step in the matrix to what is done there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.routing.vocabulary import Step
from pipeline.steps import (
    build,
    check_tests,
    diagnose,
    failure,
    final_review,
    implement,
    integrate,
    issue,
    plan,
    publish,
    sanity,
    seam,
    split,
    stub,
    write_tests,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pipeline.routing.state import Event
    from pipeline.steps.context import Context

STEPS: Final[Mapping[Step, Callable[[Context], Awaitable[Event]]]] = {
    Step.SANITY: sanity.run,
    Step.ISSUE: issue.run,
    Step.PLAN: plan.run,
    Step.REVIEW_PLAN: plan.review,
    Step.SPLIT: split.run,
    Step.REVIEW_SPLIT: split.review,
    Step.STUB: stub.run,
    Step.WRITE_TESTS: write_tests.run,
    Step.CHECK_TESTS: check_tests.run,
    Step.SEAM: seam.run,
    Step.IMPLEMENT: implement.run,
    Step.BUILD: build.run,
    Step.DIAGNOSE: diagnose.run,
    Step.INTEGRATE: integrate.run,
    Step.FINAL_REVIEW: final_review.run,
    Step.PUBLISH: publish.run,
    Step.FAILURE: failure.run,
}
"""Every step. GATE is no step of ours: a person takes it."""
