"""WRITE_TESTS (phase 6): @test writes failing tests; RED is measured by us, twice, never believed (matrix 5)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from pipeline.agents.dispatch.request import Request
from pipeline.judge.reports import signal_of_report
from pipeline.judge.reports.markdown import bullets
from pipeline.judge.reports.signal_of_report import WriteTestsFacts
from pipeline.judge.reports.tasks import Task, adds_tests
from pipeline.judge.reports.untrusted_text import block
from pipeline.judge.reports.work_reports import Blocked, NotTestable, ReadyTests
from pipeline.matrix.routing.state import Event
from pipeline.progress import counted, few
from pipeline.run import plans
from pipeline.steps.asking import criteria
from pipeline.steps.asking.artifacts import baseline_md, handed_on
from pipeline.steps.asking.dispatches import Answer, ask
from pipeline.steps.asking.grants import project_tools, test_scope
from pipeline.steps.asking.proofs import proof_of_task, proved_by, report_of
from pipeline.steps.evidence.red import MeasuredRed, measure_added, measure_red, passes_already, tests_start, wrong_ids
from pipeline.steps.evidence_records import baseline_of, write_evidence
from pipeline.testing.measure.composed_trees import compose, shares_file
from pipeline.testing.measure.measuring import UnmeasurableError, changed_paths
from pipeline.testing.measure.outcome_words import noticed_lines
from pipeline.testing.measure.proofs import with_test
from pipeline.testing.measure.red import spelled_out
from pipeline.testing.measure.task_evidence import NoticingEvidence, TaskEvidence
from pipeline.vocabulary import Role, Signal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.judge.policy.rights import TestScope
    from pipeline.judge.reports.findings import Finding
    from pipeline.judge.reports.proofs import ProvingTest
    from pipeline.steps.context import Context
    from pipeline.steps.evidence.red import Added


async def run(ctx: Context) -> Event:
    """Return the measured signal of @test's work; of a finding that is proved, of its proof, which nobody writes."""
    task = ctx.task()
    if ctx.state.begins_with_a_proof and (given := proof_of_task(ctx)) is not None:
        return await _proved(ctx, task, *given)
    scope = test_scope(ctx, task)
    base = _base(ctx, scope)
    came_back = ctx.handed_words() if ctx.lane.via else []
    artifacts = {
        "task": [ctx.path(f"task-{task.id}.md")],
        "plan": [ctx.path("plan.md")],
        **ctx.artifact("baseline", "evidence/baseline.md", baseline_md(ctx)),
        **handed_on(ctx),
        "findings": [ctx.path(name) for name in came_back],
    }
    request = Request(
        Role.TEST,
        "write-tests",
        base,
        artifacts=artifacts,
        grants=scope.files,
        tests=scope,
        about=tuple(file.path for file in task.files),
        tools=await project_tools(ctx),
        accept=partial(criteria.unshown, task),
        verify=partial(wrong_ids, ctx),
    )
    answer = await ask(ctx, request)
    if isinstance(answer, Event):
        return answer
    tree = answer.result.tree or base
    match answer.report:
        case Blocked(needs=needs):
            note = f"asks for {', '.join(need.path for need in needs)}" if needs else answer.report.problem
            signal = Signal.NEEDS_FILE if needs else Signal.BLOCKED
            # who judges it has to see what came back to @test, too
            return Event(signal=signal, tree=tree, note=note, evidence=(answer.evidence, *came_back))
        case NotTestable() as report:
            return _not_testable(ctx, report, answer, tree)
        case ReadyTests() as report:
            try:
                words = f"evidence/red-{answer.result.dispatch[:3]}.md"
                return await measured(ctx, task, report, tree, words, answer.evidence, answer.result.dropped)
            except UnmeasurableError as error:
                return error.event.model_copy(update={"tree": tree})
        case _:
            raise TypeError(f"kind write-tests was answered by {type(answer.report).__name__}")


def _base(ctx: Context, scope: TestScope) -> str:
    """Return what @test starts from: task_start (with stubs), its own last tests over it (matrix 4)."""
    task = ctx.state.task
    start = tests_start(ctx)
    if task.tests is None:
        return start
    # a seam may have been added since: only the test side of the last tests is theirs
    paths = changed_paths(ctx, start, task.tests)
    layout = baseline_of(ctx).layout
    side = [path for path in paths if scope.covers(path) or shares_file(path, layout)]
    return compose(ctx, task.tests, start, side, layout).tree


def _not_testable(ctx: Context, report: NotTestable, answer: Answer, tree: str) -> Event:
    """Return NOT_TESTABLE, or MISSING_SEAM when the seam lies in files of the plan (matrix 6)."""
    files = {file.path for file in plans.planned(ctx.run).files}
    signal = signal_of_report.write_tests(report, WriteTestsFacts(), plan_files=files)
    evidence = TaskEvidence(
        task=ctx.state.task.id,
        tests_tree=ctx.state.task.start or ctx.state.head,
        production=ctx.state.task.start or ctx.state.head,
        test_paths=(),
        command=(),
        not_testable=report.model_dump(mode="json", include={"reason", "attempted", "future_seam", "seam_files"}),
    )
    name = write_evidence(ctx, evidence)
    return Event(signal=signal, tree=tree, note=report.reason, evidence=(answer.evidence, name))


async def _proved(ctx: Context, task: Task, finding: Finding, test: ProvingTest) -> Event:
    """Return the signal of a task whose tests are a finding's proof: that it is RED is measured where it stands now."""
    tree = with_test(ctx, test, tests_start(ctx))
    try:
        if await passes_already(ctx, tree, test.path):  # there is nothing to do, nor to diagnose
            return Event(signal=Signal.PROOF_PASSES, note=f"{test.path} passes over what was fixed before it")
        return await measured(ctx, task, report_of(finding, task), tree, f"evidence/red-{task.id}-proof.md")
    except UnmeasurableError as error:
        return error.event.model_copy(update={"tree": tree})


async def measured(
    ctx: Context,
    task: Task,
    report: ReadyTests,
    tree: str,
    words: str,
    answer: str | None = None,
    dropped: Sequence[str] = (),
) -> Event:
    """Return the signal of what the tests show over the code before, with the task's evidence of it written.

    Args:
        ctx: The run.
        task: The task.
        report: What @test said of its tests.
        tree: The tests, over the code before.
        words: The name of the artifact that says in words what was measured.
        answer: That with @test's report, if it was asked.
        dropped: The files that were left out of what @test wrote, and why.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    found = await measure_red(ctx, task, report, tree)
    added = await measure_added(ctx, task, report, tree, found)
    found = added.found if added is not None else found
    verdict, noticing = found.verdict, added.noticing if added is not None else None
    kept = noticing if adds_tests(task) else None
    facts = WriteTestsFacts(
        env_broken=verdict.env_broken is not None,
        any_change=bool(found.test_paths or verdict.ledger.red),
        borrowed=found.borrowed,
        all_new_pass=verdict.all_new_pass,
        adds_tests=kept is not None,
        unnoticed=kept is not None and not (kept.notices or kept.trouble),
        doubtful=kept is not None and bool(kept.blind or kept.trouble),
        structural_only=verdict.structural_only,
        illegal_red=bool((verdict.illegal and kept is None) or found.missing),
        red_unstable=bool(verdict.unstable),
        changed_old_test=bool(verdict.changed_old or verdict.removed_old),
    )
    signal = signal_of_report.write_tests(report, facts, plan_files=())
    evidence = TaskEvidence(
        task=task.id,
        tests_tree=tree,
        production=found.production,
        red_tree=found.tree,
        test_paths=found.test_paths,
        command=found.after.command,
        ledger=None if verdict.only_removed and not verdict.only_moved else verdict.ledger,
        not_testable={"reason": "tests are removed"} if verdict.only_removed else None,
        changed_old=(*verdict.changed_old, *verdict.removed_old),
        criteria=spelled_out(report, found.after).criteria,
        noticing=noticing,
        proved_by=proved_by(ctx, tree),
    )
    names = [*([answer] if answer is not None else []), write_evidence(ctx, evidence)]
    names.append(ctx.write(words, _red_md(task, signal, found, report, added, dropped)))
    return Event(signal=signal, tree=tree, note=_note(signal, found, report, noticing), evidence=tuple(names))


_TOLD: Final = 3


def _note(signal: Signal, measured: MeasuredRed, report: ReadyTests, noticing: NoticingEvidence | None) -> str:
    verdict = measured.verdict
    match signal:
        case Signal.ENV_BROKEN:
            return verdict.env_broken or ""
        case Signal.ILLEGAL_RED | Signal.STRUCTURAL_ONLY:
            why = [*(refusal.message for refusal in verdict.illegal), *_untrue(measured, report)]
            return few(why, _TOLD, "; ") or "no test was changed"
        case Signal.RED_UNSTABLE:
            before = " of the same bytes, an earlier one included," if verdict.varied_before else ""
            return f"two runs{before} disagree on {few(verdict.unstable)}"
        case Signal.CHANGED_OLD_TEST:
            return f"changed or removed: {few((*verdict.changed_old, *verdict.removed_old))}"
        case Signal.DISPUTED:
            return report.escalation_reason or (
                "a failing test that the task does not name is taken as its own"
                if measured.borrowed
                else "@test asks @check to look"
            )
        case _:
            if noticing is not None:
                return f"{_counted(measured, report)}; {next(noticed_lines(noticing))}"
            if verdict.only_removed:
                return f"{counted(len(verdict.only_removed), 'test')} removed"
            if verdict.only_moved:
                return f"{counted(len(verdict.ledger.guards), 'test')} moved"
            return _counted(measured, report)


def _untrue(measured: MeasuredRed, report: ReadyTests) -> list[str]:
    """Return what the report says of tests that are not there; a guard that is none matters where a test passes."""
    guards = criteria.unknown_guards(report, measured.after) if measured.verdict.illegal else ()
    return [*measured.missing, *guards]


def _counted(measured: MeasuredRed, report: ReadyTests) -> str:
    """Return how many tests are RED and how many are not; a guard is what @test marked as one."""
    ledger, records = measured.verdict.ledger, measured.after.records
    marked = {named.id for named in spelled_out(report, measured.after).tests if named.expected == "GUARD"}
    functions = {entry: records[entry].function for entry in ledger.guards if entry in records}
    guards = sum(not marked.isdisjoint({entry, functions.get(entry, entry)}) for entry in ledger.guards)
    counts = {
        "RED": len(ledger.red),
        "passing before and after, as @test says": guards,
        "passing already": len(ledger.guards) - guards,
    }
    return ", ".join(f"{counted(count, 'test')} {what}" for what, count in counts.items() if count) or "no test RED"


def _red_md(
    task: Task,
    signal: Signal,
    measured: MeasuredRed,
    report: ReadyTests,
    added: Added | None,
    dropped: Sequence[str],
) -> str:
    """Return what was measured, in words for the next agent: @test when it goes back, @check when it is judged."""
    verdict = measured.verdict
    head = f"# RED measurement of task {task.id}: {signal}\n\nCommand: `{' '.join(measured.after.command)}`"
    refused = verdict.illegal if added is None else ()  # that they pass is no fault of theirs
    said = [f"refused: {refusal.cls or 'no RED'}: {refusal.message}" for refusal in refused]
    said += [f"refused: {line}" for line in _untrue(measured, report)]
    before = dict.fromkeys(verdict.varied_before, ", in an earlier measurement of the same bytes")
    said += [f"unstable: {entry}{before.get(entry, '')}" for entry in verdict.unstable]
    said += [f"existing test changed without leave: {entry}" for entry in verdict.changed_old]
    said += [f"existing test removed without leave: {entry}" for entry in verdict.removed_old]
    said += [f"{entry}: {red.cls}: {red.message}" for entry, red in sorted(verdict.ledger.red.items())]
    said += [f"{entry}: passes (guard)" for entry in sorted({*verdict.ledger.guards} - {one.id for one in refused})]
    said += [f"left out, since the project ignores it: {line}" for line in dropped if ".gitignore" in line]
    if verdict.all_new_pass:
        said.append("every new test passes on the code as it is")
        if added is not None:
            said += [f"{entry}: RED before the run: {red.message}" for entry, red in added.before_run.items()]
            said += noticed_lines(added.noticing)
    elif verdict.structural_only and not verdict.illegal:
        said.append("every new test passes on stubs: none of them looks at what the new code does")
    asks = f"@test asks: {block(report.escalation_reason)}" if report.escalation_reason.strip() else ""
    return "\n\n".join(part for part in (head, bullets(said), asks) if part) + "\n"
