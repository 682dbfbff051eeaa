"""Checks a recipe whose form is right: names, order, references, areas, given plans, what it publishes. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from pydantic import ValidationError

from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.drafts import PlanAndTasks, SplitReport
from pipeline.judge.reports.schema_errors import explain
from pipeline.judge.reports.tasks import tasks_from_split
from pipeline.matrix.recipes.model import KEYS, SCHEMAS, TAKEN, Kind, Recipe, Step
from pipeline.matrix.recipes.reading import Problem, misspelt
from pipeline.matrix.recipes.templates import Reference, filled, only_reference, references, texts_changed
from pipeline.matrix.scheduling import patterns
from pipeline.matrix.scheduling.graph import CycleError, Plan, planned
from pipeline.matrix.scheduling.graph import Step as Node

AREAS: Final = ("read_set", "write_set")
TEXTS: Final = ("prompt", "run", "tests", "publish", "file_issues")


@dataclass(frozen=True)
class Scope:
    """What may be named at a place.

    Args:
        inputs: The names of the inputs.
        steps: The ids of all steps.
        above: The ids of those that have ended by then.
        has_item: Whether the step is one of a `for_each`.
    """

    inputs: tuple[str, ...]
    steps: tuple[str, ...]
    above: frozenset[str]
    has_item: bool = False


def input_names(step: Step) -> tuple[str, ...]:
    """Return the inputs that a step names anywhere."""
    texts = [text for key in (*TEXTS, *AREAS) for _, text in _said("", getattr(step, key))]
    return tuple(dict.fromkeys(one.input for text in texts for one in references(text)[0] if one.input is not None))


def of_step(at: str, step: Step, scope: Scope) -> Iterator[Problem]:
    """Yield what is wrong with the placeholders and patterns of a step."""
    for key in TEXTS:
        for place, text in _said(f"{at}/{key}", getattr(step, key)):
            yield from of_text(place, text, scope)
    for key in AREAS:
        for place, text in _said(f"{at}/{key}", getattr(step, key)):
            yield from _of_area(place, text, scope)
    for place, text in _said(f"{at}/file_issues", step.file_issues):
        yield from _payload_alone(place, text)
    if step.for_each is not None:
        yield from of_text(f"{at}/for_each", step.for_each, Scope(scope.inputs, scope.steps, scope.above))
        if only_reference(step.for_each) is None:
            yield Problem("wrong_type", f"{at}/for_each", "`for_each` is one placeholder: a list")


def _payload_alone(at: str, text: str) -> Iterator[Problem]:
    one = only_reference(text)
    if one is None or one.step is None or one.what != "payload":
        message = "`file_issues` is one placeholder, or a list of them: payloads of other steps"
        yield Problem("wrong_type", at, message)


def of_text(at: str, text: str, scope: Scope) -> Iterator[Problem]:
    """Yield what is wrong with the placeholders of a text."""
    found, unknown = references(text)
    for words in unknown:
        message = f"{{{{{words}}}}} is no placeholder; these are inputs.NAME, steps.ID.output, steps.ID.payload, item"
        yield Problem("unknown_reference", at, message)
    for one in found:
        yield from _named(at, one, scope)


def _of_area(at: str, text: str, scope: Scope) -> Iterator[Problem]:
    found, unknown = references(text)
    if found:
        yield from of_text(at, "".join(f"{{{{{one.text}}}}}" for one in found if one.step is None), scope)
    if unknown or any(one.step is not None for one in found):
        message = "a pattern may hold inputs and {{item}} only: it is compared before any step has run"
        yield Problem("unknown_reference", at, message)
        return
    why = patterns.fault(re.sub(r"\{\{.*?\}\}", "x", text) if found else text)
    if why is not None:
        yield Problem("bad_pattern", at, f"{text!r}: {why}")


def _named(at: str, one: Reference, scope: Scope) -> Iterator[Problem]:
    if one.input is not None and one.input not in scope.inputs:
        yield misspelt("unknown_reference", at, f"there is no input {one.input!r}", one.input, scope.inputs)
    elif one.step is not None and one.step not in scope.steps:
        yield misspelt("unknown_reference", at, f"there is no step {one.step!r}", one.step, scope.steps)
    elif one.step is not None and one.step not in scope.above:
        message = f"the step {one.step!r} need not have ended here: put it into `depends_on`"
        yield Problem("not_an_ancestor", at, message)
    elif one.is_item and not scope.has_item:
        yield Problem("unknown_reference", at, "{{item}} is known only where the step has a `for_each`")


def _said(at: str, value: str | tuple[str, ...] | None) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield at, value
    else:
        yield from ((f"{at}/{number}", text) for number, text in enumerate(value or ()))


def writes_files(step: Step) -> bool:
    """Return whether a step leaves files for those behind it; a scratch copy is nobody else's."""
    return step.apply_from is not None or (step.agent == "make" and step.workspace_mode != "scratch")


def is_looked_at(step: Step, by_id: Mapping[str, Step]) -> bool:
    """Return whether what a step writes is reviewed or measured; a patch also where it was made."""
    source = by_id.get(step.apply_from or "")
    return any(one is not None and (one.accept or one.review) for one in (step, source))


def going_along(steps: Mapping[str, Step], plan: Plan, above: Collection[str]) -> tuple[str, ...]:
    """Return the ids of these steps and of all that their writers were written over, in order.

    Two writers whose areas meet work one after the other, and the later one's files hold the work of the earlier one.
    So that is published, too, whether the `publish` names it or not, and nothing that nobody reviews or measures.
    """
    under = {id_ for one in above if writes_files(steps[one]) for id_ in plan.before(one)}
    return tuple(id_ for id_ in plan.order if id_ in above or id_ in under)


def unreviewed(recipe: Recipe, plan: Plan) -> Iterator[Problem]:
    """Yield the writers that nobody looks at and whose work would be published by way of another one's files."""
    by_id = {step.id: step for step in recipe.steps}
    above = ancestors(recipe.steps)
    for number, step in enumerate(recipe.steps):
        if step.kind is not Kind.PUBLISH:
            continue
        for one in going_along(by_id, plan, above[step.id]):
            if writes_files(by_id[one]) and not is_looked_at(by_id[one], by_id):
                message = f"{step.id!r} publishes what {one!r} wrote, too: what it depends on is written over that"
                yield Problem("unreviewed_writer", f"/steps/{number}", message)


def given_of(recipe: Recipe, values: Mapping[str, str]) -> tuple[PlanAndTasks | None, tuple[Problem, ...]]:
    """Return the plan that a sound recipe brings along with these inputs, None where none is, and what is wrong."""
    for number, step in enumerate(recipe.steps):
        if step.given is not None:
            return _read(f"/steps/{number}/given", step.given, lambda one: values[one.input or ""])
    return None, ()


def of_given(at: str, step: Step, inputs: tuple[str, ...]) -> Iterator[Problem]:
    """Yield what is wrong with the plan that a step brings along."""
    if step.given is None or step.phase is None:
        return
    if step.phase != "plan":
        yield Problem("unknown_key", f"{at}/given", "'given' is what the phase 'plan' would draft")
        return
    at, scope = f"{at}/given", Scope(inputs, (), frozenset())
    found = [problem for place, text in _texts(at, step.given) for problem in of_text(place, text, scope)]
    yield from found or _read(at, step.given, lambda _: "x")[1]


def _read(
    at: str, given: Mapping[str, object], value_of: Callable[[Reference], str]
) -> tuple[PlanAndTasks | None, tuple[Problem, ...]]:
    value = cast("dict[str, object]", texts_changed(at, given, lambda _, text: filled(text, value_of)))
    try:
        plan = PlanAndTasks.model_validate_json(json.dumps(value))
    except ValidationError as error:
        faults = explain(error.errors(), value, PlanAndTasks.model_json_schema())
        return None, tuple(Problem("wrong_type", f"{at}{fault.pointer}", fault.text) for fault in faults)
    tasks = tasks_from_split(SplitReport(tasks=plan.tasks), map(str, range(1, len(plan.tasks) + 1)))
    if isinstance(tasks, Malformed):
        return None, (Problem("wrong_type", f"{at}{tasks.pointer}", tasks.sentence),)
    return plan, ()


def _texts(at: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, Mapping):
        for key, one in cast("Mapping[str, object]", value).items():
            yield from _texts(f"{at}/{key}", one)
    elif isinstance(value, list | tuple):
        for number, one in enumerate(cast("list[object]", value)):
            yield from _texts(f"{at}/{number}", one)


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
    above = ancestors(recipe.steps)
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
            Problem("not_for_agents", f"{at}/{key}", f"{step.id!r} chooses its {key}, and an agent's own may not")
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


def ancestors(steps: Sequence[Step]) -> dict[str, frozenset[str]]:
    """Return what each step depends on, directly or not; of a circle each member depends on all."""
    by_id = {step.id: step for step in steps}
    found: dict[str, frozenset[str]] = {}
    for step in steps:
        seen: set[str] = set()
        waiting = [step.id]
        while waiting:
            for name in by_id[waiting.pop()].depends_on:
                if name in found:  # known to the end already
                    seen |= {name, *found[name]}
                elif name in by_id and name not in seen:
                    seen.add(name)
                    waiting.append(name)
        found[step.id] = frozenset(seen)
    return found
