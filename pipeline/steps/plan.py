"""PLAN (phase 3): a draft is asked of the orchestrator role; our code renders plan.md and lints it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from pipeline.agents.dispatch.request import Request
from pipeline.judge.reports import signal_of_report
from pipeline.judge.reports.artifacts import plan_md
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.drafts import PlanAndTasks, PlanReport
from pipeline.judge.reports.hygiene import lint_plan
from pipeline.judge.reports.problems import Problem, drafted
from pipeline.judge.reports.taskfile import task_md
from pipeline.matrix.routing.state import Event
from pipeline.progress import counted
from pipeline.run import tracker
from pipeline.run.drafts import PLAN, redraft, task_file
from pipeline.run.info import PREVIOUS_PATCH
from pipeline.run.plans import BOTH
from pipeline.steps.asking import drafts, questions, reviews
from pipeline.steps.asking.artifacts import baseline_md
from pipeline.steps.asking.dispatches import Answer, as_form, ask
from pipeline.vocabulary import Loop, Role, Signal

if TYPE_CHECKING:
    from pipeline.judge.reports.fields import Report
    from pipeline.judge.reports.tasks import Task
    from pipeline.steps.context import Context

TASK_TOO: Final = """\
`task` is for an issue that is one task as a whole: ten to thirty minutes of work, about two production files and fifty
lines. `A task` above says what it has. It is reviewed with the plan, and nobody splits the plan. Leave `task` out where
the issue is more than that. A revised plan gives it again.

```json
{ "task": {
  "title": "Refuse blank names in greet()",
  "acceptance_criteria": ["greet('') raises ValueError", "greet('  ') raises ValueError"],
  "files": [{ "path": "src/greeting.py", "action": "modify" }],
  "test_files": [{ "path": "tests/test_greeting.py", "action": "modify" }],
  "symbols": [{ "path": "src/greeting.py", "name": "blank", "signature": "blank(name: str) -> bool", "new": true }]
} }
```
"""
"""What a drafter is told of `task`, where a plan may bring it."""


async def run(ctx: Context) -> Event:
    """Return DRAFTED with plan.md written, HYGIENE with the list of problems, or a failed dispatch."""
    baseline = ctx.artifact("baseline", "evidence/baseline.md", baseline_md(ctx))
    given = drafts.as_given(ctx)
    if given is not None:
        return _drafted(ctx, given, 1)
    artifacts = drafts.draft_artifacts(ctx) | baseline
    if ctx.lane.via is not None and ctx.path(PLAN).exists():
        came_along = (ctx.path(task_file(task.id)) for task in drafts.tasks_of_planned(ctx))
        artifacts["previous_plan"] = [ctx.path(PLAN), *(path for path in came_along if path.exists())]
    if ctx.lane.via in {Loop.PLAN_REWORK, Loop.HUMAN} and ctx.state.previous_work:
        patch = ctx.repository.patch(ctx.state.start, ctx.state.previous_work)
        artifacts |= ctx.artifact("previous_patch", f"previous-{ctx.state.plan_revision}.patch", patch)
    elif PREVIOUS_PATCH in ctx.run.artifacts:
        artifacts["previous_patch"] = [ctx.path(PREVIOUS_PATCH)]
    may_ask = questions.told(ctx, Role.ORCHESTRATOR)
    request = Request(
        Role.ORCHESTRATOR,
        BOTH if ctx.state.plan_brings_tasks else "plan",
        ctx.state.start,
        artifacts=artifacts,
        accept=lambda report: None if questions.is_question(report) else _refused(ctx, report),
        extra=f"{_about_tasks(ctx)}{may_ask.words}".strip(),
        asks=may_ask.asks,
        without=frozenset() if drafts.may_bring_a_task(ctx.state) else frozenset({"task"}),
    )
    answer = await ask(ctx, request)
    if isinstance(answer, Event):
        return answer
    if questions.is_question(answer.report):
        return questions.asked(ctx, Role.ORCHESTRATOR, answer)
    attempt = ctx.run.records[int(answer.result.dispatch[:3])].attempt
    return _drafted(ctx, answer.form(PlanReport, PlanAndTasks), attempt, answer)


def _about_tasks(ctx: Context) -> str:
    """Return what is told of tasks in a plan: their ids, or when it may bring its only one."""
    if ctx.state.plan_brings_tasks:
        return drafts.ids_line(ctx)
    return TASK_TOO.strip() if drafts.may_bring_a_task(ctx.state) else ""


def _drafted(ctx: Context, report: PlanReport | PlanAndTasks, attempt: int, answer: Answer | None = None) -> Event:
    """Write a draft, and return what came of it; `answer` is None where the recipe brings it along."""
    tasks = drafts.accepted(drafts.tasks_of_plan(ctx, report))
    text, problems = linted(ctx, report, tasks, attempt)
    names = redraft(ctx.run, {PLAN: text, **{task_file(task.id): task_md(task) for task in tasks}})
    signal = drafted(problems)
    if signal is Signal.HYGIENE:
        number = answer.result.dispatch[:3] if answer is not None else "given"
        handed_in = answer.result.report_sha256 if answer is not None else None
        return drafts.hygiene_evidence(ctx, "plan", problems, number, report_sha256=handed_in)
    changes = [*report.files, *(change for task in tasks for change in (*task.files, *task.test_files))]
    if (stop := drafts.unloadable(ctx, changes)) is not None:
        return stop
    many = f", {counted(len(tasks), 'task')}" if isinstance(report, PlanAndTasks) else ""
    brought = many or (", one task" if tasks else "")
    note = f"{counted(len(report.files), 'file')}{brought}"
    return Event(signal=signal, note=note, evidence=(*names, *((answer.evidence,) if answer is not None else ())))


def linted(
    ctx: Context, report: PlanReport | PlanAndTasks, tasks: tuple[Task, ...], revision: int
) -> tuple[str, list[Problem]]:
    """Return the text of a plan, and what is wrong with it and with the tasks that came with it."""
    title = tracker.in_tree(ctx.repository, ctx.state.start).read(ctx.issue).title
    text = plan_md(report, ctx.issue, title, revision)
    existing = {entry.path for entry in ctx.repository.entries(ctx.state.start)}
    of_task = {change.path for task in tasks for change in (*task.files, *task.test_files)}
    places = drafts.lint_places(ctx, report.files, of_task)
    found = drafts.true_of(lint_plan(text, files=report.files, existing=existing), places)
    of_tasks = drafts.lint_tasks(ctx, tasks) if tasks else []
    told = " ".join(problem.message for problem in of_tasks)  # the same of the plan's files need not be said twice
    return text, [*found, *(problem for _, problem in places if problem.message not in told), *of_tasks]


def _refused(ctx: Context, report: Report) -> Malformed | None:
    tasks = drafts.tasks_of_plan(ctx, as_form(report, PlanReport, PlanAndTasks))
    if not isinstance(tasks, Malformed):
        return None
    return tasks if isinstance(report, PlanAndTasks) else Malformed(tasks.sentence, "/task/depends_on")


async def review(ctx: Context) -> Event:
    """Return the review's signal, with the open blockers on record; NOT_ASKED where the recipe has no reviewer."""
    if ctx.state.phases.passes(ctx.lane.step):
        return Event(signal=Signal.NOT_ASKED)
    review = reviews.Review(ctx)
    artifacts = reviews.review_artifacts(ctx, review)
    tasks = drafts.tasks_of_planned(ctx)
    if tasks:
        artifacts |= reviews.task_artifacts(ctx, review, {task.id: task for task in tasks})
    artifacts |= review.changes("\n".join([ctx.read("plan.md"), *map(task_md, tasks)]))
    accept = partial(reviews.unfounded, review) if tasks else None
    answers = await reviews.ask_reviewers(review, "review-plan", ctx.state.start, artifacts, accept)
    if isinstance(answers, Event):
        return answers
    check, simplify = reviews.reports_of(answers)
    reviewed = signal_of_report.review_draft(review.ledger, review.number, check, simplify)
    return reviews.event_of(reviewed, review.record(reviewed, check, simplify, ctx.state.start))
