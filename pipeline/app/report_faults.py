"""Holds a person's report against what only the run knows before it is handed in: behind it a try would be lost.

A draft is held against the rules for drafts, as the run does behind it (matrix 1). Ids of tests are held against the
suite: the tests of the run's start are known; those that were written since are not, until they are measured. So an id
is told only where its own name stands in no file at the desk, or where several tests of files that nobody changed end
in it. A name can be made while tests are collected: handed in once more, the same report goes to the run, which
measures it.
"""

from __future__ import annotations

from difflib import get_close_matches
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, cast

from pipeline.agents.backends.layout import Difference
from pipeline.app.answer import resting_context
from pipeline.errors import UserError
from pipeline.judge.evidence.observation import Observation
from pipeline.judge.evidence.written_ids import meant, own_name, words_of, wrong
from pipeline.judge.reports.decode import Malformed, pointer_of
from pipeline.judge.reports.drafts import PlanAndTasks, PlanReport, SplitReport
from pipeline.judge.reports.problems import Problem, Weight
from pipeline.judge.reports.schema_errors import Fault
from pipeline.repo import Repository
from pipeline.run.run import Run
from pipeline.steps.asking.criteria import named_ids
from pipeline.steps.asking.drafts import lint_tasks, tasks_of, tasks_of_plan
from pipeline.steps.context import Context
from pipeline.steps.plan import linted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pipeline.agents.backends.desk import Asked, Desk
    from pipeline.judge.reports.tasks import Task
    from pipeline.judge.reports.work_reports import ReadyTests

    Place = tuple[str | int, ...]

_PATHS: Final = frozenset({"path", "from"})


def draft_faults(
    asked: Asked, content: Mapping[str, Any], report: PlanReport | PlanAndTasks | SplitReport
) -> list[Fault]:
    """Return what the run would send a plan or a split back for; none where no run asks for one.

    Args:
        asked: What is asked.
        content: The report as it was written.
        report: The same, parsed.
    """
    if report.question:
        return []
    try:
        run = Run.load(asked.run_folder, driving=False)
    except UserError:  # a trial is no run; what is wrong with one is told by the command that drives it
        return []
    if asked.dispatch not in {record.dispatch for record in run.records.values()}:
        return []
    repository = Repository.find(asked.run_folder.parents[1])
    ctx = resting_context(Context, repository, run)
    tasks = tasks_of(ctx, report) if isinstance(report, SplitReport) else tasks_of_plan(ctx, report)
    if isinstance(tasks, Malformed):
        return [Fault("/task/depends_on" if "task" in content else tasks.pointer, tasks.sentence)]
    is_split = isinstance(report, SplitReport)
    text, problems = ("", lint_tasks(ctx, tasks)) if is_split else linted(ctx, report, tasks, 1)
    return [
        Fault(_place(content, problem, text.split("\n"), tasks), f"{problem.message} ({problem.rule}).")
        for problem in problems
        if problem.severity is Weight.ERROR
    ]


def _place(content: Mapping[str, Any], problem: Problem, lines: Sequence[str], tasks: Sequence[Task]) -> str:
    """Return where in a report the words are that a problem is about, as far as it can be told."""
    for number, task in enumerate(tasks):
        if problem.message.startswith(f"task {task.id}: "):
            place: Place = ("tasks", number) if "tasks" in content else ("task",)
            inside = content["tasks"][number] if "tasks" in content else content["task"]
            return pointer_of((*place, *_longest(inside, problem.message, paths=True)))
    line = lines[problem.line - 1] if problem.line <= len(lines) else ""
    return pointer_of(_longest(content, problem.message, paths=True) or _longest(content, line, paths=False))


def _longest(content: object, words: str, *, paths: bool) -> Place:
    """Return the place of the longest text of a report that stands in some words."""
    found = ((len(text), place) for place, text in _texts_in(content, ()) if text in words)
    known = [(length, place) for length, place in found if not paths or place[-1] in _PATHS]
    return max(known, key=lambda each: each[0], default=(0, ()))[1]


def _texts_in(content: object, place: Place) -> Iterator[tuple[Place, str]]:
    parts: Iterable[tuple[str | int, object]] = ()
    if isinstance(content, dict):
        parts = cast("dict[str, object]", content).items()
    elif isinstance(content, list):
        parts = enumerate(cast("list[object]", content))
    elif isinstance(content, str) and content.strip():
        yield place, content.strip()
    for key, part in parts:
        yield from _texts_in(part, (*place, key))


_BASELINE: Final = "evidence/baseline-full.json"
_MOST_FILES: Final = 5_000
_NEAR: Final = 3


def id_faults(desk: Desk, asked: Asked, report: ReadyTests) -> list[Fault]:
    """Return what is wrong with the ids of a report on tests, as far as it can be known; nothing the second time.

    Args:
        desk: Where the tests are.
        asked: What is asked there.
        report: What is about to be handed in.
    """
    place = asked.run_folder / _BASELINE
    if not place.exists():
        return []
    suite = Observation.model_validate_json(place.read_bytes())
    difference = Difference.at(desk.files, desk.manifest(), asked.named)
    touched = {*difference.changed, *difference.removed}
    names = named_ids(report, is_changed=bool(touched))
    if suite.collection_errors or not suite.records or not names:
        return []
    kept = {entry: one for entry, one in suite.records.items() if one.path not in touched}
    texts = list(_texts(desk, {PurePosixPath(one.path).suffix for one in suite.records.values()}, difference))
    words = {word for text in texts for word in words_of(text)}
    found: dict[str, Fault] = {}
    for pointer, name in names:
        several, own = len(meant(name, kept)) > 1, own_name(name)
        if name in found or not (why := wrong(name, kept)) or (not several and any(own in text for text in texts)):
            continue
        close = [] if several else get_close_matches(own, words, _NEAR)
        near = f"; names near it in the files here: {', '.join(close)}" if close else ""
        found[name] = Fault(
            pointer,
            f"{name!r}: {why}{near}. Any end of an id that only one test has is enough. If it is right as it is, hand "
            "the same report in again: the run measures it then",
        )
    told = "\n".join(fault.text for fault in found.values())
    if not found or _was_told(desk, told):
        return []
    desk.put(desk.folder / "ids-told", told)
    return list(found.values())


def _was_told(desk: Desk, told: str) -> bool:
    try:
        return (desk.folder / "ids-told").read_text(encoding="utf-8") == told
    except FileNotFoundError:
        return False


def _texts(desk: Desk, endings: set[str], difference: Difference) -> Iterator[str]:
    """Yield the texts in which a test may have its name: sources of tests' languages, and whatever was changed."""
    paths = (path for path in desk.manifest() if PurePosixPath(path).suffix in endings)
    removed = {*difference.removed}
    for path in dict.fromkeys((*difference.changed, *islice(paths, _MOST_FILES))):
        file = desk.files / path
        if path not in removed and file.is_file() and not file.is_symlink():
            yield file.read_text(encoding="utf-8", errors="replace")
