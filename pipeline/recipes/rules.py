"""Checks a recipe whose form is right: names, order, references, areas."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from pipeline.recipes.given import of_given
from pipeline.recipes.model import KEYS, SCHEMAS, TAKEN, Kind, Recipe, Step
from pipeline.recipes.problems import Problem, misspelt
from pipeline.recipes.publishing import is_looked_at, writes_files
from pipeline.recipes.references import AREAS, Scope, of_step, of_text
from pipeline.recipes.templates import only_reference
from pipeline.scheduling.graph import CycleError, planned
from pipeline.scheduling.graph import Step as Node

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MOST_PATTERNS: Final = 200
"""Different patterns of one recipe: each is compared with each."""
_PHASES: Final = ("issue", "plan", "split", "tasks", "build", "review", "publish")
_PLANNED: Final = frozenset({"plan", "split", "tasks"})
"""The phases in the place of which `build` stands."""
_REVIEWED: Final = {"plan": ("check", "simplify"), "split": ("check",), "review": ("check", "simplify")}
_FOR_AGENTS: Final = ("check", "simplify", "explore")
_TITLE: Final = re.compile(r"(?:build|chore|ci|docs|feat|fix|perf|refactor|revert|style|test)(?:\([^(){}]+\))?!?: +\S")
_ADVICE: Final = "simplify only advises: a review needs check, too"
_ISSUE_ID: Final = re.compile(r"[a-z][a-z0-9]*-[0-9]+(?:[._-][0-9]+)*", re.IGNORECASE)


def problems_of(recipe: Recipe) -> tuple[Problem, ...]:
    """Return what is wrong with a recipe that is well typed, in no order."""
    by_id = {step.id: step for step in recipe.steps}
    inputs = tuple(one.name for one in recipe.inputs)
    above = _ancestors(recipe.steps, by_id)
    found = [*_names(recipe), *_change(recipe), *_lists(recipe), *_patterns(recipe)]
    found += [*_phases(recipe, above), *_seams(recipe, above)]
    for number, step in enumerate(recipe.steps):
        at = f"/steps/{number}"
        found += _dependencies(at, step, by_id)
        found += of_given(at, step, inputs)
        found += _kind(at, step)
        found += _targets(at, step, by_id, above)
        scope = Scope(inputs, tuple(by_id), above[step.id], has_item=step.for_each is not None)
        found += of_step(at, step, scope)
    found += _cycle(recipe.steps, by_id)
    if recipe.output is not None:
        found += of_text("/output", recipe.output, Scope(inputs, tuple(by_id), frozenset(by_id)))
    return tuple(found)


def not_for_agents(recipe: Recipe) -> tuple[Problem, ...]:
    """Return what keeps an agent from running a recipe that it wrote itself: it may ask readers, and no person."""
    found: list[Problem] = []
    for number, step in enumerate(recipe.steps):
        at = f"/steps/{number}"
        if step.gate is not None and step.gate != "note":
            message = f"{step.id!r} waits for a person, and an agent's own run has nobody who answers"
            found.append(Problem("not_for_agents", f"{at}/gate", message, ("note",)))
        elif step.kinds and step.kind is not Kind.GATE and step.agent not in _FOR_AGENTS:
            key = "agent" if step.kind is Kind.AGENT else step.kind.value
            message = f"an agent's own recipe asks readers alone, and {step.id!r} is none"
            found.append(Problem("not_for_agents", f"{at}/{key}", message, _FOR_AGENTS))
        found += [
            Problem("not_for_agents", f"{at}/{key}", f"an agent's own recipe does not choose the {key}")
            for key in ("model", "effort")
            if getattr(step, key) is not None
        ]
    return tuple(found)


def _names(recipe: Recipe) -> Iterator[Problem]:
    if _ISSUE_ID.fullmatch(recipe.name):
        yield Problem("name_is_issue", "/name", f"{recipe.name!r} could be the id of an issue, which `run` takes first")
    for what, names in (("inputs", [one.name for one in recipe.inputs]), ("steps", [step.id for step in recipe.steps])):
        seen: Counter[str] = Counter()
        for number, name in enumerate(names):
            seen[name] += 1
            if seen[name] > 1:
                key = "name" if what == "inputs" else "id"
                yield Problem("duplicate_id", f"/{what}/{number}/{key}", f"{name!r} is there twice")
    for number, step in enumerate(recipe.steps):
        if step.id in TAKEN:
            message = f"no step may be called {step.id!r}: redfirst calls something so itself"
            yield Problem("bad_id", f"/steps/{number}/id", message)
    for number, one in enumerate(recipe.inputs):
        if one.required and one.default is not None:
            message = f"the input {one.name!r} is required, so its default never counts"
            yield Problem("wrong_type", f"/inputs/{number}/default", message)


def _change(recipe: Recipe) -> Iterator[Problem]:
    """Yield what a recipe about a change may not have: what its steps wrote would bring the change along."""
    numbers = [number for number, one in enumerate(recipe.inputs) if one.type == "change"]
    for number in numbers[1:]:
        yield Problem("wrong_type", f"/inputs/{number}/type", "a recipe is about one change")
    for number, step in enumerate(recipe.steps if numbers else ()):
        if step.kinds and step.writes and step.kind is not Kind.FILE_ISSUES:
            message = f"a recipe about a change reads it and files issues, and {step.id!r} would change files"
            yield Problem("reader_writes", f"/steps/{number}", message)


def _lists(recipe: Recipe) -> Iterator[Problem]:
    """Yield each `for_each` over an input that is no list."""
    types = {one.name: one.type for one in recipe.inputs}
    for number, step in enumerate(recipe.steps):
        source = only_reference(step.for_each) if step.for_each is not None else None
        if source is not None and types.get(source.input or "", "issues") != "issues":
            message = f"{source.input!r} is no list: `for_each` is over one of another step, or over `type: issues`"
            yield Problem("wrong_type", f"/steps/{number}/for_each", message)


def _dependencies(at: str, step: Step, by_id: Mapping[str, Step]) -> Iterator[Problem]:
    for number, name in enumerate(step.depends_on):
        if name not in by_id:
            yield misspelt("unknown_step", f"{at}/depends_on/{number}", f"there is no step {name!r}", name, by_id)


def _kind(at: str, step: Step) -> Iterator[Problem]:
    if not step.kinds:
        yield Problem("no_kind", at, f"the step {step.id!r} does nothing: say what it is", tuple(Kind))
        return
    if len(step.kinds) > 1:
        yield Problem("two_kinds", at, f"the step {step.id!r} is several things: {', '.join(step.kinds)}")
        return
    for key in sorted(step.model_fields_set - KEYS[step.kind]):
        message = f"{key!r} means nothing for a step of the kind {step.kind.value!r}"
        yield Problem("unknown_key", f"{at}/{key}", message, tuple(sorted(KEYS[step.kind])))
    if step.kind is Kind.AGENT:
        yield from _asked(at, step)
    if step.gate == "note" and step.back_to is not None:
        yield Problem("unknown_key", f"{at}/back_to", "nobody answers a note, so nothing goes back from it")
    yield from _program(at, step.run or ())
    if step.publish is not None and _TITLE.match(step.publish) is None:
        message = "the title of a commit begins with what it is, as Conventional Commits say: `fix: ...`"
        yield Problem("wrong_type", f"{at}/publish", message)


def _asked(at: str, step: Step) -> Iterator[Problem]:
    if not (step.prompt or "").strip():
        yield Problem("missing_key", at, f"the step {step.id!r} asks {step.agent} nothing: it needs a `prompt`")
    for key in ("write_set", "workspace_mode", "accept"):
        if step.agent != "make" and key in step.model_fields_set:
            message = f"{step.agent} only reads, so {key!r} can mean nothing; the role that writes is make"
            yield Problem("reader_writes", f"{at}/{key}", message)
    if step.agent == "make" and step.payload is not None:
        yield Problem("wrong_type", f"{at}/payload", "make answers with files: what has a payload is a role that reads")
    if step.accept is not None and step.accept.tests is None and not step.accept.regression:
        yield Problem("wrong_type", f"{at}/accept", "it measures nothing: it needs `tests`, or `regression: true`")
    if step.review and "check" not in step.review:
        yield Problem("wrong_type", f"{at}/review", _ADVICE)
    if isinstance(step.payload, str) and step.payload not in SCHEMAS:
        message = f"there is no schema {step.payload!r}"
        yield misspelt("unknown_schema", f"{at}/payload", message, step.payload, sorted(SCHEMAS))


def _program(at: str, argv: Sequence[str]) -> Iterator[Problem]:
    for number, item in enumerate(argv):
        if number == 0 and "{{" in item:
            yield Problem("looks_like_option", f"{at}/run/0", "the program of a `run` is written down, not put in")
        elif item.startswith("{{") and "--" not in argv[:number]:
            message = "a value that begins an argument could be taken for an option: put `--` before it, or a word"
            yield Problem("looks_like_option", f"{at}/run/{number}", message)


def _targets(at: str, step: Step, by_id: Mapping[str, Step], above: Mapping[str, frozenset[str]]) -> Iterator[Problem]:
    accepted = step.accept.tests if step.accept is not None else None
    named = (("/apply_from", step.apply_from), ("/back_to", step.back_to), ("/accept/tests", accepted))
    for key, name in named:
        if name is None:
            continue
        if name not in by_id:
            yield misspelt("unknown_step", f"{at}{key}", f"there is no step {name!r}", name, by_id)
        elif name not in above[step.id]:
            yield Problem("not_an_ancestor", f"{at}{key}", f"{step.id!r} does not depend on {name!r}")
        elif key == "/accept/tests" and by_id[name].kinds != (Kind.TESTS,):
            yield Problem("wrong_type", f"{at}{key}", f"{name!r} is no step of the kind 'tests'")
        elif key == "/apply_from" and by_id[name].workspace_mode != "scratch":
            yield Problem("wrong_type", f"{at}{key}", f"{name!r} does not work in a scratch copy (workspace_mode)")
    if step.kinds == (Kind.PUBLISH,):
        for name in sorted(above[step.id]):
            writer = by_id[name]
            if writes_files(writer) and not is_looked_at(writer, by_id):
                message = f"{step.id!r} publishes what {name!r} wrote, which nobody reviews and nothing measures"
                yield Problem("unreviewed_writer", at, message)


def _patterns(recipe: Recipe) -> Iterator[Problem]:
    count = len({text for step in recipe.steps for key in AREAS for text in getattr(step, key) or ()})
    if count > MOST_PATTERNS:
        message = f"there are {count} different patterns, {MOST_PATTERNS} are accepted"
        yield Problem("too_many_patterns", "/steps", message)


def _phases(recipe: Recipe, above: Mapping[str, frozenset[str]]) -> Iterator[Problem]:
    met: dict[str, str] = {}
    for number, step in enumerate(recipe.steps):
        if step.phase is None:
            continue
        at = f"/steps/{number}"
        before = [phase for phase in _PHASES[: _PHASES.index(step.phase)] if phase in met]
        if step.phase in met:
            yield Problem("phase_order", f"{at}/phase", f"the phase {step.phase!r} is there twice")
        elif any(_PHASES.index(phase) > _PHASES.index(step.phase) for phase in met):
            later = next(phase for phase in met if _PHASES.index(phase) > _PHASES.index(step.phase))
            yield Problem("phase_order", f"{at}/phase", f"the phase {step.phase!r} comes before {later!r}")
        elif before and met[before[-1]] not in above[step.id]:
            message = f"the phase {step.phase!r} needs {met[before[-1]]!r} in `depends_on`"
            yield Problem("phase_order", f"{at}/phase", message)
        met[step.phase] = step.id
        yield from _reviewers(at, step)
    if not met:
        return
    number = next(number for number, step in enumerate(recipe.steps) if step.phase is not None)
    if not any(one.type == "issue" for one in recipe.inputs):
        message = "phases work on an issue: the recipe needs an input of `type: issue`"
        yield Problem("late_issue", f"/steps/{number}/phase", message)
    both = sorted(_PLANNED & met.keys()) if "build" in met else []
    if both:
        message = f"'build' is all that {' and '.join(both)} would be: one writer makes tests and code"
        yield Problem("phase_order", f"/steps/{number}/phase", message)
    other = _PLANNED if "build" in met else {"split", "build"}
    missing = [phase for phase in _PHASES if phase not in met and phase not in other]
    if missing:
        message = f"the way of an issue has no phase {' and no phase '.join(map(repr, missing))}"
        yield Problem("phase_order", f"/steps/{number}/phase", message)


def _reviewers(at: str, step: Step) -> Iterator[Problem]:
    """Yield what is wrong with who reviews a phase: what counts is said by @check, @simplify advises."""
    accepted = _REVIEWED.get(step.phase or "", ())
    for place, role in enumerate(step.review):
        if role not in accepted:
            message = f"{role} does not review the phase {step.phase!r}"
            yield Problem("wrong_type", f"{at}/review/{place}", message, accepted)
    if step.review and accepted and "check" not in step.review:
        yield Problem("wrong_type", f"{at}/review", _ADVICE)
    if step.phase == "review" and not step.review:
        yield Problem("unreviewed_writer", at, "nobody would review what is published: review: [check]")


def _seams(recipe: Recipe, above: Mapping[str, frozenset[str]]) -> Iterator[Problem]:
    provided: dict[str, str] = {}
    for number, step in enumerate(recipe.steps):
        for place, seam in enumerate(step.provides):
            if seam in provided:
                message = f"{seam!r} is provided by {provided[seam]!r} already"
                yield Problem("seam_twice", f"/steps/{number}/provides/{place}", message)
            provided.setdefault(seam, step.id)
    for number, step in enumerate(recipe.steps):
        for place, seam in enumerate(step.requires):
            if seam not in provided:
                at, message = f"/steps/{number}/requires/{place}", f"no step provides {seam!r}"
                yield misspelt("seam_without_provider", at, message, seam, provided)
            elif provided[seam] not in above[step.id]:
                message = f"{seam!r} is required before {provided[seam]!r}, which provides it, has to be over"
                yield Problem("not_an_ancestor", f"/steps/{number}/requires/{place}", message)


def _cycle(steps: Sequence[Step], by_id: Mapping[str, Step]) -> Iterator[Problem]:
    known = [Node(step.id, tuple(name for name in step.depends_on if name in by_id)) for step in by_id.values()]
    try:
        planned(known, side_by_side=1)
    except CycleError as error:
        number = next(number for number, step in enumerate(steps) if step.id == error.cycle[0])
        message = f"these steps wait for each other: {error}"
        yield Problem("cycle", f"/steps/{number}/depends_on", message)


def _ancestors(steps: Sequence[Step], by_id: Mapping[str, Step]) -> dict[str, frozenset[str]]:
    """Return what each step depends on, directly or not; of a circle each member depends on all."""
    found: dict[str, frozenset[str]] = {}
    for step in steps:
        known = [name for name in step.depends_on if name in by_id]
        if all(name in found for name in known):
            found[step.id] = frozenset(known).union(*(found[name] for name in known))
            continue
        seen: set[str] = set()
        stack = [name for name in step.depends_on if name in by_id]
        while stack:
            name = stack.pop()
            if name not in seen:
                seen.add(name)
                stack += [above for above in by_id[name].depends_on if above in by_id]
        found[step.id] = frozenset(seen)
    return found
