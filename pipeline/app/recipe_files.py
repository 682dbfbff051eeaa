"""Finds recipes: the program's own, the user's, those of the repository and its skills at a commit; writes some, too.

Of one name the repository's counts, then the user's, then the program's, then a skill's; `builtin:NAME` is exact. What
a checkout or an agent leaves in the worktree is no recipe of the repository before it is committed.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from pipeline.agents.dispatch.roles import data_folder
from pipeline.config.problems import did_you_mean
from pipeline.config.sources import tracker_folder
from pipeline.config.user_folders import config_folder, short
from pipeline.errors import UserError
from pipeline.judge.policy.paths import TRACKER
from pipeline.judge.reports.drafts import PlanAndTasks, SplitReport, SplitTask
from pipeline.judge.reports.edited import plan_reread, task_reread
from pipeline.judge.reports.markdown import front_matter_end
from pipeline.judge.reports.taskfile import parse_task_md
from pipeline.judge.reports.tasks import Task
from pipeline.matrix.recipes.check import Source, checked_source
from pipeline.matrix.recipes.model import SLUG, Recipe
from pipeline.matrix.recipes.reading import LARGEST, Problem
from pipeline.matrix.recipes.saving import Marker, document_text, recipe_text, unclear, with_inputs
from pipeline.matrix.recipes.templates import literal, texts_changed
from pipeline.matrix.routing.state import TaskState, TaskStatus
from pipeline.outcomes import Reason
from pipeline.repo import PLAIN, Entry, Repository
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
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from importlib.resources.abc import Traversable


FOLDER: Final = ".redfirst/recipes"
"""Where a repository has them."""
SKILLS: Final = (".claude/skills", ".agents/skills")
"""Where a repository has skills; one may bring recipes along, in a folder `recipes`."""
BUILTIN: Final = "builtin:"
_SUFFIX: Final = ".yaml"
_SUFFIXES: Final = (".yaml", ".yml")
_MOST_BYTES: Final = 4 * LARGEST
"""Of a file: a character takes at most four; longer ones are refused when they are read."""


class Origin(StrEnum):
    """Who wrote a recipe, from the weakest word to the strongest; a file was named by its path."""

    SKILL = "skill"
    BUILTIN = "builtin"
    USER = "user"
    REPOSITORY = "repository"
    FILE = "file"


@dataclass(frozen=True)
class RecipeFile(Source):
    """A recipe as it was found, and who wrote it."""

    origin: Origin


class RecipeFiles:
    """Every recipe that can be named here.

    Args:
        repository: The repository that somebody stands in, if there is one.
        commit: What of it counts; None where it has no commit yet.
        environ: The user's environment, which says where the user's are.
    """

    def __init__(self, repository: Repository | None, commit: str | None, environ: Mapping[str, str]) -> None:
        self._repository = repository
        self._commit = commit
        self._environ = environ
        self._known: dict[Origin, dict[str, Callable[[], RecipeFile]]] = {}

    @property
    def tracker(self) -> str:
        """Return the folder of the issues of the repository; the usual one where there is none."""
        return TRACKER if self._repository is None else tracker_folder(self._repository.worktree)

    def all(self) -> tuple[tuple[str, Origin], ...]:
        """Return every recipe, by name, the one that counts first."""
        order = list(Origin)
        found = [(name, origin) for origin in order if origin is not Origin.FILE for name in self._of(origin)]
        return tuple(sorted(found, key=lambda one: (one[0], -order.index(one[1]))))

    def read(self, name: str, origin: Origin) -> RecipeFile:
        """Return one of them.

        Raises:
            UserError: it cannot be read.
        """
        return self._of(origin)[name]()

    def names(self) -> tuple[str, ...]:
        """Return every name."""
        return tuple(dict.fromkeys(name for name, _ in self.all()))

    def find(self, name: str) -> RecipeFile | None:
        """Return the recipe of that name which counts, None if there is none.

        Raises:
            UserError: it cannot be read.
        """
        if name.startswith(BUILTIN):
            read = self._of(Origin.BUILTIN).get(name.removeprefix(BUILTIN))
            return None if read is None else read()
        if self._repository is not None and self._commit is not None and re.fullmatch(SLUG, name):
            path = f"{FOLDER}/{name}{_SUFFIX}"  # no listing is asked of git for it
            if (theirs := _from_git(self._repository, f"{self._commit}:{path}", path, name)) is not None:
                return theirs
        found = (self._of(origin).get(name) for origin in (Origin.USER, Origin.BUILTIN, Origin.SKILL))
        read = next((one for one in found if one is not None), None)
        return None if read is None else read()

    def meant(self, word: str) -> RecipeFile:
        """Return the recipe that a person names, or the file, for a path.

        Raises:
            UserError: there is none, or it cannot be read.
        """
        if is_path(word):
            return _from_disk(Path(word), "", Origin.FILE, self._environ)
        found = self.find(word)
        if found is not None:
            return found
        near = did_you_mean(word, self.names())
        hint = f' Did you mean "{near}"?' if near else ""
        lost = f"{FOLDER}/{word}{_SUFFIX}"
        if self._repository is not None and (self._repository.worktree / lost).is_file():
            hint = f" {lost} is not committed, and counts only then; a file is named by its path: ./{lost}"
        raise UserError(
            f'There is no recipe "{word}".{hint}',
            Reason.RECIPE_NOT_FOUND,
            details={"accepted": list(self.names()), "did_you_mean": near},
            actions=("redfirst recipes list",),
        )

    def _of(self, origin: Origin) -> dict[str, Callable[[], RecipeFile]]:
        """Return what reads each recipe of an origin, by name: one that cannot be read is in nobody else's way."""
        if origin not in self._known:
            listed = {
                Origin.SKILL: self._of_skills,
                Origin.BUILTIN: _builtin,
                Origin.USER: self._user,
                Origin.REPOSITORY: self._committed,
            }
            self._known[origin] = dict(listed[origin]())
        return self._known[origin]

    def _user(self) -> Iterator[tuple[str, Callable[[], RecipeFile]]]:
        folder = config_folder(self._environ) / "recipes"
        for path in sorted(folder.glob(f"*{_SUFFIX}")) if folder.is_dir() else ():
            yield path.stem, partial(_from_disk, path, path.stem, Origin.USER, self._environ)

    def _committed(self) -> Iterator[tuple[str, Callable[[], RecipeFile]]]:
        if self._repository is None or self._commit is None:
            return
        for entry in self._repository.entries(self._repository.tree_of(self._commit), FOLDER):
            name = entry.path.removeprefix(f"{FOLDER}/")
            if "/" not in name and name.endswith(_SUFFIX) and entry.mode in PLAIN:
                stem = name.removesuffix(_SUFFIX)
                yield stem, partial(self._listed, entry, stem, Origin.REPOSITORY)

    def _of_skills(self) -> Iterator[tuple[str, Callable[[], RecipeFile]]]:
        if self._repository is None or self._commit is None:
            return
        tree = self._repository.tree_of(self._commit)
        found: dict[str, Entry] = {}
        for folder in SKILLS:
            for entry in self._repository.entries(tree, folder):
                _, _, inside = entry.path.removeprefix(f"{folder}/").partition("/")
                place, _, name = inside.rpartition("/")
                if place == "recipes" and name.endswith(_SUFFIX) and entry.mode in PLAIN:
                    found.setdefault(name.removesuffix(_SUFFIX), entry)
        yield from ((name, partial(self._listed, entry, name, Origin.SKILL)) for name, entry in found.items())

    def _listed(self, entry: Entry, name: str, origin: Origin) -> RecipeFile:
        found = _from_git(cast("Repository", self._repository), entry.oid, entry.path, name, origin)
        return found or RecipeFile(name, entry.path, "", origin)


def is_path(word: str) -> bool:
    """Return whether somebody names a file, and not a recipe."""
    return "/" in word or word.endswith(_SUFFIXES)


def files_here(repository: Repository | None, environ: Mapping[str, str] | None = None) -> RecipeFiles:
    """Return the recipes that can be named where somebody stands: of the repository those of HEAD."""
    commit = repository.resolve("HEAD") if repository is not None else None
    return RecipeFiles(repository, commit, os.environ if environ is None else environ)


def _builtin() -> Iterator[tuple[str, Callable[[], RecipeFile]]]:
    for entry in data_folder("commands").iterdir():
        if entry.name.endswith(_SUFFIX):
            name = entry.name.removesuffix(_SUFFIX)
            yield name, partial(_from_program, entry, name)


def _from_program(entry: Traversable, name: str) -> RecipeFile:
    return RecipeFile(name, f"{BUILTIN}{name}", entry.read_text(encoding="utf-8"), Origin.BUILTIN)


def _from_git(
    repository: Repository, revision: str, path: str, name: str, origin: Origin = Origin.REPOSITORY
) -> RecipeFile | None:
    try:
        content = repository.blob(revision, _MOST_BYTES)
    except ValueError:
        raise UserError(f"{path} is too large for a recipe.", Reason.RECIPE_INVALID, path=path) from None
    return None if content is None else RecipeFile(name, path, _text(content, path), origin)


def _from_disk(path: Path, name: str, origin: Origin, environ: Mapping[str, str]) -> RecipeFile:
    shown = short(path, environ)
    try:
        content = read_regular(path.resolve(), _MOST_BYTES)
    except FileNotFoundError:
        raise UserError(f"There is no file {shown}.", Reason.RECIPE_NOT_FOUND, path=str(path)) from None
    except OSError as error:
        why = error.strerror or str(error) or "it is no file"
        raise UserError(f"{shown} cannot be read: {why}.", Reason.RECIPE_INVALID, path=str(path)) from None
    return RecipeFile(name, shown, _text(content, shown), origin)


def _text(content: bytes, shown: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{shown} is not UTF-8 (byte {error.start}).", Reason.RECIPE_INVALID, path=shown) from None


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
    given = texts_changed("plan", _given(run), lambda place, text: marker.text(place, literal(text)))
    there = {one.name for one in base.inputs} if base is not None else {"issue"}
    inputs = [{"name": one, "required": True} for one in wanted if one not in there]
    facts = run.info.recipe
    extended = _ISSUE if facts is None else facts.path if facts.path.startswith(BUILTIN) else facts.name
    document: dict[str, object] = {"name": name, "extends": extended}
    document |= {"inputs": inputs} if inputs else {}
    document["edits"] = [{"change": step, "set": {"given": given}}]
    return document_text(document), marker.places, tuple(marker.problems())


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
    said |= plan_reread(text, plan) if (text := _draft_text(run, PLAN)) else {}
    whole = PlanAndTasks(**said, tasks=tuple(_as_it_came(run, task, drafts[task.id], numbers) for task in tasks))
    return whole.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _as_it_came(run: Run, task: TaskState, draft: SplitTask, numbers: Mapping[str, int]) -> SplitTask:
    """Return a task as it was drafted, with what people and amendments have made of it."""
    found = parse_task_md(_draft_text(run, task_file(task.id)))
    now = task_reread(found, draft) if isinstance(found, Task) else {}
    above = tuple(numbers[name] for name in task.spec.depends_on if name in numbers)
    return draft.model_copy(update={**now, "depends_on": above})


def _draft_text(run: Run, name: str) -> str:
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
        named = None
    else:
        made = RecipeRun.load(folder, driving=False)
        recipe, places, wrong = with_inputs(made.recipe, made.inputs, wanted)
        named = recipe.model_copy(update={"name": place.name, "version": 1})
        text = recipe_text(named)
    if wrong:
        raise _refused(f"{folder.name} cannot be saved with these inputs", Reason.INPUT_INVALID, wrong)
    return _put(place, text, places, expected=named)


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
