"""A task, the unit of work of one @test and one @make: made from a split report, amended, put into order.

An issue that nobody plans has one task: its criteria with ids, and later what one writer did for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from pipeline.judge.reports import markdown, untrusted_text
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.drafts import SplitReport, SplitTask
from pipeline.judge.reports.fields import Action, Evidence, FileChange, Line, OldTest, StrictModel, Symbol, Symptom

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pipeline.judge.reports.fields import Need

TaskId = Annotated[str, Field(pattern=r"^(fix-)?[1-9][0-9]{0,5}$")]
"""The id of a task: `1`, `2`, ... or `fix-1`, ...; never reused in a run once the task has begun (contract 6)."""

CRITERIA: Final = "Acceptance Criteria"
CODE_CONTEXT: Final = "Code Context"
FILES_TO_MODIFY: Final = "Files to Modify"
TEST_FILE: Final = "Test File"
AMENDMENTS: Final = "Amendments"
TASK_SECTIONS: Final = (
    "Task",
    CRITERIA,
    CODE_CONTEXT,
    FILES_TO_MODIFY,
    TEST_FILE,
    "Tests to Change",
    "Integration Contract",
    "Constraints",
    AMENDMENTS,
)
"""The sections of a task's body in order; grants made later come last."""
MAKING: Final = frozenset({Action.CREATE, Action.RENAME})
"""The actions that create a path."""


class TaskHead(StrictModel):
    """The machine-read part of a task file: its front matter."""

    id: TaskId
    title: Line
    files: tuple[FileChange, ...]
    test_files: tuple[FileChange, ...]
    symbols: tuple[Symbol, ...] = ()
    tests_to_change: tuple[OldTest, ...] = ()
    depends_on: tuple[TaskId, ...] = ()
    evidence: Evidence = Evidence.RED
    symptom: Symptom | None = None


@dataclass(frozen=True)
class Criterion:
    """An acceptance criterion; its id counts from C1 within its task."""

    id: str
    text: str


_ID: Final = re.compile(r"C\d+: *")


def criterion_of(line: str) -> str:
    """Return the text of a criterion: the part after the checkbox and the id."""
    text = line.partition("]")[2].strip()
    found = _ID.match(text)
    return text[found.end() :] if found else text


class Task(TaskHead):
    """A task. `body` is Markdown for agents, kept byte for byte: nothing in it is parsed back but the criteria."""

    body: str = ""

    @property
    def acceptance_criteria(self) -> tuple[str, ...]:
        """Return the texts of the checkboxes below "Acceptance Criteria"."""
        lines = (line.text.strip() for line in markdown.parse(self.body).section(CRITERIA))
        return tuple(criterion_of(line) for line in lines if line[:5] in {"- [ ]", "- [x]", "- [X]"})

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """Return the criteria with ids by position; a person who adds or drops one need not number them."""
        return tuple(Criterion(id=f"C{n}", text=text) for n, text in enumerate(self.acceptance_criteria, 1))


def tasks_from_split(report: SplitReport, ids: Iterable[str]) -> tuple[Task, ...] | Malformed:
    """Return the tasks of a split, each with the next of `ids` and its rendered body.

    `depends_on` counts from 1 in the report's list; an unknown number, the task itself or a cycle is Malformed.

    Raises:
        ValueError: `ids` has fewer ids than the report has tasks.
    """
    named = [id_ for id_, _ in zip(ids, report.tasks, strict=False)]
    if len(named) != len(report.tasks):
        raise ValueError(f"{len(report.tasks)} tasks, but {len(named)} ids")
    for index, task in enumerate(report.tasks):
        pointer = f"/tasks/{index}/depends_on"
        for number in task.depends_on:
            if not 1 <= number <= len(named):
                return _bad_dependency(pointer, f"there is no task {number}, accepted are 1 to {len(named)}")
            if number == index + 1:
                return _bad_dependency(pointer, f"task {number} depends on itself, accepted are other tasks")
    tasks = tuple(_task(task, id_, named) for task, id_ in zip(report.tasks, named, strict=True))
    if len(execution_order(tasks)) < len(tasks):
        left = set(named) - {task.id for task in execution_order(tasks)}
        index = next(index for index, id_ in enumerate(named) if id_ in left)
        return _bad_dependency(
            f"/tasks/{index}/depends_on",
            "the dependencies form a cycle, accepted is an order in which tasks can be done",
        )
    return tasks


def execution_order(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Return the tasks with dependencies first, otherwise in list order; those in a cycle are left out.

    A dependency outside the list counts as done.
    """
    waiting = list(tasks)
    inside = {task.id for task in tasks}
    done: list[Task] = []
    while True:
        finished = {task.id for task in done}
        ready = next((task for task in waiting if set(task.depends_on) & inside <= finished), None)
        if ready is None:
            return tuple(done)
        waiting.remove(ready)
        done.append(ready)


def taken_away(tasks: Sequence[Task]) -> frozenset[str]:
    """Return the production files that are gone when these tasks are done."""
    changes = [change for task in tasks for change in task.files]
    gone = {change.path for change in changes if change.action is Action.DELETE}
    return frozenset(gone | {change.origin for change in changes if change.origin is not None})


def moves_tests(task: TaskHead) -> bool:
    """Return whether the task renames test files."""
    return any(change.action is Action.RENAME for change in task.test_files)


def brings_tests(task: TaskHead) -> bool:
    """Return whether the task names test files to be written, and nobody but @test may: it is asked for them."""
    written = {change.action for change in task.test_files} - {Action.DELETE}
    return Action.CREATE in written or (bool(written) and not task.files)


def adds_tests(task: TaskHead) -> bool:
    """Return whether tests that pass over the code as it is are what the task wants: it changes no behaviour."""
    return not task.files or task.evidence is Evidence.REGRESSION


def amend_task(task: Task, granted: Iterable[Need], why: str, *, is_test: Callable[[str], bool]) -> Task:
    """Return the task with the granted paths added (matrix 3), each with a line in its body.

    A path that the task already names gets the granted action instead of its own.
    """
    files = {change.path: change for change in task.files}
    test_files = {change.path: change for change in task.test_files}
    lines: list[str] = []
    for need in granted:
        lines.append(f"- `{need.path}` ({need.action}): {untrusted_text.one_line(need.why or why)}")
        named = test_files if is_test(need.path) else files
        named[need.path] = FileChange(path=need.path, action=Action(need.action))
    return _amended(task, lines, files=tuple(files.values()), test_files=tuple(test_files.values()))


def amend_tests(task: Task, tests: Iterable[OldTest], files: Iterable[str]) -> Task:
    """Return the task with permission to change these old tests in `files` (matrix 3: `tests_to_change`)."""
    listed = {test.id: test for test in task.tests_to_change}
    added = [test for test in tests if test.id not in listed or listed[test.id].is_text_only]
    kept = [test for test in task.tests_to_change if test.id not in {one.id for one in added}]
    test_files = {change.path: change for change in task.test_files}
    for path in files:
        test_files.setdefault(path, FileChange(path=path, action=Action.MODIFY))
    lines = [f"- test `{test.id}` may change: {untrusted_text.one_line(test.reason)}" for test in added]
    return _amended(task, lines, tests_to_change=(*kept, *added), test_files=tuple(test_files.values()))


def _amended(task: Task, lines: list[str], **update: object) -> Task:
    if not lines:
        return task
    heading = "" if f"\n## {AMENDMENTS}\n" in task.body else f"\n## {AMENDMENTS}\n\n"
    return task.model_copy(update={**update, "body": task.body + heading + "\n".join(lines) + "\n"})


def _bad_dependency(pointer: str, what: str) -> Malformed:
    return Malformed(f"At {pointer}: {what}.", pointer)


def _task(task: SplitTask, id_: str, ids: Sequence[str] = ()) -> Task:
    return Task(
        id=id_,
        title=task.title,
        files=task.files,
        test_files=task.test_files,
        symbols=task.symbols,
        tests_to_change=task.tests_to_change,
        depends_on=tuple(dict.fromkeys(ids[number - 1] for number in task.depends_on)),
        evidence=task.evidence,
        symptom=task.symptom,
        body=body_of(task, id_),
    )


def body_of(task: SplitTask, id_: str) -> str:
    """Return the Markdown body of a task, section by section."""
    context = "\n\n".join(
        f"`{snippet.path}`:\n\n{untrusted_text.fenced(snippet.snippet)}" for snippet in task.code_context
    )
    criteria = filter(None, map(untrusted_text.one_line, task.acceptance_criteria))
    bodies = (
        untrusted_text.block(task.description) or untrusted_text.one_line(task.title),
        markdown.bullets((f"C{n}: {text}" for n, text in enumerate(criteria, 1)), "- [ ]"),
        context,
        markdown.bullets(_file_line(change) for change in task.files),
        markdown.bullets(_file_line(change) for change in task.test_files),
        markdown.bullets(f"`{test.id}`: {test.reason}" for test in task.tests_to_change),
        untrusted_text.block(task.integration_contract),
        markdown.bullets(task.constraints),
        "",
    )
    head = f"# Task {id_}: {untrusted_text.one_line(task.title)}\n"
    return head + markdown.sections(*zip(TASK_SECTIONS, bodies, strict=True))


def _file_line(change: FileChange) -> str:
    origin = f" from `{change.origin}`" if change.origin else ""
    action = "" if change.action == Action.MODIFY else f" ({change.action})"
    return f"`{change.path}`{action}{origin}"


ONLY: Final = "1"
"""The id of the task: an issue has one."""
_CRITERIA: Final = "acceptance criteria"
_ITEM: Final = re.compile(r"\s{0,3}(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>.*\S)")
_BOX: Final = re.compile(r"\s*[-*+]\s+\[[ xX]\]\s+\S")
_LONGEST: Final = 300


def task_of_issue(title: str, body: str) -> Task:
    """Return the task of an issue before anybody worked on it: what has to hold, by the issue's own words.

    Criteria are the items below "Acceptance criteria", else all checkboxes, else the title.
    """
    criteria = tuple(_criteria(body)) or (title,)
    return _task(SplitTask(title=title[:_LONGEST], acceptance_criteria=criteria, files=(), test_files=()), ONLY)


def task_as_done(
    task: Task,
    files: tuple[FileChange, ...],
    test_files: tuple[FileChange, ...],
    symbols: tuple[Symbol, ...],
    tests_to_change: tuple[OldTest, ...],
) -> Task:
    """Return the task with what came of it: its files by side, the names that are new, the old tests that change."""
    done = SplitTask(
        title=task.title,
        acceptance_criteria=task.acceptance_criteria,
        files=files,
        test_files=test_files,
        symbols=symbols,
        tests_to_change=tests_to_change,
    )
    return _task(done, ONLY)


def _criteria(body: str) -> Iterator[str]:
    lines = markdown.parse(body).prose
    own = [one.text for one in lines if one.section.rstrip(": ").casefold() == _CRITERIA and not one.is_heading]
    named = any(_ITEM.fullmatch(line) for line in own)
    found: list[str] = []
    is_open = False
    for line in own if named else [one.text for one in lines]:
        item = _ITEM.fullmatch(line) if named or _BOX.match(line) else None
        if item is not None:
            found.append(item["text"])
        elif is_open and line.strip() and line[:1].isspace():  # the item goes on
            found[-1] = f"{found[-1]} {line.strip()}"
        is_open = item is not None or (is_open and bool(line.strip()) and line[:1].isspace())
    yield from found
