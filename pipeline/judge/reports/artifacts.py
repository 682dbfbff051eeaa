"""Renders plan.md and reviews from reports; an agent never writes an artifact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.judge.reports.findings import Advisory, Finding, ReviewOutcome, StageFindings, Status
from pipeline.judge.reports.markdown import bullets, sections
from pipeline.judge.reports.markdown import fields as named
from pipeline.judge.reports.reviews import CheckReview, ResultReview, SimplifyReview, SplitAnswers, SplitReview
from pipeline.judge.reports.untrusted_text import block, fenced, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipeline.judge.reports.drafts import Plan, PlannedFile
    from pipeline.judge.reports.fields import OutOfScope, Verdict
    from pipeline.judge.reports.proofs import Edit
    from pipeline.vocabulary import Signal

PROBLEM = "Problem"
APPROACH = "Approach"
FILES = "Files"
RISKS = "Risks"
TEST_DESIGN = "Test Design"
OUT_OF_SCOPE = "Out of Scope"
_FILED = f"{OUT_OF_SCOPE}, to be filed as it stands here"
PLAN_SECTIONS = (PROBLEM, APPROACH, FILES, RISKS, TEST_DESIGN, OUT_OF_SCOPE)
BEHAVIOURS = "Behaviours"
TEST_DESIGN_PARTS = (BEHAVIOURS, "Edge Cases", "Not Tested", "Testability")


REFUTED = "# Refuted"
SETTLED = "# Settled, Nothing to Answer: Its Proof Shows It No More"
_REFUTED = (
    "The proofs given for these were measured, and show that they are not so. They are settled: no answer is "
    "asked for, and only another proof brings one back."
)


def plan_md(report: Plan, issue_id: str, title: str, revision: int) -> str:
    """Return the text of plan.md: problem, approach, files, risks, test design, what is filed and not done."""
    design = report.test_design
    parts = (
        bullets(f"ACTION: {b.action} OUTCOME: {b.outcome}" for b in design.behaviours),
        bullets(design.edge_cases),
        bullets(design.not_tested),
        bullets(design.testability),
    )
    tests = "\n\n".join(
        f"### {heading}\n\n{body}" for heading, body in zip(TEST_DESIGN_PARTS, parts, strict=True) if body
    )
    bodies = (
        block(report.problem),
        block(report.approach),
        bullets(_file(file) for file in report.files),
        bullets(report.risks),
        tests,
        bullets(_bug(bug) for bug in report.out_of_scope),
    )
    head = f"# Plan for {issue_id}: {one_line(title)}\n\nRevision {revision}.\n"
    return head + sections(*zip(PLAN_SECTIONS, bodies, strict=True))


def _bug(bug: OutOfScope) -> str:
    return f"{bug.title}: {bug.description}" if bug.description.strip() else bug.title


def review_md(review_number: int, report: CheckReview, outcome: ReviewOutcome, ledger: StageFindings) -> str:
    """Return the text of one review by @check, with our ids and the signal that the harness derived.

    Args:
        review_number: Counts from 1 within the revision.
        report: What @check answered.
        outcome: What the review means.
        ledger: The stage's ledger after this review.
    """
    new = [finding for finding in ledger.findings if finding.id in outcome.new]
    earlier = [finding for finding in ledger.findings if finding.id not in outcome.new]
    return f"# Review {review_number} of the {ledger.stage} by @check\n" + sections(
        ("Verdict", counted_as(report.verdict, outcome.signal)),
        ("Summary", block(report.summary)),
        ("Notes", bullets(outcome.notes)),
        ("Must Fix", bullets(outcome.must_fix)),
        ("Findings", "\n\n".join(finding_md(finding) for finding in new)),
        ("Earlier Findings", bullets(_standing(finding) for finding in earlier)),
        ("Answers", _answers(report.answers) if isinstance(report, SplitReview) else ""),
        ("Criteria", bullets(_criteria(report)) if isinstance(report, ResultReview) else ""),
        (_FILED, bullets(_bug(bug) for bug in report.out_of_scope)),
    )


def _criteria(report: ResultReview) -> Iterator[str]:
    """Yield what the review says of a criterion, where that is more than that it is met."""
    for one in report.criteria:
        if one.note.strip() or not one.met:
            yield f"task {one.task}, {one.id}: {'met' if one.met else 'not met'}. {one.note.strip()}".rstrip()


def counted_as(verdict: Verdict, signal: Signal) -> str:
    """Return a verdict, with what it counts as where that is another one."""
    is_signal = verdict.value.replace(" ", "_") == signal.value
    return verdict.value if is_signal else f"{verdict}, counted as {signal}"


def advice_md(review_number: int, report: SimplifyReview, ledger: StageFindings) -> str:
    """Return the text of one review by @simplify, with our ids; `ledger` is the one after it."""
    said = {(finding.title, finding.location, finding.simpler) for finding in report.findings}
    mine = [advice for advice in ledger.advisories if (advice.title, advice.location, advice.simpler) in said]
    return f"# Review {review_number} of the {ledger.stage} by @simplify (advisory)\n" + sections(
        ("Verdict", report.verdict),
        ("Summary", block(report.summary)),
        ("Findings", "\n\n".join(_advice(advice) for advice in mine)),
        (
            "Conflicts with @check",
            bullets(f"{advice.id}: {advice.check_conflict}" for advice in mine if advice.conflicts),
        ),
        (_FILED, bullets(_bug(bug) for bug in report.out_of_scope)),
    )


def findings_md(
    findings: Iterable[Finding],
    refuted: Iterable[Finding] = (),
    settled: Iterable[Finding] = (),
    advice: Iterable[Advisory] = (),
) -> str:
    """Return the document of findings that a redraft or a re-review gets, or whoever goes on.

    Args:
        findings: Those that are open.
        refuted: Those of which a measurement has shown that they are not so.
        settled: Those whose proof shows nothing any more.
        advice: Of @simplify.
    """
    parts = [
        ("# Open findings", [finding_md(finding) for finding in findings]),
        (f"{REFUTED}\n\n{_REFUTED}", [finding_md(finding) for finding in refuted]),
        ("# Advice of @simplify", [_advice(one) for one in advice]),
    ]
    parts.append((SETTLED, [bullets(f"{one.id} {one.headline}" for one in settled)]))
    return "\n\n".join("\n\n".join((head, *texts)) for head, texts in parts if any(texts)) + "\n"


def finding_md(finding: Finding) -> str:
    """Return one finding as Markdown: an H3 heading and its fields."""
    fields = (
        ("Location", finding.location),
        ("Concern", finding.concern or ""),
        ("Problem", finding.problem),
        ("Risk", finding.risk),
        ("Suggestion", finding.suggestion),
        ("Evidence", finding.evidence),
        ("Confidence", finding.confidence),
        ("Proof", _proof(finding)),
        ("Edit", f"in {_becomes(finding.edit)}" if finding.edit is not None else ""),
        ("Last review says", finding.note),
    )
    text = f"### {finding.id} [{finding.severity}] {one_line(finding.headline)}\n\n{named(fields)}"
    test = finding.proof.test if finding.proof is not None else None
    return text if test is None else f"{text}\n\n`{test.path}`:\n\n{fenced(test.content)}"


def _proof(finding: Finding) -> str:
    """Return what came of a finding's proof, with the proof itself."""
    proof, measured = finding.proof, finding.measured
    if proof is None:
        return ""
    given = f"edit of {_becomes(proof.edit)}" if proof.edit else f"test `{proof.test.path}`" if proof.test else ""
    return given if measured is None else f"{given}: {measured.found}: {measured.why}"


def _becomes(edit: Edit) -> str:
    """Return an edit in words; a text of one line is shown as it stands in the file."""
    old, new = (f"'{text}'" if text.isprintable() else repr(text) for text in (edit.old, edit.new))
    return f"`{edit.path}`: {old} becomes {new}"


def _standing(finding: Finding) -> str:
    weight = f" [{finding.severity}]" if finding.status is Status.OPEN else ""
    return f"{finding.id}{weight} {finding.headline} - {finding.status}{f': {finding.note}' if finding.note else ''}"


def _advice(advice: Advisory) -> str:
    category = f"[{one_line(advice.category)}] " if advice.category.strip() else ""
    fields = (
        ("Location", advice.location),
        ("What is there", advice.current),
        ("Simpler", advice.simpler),
        ("Payoff", advice.payoff),
        ("Effort", advice.effort),
        ("Risk of simplifying", advice.risk),
    )
    return f"### {advice.id} {category}{one_line(advice.title)}".rstrip() + f"\n\n{named(fields)}"


def _answers(answers: SplitAnswers) -> str:
    words = {True: "yes", False: "no"}
    said = ((name, getattr(answers, name)) for name in type(answers).model_fields)
    return bullets(f"{name.replace('_', ' ')}: {words.get(value, value)}" for name, value in said if value != "")


def _file(file: PlannedFile) -> str:
    origin = f" from `{file.origin}`" if file.origin else ""
    why = f": {file.why}" if file.why.strip() else ""
    return f"`{file.path}` ({file.action}{origin}){why}"
