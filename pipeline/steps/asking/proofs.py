"""Runs the proofs that @check gives with its findings, and makes fix tasks of those that hold (matrix 3)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pipeline.judge.policy.rights import Action
from pipeline.judge.reports.artifacts import finding_md
from pipeline.judge.reports.drafts import SplitReport, SplitTask
from pipeline.judge.reports.fields import Concern, FileChange, Severity, path_problem
from pipeline.judge.reports.findings import Finding, MeasuredFinding, StageFindings
from pipeline.judge.reports.hygiene import LONGEST_TITLE
from pipeline.judge.reports.proofs import Edit, MeasuredProof, Proof, ProvingTest
from pipeline.judge.reports.tasks import Task, tasks_from_split
from pipeline.judge.reports.untrusted_text import one_line
from pipeline.judge.reports.work_reports import NamedTest, ReadyTests, ShownCriterion
from pipeline.matrix.routing.matrix import MAX_FIX_TASKS
from pipeline.repo import TreeChange
from pipeline.steps.asking.drafts import accepted, lint_each, new_tasks, next_ids
from pipeline.steps.asking.grants import scope_without_task
from pipeline.steps.asking.reviews import last_review
from pipeline.steps.evidence_records import baseline_of, collected_files, read_evidence
from pipeline.steps.wanted_stubs import symbols_of
from pipeline.testing.measure.proofs import Work, measure_proof
from pipeline.vocabulary import Loop, Step

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from pipeline.judge.reports.reviews import CheckReview, SuiteJudgement
    from pipeline.matrix.routing.state import NewTask
    from pipeline.steps.context import Context
    from pipeline.testing.measure.measuring import MeasurementContext

_Review = TypeVar("_Review", bound="CheckReview | SuiteJudgement")
MOST: Final = 10
"""The proofs of one review that are run; @check is asked for ten findings at most."""
PROOF: Final = "proof.json"
"""The end of the name under which the test lies that a person gave with their feedback."""
_PERSON: Final = "person-"
_TITLE: Final = 80
_NAMED: Final = 300
"""Characters of the longest test that a report names; that a longer one is RED is measured all the same."""


def work_of(ctx: Context) -> Work:
    """Return the result so far, as what proofs are about."""
    baseline = baseline_of(ctx)  # what tasks have brought is no more in its layout than it is in it
    layout = baseline.layout.model_copy(update={"collected": collected_files(ctx)})
    seen = baseline.model_copy(update={"layout": layout})
    tree = [entry.path for entry in ctx.repository.entries(ctx.run.info.start_tree)]
    found = [read_evidence(ctx, task.id) for task in ctx.state.done_tasks]
    tests = frozenset(test for one in found if one is not None and one.green is not None for test in one.green.passed)
    scope = scope_without_task(seen, tree, ctx.toolchain.sources)
    return Work(ctx.state.head, seen.layout, scope, ctx.state.start, tests)


def work_of_tests(ctx: Context) -> Work:
    """Return the tests in question of the current task, over production without the behaviour: any edit is a try."""
    work, task = work_of(ctx), ctx.state.task
    evidence = read_evidence(ctx, task.id)
    ledger = evidence.ledger if evidence is not None else None
    tests = frozenset({*ledger.red, *ledger.guards}) if ledger is not None else frozenset[str]()
    tree = ctx.lane.in_question or task.tests or ctx.state.head
    return replace(work, tree=tree, start=None, tests=tests, symbols=symbols_of(ctx.task()))


def has_proofs(report: CheckReview | SuiteJudgement) -> bool:
    """Return whether a finding of a report has a proof."""
    return any(getattr(finding, "proof", None) is not None for finding in report.findings)


async def proved(ctx: MeasurementContext, report: _Review, work: Work | str) -> _Review:
    """Return the report with what came of each proof in it; *work* may be the reason why none can be run."""
    findings = list(report.findings)
    given = [(getattr(one, "proof", None), one.title or one.problem) for one in findings]
    async for place, title, measured in measured_each(ctx, given, work):
        ctx.say(f"    {measured.found}: {title}: {one_line(measured.why)}")
        fields: dict[str, Any] = {name: getattr(findings[place], name) for name in type(findings[place]).model_fields}
        findings[place] = MeasuredFinding(**fields, measured=measured)
    return report.model_copy(update={"findings": tuple(findings)})


async def measured_each(
    ctx: MeasurementContext, given: Sequence[tuple[Proof | None, str]], work: Work | str
) -> AsyncIterator[tuple[int, str, MeasuredProof]]:
    """Yield what each proof of a list shows, with its place there and a title; *given* are proofs and what they claim.

    *work* may be the reason why none can be run.
    """
    proofs = [(place, proof, claim) for place, (proof, claim) in enumerate(given) if proof is not None]
    for number, (place, proof, claim) in enumerate(proofs, 1):
        title = one_line(claim)[:_TITLE]
        if isinstance(work, str):
            yield place, title, MeasuredProof(found="unproved", why=work)
        elif number > MOST:
            yield place, title, MeasuredProof(found="unproved", why=f"only the first {MOST} proofs are run")
        else:
            yield place, title, await measure_proof(ctx, proof, work, title)


def without_taken(ctx: MeasurementContext, work: Work, test: ProvingTest | None) -> Work:
    """Return *work* without what a fix wrote where the proving test lay: the proof is run again as it was given."""
    there = ctx.repository.blob(f"{work.tree}:{test.path}") if test is not None else None
    if test is None or there in {None, test.content.encode()}:
        return work
    return replace(work, tree=ctx.repository.build_tree(work.tree, [TreeChange(test.path, None)]))


async def proved_again(ctx: MeasurementContext, ledger: StageFindings, work: Work) -> Mapping[str, MeasuredProof]:
    """Return what the proofs of open findings show now, by id: that one is settled is measured, not asked."""
    held = [(one, one.proof) for one in ledger.open if one.is_proved and one.proof is not None]
    works = {one.id: without_taken(ctx, work, proof.test) for one, proof in held}
    return {one.id: await measure_proof(ctx, proof, works[one.id], one.headline) for one, proof in held}


# --- fix tasks -------------------------------------------------------------------------------------------------------


def task_of(ctx: Context, finding: Finding, id_: str) -> Task | None:
    """Return the fix task whose tests are the finding's proof; None where it can be none as it is."""
    proof, measured = finding.proof, finding.measured
    if proof is None or proof.test is None or measured is None or not finding.is_proved:
        return None
    if finding.concern is not Concern.PRODUCTION:
        return None
    there = {entry.path for entry in ctx.repository.entries(ctx.state.head)}
    changed = {change.path for change in ctx.repository.diff(ctx.state.start, ctx.state.head)}
    layout = work_of(ctx).layout
    place = finding.location.partition(":")[0].strip()
    code = sorted(
        path
        for path in {*changed, *measured.files, place} & there
        if path.endswith(tuple(ctx.toolchain.sources)) and not layout.is_test_side(path) and not path_problem(path)
    )
    parts = {
        "Problem": finding.problem,
        "Risk": finding.risk,
        "Suggestion": finding.suggestion,
        "Evidence of the reviewer": finding.evidence,
    }
    tests = ", ".join(measured.tests)
    passes = "passes" if len(measured.tests) == 1 else "pass"
    drafted = SplitTask(
        title=_title_of(finding),
        acceptance_criteria=(f"{tests} {passes}. Before the fix: {finding.headline}",),
        files=tuple(FileChange(path=path, action=Action.MODIFY) for path in code),
        test_files=(FileChange(path=proof.test.path, action=Action.CREATE),),
        description="\n\n".join(f"{name}: {part.strip()}" for name, part in parts.items() if part.strip()),
    )
    (task,) = accepted(tasks_from_split(SplitReport(tasks=(drafted,)), [id_]))
    refused = any(problem.severity == "error" for _, problem in lint_each(ctx, (task,), lambda one: one.body))
    return None if refused or not code else task


def _title_of(finding: Finding) -> str:
    """Return what is to be done, which becomes the subject of the commit; the fault where that is not said in short."""
    wanted = one_line(finding.suggestion.strip().partition("\n")[0]).rstrip(".")
    return wanted if 0 < len(wanted) <= LONGEST_TITLE else one_line(finding.headline)[:_TITLE].strip()


async def said_by_person(ctx: Context) -> Finding | None:
    """Return what a person said who rejected the result with a proof, with what came of it; None where nobody did."""
    names = [name for name in ctx.handover() if name.endswith(f"-{PROOF}")] if ctx.lane.via is Loop.HUMAN else []
    if not names:
        return None
    stem = names[0].removesuffix(f"-{PROOF}")
    test = ProvingTest.model_validate_json(ctx.read(names[0]))
    text = ctx.read(f"{stem}.md").partition("\n")[2].strip()
    title = one_line(text.partition("\n")[0])[:_TITLE]
    measured = await measure_proof(ctx, Proof(test=test), work_of(ctx), title)
    ctx.say(f"    {measured.found}: {title}: {one_line(measured.why)}")
    finding = Finding(
        id=f"{_PERSON}{stem.rpartition('-')[2]}",
        severity=Severity.HIGH,
        title=title,
        problem=text,
        concern=Concern.PRODUCTION,
        proof=Proof(test=test),
        measured=measured,
    )
    ctx.write_json(f"reviews/{finding.id}.json", finding.model_dump(mode="json"))
    ctx.write(f"reviews/{finding.id}.md", f"# Its proof\n\n{finding_md(finding)}\n")
    return finding


def tasks_of_proofs(ctx: Context, person: Finding | None = None) -> tuple[tuple[Task, ...], tuple[NewTask, ...]]:
    """Return the fix tasks that *person* and the last final review have proved, and that have not begun.

    As routing knows them, too. More than a split may have wait for the next review, which runs their proofs again.
    """
    found: list[tuple[Task, Finding]] = []
    for finding in [*([person] if person is not None else []), *_direct(ctx)][:MAX_FIX_TASKS]:
        (id_,) = next_ids(ctx, 1, after=len(found))
        task = task_of(ctx, finding, id_)
        if task is not None:
            found.append((task, finding))
    tasks = tuple(task for task, _ in found)
    specs = (
        spec.model_copy(update={"proof": finding.id})
        for spec, (_, finding) in zip(new_tasks(ctx, tasks), found, strict=True)
    )
    return tasks, tuple(specs)


def _direct(ctx: Context) -> list[Finding]:
    review = last_review(ctx, Step.FINAL_REVIEW)
    if review is None or not ctx.state.fixing:
        return []
    begun = {task.spec.proof for task in ctx.state.tasks.values() if task.start is not None}
    return [one for one in review.ledger.open if one.id in review.must_fix and one.is_proved and one.id not in begun]


def edits_in_question(ctx: Context) -> dict[str, Edit]:
    """Return the edits that proved open findings of the last final review, by their ids; of a task that mends some."""
    review = last_review(ctx, Step.FINAL_REVIEW) if ctx.state.task.fix else None
    found = review.ledger.open if review is not None else ()
    return {one.id: one.proof.edit for one in found if one.is_proved and one.proof is not None and one.proof.edit}


def proof_of_task(ctx: Context) -> tuple[Finding, ProvingTest] | None:
    """Return the finding whose proof the current task's tests are, with that proof; None where there is none."""
    review, name = last_review(ctx, Step.FINAL_REVIEW), ctx.state.task.spec.proof
    if name is not None and name.startswith(_PERSON):
        said = Finding.model_validate_json(ctx.read(f"reviews/{name}.json"))
        return (said, said.proof.test) if said.proof is not None and said.proof.test is not None else None
    for finding in review.ledger.findings if review is not None and name is not None else ():
        if finding.id == name and finding.proof is not None and finding.proof.test is not None:
            return finding, finding.proof.test
    return None


def proved_by(ctx: Context, tree: str) -> str | None:
    """Return the finding whose proof is among the task's tests in *tree*, as it was given."""
    given = proof_of_task(ctx)
    if given is None:
        return None
    finding, test = given
    return finding.id if ctx.repository.blob(f"{tree}:{test.path}") == test.content.encode() else None


def report_of(finding: Finding, task: Task) -> ReadyTests:
    """Return what @test would report of the tests that prove a finding: they were seen to fail, the others to pass."""
    measured = finding.measured
    tests = (measured.tests, measured.guards) if measured is not None else ((), ())
    red, guards = (tuple(test for test in some if len(test) <= _NAMED) for some in tests)
    return ReadyTests(
        verdict="TESTS_READY",
        tests=(
            *(NamedTest(id=test, expected="RED") for test in red),
            *(NamedTest(id=test, expected="GUARD") for test in guards),
        ),
        criteria=tuple(ShownCriterion(id=one.id, tests=red) for one in task.criteria),
    )
