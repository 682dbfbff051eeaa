"""A run with a story, decided by the real machine: what the reading commands have to tell of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runs.real import begin, dispatch, event, start_dispatch, to_first_task, to_split, tree_with

from pipeline.judge.evidence.red_classes import RedClass
from pipeline.judge.evidence.red_tests import RedEntry, RedTests
from pipeline.judge.reports.fields import Severity, Verdict
from pipeline.judge.reports.findings import Stage, StageFindings, apply_review
from pipeline.judge.reports.reviews import CheckReview, ReviewFinding
from pipeline.matrix.routing.state import NewTask
from pipeline.repo import Repository
from pipeline.run.files import to_json
from pipeline.run.info import ChangeRecord, Usage, ViolationRecord
from pipeline.run.journal_kinds import MeasuredTests, Published, PublishIntended
from pipeline.steps.asking.review_record import ReviewRecord
from pipeline.testing.measure.task_evidence import GreenEvidence, TaskEvidence
from pipeline.vocabulary import Question, Role, Signal

if TYPE_CHECKING:
    from pipeline.run.run import Run

TEST_ID = "tests/test_greet.py::test_empty"
PAID = Usage(cost_usd=0.25, input_tokens=1000, output_tokens=100)
ESCAPES = "\x1b]0;owned\x07\u202eevil"


def plan_reviewed(repository: Repository) -> Run:
    """A plan that was sent back once, and is acceptable now; SPLIT comes next."""
    run = begin(repository)
    run.write_artifact("evidence/baseline.json", "{}")
    run.decide(event(Signal.OK, note="3 tests", evidence=("evidence/baseline.json",)))
    run.write_artifact("issue.md", "---\nid: GAL-39\ntitle: Reject empty names\nstatus: Todo\n---\n# GAL-39\n")
    run.decide(event(Signal.CLAIMED, evidence=("issue.md",)))
    plan(run, "# Plan, first\n")
    review(run, "NEEDS WORK", "The parser is forgotten")
    plan(run, "# Plan, second\n")
    review(run, "ACCEPTABLE")
    return run


def plan(run: Run, text: str) -> None:
    """Draft the plan."""
    name = dispatch(run, Role.ORCHESTRATOR, "plan", usage=PAID)
    run.write_artifact("plan.md", text)
    run.decide(event(Signal.DRAFTED, note="1 file", evidence=("plan.md", name)))


def review(run: Run, verdict: str, *problems: str) -> None:
    """Review the plan, with its artifacts, and decide."""
    dispatch(run, Role.CHECK, "review-plan", report={"verdict": verdict}, usage=PAID)
    dispatch(run, Role.SIMPLIFY, "review-plan", report={"verdict": "JUSTIFIED COMPLEXITY"}, usage=PAID)
    number = len([name for name in run.artifacts if name.endswith(".json") and "reviews/" in name]) + 1
    why = "plan.md does not say it"
    found = [
        ReviewFinding(severity=Severity.HIGH, title=text, location="plan.md", problem=text, evidence=why)
        for text in problems
    ]
    report = CheckReview(verdict=Verdict(verdict), findings=tuple(found))
    ledger, outcome = apply_review(StageFindings(stage=Stage.PLAN), number, report)
    record = ReviewRecord(
        revision="plan_review@plan 1",
        review=number,
        tree=run.state.head,
        signal=outcome.signal,
        must_fix=outcome.must_fix,
        ledger=ledger,
    )
    run.write_artifact(f"reviews/plan-{number}.md", f"# Review {number}\n")
    run.write_artifact(f"reviews/plan-{number}.json", to_json(record.model_dump(mode="json", by_alias=True)))
    blockers = tuple(finding.id for finding in ledger.blockers)
    run.decide(
        event(outcome.signal, blockers=blockers, note="; ".join(problems), evidence=(f"reviews/plan-{number}.md",))
    )


def red_reached(repository: Repository) -> Run:
    """A forbidden write and an illegal RED, then tests that are RED; IMPLEMENT comes next."""
    run = plan_reviewed(repository)
    run.decide(event(Signal.DRAFTED, tasks=(NewTask(id="1", title="Reject empty names"),)))
    run.decide(event(Signal.ACCEPTABLE))
    refused = ViolationRecord(path=f"src/{ESCAPES}.py", rule="not-a-test", why="@test may write test files only")
    name = dispatch(
        run,
        Role.TEST,
        "write-tests",
        signal=Signal.VIOLATION,
        complaint="These changes are not yours to make.",
        gate="rejected",
        violations=(refused,),
        dropped=("__pycache__",),
        usage=PAID,
    )
    run.decide(event(Signal.VIOLATION, role=Role.TEST, note="These changes are not yours to make.", evidence=(name,)))
    _written(run, Signal.ILLEGAL_RED, "- refused: STRUCTURAL: test_empty fails without reaching production\n")
    tree = _written(run, Signal.RED, f"- {TEST_ID}: ASSERTION_MISMATCH: DID NOT RAISE ValueError\n")
    assert run.state.task.red == tree
    return run


def _written(run: Run, signal: Signal, facts: str) -> str:
    tree = tree_of(run, {"tests/test_greet.py": f"# {signal}\n"})
    change = ChangeRecord(path="tests/test_greet.py", kind="added", mode="100644")
    name = dispatch(run, Role.TEST, "write-tests", changes=(change,), tree=tree, usage=PAID)
    ran = MeasuredTests(
        tree=tree,
        selected=("tests/test_greet.py",),
        state="complete",
        outcomes={"failed": 1},
        collection_errors=(),
        command=("python", "-m", "pytest"),
    )
    run.journal.append(ran)
    number = name.split("/")[1][:3]
    run.write_artifact("evidence/task-1.json", evidence(run, tree))
    run.write_artifact(f"evidence/red-{number}.md", f"# RED measurement\n\nCommand: `pytest`\n\n{facts}")
    names = (name, "evidence/task-1.json", f"evidence/red-{number}.md")
    run.decide(event(signal, tree=tree, note="1 test RED" if signal is Signal.RED else "no", evidence=names))
    return tree


def evidence(run: Run, tree: str, *, green: bool = False) -> str:
    """Return a task's evidence as the harness writes it."""
    entry = RedEntry(
        function="test_empty",
        cls=RedClass.ASSERTION_MISMATCH,
        legal=True,
        message="DID NOT RAISE ValueError",
        region_sha256="r",
        tree=tree,
    )
    measured = GreenEvidence(tree=tree, passed=(TEST_ID,), compared_with=run.state.start, kept=3)
    found = TaskEvidence(
        task="1",
        tests_tree=tree,
        production=run.state.start,
        test_paths=("tests/test_greet.py",),
        command=("pytest",),
        ledger=RedTests(task="1", tree=tree, red={TEST_ID: entry}, guards={"tests/test_greet.py::test_name": "r"}),
        green=measured if green else None,
    )
    return to_json(found.model_dump(mode="json", by_alias=True))


def retries_used_up(repository: Repository) -> Run:
    """@make failed twice, which the second diagnosis may not send to @make again; WRITE_TESTS comes next."""
    run = red_reached(repository)
    for _ in range(2):
        tree = tree_of(run, {"app.py": f"# try {run.state.trunk.visit}\n"})
        name = dispatch(run, Role.MAKE, "implement", tree=tree)
        run.decide(event(Signal.NOT_GREEN, tree=tree, note=f"not GREEN: {TEST_ID}", evidence=(name,)))
        dispatch(run, Role.CHECK, "judge", question=Question.DIAGNOSE.value)
        judgement = f"judgements/{run.state.trunk.visit:03}-diagnosis.md"
        run.write_artifact(judgement, "# diagnosis by @check\n\nproduction_logic: the guard is missing\n")
        run.decide(event(Signal.PRODUCTION_LOGIC, note="production_logic", evidence=(judgement,)))
    return run


def finished(repository: Repository) -> Run:
    """A run that has published its one task."""
    run = red_reached(repository)
    tree = tree_of(run, {"app.py": "fixed\n"})
    dispatch(run, Role.MAKE, "implement", tree=tree, usage=PAID)
    run.write_artifact("evidence/task-1.json", evidence(run, tree, green=True))
    run.decide(event(Signal.GREEN, tree=tree, note="4 tests pass", evidence=("evidence/task-1.json",)))
    run.decide(event(Signal.ACCEPTABLE))
    run.journal.append(PublishIntended(commits=("c" * 40,), follow_ups=("GAL-39.1",)))
    run.journal.append(Published(branch="work", commits=("c" * 40,)))
    run.decide(event(Signal.PUBLISHED, note="1 commit on work"))
    return run


def tree_of(run: Run, files: dict[str, str | None]) -> str:
    """Return the run's present tree with these files."""
    return tree_with(Repository.find(run.folder.parent.parent), run.state.head, files)


def at_a_gate(repository: Repository) -> Run:
    run = begin(repository, gates=("plan",))
    to_split(run)
    return run


def out_of_budget(repository: Repository) -> Run:
    run = retries_used_up(repository)
    run.decide(event(Signal.BUDGET, role=Role.TEST, note="40 of 40 dispatches are used up, " + "and more words " * 9))
    return run


def interrupted(repository: Repository) -> Run:
    run = begin(repository)
    to_first_task(run)
    start_dispatch(run, Role.TEST, "write-tests")
    return run


def abandoned(repository: Repository) -> Run:
    run = interrupted(repository)
    run.abandon()
    return run


def rejected(repository: Repository) -> Run:
    run = begin(repository)
    run.decide(event(Signal.BASELINE_IMPOSSIBLE, note="pytest is not installed"))
    return run


ENDINGS = [finished, at_a_gate, out_of_budget, interrupted, abandoned, rejected]
"""Every way in which a run stands still."""
