"""Writes recipes: of a run that was made, of a skill or a prompt, or a first one to change."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from pipeline.app.recipe_files import BUILTIN, FOLDER, Origin, RecipeFile, files_here
from pipeline.config.user_folders import config_folder, short
from pipeline.errors import UserError
from pipeline.judge.reports.drafts import PlanAndTasks, SplitReport, SplitTask
from pipeline.judge.reports.edited import plan_reread, task_reread
from pipeline.judge.reports.markdown import front_matter_end
from pipeline.judge.reports.taskfile import parse_task_md
from pipeline.judge.reports.tasks import Task
from pipeline.matrix.recipes.check import checked_source
from pipeline.matrix.recipes.model import SLUG, Recipe
from pipeline.matrix.recipes.reading import LARGEST, Problem
from pipeline.matrix.recipes.saving import Marker, document_text, recipe_text, unclear, with_inputs
from pipeline.matrix.recipes.templates import literal
from pipeline.matrix.routing.state import TaskState, TaskStatus
from pipeline.outcomes import Reason
from pipeline.run.drafts import PLAN, counted, task_file
from pipeline.run.files import to_json, write_atomic
from pipeline.run.plans import kept_recipe, planned
from pipeline.run.recipe_run import RecipeRun
from pipeline.run.records import is_of_recipe
from pipeline.run.run import Decided, Run
from pipeline.run.runs_of_repository import Roster
from pipeline.trees import read_regular
from pipeline.vocabulary import Step
from pipeline.yaml_text import YamlError, read, text_or_null

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipeline.repo import Repository
    from pipeline.run.info import RecipeFacts


_ISSUE: Final = f"{BUILTIN}issue"


def issue_recipe_text(
    run: Run, name: str, wanted: Mapping[str, str]
) -> tuple[str, Mapping[str, list[str]], tuple[Problem, ...]]:
    """Return the text of a recipe that goes the way of a run with its plan and tasks, where the inputs stood, problems.

    Args:
        run: The run of an issue.
        name: What the recipe is called.
        wanted: The value that shall become an input, by the name of the input.

    Raises:
        UserError: the run has no plan with tasks.
    """
    wrong = tuple(unclear(wanted))
    if wrong:
        return "", {}, wrong
    base = kept_recipe(run)[0] if run.info.recipe else None
    step = next((one.id for one in base.steps if one.phase == "plan"), "plan") if base is not None else "plan"
    marker = Marker(wanted)
    given = marker.value("plan", _given(run))
    there = {one.name for one in base.inputs} if base is not None else {"issue"}
    inputs = [{"name": one, "required": True} for one in wanted if one not in there]
    document: dict[str, object] = {"name": name, "extends": _extended(run.info.recipe)}
    document |= {"inputs": inputs} if inputs else {}
    document["edits"] = [{"change": step, "set": {"given": given}}]
    return document_text(document), marker.places, tuple(marker.problems())


def _extended(facts: RecipeFacts | None) -> str:
    """Return how the recipe of a run is named by another one."""
    if facts is None:
        return _ISSUE
    return facts.path if facts.path.startswith(BUILTIN) else facts.name


def _given(run: Run) -> dict[str, Any]:
    """Return plan and tasks as they were drafted and edited, with the files and tests that the tasks came to."""
    tasks = [task for task in run.state.tasks.values() if not task.fix and task.status is not TaskStatus.DROPPED]
    drafts = _drafts(run)
    if not tasks or any(task.id not in drafts for task in tasks):
        raise UserError(
            f"{run.info.run_id} has no plan with tasks yet, so there is nothing of it to be run again.", Reason.USAGE
        )
    numbers = {task.id: number for number, task in enumerate(tasks, 1)}
    plan = planned(run)
    said = {key: getattr(plan, key) for key in type(plan).model_fields if key not in {"task", "tasks", "out_of_scope"}}
    said |= plan_reread(text, plan) if (text := _text(run, PLAN)) else {}
    whole = PlanAndTasks(**said, tasks=tuple(_as_it_came(run, task, drafts[task.id], numbers) for task in tasks))
    return whole.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _as_it_came(run: Run, task: TaskState, draft: SplitTask, numbers: Mapping[str, int]) -> SplitTask:
    """Return a task as it was drafted, with what people and amendments have made of it."""
    found = parse_task_md(_text(run, task_file(task.id)))
    now = task_reread(found, draft) if isinstance(found, Task) else {}
    above = tuple(numbers[name] for name in task.spec.depends_on if name in numbers)
    return draft.model_copy(update={**now, "depends_on": above})


def _text(run: Run, name: str) -> str:
    """Return a draft as it counts: with what a person made of it at its gate."""
    return (counted(run, name) or b"").decode("utf-8", errors="replace")


def _drafts(run: Run) -> dict[str, SplitTask]:
    """Return each task as it was drafted, by its id."""
    found: dict[str, SplitTask] = {}
    for decided in run.history:
        if decided.decision.step is Step.SPLIT and decided.event.tasks:
            names = [task.id for task in decided.event.tasks]
            found |= dict(zip(names, _tasks_of(run, decided), strict=False))
    return found


def _tasks_of(run: Run, decided: Decided) -> tuple[SplitTask, ...]:
    visit = decided.decision.visit
    for record in run.records.values():
        if record.visit == visit and record.step == Step.SPLIT.value and record.dispatch in run.results:
            result = run.results[record.dispatch]
            if result.signal is None:
                return SplitReport.model_validate_json(to_json(result.report, pretty=False)).tasks
    plan = planned(run, visit)
    return plan.tasks if isinstance(plan, PlanAndTasks) else (plan.task,) if plan.task is not None else ()


_TEMPLATE: Final = """\
name: {name}
description: What comes of it, in a line.
inputs:
  - {{name: topic, required: true, description: What it is about.}}
steps:
  # A step is asked of a role: check, simplify and explore read, make writes within its write_set.
  - id: look
    agent: explore
    prompt: "Find out about {{{{inputs.topic}}}}. Quote what each finding rests on."
    payload: findings.v1 # what it has to hand over; or a JSON Schema of your own
  # It sees the steps that it depends on, and no others.
  - id: doubt
    agent: check
    depends_on: [look]
    prompt: "Which of these findings lack evidence? {{{{steps.look.output}}}}"
output: "{{{{steps.doubt.output}}}}"
"""
_ARGUMENTS: Final = "$ARGUMENTS"
"""How the prompts of other products name what they are called with."""


@dataclass(frozen=True)
class Place:
    """Where a recipe is to be written.

    Args:
        name: What it is called.
        repository: The repository that somebody stands in, if any.
        theirs: Whether it goes into the repository, and not among the user's.
        force: Whether another file of that name is replaced.
        environ: The user's environment.
    """

    name: str
    repository: Repository | None
    theirs: bool
    force: bool
    environ: Mapping[str, str]

    @property
    def path(self) -> Path:
        """Return the file.

        Raises:
            UserError: it is no name, or there is no repository for it.
        """
        if re.fullmatch(SLUG, self.name) is None:
            raise UserError(
                f"{self.name!r} is no name of a recipe: small letters, digits and - only, and a letter first.",
                Reason.USAGE,
            )
        if not self.theirs:
            return config_folder(self.environ) / "recipes" / f"{self.name}.yaml"
        if self.repository is None:
            raise UserError("There is no repository here to put a recipe into.", Reason.USAGE)
        return self.repository.worktree / FOLDER / f"{self.name}.yaml"


@dataclass(frozen=True)
class Written:
    """A recipe that was written.

    Args:
        name: What it is called.
        path: Where it is.
        inputs: Its inputs.
        places: Where the value of each new input stood.
        notes: What else is to be known.
    """

    name: str
    path: str
    inputs: tuple[str, ...]
    places: Mapping[str, Sequence[str]]
    notes: tuple[str, ...] = ()


def save_run(place: Place, repository: Repository, run: str, wanted: Mapping[str, str]) -> Written:
    """Write the recipe of a run, with inputs for what its texts said, and return what was written.

    Raises:
        UserError: there is no such run; a value cannot be told from the words around it; the file is there.
    """
    folder = Roster(repository).find(run).folder
    if not is_of_recipe(folder):
        text, places, wrong = issue_recipe_text(Run.load(folder, driving=False), place.name, wanted)
        if wrong:
            raise _refused(f"{folder.name} cannot be saved with these inputs", Reason.INPUT_INVALID, wrong)
        return _put(place, text, places)
    made = RecipeRun.load(folder, driving=False)
    recipe, places, wrong = with_inputs(made.recipe, made.inputs, wanted)
    if wrong:
        raise _refused(f"{folder.name} cannot be saved with these inputs", Reason.INPUT_INVALID, wrong)
    named = recipe.model_copy(update={"name": place.name, "version": 1})
    return _put(place, recipe_text(named), places, expected=named)


def new_recipe(place: Place) -> Written:
    """Write a recipe that is to be changed, and return what was written.

    Raises:
        UserError: the file is there.
    """
    return _put(place, _TEMPLATE.format(name=place.name))


def recipe_of_prompt(place: Place, source: Path) -> Written:
    """Write a recipe of one step that asks what a skill or a prompt says, and return what was written.

    Raises:
        UserError: the prompt cannot be read, or says nothing; the file is there.
    """
    head, body = _prompt(source)
    arguments = _ARGUMENTS in body
    prompt = literal(body).replace(_ARGUMENTS, "{{inputs.arguments}}")
    described = {"description": " ".join(str(head["description"]).split())} if head.get("description") else {}
    inputs = {"inputs": [{"name": "arguments", "required": True}]} if arguments else {}
    step = {"id": "ask", "agent": "explore", "prompt": prompt}
    document = {"name": place.name, **described, **inputs, "steps": [step], "output": "{{steps.ask.output}}"}
    return _put(place, document_text(document))


def name_in(source: Path) -> str:
    """Return what a skill or a prompt calls itself, else its file; of a SKILL.md its folder.

    Raises:
        UserError: it cannot be read.
    """
    named = _prompt(source)[0].get("name")
    word = str(named) if named else source.resolve().parent.name if source.stem.upper() == "SKILL" else source.stem
    return re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-")


def _prompt(source: Path) -> tuple[Mapping[str, object], str]:
    """Return the front matter of a skill or a prompt, and what is behind it."""
    shown = str(source)
    try:
        text = read_regular(source.resolve(), LARGEST).decode("utf-8").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UserError(f"{shown} cannot be read: {why or 'it is no file'}.", Reason.USAGE, path=shown) from None
    lines = text.split("\n")
    end = front_matter_end(lines)
    head: Mapping[str, object] = {}
    if end:
        try:
            head = read("\n".join(lines[1:end]), scalar=text_or_null, first_line=2).mapping or {}
        except YamlError as error:
            raise UserError(f"{shown}, line {error.line}: {error.message}.", Reason.USAGE, path=shown) from None
    body = "\n".join(lines[end + 1 :] if end else lines).strip()
    if not body:
        raise UserError(f"{shown} says nothing that could be asked.", Reason.USAGE, path=shown)
    return head, body


def _put(
    place: Place, text: str, places: Mapping[str, Sequence[str]] | None = None, *, expected: Recipe | None = None
) -> Written:
    """Check the text of a recipe, and write it."""
    path = place.path
    shown = short(path, place.environ)
    library = files_here(place.repository, place.environ)
    origin = Origin.REPOSITORY if place.theirs else Origin.USER
    found = checked_source(RecipeFile(place.name, shown, text, origin), library)
    if found.recipe is None:
        raise _refused(
            "Nothing was written, since the recipe would not be sound", Reason.RECIPE_INVALID, found.problems
        )
    if expected is not None and found.recipe != expected:
        raise RuntimeError(f"the text of the recipe {place.name} reads as another one")
    if os.path.lexists(path) and not place.force:
        raise UserError(
            f"{shown} is there already. Nothing was written. --force replaces it.", Reason.USAGE, path=str(path)
        )
    write_atomic(path, text, below=place.repository.worktree if place.theirs and place.repository else None)
    return Written(
        place.name, shown, tuple(one.name for one in found.recipe.inputs), places or {}, _notes(place, shown)
    )


def _notes(place: Place, shown: str) -> tuple[str, ...]:
    """Return what keeps the recipe from being the one that its name means."""
    if place.theirs:
        return ("It counts once it is committed, and is run after redfirst trust.",)
    counts = files_here(place.repository, place.environ).find(place.name)
    if counts is None or counts.path == shown:
        return ()
    return (f"{counts.path} counts before it; name this one by its path: {shown}",)


def _refused(what: str, reason: Reason, problems: Sequence[Problem]) -> UserError:
    lines = "".join(f"\n{problem}" for problem in problems)
    return UserError(
        f"{what}:{lines}",
        reason,
        pointer=problems[0].pointer,
        details={"problems": [asdict(problem) for problem in problems]},
    )
