"""Tells what a recipe would do before anybody is asked: the order, who sees and writes what, the most it can take."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.judge.policy.paths import TRACKER
from pipeline.matrix.recipes.model import SHARED_WRITERS, Kind, Recipe, Step
from pipeline.matrix.recipes.reading import Problem, misspelt
from pipeline.matrix.recipes.rules import ancestors, unreviewed
from pipeline.matrix.recipes.step_table import BOUNDS as STEP_BOUNDS
from pipeline.matrix.recipes.step_table import Bound
from pipeline.matrix.recipes.templates import Reference, filled, listed, only_reference, references
from pipeline.matrix.routing.matrix import BOUNDS, DISPATCHES_PER_TASK
from pipeline.matrix.routing.state import Phases
from pipeline.matrix.scheduling import graph
from pipeline.matrix.scheduling.graph import Conflict, Posture, planned
from pipeline.matrix.scheduling.graph import Step as Node
from pipeline.matrix.scheduling.patterns import EVERYTHING, Pattern, fault, parsed
from pipeline.vocabulary import Loop, Role

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

MOST_OWN: Final = BOUNDS[Loop.OWN_STEPS].limit or 0
"""So many steps of its own may stand between the tasks of an issue and the review of the result."""
_KEYS: Final = frozenset(
    {"id", "agent", "prompt", "depends_on", "write_set", "attempts", "model", "effort", "timeout_s"}
)
"""What such a step may say."""


def phases_of(recipe: Recipe) -> Phases | None:
    """Return who is asked on the way of an issue, None where a sound recipe is none, or cannot be run (`why_not`)."""
    reviewers = {step.phase: tuple(map(Role, step.review)) for step in recipe.steps if step.phase is not None}
    if not reviewers or why_not(recipe) is not None:
        return None
    own = _own(recipe)
    order = planned([Node(step.id, step.depends_on) for step in recipe.steps], side_by_side=1).order
    return Phases(
        plan=reviewers.get("plan", ()),
        split=reviewers.get("split", ()),
        result=reviewers["review"],
        own_split="split" in reviewers,
        given=any(step.given is not None for step in recipe.steps),
        one_writer="build" in reviewers,
        own=tuple(id_ for id_ in order if id_ in own),
    )


def why_not(recipe: Recipe) -> str | None:
    """Return what keeps a sound recipe from being run, None where it can be.

    Beside the phases of an issue stand only steps of @make, between its tasks and the review of the result.
    """
    if all(step.phase is None for step in recipe.steps):
        return None
    return next(_faults(recipe, _own(recipe)), None)


def _own(recipe: Recipe) -> dict[str, Step]:
    return {step.id: step for step in recipe.steps if step.phase is None}


def _faults(recipe: Recipe, own: dict[str, Step]) -> Iterator[str]:
    above = ancestors(recipe.steps)
    at = {step.phase: step.id for step in recipe.steps if step.phase is not None}
    work = at["build"] if "build" in at else at["tasks"]
    for id_, step in own.items():
        if step.kind is not Kind.AGENT or step.agent != "make":
            yield f"{id_!r} stands beside the phases of an issue, and is no step of `agent: make`"
        elif work not in above[id_] or id_ not in above[at["review"]]:
            yield f"{id_!r} has to stand between {work!r} and {at['review']!r}: write it with `insert_after`"
        elif keys := sorted(step.model_dump(exclude_defaults=True).keys() - _KEYS):
            yield f"{id_!r} has {', '.join(keys)}, which mean nothing between the phases of an issue"
        elif any(one.what == "payload" for one in references(step.prompt or "")[0]):
            yield f"{id_!r} names a payload, and no step before it has one"
    if len(own) > MOST_OWN:
        yield f"{len(own)} steps stand between the phases of an issue, {MOST_OWN} may"


ATTEMPTS: Final = 2
"""How often a step is asked, unless it says otherwise."""
REVIEWS: Final = 3
"""How often the work of a step is reviewed."""
MOST_ITEMS: Final = 100
"""The most steps that a `for_each` becomes."""
_ASKED_IN: Final[Mapping[str, tuple[str, ...]]] = {
    "plan": ("orchestrator",),
    "split": ("orchestrator",),
    "tasks": ("test", "make"),
    "build": ("make",),
}
"""Whom a phase asks besides its reviewers; @check judges in `tasks` what is in doubt."""
NOTE: Final = "a note to a person"
_PHASE_WORDS: Final[Mapping[str, str]] = {
    "issue": "redfirst claims the issue",
    "plan": "@orchestrator drafts the plan",
    "split": "@orchestrator cuts it into tasks, unless the plan is one task",
    "tasks": "for each task @test writes tests and @make makes them pass",
    "build": "@make writes tests and code in one go",
    "review": "the result",
    "publish": "redfirst puts the commits on the branch",
}
_ITEM: Final = "\0"
_FIRST, _EACH = 30, 10
"""What a run may ask: so many dispatches, and so many more for each step."""


@dataclass(frozen=True)
class Planned:
    """A step as it would run.

    Args:
        id: Its id.
        wave: With which start it begins, from 1, if each step took equally long.
        kind: The key of the file that says what it is.
        who: What does it, in words.
        asks: The roles that it asks.
        sees: The steps whose work it sees.
        writes: The patterns that it may change.
        after: Steps that it waits for only because both touch the same files, and the patterns that meet.
        times: How often it is there at most, for a `for_each`.
        dispatches: The most it can ask of agents; None where the phases of an issue decide.
    """

    id: str
    wave: int
    kind: str
    who: str
    asks: tuple[str, ...]
    sees: tuple[str, ...]
    writes: tuple[str, ...]
    after: tuple[Conflict, ...]
    times: int
    dispatches: int | None


@dataclass(frozen=True)
class Preview:
    """A whole recipe as it would run.

    Args:
        steps: In the order of their start.
        limit: How many dispatches it may take.
        least: Of the way of an issue, how many it takes where the issue is one task and nothing goes wrong.
    """

    steps: tuple[Planned, ...]
    limit: int
    least: int | None = None

    @property
    def dispatches(self) -> int | None:
        """Return the most that it can ask of agents, None where the phases of an issue decide."""
        known = [step.dispatches for step in self.steps if step.dispatches is not None]
        return min(sum(known), self.limit) if len(known) == len(self.steps) else None

    @property
    def gates(self) -> int:
        """Return for how many answers of a person it waits."""
        return sum(step.times for step in self.steps if step.kind == Kind.GATE and step.who != NOTE)


def inputs_of(
    recipe: Recipe, given: Mapping[str, str], *, complete: bool = True
) -> tuple[dict[str, str], tuple[Problem, ...]]:
    """Return the value of each input, and what is wrong with the given ones.

    Args:
        recipe: A sound recipe.
        given: Values by name.
        complete: Whether the required ones have to be among them; who only looks need not give any.
    """
    names = [one.name for one in recipe.inputs]
    found = [
        misspelt("input_invalid", "/inputs", f"there is no input {name!r}", name, names)
        for name in given
        if name not in names
    ]
    values = {one.name: one.default or "" for one in recipe.inputs} | {k: v for k, v in given.items() if k in names}
    for number, one in enumerate(recipe.inputs):
        if (one.required or one.type == "issue") and not values[one.name]:
            values[one.name] = values[one.name] or f"<{one.name}>"
            if not complete:
                continue
            message = f"the input {one.name!r} is required: {one.name}=VALUE"
            found.append(Problem("input_invalid", f"/inputs/{number}", message))
        elif one.type == "path" and fault(values[one.name]) is not None:
            message = f"{one.name}={values[one.name]}: {fault(values[one.name])}"
            found.append(Problem("input_invalid", f"/inputs/{number}", message))
    return values, tuple(found)


def preview(
    recipe: Recipe, values: Mapping[str, str], gates: Collection[str] = (), tracker: str = TRACKER
) -> Preview | tuple[Problem, ...]:
    """Return how a sound recipe would run with these inputs and gates, or what of it they make unsound.

    *tracker* is the folder of the issues, which steps that file some write to.
    """
    problems = [
        Problem("bad_pattern", f"/steps/{number}/{key}/{place}", f"{text!r} with these inputs: {why}")
        for number, step in enumerate(recipe.steps)
        for key in ("read_set", "write_set")
        for place, text in enumerate(getattr(step, key) or ())
        if (why := fault(_with(text, values), tracker)) is not None
    ]
    if problems:
        return tuple(problems)
    by_id = {step.id: step for step in recipe.steps}
    plan = planned_graph(recipe, values)
    if beside := tuple(unreviewed(recipe, plan)):
        return beside
    own_split = any(step.phase == "split" for step in recipe.steps)
    steps = [_planned(by_id[id_], by_id, plan, values, tracker, own_split=own_split) for id_ in plan.order]
    phases = phases_of(recipe)
    in_order = tuple(sorted(steps, key=lambda step: step.wave))
    if phases is not None:
        return Preview(in_order, (BOUNDS[Loop.DISPATCHES].limit or 0) + DISPATCHES_PER_TASK, phases.least(gates))
    return Preview(in_order, most_dispatches(len(steps)))


def most_dispatches(steps: int) -> int:
    """Return how many dispatches a run of so many steps may ask."""
    return _FIRST + _EACH * steps


def planned_graph(recipe: Recipe, values: Mapping[str, str]) -> graph.Plan:
    """Return the order of the steps of a sound recipe with these inputs."""
    return graph.planned([_node(step, values) for step in recipe.steps], side_by_side=recipe.max_concurrency)


def _planned(
    step: Step, by_id: Mapping[str, Step], plan: graph.Plan, values: Mapping[str, str], tracker: str, *, own_split: bool
) -> Planned:
    area = tuple(one.text for one in area_of(step, values)) if step.writes else ()
    return Planned(
        step.id,
        plan.waves[step.id],
        step.kind.value,
        who(step, own_split=own_split),
        _asks(step),
        step.depends_on,
        area if step.kind is not Kind.FILE_ISSUES else (tracker,),
        plan.after[step.id],
        _times(step, by_id, values),
        _dispatches(step, by_id, values, _rounds(step, by_id, plan)),
    )


def _rounds(step: Step, by_id: Mapping[str, Step], plan: graph.Plan) -> int:
    """Return how often a step is done at most: a person may send it, or what stands before it, back."""
    back = [one.back_to for one in by_id.values() if one.back_to is not None]
    above = {step.id, *plan.before(step.id)} if back else set[str]()
    return 1 + STEP_BOUNDS[Bound.HUMAN][0] * sum(one in above for one in back)


def _asks(step: Step) -> tuple[str, ...]:
    own = _ASKED_IN.get(step.phase or "", ()) if step.kind is Kind.PHASE else (step.agent,) if step.agent else ()
    return tuple(dict.fromkeys((*own, *step.review)))


def who(step: Step, *, own_split: bool = True) -> str:
    """Return what does a step, in words; of the plan also whether it brings the tasks."""
    match step.kind:
        case Kind.AGENT:
            return " ".join(filter(None, (f"@{step.agent}", step.model))) + _reviewed(step)
        case Kind.RUN:
            return " ".join(step.run or ())
        case Kind.GATE:
            return "a person" if step.gate != "note" else NOTE
        case Kind.TESTS | Kind.PUBLISH | Kind.FILE_ISSUES:
            return "redfirst"
        case Kind.PHASE:
            said = _PHASE_WORDS[step.phase or ""]
            if step.given is not None:
                said = "the plan and its tasks are given; @orchestrator drafts what comes back"
            elif step.phase == "plan" and not own_split:
                said = "@orchestrator drafts plan and tasks"
            return said + _reviewed(step)
        case Kind.APPLY_FROM:
            return f"the patch of {step.apply_from}"


def _reviewed(step: Step) -> str:
    return f", reviewed by {' and '.join(f'@{role}' for role in step.review)}" if step.review else ""


def _node(step: Step, values: Mapping[str, str]) -> graph.Step:
    posture = posture_of(step)
    reads = () if step.kind is Kind.GATE else _area(step, step.read_set, values)
    return graph.Step(step.id, step.depends_on, posture, reads, area_of(step, values))


def area_of(step: Step, values: Mapping[str, str]) -> tuple[Pattern, ...]:
    """Return what a step may change, as far as the inputs say."""
    return _area(step, step.write_set, values)


def posture_of(step: Step) -> Posture:
    """Return what a step does to files."""
    if step.kind in SHARED_WRITERS or step.workspace_mode == "shared":
        return Posture.SHARED
    if not step.writes:
        return Posture.READER
    return Posture.SCRATCH if step.workspace_mode == "scratch" else Posture.ISOLATED


def _area(step: Step, texts: tuple[str, ...] | None, values: Mapping[str, str]) -> tuple[Pattern, ...]:
    everything = texts is None or step.kind in SHARED_WRITERS
    return tuple(parsed(_widened(text, values)) for text in ((EVERYTHING,) if everything else texts or ()))


def _widened(text: str, values: Mapping[str, str]) -> str:
    """Return the pattern of a text; with an item in it all below the folder before that, since it may be a path."""
    if not any(one.is_item for one in references(text)[0]):
        return _with(text, values)
    known, _, _ = filled(text, lambda one: _ITEM if one.is_item else values[one.input or ""]).partition(_ITEM)
    folder, slash, _ = known.rpartition("/")
    return f"{folder}{slash}{EVERYTHING}"


def _with(text: str, values: Mapping[str, str]) -> str:
    def value(one: Reference) -> str:
        return values[one.input] if one.input is not None else "*"

    return filled(text, value)


def _times(step: Step, by_id: Mapping[str, Step], values: Mapping[str, str]) -> int:
    if step.for_each is None:
        return 1
    source = only_reference(step.for_each)
    if source is not None and source.input is not None and (known := listed(values[source.input])):
        return min(len(known), MOST_ITEMS)
    payload = by_id[source.step].payload if source is not None and source.step is not None else None
    most = payload.get("maxItems") if isinstance(payload, dict) and not (source and source.path) else None
    return min(most, MOST_ITEMS) if isinstance(most, int) else MOST_ITEMS


def _dispatches(step: Step, by_id: Mapping[str, Step], values: Mapping[str, str], rounds: int) -> int | None:
    if step.kind is Kind.PHASE:
        return None
    if step.kind is not Kind.AGENT:
        return 0
    reviews, reviewers = (REVIEWS, len(step.review)) if step.review else (1, 0)
    asked = (step.attempts or ATTEMPTS) + reviews - 1  # each way back from a review is one more
    once = asked + (reviews + 1) * reviewers  # of reviewers one is asked again
    return once * _times(step, by_id, values) * rounds


def mermaid(shown: Preview) -> str:
    """Return the graph; a dotted arrow stands for steps that wait only because both touch the same files."""
    lines = ["flowchart TD", *(f'    {_name(step.id)}["{_label(step)}"]' for step in shown.steps)]
    for step in shown.steps:
        lines += [f"    {_name(above)} --> {_name(step.id)}" for above in step.sees]
        lines += [
            f'    {_name(one.earlier)} -.->|"{_plain(" ~ ".join(dict.fromkeys(one.patterns)))}"| {_name(step.id)}'
            for one in step.after
        ]
    return "\n".join(lines)


def _label(step: Planned) -> str:
    times = f" x {step.times}" if step.times > 1 else ""
    return _plain(f"{step.id}: {step.who}{times}")


def _name(id_: str) -> str:
    """Return an id that is no word of Mermaid's own, such as `end`."""
    return f"s_{re.sub('[^a-z0-9]', '_', id_)}"


def _plain(text: str) -> str:
    """Return a text that ends neither the label nor its line; Mermaid knows entities by their number."""
    return re.sub(r"[^\w .,:@*/~=-]", lambda match: f"#{ord(match[0])};", text)
