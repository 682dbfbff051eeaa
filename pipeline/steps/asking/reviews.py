"""Asks for reviews and keeps their findings: a record beside its Markdown, one pair for each review of any work."""

from __future__ import annotations

from difflib import unified_diff
from typing import TYPE_CHECKING, Final

from pipeline.agents.dispatch.request import Request
from pipeline.config.agents import Backend
from pipeline.judge.reports.artifacts import advice_md, findings_md, review_md
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.fields import Report, Verdict
from pipeline.judge.reports.findings import Finding, Stage, StageFindings
from pipeline.judge.reports.markdown import bullets
from pipeline.judge.reports.reviews import CheckReview, SimplifyReview, SplitReview, ToAnswer
from pipeline.matrix.engine.journal_kinds import DecisionMade
from pipeline.matrix.routing.lookup import counter_key
from pipeline.matrix.routing.state import Event
from pipeline.run import plans
from pipeline.steps.asking.dispatches import Answer, ask_all
from pipeline.steps.asking.drafts import CUT, WITH_PLAN
from pipeline.steps.asking.review_record import ReviewRecord
from pipeline.steps.evidence_records import baseline_of
from pipeline.vocabulary import Loop, Role, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

    from pipeline.judge.reports.proofs import MeasuredProof
    from pipeline.judge.reports.signal_of_report import Reviewed
    from pipeline.judge.reports.tasks import Task
    from pipeline.steps.context import Context, DriverContext


if TYPE_CHECKING:
    Refusal = Callable[[Report], Malformed | None]
    """Says what is wrong with a well-formed report that cannot be true here."""

_STAGES = {
    Step.REVIEW_PLAN: (Stage.PLAN, Loop.PLAN_REVIEW),
    Step.REVIEW_SPLIT: (Stage.SPLIT, Loop.SPLIT_REVIEW),
    Step.FINAL_REVIEW: (Stage.FINAL, Loop.FINAL_REVIEW),
}


_COVERED: Final = {
    Stage.PLAN: frozenset({"plan", "tasks"}),
    Stage.SPLIT: frozenset({"tasks"}),
    Stage.FINAL: frozenset({"diff"}),
}
"""The artifacts of which `changes` has what is new."""

_SAME: Final = "Nothing was changed since your last review.\n"


_FOR_ADVICE: Final = frozenset({"issue", "plan", "diff", "changes"})
"""What @simplify is given of a review's artifacts: what was measured, and what is open, is for @check to judge."""


class AnyReview:
    """The review that a step is about to make: its number, what is on record so far, what was proved since.

    Attributes:
        ctx: The ports of the step.
        step: The name of the step, as dispatches are called by it.
        number: Which review of this work it is, from 1.
        ledger: The findings so far.
        revision: The scope of the loop's counter: a new one begins with no findings.
        names: Where it is written down what @check said, what @simplify said, and the record.
        again: What the proofs of open findings show now: what is settled by that is asked of nobody.
    """

    def __init__(
        self,
        ctx: DriverContext,
        step: str,
        number: int,
        ledger: StageFindings,
        revision: str,
        names: tuple[str, str, str],
    ) -> None:
        self.ctx = ctx
        self.step = step
        self.number = number
        self.ledger = ledger
        self.revision = revision
        self.names = names
        self.again: Mapping[str, MeasuredProof] = {}

    @property
    def is_first(self) -> bool:
        """Return whether this work was not reviewed before."""
        return self.number == 1

    @property
    def open(self) -> tuple[Finding, ...]:
        """Return the findings that this review has to answer."""
        return tuple(finding for finding in self.ledger.open if not is_settled(self.again, finding.id))

    def open_findings(self, name: str) -> dict[str, list[Path]]:
        """Return the artifact with the findings that this review must answer, if there are any."""
        settled = [finding for finding in self.ledger.open if is_settled(self.again, finding.id)]
        if not (self.open or self.ledger.refuted or settled):
            return {}
        return self.ctx.artifact("open_findings", name, findings_md(self.open, self.ledger.refuted, settled))

    def changed(self, name: str, patch: str | bytes) -> dict[str, list[Path]]:
        """Return *patch* as the artifact with what changed since the last review."""
        return self.ctx.artifact("changes", name, patch or _SAME)

    def known(
        self, role: Role, kind: str, artifacts: Mapping[str, Iterable[Path]], covered: Collection[str]
    ) -> frozenset[Path]:
        """Return what a reviewer need not read again: all but what changed since its last review of this work.

        Args:
            role: The reviewer.
            kind: What it is asked.
            artifacts: What this review is about.
            covered: The artifacts of which `changes` has what is new.
        """
        run, visit = self.ctx.run, self.ctx.lane.visit
        mine = [one for one in run.records.values() if (one.role, one.step, one.kind) == (role, self.step, kind)]
        before = [one.dispatch for one in mine if one.visit < visit and one.dispatch in run.results]
        counting = [name for name in before if run.results[name].signal is None]
        if self.is_first or not counting:
            return frozenset()
        given = self.ctx.path(f"dispatches/{counting[-1]}/artifacts")
        return frozenset(
            path
            for name, paths in artifacts.items()
            for path in paths
            if name in covered or any(path.read_bytes() == one.read_bytes() for one in (given / name).glob("*"))
        )

    def forgotten(self, report: Report) -> Malformed | None:
        """Return what is missing in a review that accepts and leaves a blocker unanswered.

        No answer counts as open, so that a result which the reviewer holds for good would end with blockers.
        """
        if not isinstance(report, CheckReview) or report.verdict is not Verdict.ACCEPTABLE:
            return None
        answered = {answer.id for answer in report.prior}
        held = {finding.id for finding in self.ledger.blockers} - answered
        left = [finding.id for finding in self.open if finding.id in held]
        if not left:
            return None
        return Malformed(
            f"At /prior: the verdict is ACCEPTABLE, and {', '.join(left)} has no answer: accepted is an entry for each "
            "open finding, resolved, open or withdrawn.",
            "/prior",
        )

    def record(
        self,
        reviewed: Reviewed,
        check: CheckReview,
        simplify: SimplifyReview | None,
        tree: str,
        unmet: tuple[ToAnswer, ...] = (),
    ) -> tuple[str, ...]:
        """Write down what each reviewer said, and the record; return the names of what explains the decision."""
        words, advice, kept = self.names
        outcome = reviewed.outcome
        written = [self.ctx.write(words, review_md(self.number, check, outcome, reviewed.ledger))]
        if simplify is not None:
            written.append(self.ctx.write(advice, advice_md(self.number, simplify, reviewed.ledger)))
        record = ReviewRecord(
            revision=self.revision,
            review=self.number,
            tree=tree,
            signal=outcome.signal,
            must_fix=outcome.must_fix,
            ledger=reviewed.ledger,
            unmet=unmet,
        )
        self.ctx.write_json(kept, record.model_dump(mode="json", by_alias=True))
        return tuple(written)


class Review(AnyReview):
    """A review of an issue's run: of the plan, the split or the result."""

    ctx: Context

    def __init__(self, ctx: Context) -> None:
        step = ctx.lane.step
        self.stage, loop = _STAGES[step]
        revision = counter_key(ctx.state, loop, None)
        self.ordinal = ctx.reviews_before(step.value) + 1
        self.previous = last_review(ctx, step)
        same = self.previous is not None and self.previous.revision == revision
        ledger = self.previous.ledger if self.previous is not None else StageFindings(stage=self.stage)
        number = self.previous.review + 1 if self.previous is not None and same else 1
        name = f"reviews/{self.stage}-{self.ordinal}"
        names = (f"{name}.md", f"{name}-simplify.md", f"{name}.json")
        super().__init__(ctx, step.value, number, ledger if same else ledger.renewed(), revision, names)

    def changes(self, now: str) -> dict[str, list[Path]]:
        """Keep the text that is reviewed; return the artifact with what changed since the last review of this loop."""
        self.ctx.write(self._reviewed(self.ordinal), now)
        if self.is_first:
            return {}
        before = self.ctx.read(self._reviewed(self.ordinal - 1))
        lines = unified_diff(before.splitlines(), now.splitlines(), "before", "now", lineterm="")
        return self.changed(self.changes_name, "\n".join(lines))

    @property
    def changes_name(self) -> str:
        """Return the name of the artifact with what changed since the last review."""
        return f"reviews/{self.stage}-{self.ordinal}-changes.patch"

    def _reviewed(self, ordinal: int) -> str:
        return f"reviews/{self.stage}-{ordinal}-reviewed.md"

    def request(
        self,
        role: Role,
        kind: str,
        tree: str,
        artifacts: Mapping[str, list[Path]],
        *,
        about: tuple[str, ...] = (),
        accept: Refusal | None = None,
        to_answer: tuple[ToAnswer, ...] = (),
    ) -> Request:
        """Return what a reviewer is asked: its report has the fields that this review needs, and no others."""
        asked_for = {
            "prior": bool(self.open),
            "criteria": bool(to_answer),
            "answers": self.is_first and "tasks" in artifacts,
        }
        return Request(
            role,
            kind,
            tree,
            artifacts=artifacts,
            about=about,
            accept=accept,
            to_answer=to_answer,
            without=frozenset(name for name, is_asked in asked_for.items() if not is_asked),
            known=self.known(role, kind, artifacts, _COVERED[self.stage]),
        )

    def forgotten(self, report: Report) -> Malformed | None:
        """Return what is missing in a review that accepts and leaves a blocker unanswered; None once it was told."""
        return None if Role.CHECK in self.ctx.lane.reasks else super().forgotten(report)


def is_settled(again: Mapping[str, MeasuredProof], finding: str) -> bool:
    """Return whether what proved a finding does not show it any more."""
    return finding in again and again[finding].found == "refuted"


def remarks(ctx: Context, *steps: Step) -> dict[str, list[Path]]:
    """Return the artifact with what the last reviews of *steps* left open or advised; of a final one no advice."""
    ledgers = [record.ledger for step in steps if (record := last_review(ctx, step)) is not None]
    still = [finding for ledger in ledgers for finding in ledger.open]
    advice = [one for ledger in ledgers for one in ledger.last_advice if Step.FINAL_REVIEW not in steps]
    if not (still or advice):
        return {}
    name = f"reviews/remarks-{'-'.join(step.value.removeprefix('review-') for step in steps)}.md"
    return ctx.artifact("remarks", name, findings_md(still, advice=advice))


def last_review(ctx: Context, step: Step) -> ReviewRecord | None:
    """Return the record of the last decided review of *step*, or None."""
    count = ctx.reviews_before(step.value)
    return read_review(ctx, step, count) if count else None


def read_review(ctx: Context, step: Step, ordinal: int) -> ReviewRecord:
    """Return the record of one review."""
    stage, _ = _STAGES[step]
    return ReviewRecord.model_validate_json(ctx.read(f"reviews/{stage}-{ordinal}.json"))


def all_last_reviews(ctx: Context) -> dict[Stage, ReviewRecord]:
    """Return the last review of each stage that had one."""
    found = {stage: last_review(ctx, step) for step, (stage, _) in _STAGES.items()}
    return {stage: record for stage, record in found.items() if record is not None}


def review_artifacts(ctx: Context, review: Review) -> dict[str, list[Path]]:
    """Return what every review is given: the issue, the plan, and the findings it must answer."""
    artifacts = {"issue": [ctx.path("issue.md")]}
    if not ctx.state.one_writer:
        artifacts["plan"] = [ctx.path("plan.md")]
    return artifacts | review.open_findings(f"reviews/{review.stage}-{review.ordinal}-open.md")


async def ask_reviewers(
    review: Review,
    kind: str,
    tree: str,
    artifacts: Mapping[str, list[Path]],
    accept: Refusal | None = None,
    to_answer: tuple[ToAnswer, ...] = (),
) -> list[Answer] | Event:
    """Ask @check, whose report *accept* may refuse, and @simplify unless it is off, left out, or not in the recipe."""
    ctx = review.ctx
    about = tuple(file.path for task in ctx.state.done_tasks for file in ctx.task(task.id).files)
    accepts = both(review.forgotten, accept)
    asks = [review.request(Role.CHECK, kind, tree, artifacts, about=about, accept=accepts, to_answer=to_answer)]
    wanted = Role.SIMPLIFY in ctx.state.phases.slots(ctx.lane.step)
    is_on = ctx.config.agent(Role.SIMPLIFY).backend is not Backend.OFF
    if wanted and is_on and Role.SIMPLIFY not in ctx.lane.left_out:
        fewer = {name: paths for name, paths in artifacts.items() if name in _FOR_ADVICE}
        asks.append(review.request(Role.SIMPLIFY, kind, tree, fewer, about=about))
    return await ask_all(ctx, asks)


def both(first: Refusal, second: Refusal | None) -> Refusal:
    """Return what refuses a report that one of the two does, for the reason of the first that does."""
    return first if second is None else lambda report: first(report) or second(report)


def reports_of(answers: list[Answer]) -> tuple[CheckReview, SimplifyReview | None]:
    """Return @check's review, and that of @simplify, None where it was not asked."""
    check, *others = answers
    return check.form(CheckReview), others[0].form(SimplifyReview) if others else None


def summarise(reviewed: Reviewed) -> str:
    """Return one line on what must be fixed."""
    must = [f for f in reviewed.ledger.open if f.id in reviewed.outcome.must_fix]
    if not must:
        return "; ".join(reviewed.outcome.notes)
    return "; ".join(f"{finding.id} [{finding.severity}] {finding.headline}" for finding in must[:3])


def event_of(reviewed: Reviewed, names: Iterable[str], tree: str | None = None) -> Event:
    """Return what a review comes to, with the findings that are on record if its loop ends with it."""
    note, on_record = summarise(reviewed), reviewed.outcome.on_record
    return Event(signal=reviewed.signal, tree=tree, blockers=on_record, note=note, evidence=tuple(names))


def task_artifacts(ctx: Context, review: Review, tasks: Mapping[str, Task]) -> dict[str, list[Path]]:
    """Return the task files, and which files only they name, or only the plan."""
    differences = _differences(ctx, tasks)
    words = f"{bullets(differences)}\n" if differences else ""
    name = f"reviews/{review.stage}-{review.ordinal}-differences.md"
    return {"tasks": [ctx.path(f"task-{name}.md") for name in tasks]} | ctx.artifact("differences", name, words)


def review_of_tasks(ctx: Context) -> Step:
    """Return the step that reviewed the present tasks."""
    cut = [line.data.row for line in ctx.run.journal.of(DecisionMade) if line.data.row in CUT]
    return Step.REVIEW_PLAN if cut and cut[-1] in WITH_PLAN else Step.REVIEW_SPLIT


def _differences(ctx: Context, tasks: Mapping[str, Task]) -> tuple[str, ...]:
    """Return one sentence for each file that only the tasks name, or only the plan."""
    of_plan = _of_plan(ctx)
    named = {path for task in tasks.values() for file in task.files for path in (file.path, file.origin) if path}
    tests = {file.path for task in tasks.values() for file in task.test_files}
    found = [
        f"task {name} changes `{path}`, which the plan does not name"
        for name, path in outside_plan(ctx, tasks.values())
    ]
    return (*found, *(f"no task changes `{path}`, which the plan names" for path in sorted(of_plan - named - tests)))


def outside_plan(ctx: Context, tasks: Iterable[Task]) -> list[tuple[str, str]]:
    """Return each file of a task that the plan does not name, with the task's id before it.

    A plan that names no file of tests leaves these to its tasks.
    """
    of_plan = _of_plan(ctx)
    names_tests = any(map(baseline_of(ctx).layout.is_test_side, of_plan))
    return [
        (task.id, file.path)
        for task in tasks
        for file in (*task.files, *(task.test_files if names_tests else ()))
        if file.path not in of_plan
    ]


def _of_plan(ctx: Context) -> frozenset[str]:
    return frozenset(path for file in plans.planned(ctx.run).files for path in (file.path, file.origin) if path)


def unfounded(review: Review, report: Report) -> Malformed | None:
    """Return what is wrong with a review that accepts tasks and leaves one of its questions open; None once told.

    A question is open without an answer, and with one that is not `true` while no finding says what is to be mended.
    """
    told = Role.CHECK in review.ctx.lane.reasks
    return open_questions(report) if review.is_first and not told else None


def open_questions(report: Report) -> Malformed | None:
    """Return which questions a review that accepts tasks leaves open, as `unfounded` says it."""
    if not isinstance(report, SplitReview) or report.verdict is not Verdict.ACCEPTABLE:
        return None
    answers = report.answers.model_dump()
    unanswered = [name for name, said in answers.items() if said == ""]
    if unanswered:
        words = f"the verdict is ACCEPTABLE, and there is no answer to {', '.join(unanswered)}"
    elif not report.findings and (denied := [name for name, said in answers.items() if said is not True]):
        words = f"the verdict is ACCEPTABLE, {', '.join(denied)} is not answered with `true`, and no finding says why"
    else:
        return None
    said = f"At /answers: {words}. `true` means that all is well with it; else a finding says what is not."
    return Malformed(said, "/answers")
