"""SPLIT (phase 5): tasks are asked of the orchestrator role; our code renders task-<id>.md and lints them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from pipeline.agents.dispatch.request import Request
from pipeline.judge.reports import signal_of_report
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.drafts import SplitReport
from pipeline.judge.reports.problems import drafted
from pipeline.judge.reports.reviews import CheckReview
from pipeline.judge.reports.taskfile import task_md
from pipeline.matrix.engine.journal_kinds import DecisionMade
from pipeline.matrix.routing.state import Event, NewTask
from pipeline.matrix.routing.state_changes import SETTLED
from pipeline.progress import counted, few
from pipeline.run.drafts import redraft, task_file
from pipeline.steps.asking import drafts, questions, reviews
from pipeline.steps.asking.dispatches import as_form, ask
from pipeline.steps.asking.proofs import said_by_person, tasks_of_proofs
from pipeline.vocabulary import Role, Signal, Step

if TYPE_CHECKING:
    from pipeline.judge.reports.fields import Report
    from pipeline.judge.reports.tasks import Task
    from pipeline.steps.context import Context

_SHOWN: Final = 3


async def run(ctx: Context) -> Event:
    """Return DRAFTED with the task files written, HYGIENE with the list of problems, or a failed dispatch."""
    if ctx.state.passes_split:
        return _taken(ctx, Signal.NOT_ASKED, drafts.tasks_of_planned(ctx), "drafted with the plan")
    if ctx.state.may_take_the_plans_task and (tasks := drafts.tasks_of_planned(ctx)):
        return _taken(ctx, Signal.ONE_TASK, tasks, "reviewed with the plan")
    person = await said_by_person(ctx)
    proofs, proved = tasks_of_proofs(ctx, person)
    is_all = ctx.lane.after is Signal.PROVED or (person is not None and proved and proved[0].proof == person.id)
    if proofs and is_all:
        return _taken(
            ctx, Signal.PROVED, proofs, "proved by its test" if len(proofs) == 1 else "proved by tests", proved
        )
    given = drafts.as_given(ctx)
    if given is not None:
        tasks = drafts.accepted(drafts.tasks_of(ctx, SplitReport(tasks=given.tasks)))
        return _taken(ctx, Signal.DRAFTED, tasks, "given with the recipe")
    artifacts = drafts.draft_artifacts(ctx)
    artifacts["plan"] = [ctx.path("plan.md")]
    artifacts["baseline"] = [ctx.path("evidence/baseline.md")]
    if person is not None:
        artifacts["feedback"] = [*artifacts.get("feedback", []), ctx.path(f"reviews/{person.id}.md")]
    artifacts |= {} if ctx.state.fixing else reviews.remarks(ctx, Step.REVIEW_PLAN)
    artifacts["previous_tasks"] = [ctx.path(name) for name in _came_back(ctx)]
    done = (task for task in ctx.state.tasks.values() if task.status in SETTLED)
    artifacts["done_tasks"] = [ctx.path(task_file(task.id)) for task in done]
    fixes = "Draft fix tasks for these findings only; the done tasks stay as they are.\n" if ctx.state.fixing else ""
    count = len(proofs)
    may_ask = questions.told(ctx, Role.ORCHESTRATOR)
    request = Request(
        Role.ORCHESTRATOR,
        "split",
        ctx.state.head,
        artifacts=artifacts,
        accept=lambda report: None if questions.is_question(report) else _refused(ctx, report, count),
        extra=f"{fixes}{drafts.ids_line(ctx, after=count)}{may_ask.words}",
        asks=may_ask.asks,
    )
    answer = await ask(ctx, request)
    if isinstance(answer, Event):
        return answer
    if questions.is_question(answer.report):
        return questions.asked(ctx, Role.ORCHESTRATOR, answer)
    tasks = drafts.accepted(drafts.tasks_of(ctx, answer.form(SplitReport), after=count))
    problems = drafts.lint_tasks(ctx, tasks)
    if drafted(problems) is Signal.HYGIENE:
        folder = f"{drafts.REFUSED}{answer.result.dispatch[:3]}"
        refused = [ctx.write(f"{folder}/{task_file(task.id)}", task_md(task)) for task in tasks]
        number, handed_in = answer.result.dispatch[:3], answer.result.report_sha256
        return drafts.hygiene_evidence(ctx, "split", problems, number, refused, report_sha256=handed_in)
    changes = (change for task in tasks for change in (*task.files, *task.test_files))
    if (stop := drafts.unloadable(ctx, changes)) is not None:
        return stop
    every = (*proofs, *tasks)
    names = redraft(ctx.run, {task_file(task.id): task_md(task) for task in every})
    return Event(
        signal=Signal.DRAFTED,
        tasks=drafts.in_order(ctx, every, (*proved, *map(partial(drafts.new_task, ctx), tasks))),
        note=counted(len(every), "task") + _outside(ctx, tasks),
        evidence=(*names, answer.evidence),
    )


def _outside(ctx: Context, tasks: tuple[Task, ...]) -> str:
    """Return in words which files of a first split the plan does not name; what a fix needs is known only then."""
    found = [] if ctx.state.fixing else [path for _, path in reviews.outside_plan(ctx, tasks)]
    return f"; not in the plan: {few(found, _SHOWN)}" if found else ""


def _taken(
    ctx: Context, signal: Signal, tasks: tuple[Task, ...], how: str, specs: tuple[NewTask, ...] | None = None
) -> Event:
    """Return the event of tasks that are there already, so that nobody is asked."""
    names = redraft(ctx.run, {task_file(task.id): task_md(task) for task in tasks})
    new = drafts.new_tasks(ctx, tasks) if specs is None else specs
    return Event(signal=signal, tasks=new, note=f"{counted(len(tasks), 'task')}, {how}", evidence=tuple(names))


def _refused(ctx: Context, report: Report, after: int) -> Malformed | None:
    tasks = drafts.tasks_of(ctx, as_form(report, SplitReport), after=after)
    return tasks if isinstance(tasks, Malformed) else None


def _came_back(ctx: Context) -> list[str]:
    """Return the task files that this draft is a revision of: those that hygiene refused, or that were not done."""
    if ctx.lane.via is None:
        return []
    refused = [name for name in ctx.handover() if name.startswith(drafts.REFUSED)]
    drafted = [line for line in ctx.run.journal.of(DecisionMade) if line.data.row in drafts.CUT]
    if refused or not drafted:
        return refused
    settled = {task_file(t.id) for t in ctx.state.tasks.values() if t.status in SETTLED}
    names = (name for name in drafted[-1].data.evidence if name.startswith("task-") and name not in settled)
    return [name for name in names if ctx.path(name).exists()]


async def review(ctx: Context) -> Event:
    """Return the review's signal, with the open blockers on record; NOT_ASKED where the recipe has no reviewer."""
    if ctx.state.phases.passes(ctx.lane.step):
        return Event(signal=Signal.NOT_ASKED)
    review = reviews.Review(ctx)
    artifacts = reviews.review_artifacts(ctx, review)
    artifacts |= reviews.task_artifacts(ctx, review, {name: ctx.task(name) for name in ctx.state.queue})
    artifacts |= review.changes("\n".join(ctx.read(f"task-{name}.md") for name in ctx.state.queue))
    accept = reviews.both(review.forgotten, partial(reviews.unfounded, review))
    asked = review.request(Role.CHECK, "review-split", ctx.state.head, artifacts, accept=accept)
    answer = await ask(ctx, asked)
    if isinstance(answer, Event):
        return answer
    check = answer.form(CheckReview)
    reviewed = signal_of_report.review_draft(review.ledger, review.number, check)
    return reviews.event_of(reviewed, review.record(reviewed, check, None, ctx.state.head))
