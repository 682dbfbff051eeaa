"""Reviews what a step of a recipe wrote or answered: findings on record decide, as they do for an issue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from pipeline.config.agents import Backend
from pipeline.dispatch.request import Request
from pipeline.recipes.step_table import Bound, StepEvent, StepSignal
from pipeline.reports.artifacts import advice_md, findings_md, review_md
from pipeline.reports.decode import Malformed
from pipeline.reports.fields import Verdict
from pipeline.reports.findings import Stage, StageFindings, apply_advice, apply_review
from pipeline.reports.markdown import bullets
from pipeline.reports.parse import parse_report
from pipeline.reports.reviews import CheckReview, SimplifyReview
from pipeline.routing.vocabulary import Role, Signal
from pipeline.runs.info import DispatchResult
from pipeline.steps.asking.proofs import has_proofs, proved, proved_again
from pipeline.steps.asking.review_record import ReviewRecord
from pipeline.steps.asking.reviews import is_settled, known_artifacts, last_answered
from pipeline.steps.recipe_dispatch import REVIEW, asked, evidence_of, handed, not_counting
from pipeline.steps.recipe_tests import work_between

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipeline.reports.fields import Report
    from pipeline.reports.findings import Finding, ReviewOutcome
    from pipeline.reports.proofs import MeasuredProof
    from pipeline.steps.recipe_context import RecipeContext

_LEFT_OUT: Final = frozenset({Signal.MALFORMED, Signal.TIMED_OUT, Signal.VIOLATION, Signal.UNAVAILABLE})
"""Advice that does not come is done without."""


async def review(ctx: RecipeContext) -> StepEvent:
    """Ask the reviewers of the step, and return what their findings mean."""
    mine = _Review(ctx)
    await mine.prove_again()
    answers: dict[Role, DispatchResult | StepEvent] = {}

    async def ask(role: Role) -> None:
        answers[role] = await asked(ctx, mine.request(role))

    async with anyio.create_task_group() as group:
        for role in mine.reviewers:
            group.start_soon(ask, role)
    stopped = next((one for one in answers.values() if isinstance(one, StepEvent)), None)
    if stopped is not None:
        return stopped
    results = {role: one for role, one in answers.items() if isinstance(one, DispatchResult)}
    check, simplify = results[Role.CHECK], results.get(Role.SIMPLIFY)
    failed = not_counting(check)
    if failed is None and simplify is not None and simplify.signal not in {None, *_LEFT_OUT}:
        failed = not_counting(simplify)
    if failed is not None:
        return failed
    report = await mine.proved(_report(Role.CHECK, check))
    return mine.event(report, check, simplify if simplify is not None and simplify.signal is None else None)


class _Review:
    """The review that is made in this visit: its number, what is on record so far, what is looked at."""

    def __init__(self, ctx: RecipeContext) -> None:
        self.ctx = ctx
        self.folder = f"steps/{ctx.lane_name}"
        counters = ctx.run.state.counters
        self.number = 1 + counters.get(f"{Bound.STEP_REVIEW}@{ctx.lane_name}", 0)
        self.again = counters.get(f"{Bound.REVIEWERS}@{ctx.lane_name}", 0)
        self.previous = self._last()
        ledger = self.previous.ledger if self.previous is not None else StageFindings(stage=Stage.STEP)
        self.ledger = ledger if self.number > 1 else ledger.renewed()
        self.proved_now: Mapping[str, MeasuredProof] = {}
        """What the proofs of open findings show now: what is settled by that is asked of nobody."""

    @property
    def open(self) -> tuple[Finding, ...]:
        """Return the findings that this review has to answer."""
        return tuple(one for one in self.ledger.open if not is_settled(self.proved_now, one.id))

    async def prove_again(self) -> None:
        """Run the proofs of open findings once more."""
        if any(finding.is_proved for finding in self.ledger.open):
            work = await work_between(self.ctx, self.ctx.base, self.ctx.tree)
            self.proved_now = {} if isinstance(work, str) else await proved_again(self.ctx, self.ledger, work)

    async def proved(self, report: Report) -> Report:
        """Return the review with what came of the proofs in it."""
        if not isinstance(report, CheckReview) or not has_proofs(report):
            return report
        return await proved(self.ctx, report, await work_between(self.ctx, self.ctx.base, self.ctx.tree))

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
        accept = self._forgotten if role is Role.CHECK and not self.again else None
        there = {name: paths for name, paths in artifacts.items() if paths}
        without = frozenset[str]() if self.open else frozenset({"prior"})
        known = self._known(role, there)
        return Request(role, REVIEW, self.ctx.tree, artifacts=there, accept=accept, without=without, known=known)

    def event(self, report: Report, check: DispatchResult, simplify: DispatchResult | None) -> StepEvent:
        """Write what the reviews mean down, and return it; *report* is what *check* said, with its proofs measured."""
        advice = _report(Role.SIMPLIFY, simplify) if simplify is not None else None
        if not isinstance(report, CheckReview):
            raise TypeError(f"@check answered a review with {type(report).__name__}")
        ledger, outcome = apply_review(self.ledger, self.number, report, again=self.proved_now)
        names = [self.ctx.write(f"{self.folder}/review.md", review_md(self.number, report, outcome, ledger))]
        if isinstance(advice, SimplifyReview):
            ledger = apply_advice(ledger, advice)
            names.append(self.ctx.write(f"{self.folder}/review-simplify.md", advice_md(self.number, advice, ledger)))
        record = ReviewRecord(
            revision=self.ctx.lane_name,
            review=self.number,
            tree=self.ctx.tree,
            signal=outcome.signal,
            must_fix=outcome.must_fix,
            ledger=ledger,
        )
        names.append(
            self.ctx.write_json(self._name(self.ctx.lane.visit), record.model_dump(mode="json", by_alias=True))
        )
        names += [name for name in self.ctx.run.artifacts if name.startswith(f"{self.folder}/accept-")][-1:]
        evidence = (*names, *(evidence_of(one) for one in (check, simplify) if one is not None))
        note, left = _note(outcome, ledger), outcome.on_record
        return StepEvent(signal=_signal(outcome, ledger), note=note, blockers=left, evidence=evidence)

    def _known(self, role: Role, artifacts: Mapping[str, Sequence[Path]]) -> frozenset[Path]:
        """Return what a reviewer need not read again: all but what changed since its last review of this work."""
        run, asked_before = self.ctx.run, (role, self.ctx.lane_name, REVIEW)
        last = last_answered(run.records.values(), run.results, asked_before, self.ctx.lane.visit)
        if self.number == 1 or last is None:
            return frozenset()
        return known_artifacts(self.ctx.path(f"dispatches/{last}/artifacts"), artifacts, {"diff"})

    def _work(self) -> dict[str, list[Path]]:
        name = self.ctx.lane_name
        kinds = {"diff": ("patch",)} if self.ctx.step.agent == Role.MAKE else {"answer": ("md", "json")}
        found = {
            artifact: [path for kind in ends if (path := self.ctx.path(f"{self.folder}/{name}.{kind}")).is_file()]
            for artifact, ends in kinds.items()
        }
        if self.previous is None or self.number == 1:
            return found
        patch = self.ctx.repository.patch(self.previous.tree, self.ctx.tree) or "Nothing was changed.\n"
        return {**found, "changes": [self.ctx.path(self.ctx.write(f"{self.folder}/changes.patch", patch))]}

    def _for_check(self) -> dict[str, list[Path]]:
        """Return what is for @check alone to judge: what was measured, what is suspicious, what is open."""
        measured = self.ctx.path(f"{self.folder}/measured.md")
        artifacts = {"measured": [measured] if measured.is_file() and self.ctx.step.accept is not None else []}
        notes = [note for one in self.ctx.run.results.values() if self._is_mine(one) for note in one.notes]
        if notes:
            words = f"{bullets(dict.fromkeys(notes))}\n"
            artifacts["suspicions"] = [self.ctx.path(self.ctx.write(f"{self.folder}/suspicions.md", words))]
        settled = [finding for finding in self.ledger.open if is_settled(self.proved_now, finding.id)]
        if self.open or self.ledger.refuted or settled:
            words = findings_md(self.open, self.ledger.refuted, settled)
            artifacts["open_findings"] = [self.ctx.path(self.ctx.write(f"{self.folder}/open.md", words))]
        return artifacts

    def _is_mine(self, result: DispatchResult) -> bool:
        records = (one for one in self.ctx.run.records.values() if one.dispatch == result.dispatch)
        return any((one.lane, one.role) == (self.ctx.lane_name, Role.MAKE) for one in records)

    def _forgotten(self, report: Report) -> Malformed | None:
        """Return what is missing in a review that accepts and leaves a blocker unanswered."""
        if not isinstance(report, CheckReview) or report.verdict is not Verdict.ACCEPTABLE:
            return None
        answered = {answer.id for answer in report.prior}
        held = {finding.id for finding in self.ledger.blockers} - answered
        left = ", ".join(finding.id for finding in self.open if finding.id in held)
        told = f"At /prior: the verdict is ACCEPTABLE, and {left} has no answer: resolved, open or withdrawn."
        return Malformed(told, "/prior") if left else None

    def _name(self, visit: int) -> str:
        return f"{self.folder}/review-{visit}.json"

    def _last(self) -> ReviewRecord | None:
        """Return the record of the review before this one: what a crash left of this one is written again."""
        visits = [visit for visit in range(1, self.ctx.lane.visit) if self._name(visit) in self.ctx.run.artifacts]
        return ReviewRecord.model_validate_json(self.ctx.run.read(self._name(visits[-1]))) if visits else None


def _report(role: Role, result: DispatchResult) -> Report:
    report = parse_report(REVIEW, role, None, result.report or {})
    if isinstance(report, Malformed):
        raise TypeError(f"{result.dispatch}/result.json holds no review: {report.sentence}")
    return report


def _signal(outcome: ReviewOutcome, ledger: StageFindings) -> StepSignal:
    """Return the signal; reviews that go nowhere end, and what blocks still does."""
    if outcome.signal is Signal.CONVERGED and ledger.blockers:
        return StepSignal.BLOCK
    return StepSignal(outcome.signal.value)


def _note(outcome: ReviewOutcome, ledger: StageFindings) -> str:
    must = [finding for finding in ledger.open if finding.id in outcome.must_fix]
    return "; ".join(f"{one.id} [{one.severity}] {one.headline}" for one in must[:3]) or "; ".join(outcome.notes)
