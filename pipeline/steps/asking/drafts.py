"""Shares what PLAN and SPLIT need: the artifacts of a draft, its tasks and their ids, what our code finds wrong."""

from __future__ import annotations

import re
import shlex
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from pipeline.agents.dispatch.results import refusal_of
from pipeline.config.commits import misfits
from pipeline.judge.evidence.named_tests import called
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.drafts import PlanAndTasks, PlanReport, SplitReport
from pipeline.judge.reports.fields import Action, Evidence, FileChange
from pipeline.judge.reports.hygiene import lint_split, lint_task
from pipeline.judge.reports.markdown import bullets
from pipeline.judge.reports.problems import Problem, misplaced
from pipeline.judge.reports.taskfile import task_md
from pipeline.judge.reports.tasks import MAKING, Task, brings_tests, moves_tests, tasks_from_split
from pipeline.matrix.routing.lookup import told_why, why_unusable
from pipeline.matrix.routing.matrix import MAX_FIX_TASKS, MAX_TASKS
from pipeline.matrix.routing.state import Event, NewTask, RunState
from pipeline.matrix.routing.state_changes import SETTLED
from pipeline.matrix.scheduling import graph
from pipeline.matrix.scheduling.patterns import of_file
from pipeline.repo import GITLINK
from pipeline.run import plans
from pipeline.steps.asking.questions import answers
from pipeline.steps.evidence_records import baseline_of, by_their_names, known_tests
from pipeline.steps.wanted_stubs import scaffolds, wants_stubs, wants_stubs_in
from pipeline.testing.languages import names
from pipeline.testing.measure.baseline import why_unloadable
from pipeline.testing.measure.composed_trees import shares_file
from pipeline.vocabulary import Loop, Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from pipeline.steps.context import Context


REFUSED: Final = "drafts/"
"""Where task files lie that hygiene refused: nobody but the next draft is given them."""


def draft_artifacts(ctx: Context) -> dict[str, list[Path]]:
    """Return the artifacts of a draft: the issue, and what the decision that led here was based on.

    A person's feedback is an artifact of its own name; everything else that sends a draft back is `findings`.
    """
    artifacts = {"issue": [ctx.path("issue.md")], **answers(ctx)}
    if ctx.lane.via is not None:
        what = "feedback" if ctx.lane.via is Loop.HUMAN else "findings"
        artifacts[what] = [ctx.path(name) for name in ctx.handed_words() if not name.startswith(REFUSED)]
    return artifacts


def hygiene_evidence(
    ctx: Context,
    what: str,
    problems: Sequence[Problem],
    number: str,
    drafts: Sequence[str] = (),
    *,
    report_sha256: str | None,
) -> Event:
    """Return HYGIENE with the problems as an artifact: rule, line, sentence; `drafts` are what they were found in.

    `number` tells the file from those of other drafts; `report_sha256` is of what was handed in, None of what was not.
    """
    lines = bullets(f"{p.severity} {p.rule}, line {p.line}: {p.message}" for p in problems)
    text = f"# Dispatch hygiene: this {what} cannot be handed to anybody yet\n\n{lines}\n"
    name = ctx.write(f"reviews/hygiene-{what}-{number}.md", text)
    first = next((p for p in problems if p.severity == "error"), problems[0])
    refusal = refusal_of(report_sha256, text) if report_sha256 is not None else None
    why = why_unusable(ctx.state, None, Signal.HYGIENE, refusal)
    note = told_why(why, f"{first.rule}: {first.message}", Signal.HYGIENE)
    return Event(signal=Signal.HYGIENE, note=note, evidence=(name, *drafts), refusal=refusal)


def planned_files(ctx: Context) -> frozenset[str]:
    """Return the files of the plan; none where nobody plans."""
    return frozenset() if ctx.state.one_writer else frozenset(file.path for file in plans.planned(ctx.run).files)


def as_given(ctx: Context) -> PlanAndTasks | None:
    """Return the plan that the recipe brings along, where it is what counts here: nothing has come back yet."""
    return plans.as_given(ctx.run) if ctx.lane.via is None else None


_LINK: Final = "120000"
_UNTRUE: Final = frozenset({"H007", "H008", "H016"})
"""What is said of a path as if it were a place of its own: not said of one that is none."""


def lint_places(ctx: Context, changes: Iterable[FileChange], asked: Collection[str] = ()) -> list[tuple[str, Problem]]:
    """Return what is wrong with the places of a draft's files, by the path.

    Of one place one thing is said: a path behind a link is none of its own, whatever else is wrong with it. Of the
    paths in `asked` git was asked already: they are looked at for links and twins only.
    """
    changes = tuple(changes)
    entries = ctx.repository.entries(ctx.state.head)
    links = {entry.path: entry.oid for entry in entries if entry.mode == _LINK}
    existing = {entry.path for entry in entries}

    def target(link: str) -> str:
        return (ctx.repository.blob(links[link]) or b"").decode(errors="surrogateescape")

    submodules = {entry.path for entry in entries if entry.mode == GITLINK}
    found = list(dict.fromkeys(misplaced(changes, existing, links, target, submodules)))
    wrong = {path for path, _ in found}
    paths = [path for path in dict.fromkeys(change.path for change in changes) if path not in {*wrong, *asked}]
    return [*found, *_filtered(ctx, paths), *_private(ctx, paths)] if paths else found


def true_of(problems: Iterable[Problem], places: Iterable[tuple[str, Problem]]) -> list[Problem]:
    """Return the problems without those that take a misplaced path for a place of its own."""
    starts = tuple(f"{path} " for path, problem in places if problem.rule in {"H023", "H024", "H025"})
    return [one for one in problems if not (one.rule in _UNTRUE and starts and one.message.startswith(starts))]


def _filtered(ctx: Context, paths: list[str]) -> Iterator[tuple[str, Problem]]:
    """Refuse paths whose content goes through a filter other than the user's LFS."""
    for path, why in ctx.repository.foreign_filters(ctx.checkout.tree, paths).items():
        way = "Leave it to a person and plan without it, or say in the plan that the issue cannot be done here"
        yield path, Problem(1, "H015", f"{path} {why}. {way}")


def _private(ctx: Context, paths: list[str]) -> Iterator[tuple[str, Problem]]:
    """Refuse new files where the user has one that git does not know: publication would never overwrite it."""
    if ctx.repository.branch() != ctx.run.info.branch:
        return
    for path in paths:
        met = ctx.repository.untracked_at(ctx.state.head, [path])
        if met:
            shown = f"git check-ignore -v -- {shlex.quote(met[0])}"
            why = f"{met[0]} is there in the user's worktree, and git does not know it ({shown}); choose another path"
            yield path, Problem(1, "H021", why)


WITH_PLAN: Final = ("split/ONE_TASK", "split/NOT_ASKED")
"""The rows after which the tasks are those that came with the plan."""
CUT: Final = ("split/DRAFTED", *WITH_PLAN)
"""The rows of the matrix after which there are new tasks."""

_FITTING: Final = 3
_NAMED: Final = re.compile(r"\btasks?[ #-]+((?:fix-)?[1-9][0-9]{0,5})\b(?![.-]\d)", re.IGNORECASE)
"""A task that prose names by its id; ids look like this and like nothing else that is told of a task."""


def tasks_of(ctx: Context, report: SplitReport, *, after: int = 0) -> tuple[Task, ...] | Malformed:
    """Return the tasks of a split with the next ids, or what is wrong with how they depend on each other.

    The first of the ids, *after*, are those of tasks that nobody drafts.
    """
    tasks = tuple(
        task.model_copy(update={"tests_to_change": by_their_names(ctx, task.tests_to_change)}) for task in report.tasks
    )
    return tasks_from_split(report.model_copy(update={"tasks": tasks}), next_ids(ctx, len(tasks), after=after))


def tasks_of_plan(ctx: Context, plan: PlanReport | PlanAndTasks) -> tuple[Task, ...] | Malformed:
    """Return the tasks that came with a plan: all, or its one; none where a person wants to see the split."""
    if isinstance(plan, PlanAndTasks):
        return tasks_of(ctx, SplitReport(tasks=plan.tasks))
    if plan.task is None or not may_bring_a_task(ctx.state):
        return ()
    return tasks_of(ctx, SplitReport(tasks=(plan.task,)))


def tasks_of_planned(ctx: Context) -> tuple[Task, ...]:
    """Return the tasks that came with the plan that counts."""
    return accepted(tasks_of_plan(ctx, plans.planned(ctx.run)))


def may_bring_a_task(state: RunState) -> bool:
    """Return whether the task of a plan counts: not where a person looks at plan or split, who sees a split."""
    return not {"plan", "split"} & state.gates


def accepted(found: tuple[Task, ...] | Malformed) -> tuple[Task, ...]:
    """Return the tasks of a report that was accepted; a malformed one was asked again.

    Raises:
        TypeError: it is malformed all the same.
    """
    if isinstance(found, Malformed):
        raise TypeError(f"an accepted draft is malformed: {found.sentence}")
    return found


def next_ids(ctx: Context, count: int, *, after: int = 0) -> list[str]:
    """Return the next task ids; that of a task which has begun is never used again (contract 6), others are kept.

    The first of them, *after*, are those of tasks that nobody drafts.
    """
    prefix = "fix-" if ctx.state.fixing else ""
    begun = [task.id for task in ctx.state.tasks.values() if task.start is not None or task.status in SETTLED]
    used = [task for task in begun if task.startswith("fix-") == bool(prefix)]
    first = max((int(task.removeprefix("fix-")) for task in used), default=0) + 1 + after
    return [f"{prefix}{number}" for number in range(first, first + count)]


def ids_line(ctx: Context, *, after: int = 0) -> str:
    """Return what a drafter is told of the ids that its tasks get."""
    ids = f"Your tasks get the ids {', '.join(next_ids(ctx, 3, after=after))} ..., in the order of your list."
    return f"{ids} In words call them, and tasks that are done, by their ids; only depends_on counts from 1."


def new_task(ctx: Context, task: Task) -> NewTask:
    """Return what routing knows of the task.

    A fix task without production files answers a finding on tests: its RED is measured with the production of the start
    (matrix 4). Where tests are to be written, change, go or move, @test is asked, whatever the evidence: nobody else
    may touch them.
    """
    only_tests = ctx.state.fixing and not task.files
    return NewTask(
        id=task.id,
        title=task.title,
        evidence="red" if task.tests_to_change or moves_tests(task) or brings_tests(task) else task.evidence.value,
        depends_on=task.depends_on,
        red_base="start" if only_tests and task.evidence is Evidence.RED else None,
        stub_first=task.evidence is Evidence.RED and wants_stubs(ctx, task),
    )


def new_tasks(ctx: Context, tasks: tuple[Task, ...]) -> tuple[NewTask, ...]:
    """Return what routing knows of all of them."""
    return in_order(ctx, tasks, tuple(new_task(ctx, task) for task in tasks))


def in_order(ctx: Context, tasks: tuple[Task, ...], specs: tuple[NewTask, ...]) -> tuple[NewTask, ...]:
    """Return what routing knows of tasks with which of them must not be worked on side by side, if any may."""
    if ctx.state.parallel == 1:
        return specs
    own = {task.id for task in tasks}
    steps = [
        graph.Step(
            task.id,
            tuple(name for name in task.depends_on if name in own),
            graph.Posture.ISOLATED,
            writes=tuple(map(of_file, dict.fromkeys(path for path in _paths(task) if path))),
        )
        for task in tasks
    ]
    after = graph.planned(steps, side_by_side=ctx.state.parallel).after
    return tuple(new.model_copy(update={"after": tuple(each.earlier for each in after[new.id])}) for new in specs)


def _paths(task: Task) -> Iterator[str | None]:
    """Yield the files that a task may change, by what its file says, each with where it comes from."""
    for change in (*task.files, *task.test_files):
        yield from (change.path, change.origin)


def lint_tasks(ctx: Context, tasks: tuple[Task, ...]) -> list[Problem]:
    """Return what is wrong with tasks that nobody was given yet."""
    named = [
        Problem(p.line, p.rule, f"task {name}: {p.message}", p.severity) for name, p in lint_each(ctx, tasks, task_md)
    ]
    return [*lint_together(ctx, tasks), *named]


def unloadable(ctx: Context, changes: Iterable[FileChange]) -> Event | None:
    """Return BASELINE_IMPOSSIBLE if tests that a draft names could not be loaded before any change."""
    named = tuple(changes)
    made = (change.path for change in named if change.action in MAKING)
    why = why_unloadable(baseline_of(ctx), (change.path for change in named), made)
    return None if why is None else Event(signal=Signal.BASELINE_IMPOSSIBLE, note=why)


def lint_together(ctx: Context, tasks: tuple[Task, ...]) -> list[Problem]:
    """Return what is wrong between tasks; the line is the task's place in the list, from 1."""
    most = ctx.config.limits.max_fix_tasks if ctx.state.fixing else ctx.config.limits.max_tasks
    problems = list(lint_split(tasks, names, max_tasks=min(most, MAX_FIX_TASKS if ctx.state.fixing else MAX_TASKS)))
    if ctx.state.fixing:  # a finding on tests alone names no production file
        problems = [p for p in problems if "names no file" not in p.message]
    return problems


def lint_each(ctx: Context, tasks: tuple[Task, ...], text_of: Callable[[Task], str]) -> Iterator[tuple[str, Problem]]:
    """Yield what is wrong with each task, by its id; `text_of` returns its file's text, which the lines count in."""
    existing = {entry.path for entry in ctx.repository.entries(ctx.state.head)}
    baseline = baseline_of(ctx)
    layout = baseline.layout
    nowhere_yet = not layout.collected and not layout.testpaths

    def is_test_path(path: str) -> bool:
        if layout.is_test_side(path) or ctx.toolchain.is_test_path(path, baseline):
            return True
        return nowhere_yet and names.is_plausible(path)

    places = lint_places(ctx, (change for task in tasks for change in (*task.files, *task.test_files)))
    for task in tasks:
        found = [
            *lint_task(text_of(task), task, existing=existing, names=names, test_path=is_test_path),
            *_unscaffolded(ctx, task, existing),
        ]
        yield from ((task.id, problem) for problem in true_of(found, places))
        for change in (*task.files, *task.test_files):
            existing.discard(change.origin or "")
            if change.action in MAKING:
                existing.add(change.path)
            if change.action == Action.DELETE:
                existing.discard(change.path)
    owner = {path: task.id for task in tasks for path in _paths(task) if path}
    yield from ((owner[path], problem) for path, problem in places)
    for task in tasks:
        for subject in misfits(ctx.config.commits, ctx.issue, (task.title,))[:1]:
            said = f"[commits] pattern {ctx.config.commits.pattern!r} refuses the subject {subject!r}: change the title"
            yield task.id, Problem(1, "H022", said)
    yield from _misnamed(ctx, tasks, text_of)
    yield from _unknown_tests(ctx, tasks)


def _unknown_tests(ctx: Context, tasks: tuple[Task, ...]) -> Iterator[tuple[str, Problem]]:
    """Refuse old tests that nobody knows: leave to change them would be leave for nothing."""
    listed = [(task, test.id) for task in tasks for test in task.tests_to_change]
    if not listed:
        return
    records = known_tests(ctx)
    files = {record.path for record in records.values()}
    there = {entry.path for entry in ctx.repository.entries(ctx.state.head)}
    for task, name in listed:
        file = name.partition("::")[0]
        fitting = called(name, records)
        if name in files or fitting == (name,) or (file in there and file not in files):
            continue
        meant = fitting or tuple(get_close_matches(name, (record.function for record in records.values())))
        hint = f"; {'these fit' if fitting else 'nearest are'} {', '.join(meant[:_FITTING])}" if meant else ""
        yield task.id, Problem(1, "H019", f"no test is called {name}{hint}")


def _misnamed(ctx: Context, tasks: tuple[Task, ...], text_of: Callable[[Task], str]) -> Iterator[tuple[str, Problem]]:
    """Refuse prose about a task that there was and is not now: the drafter counted its list, or kept old words."""
    done = {task.id for task in ctx.state.tasks.values() if task.status in SETTLED}
    known = {*done, *(task.id for task in tasks)}
    for task in tasks:
        for number, line in enumerate(text_of(task).split("\n"), start=1):
            for found in _NAMED.findall(line):
                if found not in known and found in ctx.state.tasks:
                    now = f"those of this list are {', '.join(one.id for one in tasks)}"
                    was = f", done are {', '.join(sorted(done))}" if done else ""
                    why = f"it speaks of task {found}, which is none any more; {now}{was}"
                    yield task.id, Problem(number, "H017", why)


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
