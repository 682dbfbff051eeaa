"""SPLIT (phase 5): tasks are asked of the orchestrator role; our code renders task-<id>.md and lints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dispatch.request import Request
from pipeline.policy.hygiene import Problem, drafted, lint_split, lint_task, plausible_test_path
from pipeline.reports.decode import Malformed
from pipeline.reports.drafts import SplitReport
from pipeline.reports.fields import Action, Evidence
from pipeline.reports.taskfile import task_md
from pipeline.reports.tasks import tasks_from_split
from pipeline.routing.arrival import SETTLED
from pipeline.routing.matrix import MAX_FIX_TASKS, MAX_TASKS
from pipeline.routing.state import Event, NewTask
from pipeline.routing.vocabulary import Role, Signal, Step
from pipeline.steps.asking import ask
from pipeline.steps.composing import shares_file
from pipeline.steps.drafting import REFUSED, draft_artifacts, hygiene_evidence
from pipeline.steps.reviews import remarks
from pipeline.steps.sanity import baseline_of
from pipeline.steps.stub import scaffolds, wants_stubs, wants_stubs_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pipeline.reports.fields import Report
    from pipeline.reports.tasks import Task
    from pipeline.steps.context import Context


async def run(ctx: Context) -> Event:
    """Return DRAFTED with the task files written, HYGIENE with the list of problems, or a failed dispatch."""
    artifacts = draft_artifacts(ctx)
    artifacts["plan"] = [ctx.path("plan.md")]
    artifacts |= remarks(ctx, Step.REVIEW_PLAN)
    came_back = _came_back(ctx)
    if came_back:
        artifacts["previous_tasks"] = [ctx.path(name) for name in came_back]
    done = [task.id for task in ctx.state.tasks.values() if task.status in SETTLED]
    if done:
        artifacts["done_tasks"] = [ctx.path(f"task-{task}.md") for task in done]
    fixes = "Draft fix tasks for these findings only; the done tasks stay as they are.\n" if ctx.state.fixing else ""
    extra = f"{fixes}Your tasks get the ids {', '.join(_ids(ctx, 3))} ..., in the order of your list."
    request = Request(
        Role.ORCHESTRATOR,
        "split",
        ctx.state.head,
        artifacts=artifacts,
        accept=lambda report: _refused(ctx, report),
        extra=extra,
    )
    answer = await ask(ctx, request)
    if isinstance(answer, Event):
        return answer
    tasks = tasks_from_split(_split(answer.report), _ids(ctx, len(_split(answer.report).tasks)))
    if isinstance(tasks, Malformed):
        raise TypeError(f"an accepted split is malformed: {tasks.sentence}")
    problems = _lint(ctx, tasks)
    if drafted(problems) is Signal.HYGIENE:
        folder = f"{REFUSED}{answer.result.dispatch[:3]}"
        drafts = [ctx.write(f"{folder}/task-{task.id}.md", task_md(task)) for task in tasks]
        return hygiene_evidence(ctx, "split", problems, answer, drafts)
    names = [ctx.write(f"task-{task.id}.md", task_md(task)) for task in tasks]
    return Event(
        signal=Signal.DRAFTED,
        tasks=tuple(_new_task(ctx, task) for task in tasks),
        note=f"{len(tasks)} task(s)",
        evidence=(*names, answer.evidence),
    )


def _split(report: Report) -> SplitReport:
    if not isinstance(report, SplitReport):
        raise TypeError(f"kind split was answered by {type(report).__name__}")
    return report


def _refused(ctx: Context, report: Report) -> Malformed | None:
    split = _split(report)
    tasks = tasks_from_split(split, _ids(ctx, len(split.tasks)))
    return tasks if isinstance(tasks, Malformed) else None


def _came_back(ctx: Context) -> list[str]:
    """Return the task files that this draft is a revision of: those that hygiene refused, or that were not done."""
    if ctx.state.via is None:
        return []
    refused = [name for name in ctx.handover() if name.startswith(REFUSED)]
    drafted = [line for line in ctx.run.journal.of("decision") if line.text("row") == "split/DRAFTED"]
    if refused or not drafted:
        return refused
    settled = {f"task-{t.id}.md" for t in ctx.state.tasks.values() if t.status in SETTLED}
    return [name for name in drafted[-1].texts("evidence") if name.startswith("task-") and name not in settled]


def _ids(ctx: Context, count: int) -> list[str]:
    """Return the next task ids; that of a task which has begun is never used again (contract 6), others are kept."""
    prefix = "fix-" if ctx.state.fixing else ""
    begun = [task.id for task in ctx.state.tasks.values() if task.start is not None or task.status in SETTLED]
    used = [task for task in begun if task.startswith("fix-") == bool(prefix)]
    first = max((int(task.removeprefix("fix-")) for task in used), default=0) + 1
    return [f"{prefix}{number}" for number in range(first, first + count)]


def _new_task(ctx: Context, task: Task) -> NewTask:
    """Return what routing knows of the task.

    A fix task without production files answers a finding on tests: its RED is measured with the production of the start
    (matrix 4). Where old tests may change or go, @test is asked, whatever the evidence: nobody else may touch them.
    """
    only_tests = ctx.state.fixing and not task.files
    return NewTask(
        id=task.id,
        title=task.title,
        evidence="red" if task.tests_to_change else task.evidence.value,
        depends_on=task.depends_on,
        red_base="start" if only_tests and task.evidence is Evidence.RED else None,
        stub_first=task.evidence is Evidence.RED and wants_stubs(ctx, task),
    )


def _lint(ctx: Context, tasks: tuple[Task, ...]) -> list[Problem]:
    most = ctx.config.limits.max_fix_tasks if ctx.state.fixing else ctx.config.limits.max_tasks
    problems = list(lint_split(tasks, max_tasks=min(most, MAX_FIX_TASKS if ctx.state.fixing else MAX_TASKS)))
    if ctx.state.fixing:  # a finding on tests alone names no production file
        problems = [p for p in problems if "names no file" not in p.message]
    existing = {entry.path for entry in ctx.repository.entries(ctx.state.head)}
    baseline = baseline_of(ctx)
    layout = baseline.layout
    nowhere_yet = not layout.collected and not layout.testpaths

    def is_test_path(path: str) -> bool:
        if layout.is_test_side(path) or ctx.toolchain.is_test_path(path, baseline):
            return True
        return nowhere_yet and plausible_test_path(path)

    for task in tasks:
        text = task_md(task)
        found = [*lint_task(text, task, existing=existing, test_path=is_test_path), *_unscaffolded(ctx, task, existing)]
        problems += [Problem(p.line, p.rule, f"task {task.id}: {p.message}", p.severity) for p in found]
        for change in (*task.files, *task.test_files):
            if change.action in {Action.CREATE, Action.RENAME}:
                existing.add(change.path)
            if change.action == Action.DELETE:
                existing.discard(change.path)
    return problems + _filtered(ctx, tasks)


def _unscaffolded(ctx: Context, task: Task, existing: Collection[str]) -> Iterator[Problem]:
    """Refuse tests beside code that is not there yet: @test writes no production file, a stub pass has to make it."""
    if task.evidence is not Evidence.RED:
        return
    if scaffolds(ctx, task) and not wants_stubs(ctx, task):
        for path in (change.path for change in task.files if change.action is Action.CREATE):
            if path.endswith(ctx.toolchain.sources):
                why = f"{path} is new: list its new symbols, which are scaffolded before their tests"
                yield Problem(1, "H016", why)
    layout = baseline_of(ctx).layout
    made = {symbol.path for symbol in task.symbols if symbol.new} if wants_stubs(ctx, task) else set[str | None]()
    way = "list its new symbols, so that it is scaffolded first, or put" if wants_stubs_in(ctx, task) else "put"
    for change in task.test_files:
        if change.path not in existing and change.path not in made and shares_file(change.path, layout):
            why = f"{change.path} is not there when its tests are written; {way} the tests below tests/"
            yield Problem(1, "H016", why)


def _filtered(ctx: Context, tasks: tuple[Task, ...]) -> list[Problem]:
    """Refuse paths whose content goes through a filter other than the user's LFS (architecture 8)."""
    named = {change.path: task.id for task in tasks for change in (*task.files, *task.test_files)}
    foreign = ctx.repository.foreign_filters(ctx.checkout.tree, named)
    return [Problem(1, "H015", f"task {named[path]}: {path} {why}") for path, why in foreign.items()]
