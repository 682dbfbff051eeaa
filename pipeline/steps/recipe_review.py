"""Reviews what a step of a recipe wrote or answered: findings on record decide, as they do for an issue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.agents.dispatch.request import Request
from pipeline.config.agents import Backend
from pipeline.judge.reports.findings import ReviewOutcome, Stage, StageFindings, apply_advice, apply_review
from pipeline.judge.reports.markdown import bullets
from pipeline.judge.reports.signal_of_report import Reviewed
from pipeline.matrix.recipes.step_table import Bound, StepEvent, StepSignal
from pipeline.steps.asking.dispatches import Answer, report_of
from pipeline.steps.asking.proofs import has_proofs, proved, proved_again
from pipeline.steps.asking.review_record import ReviewRecord
from pipeline.steps.asking.reviews import AnyReview, reports_of, summarise
from pipeline.steps.recipe_ask import REVIEW, ask_all, handed, not_counting
from pipeline.steps.recipe_tests import work_between
from pipeline.vocabulary import Role, Signal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeline.judge.reports.reviews import CheckReview, SimplifyReview
    from pipeline.run.info import DispatchResult
    from pipeline.steps.recipe_context import RecipeContext

_LEFT_OUT: Final = frozenset({Signal.MALFORMED, Signal.TIMED_OUT, Signal.VIOLATION, Signal.UNAVAILABLE})
"""Advice that does not come is done without."""


async def review(ctx: RecipeContext) -> StepEvent:
    """Ask the reviewers of the step, and return what their findings mean."""
    mine = _Review(ctx)
    if any(finding.is_proved for finding in mine.ledger.open):
        work = await work_between(ctx, ctx.base, ctx.tree)
        mine.again = {} if isinstance(work, str) else await proved_again(ctx, mine.ledger, work)
    requests = [mine.request(role) for role in mine.reviewers]
    results = await ask_all(ctx, requests)
    if isinstance(results, StepEvent):
        return results
    needed = (results[0], *(one for one in results[1:] if one.signal not in _LEFT_OUT))
    if (failed := next(filter(None, map(not_counting, needed)), None)) is not None:
        return failed
    said = (each for each in zip(requests, results, strict=True) if each[1].signal is None)
    answers = [Answer(report_of(slot, result), result) for slot, result in said]
    check, simplify = reports_of(answers)
    if has_proofs(check):
        check = await proved(ctx, check, await work_between(ctx, ctx.base, ctx.tree))
    return mine.event(check, simplify, answers)


class _Review(AnyReview):
    """The review of a step's work that is made in this visit."""

    ctx: RecipeContext

    def __init__(self, ctx: RecipeContext) -> None:
        self.folder = f"steps/{ctx.lane_name}"
        counters = ctx.run.state.counters
        number = 1 + counters.get(f"{Bound.STEP_REVIEW}@{ctx.lane_name}", 0)
        self.asked_again = counters.get(f"{Bound.REVIEWERS}@{ctx.lane_name}", 0)
        self.previous = _last(ctx)
        ledger = self.previous.ledger if self.previous is not None else StageFindings(stage=Stage.STEP)
        kept = _record_name(ctx, ctx.lane.visit)
        names = (f"{self.folder}/review.md", f"{self.folder}/review-simplify.md", kept)
        super().__init__(ctx, ctx.lane_name, number, ledger if number > 1 else ledger.renewed(), ctx.lane_name, names)

    @property
    def reviewers(self) -> tuple[Role, ...]:
        """Return who is asked: @check in any case, @simplify where the step says so and nobody switched it off."""
        is_on = self.ctx.config.agent(Role.SIMPLIFY).backend is not Backend.OFF
        return (Role.CHECK, *((Role.SIMPLIFY,) if Role.SIMPLIFY in self.ctx.step.review and is_on else ()))

    def request(self, role: Role) -> Request:
        """Return what one of them is asked."""
        artifacts = {**handed(self.ctx), **self._work()}
        if role is Role.CHECK:
            artifacts |= self._for_check()
        accept = self.forgotten if role is Role.CHECK and not self.asked_again else None
        without = frozenset[str]() if self.open else frozenset({"prior"})
        known = self.known(role, REVIEW, artifacts, {"diff"})
        return Request(role, REVIEW, self.ctx.tree, artifacts=artifacts, accept=accept, without=without, known=known)

    def event(self, check: CheckReview, simplify: SimplifyReview | None, answers: Sequence[Answer]) -> StepEvent:
        """Write what the reviews mean down, and return it; *check* has its proofs measured."""
        ledger, outcome = apply_review(self.ledger, self.number, check, again=self.again)
        reviewed = Reviewed(apply_advice(ledger, simplify) if simplify is not None else ledger, outcome)
        written = [*self.record(reviewed, check, simplify, self.ctx.tree), self.names[-1]]
        written += [name for name in self.ctx.run.artifacts if name.startswith(f"{self.folder}/accept-")][-1:]
        evidence = (*written, *(one.evidence for one in answers))
        signal = _signal(outcome, reviewed.ledger)
        return StepEvent(signal=signal, note=summarise(reviewed), blockers=outcome.on_record, evidence=evidence)

    def _work(self) -> dict[str, list[Path]]:
        name = self.ctx.lane_name
        kinds = {"diff": ("patch",)} if self.ctx.step.agent == Role.MAKE else {"answer": ("md", "json")}
        found = {
            artifact: [path for kind in ends if (path := self.ctx.path(f"{self.folder}/{name}.{kind}")).is_file()]
            for artifact, ends in kinds.items()
        }
        if self.previous is None or self.number == 1:
            return found
        patch = self.ctx.repository.patch(self.previous.tree, self.ctx.tree)
        return found | self.changed(f"{self.folder}/changes.patch", patch)

    def _for_check(self) -> dict[str, list[Path]]:
        """Return what is for @check alone to judge: what was measured, what is suspicious, what is open."""
        measured = self.ctx.path(f"{self.folder}/measured.md")
        artifacts = {"measured": [measured] if measured.is_file() and self.ctx.step.accept is not None else []}
        notes = [note for one in self.ctx.run.results.values() if self._is_mine(one) for note in one.notes]
        if notes:
            words = f"{bullets(dict.fromkeys(notes))}\n"
            artifacts["suspicions"] = [self.ctx.path(self.ctx.write(f"{self.folder}/suspicions.md", words))]
        return artifacts | self.open_findings(f"{self.folder}/open.md")

    def _is_mine(self, result: DispatchResult) -> bool:
        records = (one for one in self.ctx.run.records.values() if one.dispatch == result.dispatch)
        return any((one.lane, one.role) == (self.ctx.lane_name, Role.MAKE) for one in records)


def _record_name(ctx: RecipeContext, visit: int) -> str:
    return f"steps/{ctx.lane_name}/review-{visit}.json"


def _last(ctx: RecipeContext) -> ReviewRecord | None:
    """Return the record of the review before this one: what a crash left of this one is written again."""
    names = [_record_name(ctx, visit) for visit in range(1, ctx.lane.visit)]
    kept = [name for name in names if name in ctx.run.artifacts]
    return ReviewRecord.model_validate_json(ctx.run.read(kept[-1])) if kept else None


def _signal(outcome: ReviewOutcome, ledger: StageFindings) -> StepSignal:
    """Return the signal; reviews that go nowhere end, and what blocks still does."""
    if outcome.signal is Signal.CONVERGED and ledger.blockers:
        return StepSignal.BLOCK
    return StepSignal(outcome.signal.value)
