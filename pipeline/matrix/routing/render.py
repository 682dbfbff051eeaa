"""Prints the matrix: tables and diagrams for people, a document for programs, the generated blocks of DESIGN.md.

Everything is printed from `matrix.MATRIX` and `matrix.BOUNDS`; a test holds DESIGN.md to it. Nothing performs I/O.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, assert_never

from pipeline.matrix.engine.protocols import action_value
from pipeline.matrix.routing.actions import Again, AskPerson, Forward, Goto, LeaveOut, NextTask, Retry, Return, Stop
from pipeline.matrix.routing.matrix import ASKS, BOUNDS, GATES, MATRIX, steps_of
from pipeline.matrix.routing.plain_words import (
    PHASES,
    exhausted_words,
    limit_words,
    limited_words,
    routed_words,
    step_words,
)
from pipeline.outcomes import Outcome
from pipeline.progress import few
from pipeline.vocabulary import Loop, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pipeline.matrix.routing.actions import Action, Row


SCHEMA: Final = "redfirst.routes/1"

_BLOCK: Final = re.compile(
    r"(?P<begin>^<!-- generated:(?P<name>[\w-]+) -->$\n).*?(?P<end>^<!-- end generated -->$)", re.DOTALL | re.MULTILINE
)


def table_markdown() -> str:
    """Return the matrix as a Markdown table, in the order of the phases."""
    cells = [
        (
            _phase(row),
            row.step.name if row.step else "any",
            row.source,
            f"`{row.signal}`: {row.says}",
            row.given.value if row.given else "",
            routed_words(row.action, row.step),
        )
        for row in MATRIX
    ]
    return _markdown(("Phase", "Step", "Signal source", "Signal", "Given", "Action"), cells)


def bounds_markdown() -> str:
    """Return the bounds as a Markdown table."""
    cells = [(f"`{loop}`", limit_words(loop), exhausted_words(bound)) for loop, bound in BOUNDS.items()]
    return _markdown(("Loop", "Limit", "When exhausted"), cells)


def groups() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return matrix and bounds for a terminal: the signals of each step with what follows, then the limits."""
    found: dict[str, list[tuple[str, str]]] = {}
    for row in MATRIX:
        given = f"if {row.given}: " if row.given else ""
        title = step_words(row.step) if row.step else "in any step"
        found.setdefault(title, []).append((row.signal.value, given + limited_words(row.action, row.step)))
    limits = [
        (loop.value, limit_words(loop) + ("" if bound.limit is None else f", then {exhausted_words(bound)}"))
        for loop, bound in BOUNDS.items()
    ]
    return [*found.items(), ("limits, and what follows where they are reached", limits)]


def as_json() -> dict[str, Any]:
    """Return the matrix as a document: the values, and the same in words."""
    return {
        "schema": SCHEMA,
        "rows": [
            {
                "id": row.id,
                "phase": _phase(row),
                "steps": [step.value for step in Step if step in steps_of(row)],
                "source": row.source,
                "signal": row.signal.value,
                "given": row.given.value if row.given else None,
                "says": row.says,
                "action": action_value(row.action),
                "words": routed_words(row.action, row.step),
            }
            for row in MATRIX
        ],
        "bounds": [
            {
                "loop": loop.value,
                "limit": bound.limit,
                "counts": "reviews" if bound.reviews else "edges",
                "scope": bound.scope,
                "exhausted": action_value(bound.exhausted),
                "by_role": {role.value: action_value(action) for role, action in bound.by_role.items()},
                "words": exhausted_words(bound),
            }
            for loop, bound in BOUNDS.items()
        ],
        "slots": {step.value: [role.value for role in roles] for step, roles in ASKS.items()},
        "gates": {name: [signal.value for signal in answers] for name, answers in GATES.items()},
    }


# --- the generated blocks of DESIGN.md -------------------------------------------------------------------------------


def blocks() -> Mapping[str, str]:
    """Return the text of each generated block of DESIGN.md, by name."""
    return {
        "matrix": table_markdown(),
        "bounds": bounds_markdown(),
        "pipeline": _fenced(pipeline_mermaid()),
        "phase7": _fenced(phase7_mermaid()),
        "issue-lifecycle": _fenced(issue_lifecycle_mermaid()),
    }


def refresh(text: str, generated: Mapping[str, str] | None = None) -> str:
    """Return *text* with each block between its markers as it is generated now.

    Raises:
        LookupError: a marker names a block that does not exist.
    """
    known = blocks() if generated is None else generated

    def renewed(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in known:
            raise LookupError(f"no generated block is called {name}; there are {', '.join(known)}")
        return f"{found['begin']}{known[name]}\n{found['end']}"

    return _BLOCK.sub(renewed, text)


def _fenced(diagram: str) -> str:
    return f"```mermaid\n{diagram}\n```"


def _phase(row: Row) -> str:
    return row.step.phase if row.step else "any"


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


Style = Literal["free", "paid", "exhausted"]

_SHOWN: Final = 3
_ASKERS: Final = (Step.STUB, Step.WRITE_TESTS, Step.SEAM, Step.IMPLEMENT)
_WRITERS: Final = (*_ASKERS, Step.BUILD)
_SPENT_BY_ROWS: Final = {row.action.loop for row in MATRIX if isinstance(row.action, Retry | Return | Again)}
_IN_A_TASK: Final = (*_WRITERS, Step.CHECK_TESTS, Step.DIAGNOSE, Step.INTEGRATE)
_BEGINNINGS: Final[Mapping[Step, str]] = {
    Step.WRITE_TESTS: "next task",
    Step.STUB: "next task, stub first",
    Step.CHECK_TESTS: "next task, evidence regression",
    Step.BUILD: "the issue, one writer",
}


@dataclass(frozen=True)
class Edge:
    """One way from a step; `to` is a step, the queue of tasks, or an outcome."""

    to: Step | Outcome | Literal["queue"]
    style: Style
    label: str


def edges(row: Row, at: Step) -> Iterator[Edge]:
    """Yield the ways that a row opens from *at*: its own, then those where limits are reached."""
    given = f" ({row.given.value})" if row.given else ""
    yield from _edges(row.action, row.signal.value + given, "free", at)


def _edges(action: Action, label: str, style: Style, at: Step) -> Iterator[Edge]:
    paid: Style = "exhausted" if style == "exhausted" else "paid"
    match action:
        case Goto(to):
            yield Edge(to, style, label)
        case Retry(to, loop):
            yield Edge(to, paid, label)
            if style != "exhausted" or loop not in _SPENT_BY_ROWS:  # else its end is drawn where a row spends it
                yield from _when_empty(loop, at)
        case Return(loop):
            yield from (Edge(to, paid, label) for to in _ASKERS)
            yield from _when_empty(loop, at)
        case NextTask():
            yield Edge("queue", style, label)
            if at is Step.IMPLEMENT:
                yield Edge(Step.INTEGRATE, style, f"{label}, beside others")
        case Stop(outcome):
            yield Edge(outcome, style, label)
        case AskPerson(loop):
            yield Edge(Outcome.PARKED, paid, label)
            yield from _when_empty(loop, at)
        case Again() | LeaveOut() | Forward():
            return  # they stay in the step, or go where the row behind the gate goes
        case _:
            assert_never(action)


def _when_empty(loop: Loop, at: Step) -> Iterator[Edge]:
    if BOUNDS[loop].limit is not None:
        yield from _edges(BOUNDS[loop].exhausted, f"{loop.value} used up", "exhausted", at)


_PHASES: Final[Mapping[str, tuple[str, tuple[Step, ...]]]] = {
    **{
        f"P{phase.number.replace('.', '')}": (
            f"Phase {phase.number}: {phase.name}",
            tuple(step for step in phase.steps if step is not Step.DIAGNOSE),
        )
        for phase in PHASES
    },
    "P7D": ("Phase 7: Diagnose", (Step.DIAGNOSE,)),
    "PF": ("Failure handler", (Step.FAILURE,)),
}
_NODE_OF: Final = {step: node for node, (_, steps) in _PHASES.items() for step in steps}
_ARROWS: Final[Mapping[Style, str]] = {"free": "-->", "paid": "-->", "exhausted": "-.->"}


def pipeline_mermaid() -> str:
    """Return the way of a run through the phases; dotted: what follows when a limit is reached.

    Left out, since they would hide the rest: ways inside a phase, refused and parked runs, the rows of any dispatch.
    """
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in MATRIX:
        if row.step is None or row.step not in _NODE_OF:
            continue
        here = _NODE_OF[row.step]
        for edge in edges(row, row.step):
            for there, which in _nodes(edge, row.step):
                labels = found.setdefault((here, there, _ARROWS[edge.style]), [])
                label = edge.label + which
                labels += [label] if label not in labels else []
    lines = ["flowchart TD"]
    lines += [f'    {node}["{title}"]' for node, (title, _) in _PHASES.items()]
    lines += ['    DONE(["Done"])', '    FAILED(["Failed"])']
    for (here, there, arrow), labels in found.items():
        if here != there:
            lines.append(f'    {here} {arrow}|"{few(labels, _SHOWN)}"| {there}')
    return "\n".join(lines)


def _nodes(edge: Edge, at: Step) -> tuple[tuple[str, str], ...]:
    """Return the nodes of an edge, each with what the label must add."""
    match edge.to:
        case Step() as to:
            return ((_NODE_OF[to], ""),)
        case "queue":
            if at is Step.ISSUE:
                return (("P7", ""),)
            first = at in {Step.SPLIT, Step.REVIEW_SPLIT}
            return (("P6", ""),) if first else (("P6", ", next task"), ("P8", ", last task"))
        case Outcome.COMPLETED | Outcome.COMPLETED_WITH_BLOCKERS:
            return (("DONE", ""),)
        case Outcome.FAILED:
            return (("FAILED", ""),)
        case Outcome.REJECTED | Outcome.PARKED | Outcome.CANCELLED | Outcome.PARTIAL:
            return ()
        case _:
            assert_never(edge.to)


def phase7_mermaid() -> str:
    """Return what can happen within one task (phases 6 and 7), all signals named."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in MATRIX:
        if row.step not in _IN_A_TASK or row.step is None:
            continue
        for edge in edges(row, row.step):
            labels = found.setdefault((_state(row.step), _target(edge)), [])
            labels += [edge.label] if edge.label not in labels else []
    lines = ["stateDiagram-v2"]
    lines += [f'    state "{step.name} ({step.phase})" as {_state(step)}' for step in _IN_A_TASK]
    lines += ['    state "next task, or FINAL_REVIEW (8)" as Next']
    lines += [f'    state "{step.name} ({step.phase})" as {_state(step)}' for step in (Step.PLAN, Step.SPLIT)]
    lines += ['    state "FAILURE" as Failure', '    state "parked" as Parked']
    lines += [f"    [*] --> {_state(step)}: {label}" for step, label in _BEGINNINGS.items()]
    lines += [f"    {here} --> {there}: {', '.join(labels)}" for (here, there), labels in found.items()]
    lines += [f"    {end} --> [*]" for end in ("Next", "Plan", "Split", "Failure", "Parked")]
    return "\n".join(lines)


def _state(step: Step) -> str:
    return "".join(part.capitalize() for part in step.value.split("-"))


def _target(edge: Edge) -> str:
    match edge.to:
        case Step() as to:
            return _state(to)
        case "queue":
            return "Next"
        case outcome:
            return outcome.value.capitalize()


@dataclass(frozen=True)
class IssueTransition:
    """How an issue's status changes; `row` is the row of the matrix that does it, if a run does."""

    before: str
    after: str
    when: str
    row: str | None = None


ISSUE_TRANSITIONS: Final = (
    IssueTransition("[*]", "Todo", "issue file created"),
    IssueTransition("Todo", "InProgress", "a run claims it", "issue/CLAIMED"),
    IssueTransition("InProgress", "InProgress", "the run is parked or cancelled, and resumed"),
    IssueTransition("InProgress", "Done", "the run is published", "publish/PUBLISHED"),
    IssueTransition("InProgress", "Todo", "the run fails, with a comment", "failure/HANDLED"),
    IssueTransition("InProgress", "Todo", "the run is abandoned"),
    IssueTransition("Done", "[*]", "nothing is left to do"),
)


def issue_lifecycle_mermaid() -> str:
    """Return how an issue moves through its statuses."""
    lines = ["stateDiagram-v2", '    state "In Progress" as InProgress']
    for change in ISSUE_TRANSITIONS:
        label = change.when + (f" ({change.row})" if change.row else "")
        lines.append(f"    {change.before} --> {change.after}: {label}")
    lines += [
        "    note right of Done",
        "        follow-ups become sub-issues in status Todo,",
        "        labelled bug, followup or tech-debt",
        "    end note",
    ]
    return "\n".join(lines)
