"""Chooses the recipe of a run, and requires that it is sound and trusted and has its inputs; tells what it would do."""

from __future__ import annotations

import hashlib
import json
import shlex
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.agents.dispatch.agent_choice import choices
from pipeline.app.ports import require_runner
from pipeline.app.recipe_files import FOLDER as RECIPES
from pipeline.app.recipe_files import Origin, RecipeFile, RecipeFiles, is_path
from pipeline.app.run_config import RunOptions, issue_input, pairs, read_config
from pipeline.app.trust_requests import refuse_misfit
from pipeline.app.worktrees import begins
from pipeline.config import trust
from pipeline.config.agents import Backend
from pipeline.config.trust import Widening
from pipeline.errors import UserError
from pipeline.matrix.recipes.check import checked_source
from pipeline.matrix.recipes.model import Kind, Recipe
from pipeline.matrix.recipes.plan import MOST_ITEMS, Preview, inputs_of, phases_of, preview, why_not
from pipeline.matrix.recipes.rules import given_of
from pipeline.matrix.recipes.templates import listed
from pipeline.matrix.routing.matrix import DISPATCHES_PER_TASK
from pipeline.outcomes import Reason
from pipeline.run.files import to_json
from pipeline.run.gates import WAYS_BACK
from pipeline.run.info import ChangeSeen, RecipeFacts
from pipeline.run.preconditions import base_branch, examine, refuse_base_branch
from pipeline.run.preflight import refuse_hidden
from pipeline.run.tracker import as_user_errors, in_tree, in_worktree, named_in
from pipeline.vocabulary import Role
from todo import Status, TrackerError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeline.config.model import Config
    from pipeline.matrix.recipes.reading import Problem
    from pipeline.matrix.routing.state import Phases
    from pipeline.repo import Repository


SCHEMA: Final = "redfirst.recipe/1"
_THEIRS: Final = frozenset({Origin.REPOSITORY, Origin.SKILL})
_WHY: Final = "agents are asked what this recipe of the repository says, and may write what it names"


@dataclass(frozen=True)
class Chosen:
    """A sound recipe, and where it comes from.

    Args:
        file: The file that was named.
        recipe: Its steps, those of other files too.
        theirs: The recipes of the repository that it is, or is made of, as what needs trust.
    """

    file: RecipeFile
    recipe: Recipe
    theirs: tuple[Widening, ...]

    @property
    def facts(self) -> RecipeFacts:
        """Return what run.json says of it; the hash is that of the whole recipe."""
        digest = _hash(self.recipe)
        return RecipeFacts(name=self.recipe.name, version=self.recipe.version, sha256=digest, path=self.file.path)

    def document(self, inputs: Mapping[str, str]) -> str:
        """Return what the run keeps of it."""
        head = {"schema": SCHEMA, **self.facts.model_dump(mode="json")}
        return to_json({**head, "inputs": dict(inputs), "recipe": steps_of(self.recipe)})


def chosen(library: RecipeFiles, word: str, repository: Repository | None = None) -> Chosen:
    """Return the recipe that a person names.

    Raises:
        UserError: there is none of that name, or it is not sound.
    """
    file = library.meant(word)
    found = checked_source(file, library)
    if found.recipe is None:
        raise unsound(word, file, found.problems)
    theirs: list[Widening] = []
    for source in found.sources:
        if isinstance(source, RecipeFile) and _is_theirs(source, repository):
            whole = found.recipe if source is file else checked_source(source, library).recipe
            if whole is not None:
                theirs.append(Widening(source.path, _hash(whole), f"{_WHY}: {_doing(whole)}", is_file=True))
    return Chosen(file, found.recipe, tuple(theirs))


def steps_of(recipe: Recipe) -> dict[str, Any]:
    """Return a whole recipe as a document, without what is said by leaving it out."""
    return recipe.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _hash(recipe: Recipe) -> str:
    text = json.dumps(steps_of(recipe), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class ChosenForIssue(Chosen):
    """A recipe that is a way of an issue, with what the matrix goes by."""

    phases: Phases


def issue_recipe(repository: Repository, commit: str, options: RunOptions) -> tuple[ChosenForIssue, dict[str, str]]:
    """Return the recipe that an issue's run shall be of, and its inputs.

    Raises:
        UserError: there is none of that name, it is not sound or not trusted, or it is none for an issue.
    """
    library = RecipeFiles(repository, commit, options.environ)
    found = chosen(library, options.recipe, repository)
    require_trust(found, repository, options.environ)
    phases = phases_of(found.recipe)
    if phases is None:
        why = why_not(found.recipe)
        how = "works on no issue, and is run without one" if why is None else "cannot be run"
        raise _not_to_be_run(found, options.recipe, how, why)
    values = values_of(found, options.recipe, options.given(found.recipe))
    _, wrong = given_of(found.recipe, values)
    planned = preview(found.recipe, values, tracker=library.tracker)
    wrong = wrong if isinstance(planned, Preview) else (*wrong, *planned)
    if wrong:
        raise unsound(options.recipe, found.file, wrong)
    return ChosenForIssue(found.file, found.recipe, found.theirs, phases), values


def with_recipe(repository: Repository, commit: str, config: Config, options: RunOptions) -> RunOptions:
    """Return the options with a recipe: where none is named, that of a label of the issue, else the default one."""
    if options.recipe:
        return options
    labels: tuple[str, ...] = ()
    if config.recipes.labels and options.issue:
        with suppress(TrackerError):  # an issue that is not there is told by whoever looks for it
            labels = in_tree(repository, commit).read(options.issue).labels
    by_label = (recipe for label, recipe in config.recipes.labels.items() if label in labels)
    return replace(options, recipe=next(by_label, config.recipes.default))


def _is_theirs(file: RecipeFile, repository: Repository | None) -> bool:
    """Return whether the repository wrote a file: it has committed it, or it lies in one of its worktrees."""
    if file.origin is Origin.FILE and repository is not None:
        place = Path(file.path).expanduser().resolve()
        return any(place.is_relative_to(each.path.resolve()) for each in repository.worktrees())
    return file.origin in _THEIRS


def require_trust(recipe: Chosen, repository: Repository, environ: Mapping[str, str]) -> None:
    """Refuse a recipe of the repository that the user has not allowed as it is.

    What a recipe of the user's makes of it is the user's word, so that each is asked for by itself.

    Raises:
        UserError: reason `untrusted`.
    """
    place = recipe.file.path
    lies_there = recipe.file.origin is Origin.FILE and any(item.key == place for item in recipe.theirs)
    if lies_there and not trust.is_trusted(recipe.theirs, repository.common_dir, environ):
        raise UserError(
            f"{place} lies in the repository, whose recipes need trust: commit it as {RECIPES}/NAME.yaml and run "
            "redfirst trust, or keep it elsewhere.",
            Reason.UNTRUSTED,
            path=place,
            details={"widening": trust.as_json(recipe.theirs)},
            actions=("redfirst recipes list",),
        )
    trust.require_trust(recipe.theirs, repository.common_dir, environ)


def recipes_of(repository: Repository, commit: str | None, environ: Mapping[str, str]) -> tuple[Widening, ...]:
    """Return the sound recipes of a commit, as what needs trust."""
    library = RecipeFiles(repository, commit, environ)
    found: list[Widening] = []
    for name, origin in library.all():
        if origin in _THEIRS:
            try:
                found += chosen(library, name, repository).theirs
            except UserError:  # what cannot be run needs no trust
                continue
    return tuple(dict.fromkeys(found))  # what others are made of is there several times


def values_of(recipe: Chosen, word: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the value of each input.

    Raises:
        UserError: reason `input_invalid`.
    """
    values, wrong = inputs_of(recipe.recipe, given)
    if wrong:
        raise unsound(word, recipe.file, wrong)
    return values


def _not_to_be_run(found: Chosen, word: str, how: str, why: str | None) -> UserError:
    """Return the error of a sound recipe that is not run like that, with the reason."""
    show = f"redfirst recipes show {shlex.quote(word)}"
    said = how if why is None else f"{how}: {why}"
    return UserError(
        f"The recipe {found.recipe.name} {said}. What it would do: {show}",
        Reason.USAGE,
        path=found.file.path,
        actions=(show,),
    )


def sound(
    repository: Repository, word: str, options: RunOptions, given: Callable[[Recipe], Mapping[str, str]]
) -> tuple[Chosen, dict[str, str]]:
    """Return a recipe that can be run, as HEAD has it, and the values of its inputs.

    Raises:
        UserError: there is none of that name; it is not sound, not trusted, or cannot be run with these inputs.
    """
    library = RecipeFiles(repository, repository.resolve("HEAD"), options.environ)
    found = chosen(library, word, repository)
    require_trust(found, repository, options.environ)
    if any(step.kind is Kind.PHASE for step in found.recipe.steps):
        why = why_not(found.recipe)
        raise _not_to_be_run(found, word, "works on an issue" if why is None else "cannot be run", why)
    values = with_issues(repository, found.recipe, values_of(found, word, given(found.recipe)))
    planned = preview(found.recipe, values, tracker=library.tracker)
    if isinstance(planned, tuple):
        raise unsound(word, found.file, planned)
    return found, values


def inputs_kept(values: Mapping[str, str], recipe: Recipe) -> dict[str, str]:
    """Return the values of those inputs that another recipe has, too."""
    return {one.name: values[one.name] for one in recipe.inputs if one.name in values}


def roles_of(recipe: Recipe) -> tuple[Role, ...]:
    """Return who is asked, reviewers too."""
    asked = (role for step in recipe.steps for role in (step.agent, *step.review) if role is not None)
    return tuple(dict.fromkeys(map(Role, asked)))


def with_issues(repository: Repository, recipe: Recipe, values: Mapping[str, str]) -> dict[str, str]:
    """Return the values with the ids of each input of the type `issues`; where none is given all that are not Done.

    Raises:
        UserError: there is no such issue, there are too many, or the tracker is broken.
    """
    found = dict(values)
    for name in (one.name for one in recipe.inputs if one.type == "issues"):
        tracker = in_tree(repository, repository.tree_of("HEAD"))
        with as_user_errors(tracker):
            if given := listed(values[name]):
                ids = [tracker.read(tracker.named(each)).id for each in given]
            else:
                ids = [issue.id for issue in tracker.issues() if issue.status is not Status.DONE]
        if len(ids) > MOST_ITEMS:
            raise UserError(
                f'There are {len(ids)} issues, and {MOST_ITEMS} are accepted at once. Name some: {name}="GAL-1 GAL-2"',
                Reason.INPUT_INVALID,
            )
        found[name] = " ".join(dict.fromkeys(ids))
    return found


def named_by(repository: Repository, word: str, options: RunOptions) -> RunOptions:
    """Return the options of a run whose first word is an issue or a recipe: an issue of that name comes first.

    Raises:
        UserError: it is a recipe that cannot be used, or without the issue that it asks for.
    """
    issue = named_in(repository.worktree, word)
    library = RecipeFiles(repository, repository.resolve("HEAD"), options.environ)
    known = (repository.worktree / in_worktree(repository.worktree).folder / f"{issue}.md").exists()
    if known or not (options.inputs or is_path(word) or library.find(word)):
        return replace(options, issue=issue)
    found = chosen(library, word, repository)
    values = values_of(found, word, pairs(options.inputs))
    asked = issue_input(found.recipe)
    return replace(options, recipe=word, issue=named_in(repository.worktree, values[asked]) if asked else "")


def unsound(word: str, file: RecipeFile, problems: Sequence[Problem]) -> UserError:
    """Return the error that tells everything that is wrong with a recipe, or with the inputs that were given."""
    lines = "".join(f"\n{problem}" for problem in problems)
    inputs = all(problem.rule == "input_invalid" for problem in problems)
    return UserError(
        f"{file.path} cannot be used{' with these inputs' if inputs else ''}:{lines}",
        Reason.INPUT_INVALID if inputs else Reason.RECIPE_INVALID,
        path=file.path,
        pointer=problems[0].pointer,
        details={"problems": [asdict(problem) for problem in problems]},
        actions=(f"redfirst recipes {'show' if inputs else 'lint'} {shlex.quote(word)}",),
    )


def _doing(recipe: Recipe) -> str:
    """Return in a few words what a recipe lets happen."""
    asked = sorted({f"@{step.agent}" for step in recipe.steps if step.agent is not None})
    writes = sorted({text for step in recipe.steps if step.agent == "make" for text in step.write_set or ("**/*",)})
    programs = sum(step.kind is Kind.RUN for step in recipe.steps)
    parts = [
        f"{len(recipe.steps)} steps",
        *([f"asks {', '.join(asked)}"] if asked else []),
        *([f"writes {', '.join(writes)}"] if writes else []),
        *([f"starts {programs} programs in the box"] if programs else []),
    ]
    return "; ".join(parts)


_MOST_BYTES: Final = 16 * 1024 * 1024


def change_of(
    repository: Repository, recipe: Recipe, values: Mapping[str, str], tip: str, base: str | None
) -> ChangeSeen | None:
    """Return the change that a run is about, None where the recipe asks for none.

    A branch is what it has since it left the base branch, a commit what it changed, `a..b` and `a...b` what git takes
    them for, and a file with a diff is that, over the commit that the user stands on.

    Raises:
        UserError: the value names no change, or one that changes nothing.
    """
    name = next((one.name for one in recipe.inputs if one.type == "change"), None)
    if name is None:
        return None
    said = values[name]
    found = _of_commits(repository, said, base) or _of_file(repository, said, repository.tree_of(tip))
    if found is None or found[0] == found[1]:
        why = "there is no such branch, commit, range or file" if found is None else "it changes nothing"
        raise UserError(f"{name}={said}: {why}.", Reason.INPUT_INVALID, pointer="/inputs")
    return ChangeSeen(input=name, before=found[0], after=found[1])


def _of_commits(repository: Repository, said: str, base: str | None) -> tuple[str, str] | None:
    for dots in ("...", ".."):
        one, found, other = said.partition(dots)
        if found:
            old, new = (repository.resolve(f"{each or 'HEAD'}^{{commit}}") for each in (one, other))
            if old is None or new is None:
                return None
            start = repository.merge_base(old, new) if dots == "..." else old
            return None if start is None else (repository.tree_of(start), repository.tree_of(new))
    commit = repository.resolve(f"{said}^{{commit}}") if said else None
    if commit is None:
        return None
    branch = said == "HEAD" or any(repository.resolve(f"refs/{kind}/{said}") for kind in ("heads", "remotes"))
    if branch:
        named = base_branch(repository, said, base)
        start = repository.merge_base(repository.resolve(named) or commit, commit)
    else:
        start = next(iter(repository.parents(commit)), None)
    before = repository.make_tree({}) if start is None else repository.tree_of(start)
    return before, repository.tree_of(commit)


def _of_file(repository: Repository, said: str, tree: str) -> tuple[str, str] | None:
    place = Path(said).expanduser()
    try:
        if not place.is_file() or place.stat().st_size > _MOST_BYTES:
            return None
        after = repository.applied(tree, place.read_bytes())
    except OSError:
        return None
    if after is None:
        raise UserError(
            f"{said} is no diff that goes on the commit you stand on: git apply refuses it.",
            Reason.INPUT_INVALID,
            path=said,
        )
    return tree, after


NOBODY: Final = "nobody yet (redfirst init)"


@dataclass(frozen=True)
class DryRun:
    """What would be run.

    Args:
        recipe: The recipe.
        inputs: The value of each input.
        shown: Its steps.
        agents: Who each role is that is asked.
        limit: How many dispatches it may take.
        branch: Where it would publish; None where it does not, or no branch is checked out.
        refused: Why it cannot be run, None where it can.
        trusted: Whether it may be run.
        asked_gates: The gates that were asked for.
        in_the_way: Why a run would not begin here, each reason for itself; none where it would.
    """

    recipe: Chosen
    inputs: Mapping[str, str]
    shown: Preview
    agents: Mapping[str, str]
    limit: int
    branch: str | None
    refused: str | None
    trusted: bool
    asked_gates: tuple[str, ...] = ()
    in_the_way: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return it for a program."""
        return {
            "schema": "redfirst.dry-run/1",
            "ok": True,
            "recipe": self.recipe.facts.model_dump(mode="json"),
            "inputs": dict(self.inputs),
            "steps": [asdict(step) for step in self.shown.steps],
            "agents": dict(self.agents),
            "dispatches": {"least": self.shown.least, "most": self.shown.dispatches, "limit": self.limit},
            "gates": self.shown.gates,
            "approve": list(self.asked_gates),
            "branch": self.branch,
            "runs": self.refused is None and not self.in_the_way,
            "trusted": self.trusted,
        }


def dry_run(repository: Repository, options: RunOptions, *, worktree: bool = False) -> DryRun:
    """Return what `run` would do with these options; with *worktree* on a branch that is made for it.

    Raises:
        UserError: the recipe, its inputs or the configuration cannot be used.
    """
    tip = repository.resolve("HEAD") or ""
    config = read_config(repository, tip, options.flags, options.environ).config
    options = with_recipe(repository, tip, config, options)
    library = RecipeFiles(repository, tip or None, options.environ)
    found = chosen(library, options.recipe, repository)
    values = with_issues(repository, found.recipe, values_of(found, options.recipe, options.given(found.recipe)))
    gates = tuple(gate for gate in WAYS_BACK if gate in options.gates)
    whole, shown = (
        preview(one, values, gates, config.tracker.folder)
        for one in (found.recipe, _without_idle(found.recipe, config))
    )
    if not isinstance(whole, Preview):
        raise unsound(options.recipe, found.file, whole)
    shown = shown if isinstance(shown, Preview) else whole
    phases = phases_of(found.recipe)
    asked = sorted({role for step in whole.steps for role in step.asks})
    publishes = any(step.kind in {"publish", "phase", "file_issues"} for step in shown.steps)
    return DryRun(
        recipe=found,
        inputs=values,
        shown=shown,
        agents={role: _agent(config, role) for role in asked if role in set(Role)},
        limit=shown.limit if phases is None else config.limits.dispatches + DISPATCHES_PER_TASK,
        branch=repository.branch() if publishes and not worktree else None,
        refused=why_not(found.recipe),
        trusted=trust.is_trusted(found.theirs, repository.common_dir, options.environ),
        asked_gates=gates,
        in_the_way=_in_the_way(repository, options, config, worktree=worktree)
        if publishes and (options.issue or not worktree)
        else (),
    )


def _without_idle(recipe: Recipe, config: Config) -> Recipe:
    """Return the recipe without the reviewers of its phases that are off, so that none is named who is not asked."""
    off = {role for role in Role if config.agent(role).backend is Backend.OFF}
    steps = (
        step.model_copy(update={"review": tuple(role for role in step.review if role not in off)})
        if step.kind is Kind.PHASE
        else step
        for step in recipe.steps
    )
    return recipe.model_copy(update={"steps": tuple(steps)})


def _in_the_way(repository: Repository, options: RunOptions, config: Config, *, worktree: bool) -> tuple[str, ...]:
    try:
        if worktree:
            begins(repository, options)
        elif options.issue:
            examine(repository, options.issue, options.base or config.base)
            require_runner(repository, config)
            refuse_misfit(config, options.issue)
        else:
            refuse_base_branch(repository, options.recipe, options.base)
            refuse_hidden(repository)
    except UserError as error:
        return tuple(each.message for each in (error, *error.also))
    return ()


def _agent(config: Config, role: str) -> str:
    """Return who a role is, in words."""
    agent = config.agent(Role(role))
    if agent.backend is Backend.COMMAND and not agent.argv:
        return NOBODY
    try:
        return str(choices(config, Role(role))[0])
    except UserError as error:
        return error.message
