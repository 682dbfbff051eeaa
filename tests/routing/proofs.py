"""What is proved about the routing matrix, as functions over its two tables, so that mutants can be proved wrong too.

Each function returns what is wrong, in words; an empty list is the proof. The expectations are written out here, and
derived from nothing in `pipeline.matrix.routing.matrix`.
A table that is checked against itself can lose a row unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import product
from typing import Final, Literal, assert_never

from pipeline.matrix.routing.actions import (
    Action,
    Again,
    AskPerson,
    Forward,
    Given,
    Goto,
    LeaveOut,
    NextTask,
    Retry,
    Return,
    Row,
    Stop,
)
from pipeline.matrix.routing.matrix import ASKS, Bound, steps_of
from pipeline.vocabulary import Loop, Role, Signal, Step

Matrix = tuple[Row, ...]
Bounds = Mapping[Loop, Bound]

_DISPATCH: Final = "MALFORMED VIOLATION TIMED_OUT UNAVAILABLE BUDGET ESCAPE CANCELLED ENV_BROKEN"
_STUCK: Final = "NEEDS_FILE INCOMPLETE CANNOT_PROCEED"

SIGNALS: Final[Mapping[Step, str]] = {
    Step.SANITY: "OK PRECONDITION BASELINE_IMPOSSIBLE ESCAPE ENV_BROKEN CANCELLED",
    Step.ISSUE: "CLAIMED NOT_FOUND NOT_TODO DEPENDENCY_UNMET DEPENDENCY_MISSING CLAIMED_ELSEWHERE CANCELLED",
    Step.PLAN: f"DRAFTED HYGIENE BASELINE_IMPOSSIBLE QUESTION {_DISPATCH}",
    Step.REVIEW_PLAN: f"ACCEPTABLE NOT_ASKED CONVERGED NEEDS_WORK BLOCK {_DISPATCH}",
    Step.SPLIT: f"DRAFTED ONE_TASK PROVED NOT_ASKED HYGIENE BASELINE_IMPOSSIBLE QUESTION {_DISPATCH}",
    Step.REVIEW_SPLIT: f"ACCEPTABLE NOT_ASKED CONVERGED NEEDS_WORK BLOCK {_DISPATCH}",
    Step.STUB: f"STUBBED STUB_DIRTY {_STUCK} {_DISPATCH}",
    Step.WRITE_TESTS: "RED DISPUTED NOT_TESTABLE CHANGED_OLD_TEST MISSING_SEAM ILLEGAL_RED STRUCTURAL_ONLY "
    f"RED_UNSTABLE PASSES_ALREADY TESTS_KEPT TESTS_DOUBTFUL PROOF_PASSES UNNOTICED_FAULTS NEEDS_FILE "
    f"BLOCKED {_DISPATCH}",
    Step.CHECK_TESTS: f"ACCEPTABLE NEEDS_WORK {_DISPATCH}",
    Step.SEAM: f"SEAM_DONE REGRESSION NO_CHANGE {_STUCK} {_DISPATCH}",
    Step.IMPLEMENT: "GREEN GREEN_INCOMPLETE ENTRY_FLAG TEST_DESIGN SPLIT_NEEDED REGRESSION NO_CHANGE NOT_GREEN "
    f"HIDDEN_REGRESSION STALE_XFAIL GREEN_UNSTABLE UNNOTICED_FAULTS {_STUCK} {_DISPATCH}",
    Step.BUILD: "GREEN GREEN_INCOMPLETE ILLEGAL_RED PASSES_ALREADY STRUCTURAL_ONLY RED_UNSTABLE HIDDEN_REGRESSION "
    f"NOT_GREEN REGRESSION GREEN_UNSTABLE UNNOTICED_FAULTS NO_CHANGE INCOMPLETE NOT_TESTABLE {_DISPATCH}",
    Step.DIAGNOSE: "PRODUCTION_LOGIC TEST_DESIGN AMENDED REFUSED SPEC SPLIT_NEEDED PLAN ALREADY_DONE ENVIRONMENT "
    f"TESTS_KEPT WRONG_REPORT QUESTION {_DISPATCH}",
    Step.INTEGRATE: "ACCEPTED CONFLICT TEST_CONFLICT NOT_GREEN REGRESSION HIDDEN_REGRESSION RED_GONE "
    "ESCAPE ENV_BROKEN CANCELLED",
    Step.FINAL_REVIEW: f"ACCEPTABLE CONVERGED FIX PROVED COSMETIC PLAN WRITTEN NOT_WRITTEN {_DISPATCH}",
    Step.PUBLISH: "PUBLISHED REGRESSION BRANCH_MOVED TIP_MOVED WORKTREE_CHANGED SIGNING_FAILED "
    "ESCAPE ENV_BROKEN CANCELLED",
    Step.FAILURE: "HANDLED HANDLER_FAILED",
    Step.GATE: "APPROVED REJECTED_TO_PLAN REJECTED_TO_SPLIT REJECTED_TO_FIX",
}

SITUATIONS: Final[Mapping[Step, tuple[frozenset[Given], ...]]] = {
    **dict.fromkeys((Step.ISSUE, Step.FINAL_REVIEW, Step.GATE), (frozenset(), frozenset({Given.ONE_WRITER}))),
    Step.CHECK_TESTS: (frozenset(), frozenset({Given.FROM_BUILD})),
    Step.SPLIT: (frozenset(), frozenset({Given.FIX_TASKS})),
    Step.DIAGNOSE: (
        frozenset(),
        frozenset({Given.FROM_STUB}),
        frozenset({Given.FROM_WRITE_TESTS}),
        frozenset({Given.FROM_SEAM}),
        frozenset({Given.FROM_BUILD}),
    ),
    Step.PUBLISH: (frozenset(), frozenset({Given.BLOCKERS}), frozenset({Given.NOTHING_CHANGED})),
}
"""Which givens can hold together in a step; in the others none does."""

SPECIAL: Final = {
    (Step.ISSUE, Signal.CLAIMED, Given.ONE_WRITER),
    (Step.FINAL_REVIEW, Signal.FIX, Given.ONE_WRITER),
    (Step.FINAL_REVIEW, Signal.PROVED, Given.ONE_WRITER),
    (Step.GATE, Signal.REJECTED_TO_FIX, Given.ONE_WRITER),
    (Step.CHECK_TESTS, Signal.ACCEPTABLE, Given.FROM_BUILD),
    (Step.CHECK_TESTS, Signal.NEEDS_WORK, Given.FROM_BUILD),
    *(
        (Step.DIAGNOSE, signal, Given.FROM_BUILD)
        for signal in (Signal.PRODUCTION_LOGIC, Signal.TEST_DESIGN, Signal.SPEC, Signal.SPLIT_NEEDED)
    ),
    (Step.SPLIT, Signal.DRAFTED, Given.FIX_TASKS),
    (Step.DIAGNOSE, Signal.PRODUCTION_LOGIC, Given.FROM_STUB),
    (Step.DIAGNOSE, Signal.PRODUCTION_LOGIC, Given.FROM_WRITE_TESTS),
    (Step.DIAGNOSE, Signal.PRODUCTION_LOGIC, Given.FROM_SEAM),
    (Step.PUBLISH, Signal.PUBLISHED, Given.BLOCKERS),
    (Step.PUBLISH, Signal.PUBLISHED, Given.NOTHING_CHANGED),
}


def totality(matrix: Matrix) -> list[str]:
    """Each signal of each step has exactly one row in each situation, and there is no other row."""
    wrong: list[str] = []
    for step in Step:
        expected = {Signal(word) for word in SIGNALS[step].split()}
        rows = [row for row in matrix if step in steps_of(row)]
        wrong += [f"{step}: no rule speaks of {row.signal}" for row in rows if row.signal not in expected]
        for signal, facts in product(sorted(expected), SITUATIONS.get(step, (frozenset(),))):
            here = [row for row in rows if row.signal is signal]
            special = [row for row in here if row.given in facts]
            holding = special or [row for row in here if row.given is None]
            if len(holding) != 1:
                wrong.append(f"{step} {signal} given {sorted(facts)}: {len(holding)} rows")
    given = {(row.step, row.signal, row.given) for row in matrix if row.given is not None}
    return wrong + [f"a given is missing or new: {entry}" for entry in given ^ SPECIAL]


# --- the graph of edges ----------------------------------------------------------------------------------------------

Kind = Literal["free", "paid", "task"]
Edge = tuple[str, Kind]

STOP: Final = "stop"
_ASKERS: Final = (Step.STUB, Step.WRITE_TESTS, Step.SEAM, Step.IMPLEMENT, Step.BUILD)
_ASKED_BY: Final = {
    None: Step.IMPLEMENT,
    Given.FROM_STUB: Step.STUB,
    Given.FROM_WRITE_TESTS: Step.WRITE_TESTS,
    Given.FROM_SEAM: Step.SEAM,
    Given.FROM_BUILD: Step.BUILD,
}
_GATES: Final = ("plan", "split", "commit")
_REJECTED_AT: Final = {
    Signal.REJECTED_TO_PLAN: ("plan", "split", "commit"),
    Signal.REJECTED_TO_SPLIT: ("split", "commit"),
    Signal.REJECTED_TO_FIX: ("commit",),
}
_BEHIND: Final[Mapping[str, Action]] = {"plan": Goto(Step.SPLIT), "split": NextTask(), "commit": Goto(Step.PUBLISH)}
_TASK_BEGINS: Final = (Step.STUB, Step.WRITE_TESTS, Step.CHECK_TESTS, Step.FINAL_REVIEW, Step.PUBLISH)


class ExhaustedForeverError(Exception):
    """Limits that refer to each other when they are reached: the machine would never come to an action."""


def _nodes(step: Step) -> tuple[str, ...]:
    """The nodes of a step: DIAGNOSE has one for each asker, CHECK_TESTS two, a gate one for each place of it."""
    if step is Step.DIAGNOSE:
        return tuple(f"diagnose<{asker}" for asker in _ASKERS)
    if step is Step.CHECK_TESTS:
        return step.value, f"{step.value}<{Step.BUILD}"
    if step is Step.GATE:
        return tuple(f"gate:{name}" for name in _GATES)
    return (step.value,)


def _step(node: str) -> Step:
    return Step(node.partition("<")[0].partition(":")[0])


def _asker(node: str) -> Step:
    step = _step(node)
    if "<" in node:
        return Step(node.partition("<")[2])
    return {Step.CHECK_TESTS: Step.WRITE_TESTS, Step.INTEGRATE: Step.IMPLEMENT}.get(step, step)


def _entered(node: str, to: Step) -> str:
    if to is Step.CHECK_TESTS and _asker(node) is Step.BUILD:
        return f"{to}<{Step.BUILD}"
    return f"diagnose<{_asker(node)}" if to is Step.DIAGNOSE else to.value


def _holds(row: Row, node: str) -> bool:
    step = _step(node)
    if step not in steps_of(row):
        return False
    if step is Step.DIAGNOSE and row.signal is Signal.PRODUCTION_LOGIC:
        return _ASKED_BY[row.given] is _asker(node)
    if step in {Step.DIAGNOSE, Step.CHECK_TESTS} and (step, row.signal, Given.FROM_BUILD) in SPECIAL:
        return (row.given is Given.FROM_BUILD) is (_asker(node) is Step.BUILD)
    if step is Step.DIAGNOSE and row.signal in {Signal.TESTS_KEPT, Signal.WRONG_REPORT}:  # only after WRITE_TESTS
        return _asker(node) is Step.WRITE_TESTS
    if step is Step.GATE and row.signal in _REJECTED_AT:
        return node.partition(":")[2] in _REJECTED_AT[row.signal]
    return True


def _follow(action: Action, node: str, bounds: Bounds, role: Role | None, empty: tuple[Loop, ...] = ()) -> list[Edge]:
    """The edges of an action and of all that can follow when its limit, and the next, is reached."""
    match action:
        case Goto(to):
            return [(_entered(node, to), "free"), *_gates_before(node, action)]
        case Retry(to, loop):
            return [(_entered(node, to), _paid(loop, node, bounds)), *_when_empty(loop, node, bounds, role, empty)]
        case Return(loop):
            return [(_asker(node).value, _paid(loop, node, bounds)), *_when_empty(loop, node, bounds, role, empty)]
        case Again(loop) | AskPerson(loop):
            return [(node, _paid(loop, node, bounds)), *_when_empty(loop, node, bounds, role, empty)]
        case LeaveOut():
            return []  # the step has one slot less from here on, which cannot happen for ever
        case NextTask():
            beside: list[Edge] = [(Step.INTEGRATE.value, "free")] if _step(node) is Step.IMPLEMENT else []
            return [*beside, *((to.value, "task") for to in _next_of(node)), *_gates_before(node, action)]
        case Forward():
            return _follow(_BEHIND[node.partition(":")[2]], node, bounds, role, empty)
        case Stop():
            return [(STOP, "free")]
        case _:
            assert_never(action)


def _next_of(node: str) -> tuple[Step, ...]:
    """Where the next task begins; the only one of one writer begins behind ISSUE, and nothing comes after it."""
    if _step(node) is Step.ISSUE:
        return (Step.BUILD,)
    return (Step.FINAL_REVIEW,) if _asker(node) is Step.BUILD else _TASK_BEGINS


def _paid(loop: Loop, node: str, bounds: Bounds) -> Kind:
    by_a_person = _step(node) is Step.GATE
    return "paid" if by_a_person or bounds[loop].limit is not None else "free"


def _when_empty(loop: Loop, node: str, bounds: Bounds, role: Role | None, empty: tuple[Loop, ...]) -> list[Edge]:
    if loop is Loop.HUMAN:  # unbounded on purpose: never empty
        return []
    if loop in empty:
        raise ExhaustedForeverError(" -> ".join((*empty, loop)))
    bound = bounds[loop]
    then = bound.by_role.get(role, bound.exhausted) if role else bound.exhausted
    return _follow(then, node, bounds, role, (*empty, loop))


def _gates_before(node: str, action: Goto | NextTask) -> list[Edge]:
    match _step(node), action:
        case Step.REVIEW_PLAN, Goto(Step.SPLIT):
            return [("gate:plan", "free")]
        case Step.REVIEW_SPLIT, NextTask():
            return [("gate:split", "free")]
        case step, Goto(Step.PUBLISH) if step is not Step.GATE:
            return [("gate:commit", "free")]
        case _:
            return []


def _graph(matrix: Matrix, bounds: Bounds, kinds: frozenset[Kind]) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {node: set() for step in Step for node in _nodes(step)}
    for node, row in product(graph, matrix):
        if not _holds(row, node):
            continue
        roles = ASKS[_step(node)] if isinstance(row.action, Again | AskPerson) else (None,)
        for role in roles:
            graph[node] |= {to for to, kind in _follow(row.action, node, bounds, role) if kind in kinds}
    return graph


def unpaid_cycle(matrix: Matrix, bounds: Bounds) -> list[str]:
    """No way round without paying, through whatever limits are reached (matrix 2)."""
    try:
        TopologicalSorter(_graph(matrix, bounds, frozenset({"free"}))).prepare()
    except CycleError as error:
        return ["unpaid: " + " <- ".join(error.args[1])]
    except ExhaustedForeverError as error:
        return [f"reached limits: {error}"]
    return []


def unpaid_refill(matrix: Matrix, bounds: Bounds) -> list[str]:
    """Taking the next task shortens the queue; only SPLIT fills it, and a task is taken up again only by
    BUILD, so that neither may come again without paying."""
    try:
        graph = _graph(matrix, bounds, frozenset({"free", "task"}))
    except ExhaustedForeverError as error:
        return [f"reached limits: {error}"]
    filled = [step for step in (Step.SPLIT, Step.BUILD) if step.value in _reachable(graph, graph[step.value])]
    return [f"the queue is refilled without paying: {step}" for step in filled]


def dead_end(matrix: Matrix, bounds: Bounds) -> list[str]:
    """From every step the run can still end, and every step says something."""
    try:
        graph = _graph(matrix, bounds, frozenset({"free", "paid", "task"}))
    except ExhaustedForeverError as error:
        return [f"reached limits: {error}"]
    silent = [f"{node} has no row" for node, out in graph.items() if not out]
    return silent + [f"no end can be reached from {node}" for node in graph if STOP not in _reachable(graph, {node})]


def _reachable(graph: Mapping[str, set[str]], start: set[str]) -> set[str]:
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += graph.get(node, ())
    return seen


# --- the limits ------------------------------------------------------------------------------------------------------


def unbounded(matrix: Matrix, bounds: Bounds) -> list[str]:
    """Every loop is finite but the one that costs a person's act, and that one stands only at gates."""
    wrong = [f"{loop} has no bound" for loop in Loop if loop not in bounds]
    wrong += [f"{loop} is unbounded" for loop, b in bounds.items() if b.limit is None and loop is not Loop.HUMAN]
    for row in matrix:
        if (
            isinstance(row.action, Retry | Return | Again | AskPerson)
            and row.action.loop is Loop.HUMAN
            and row.step is not Step.GATE
        ):
            wrong.append(f"{row.id} spends {Loop.HUMAN} without a person")
    return wrong


_TO_PLAN: Final = frozenset({Loop.PLAN_REVIEW, Loop.PLAN_REWORK})
_TO_NEW_SPLIT: Final = _TO_PLAN | {Loop.SPLIT_REWORK, Loop.FINAL_REVIEW}
_TO_NEW_TASK: Final = _TO_NEW_SPLIT | {Loop.SPLIT_REVIEW, Loop.HYGIENE}
_TO_NEW_RED: Final = _TO_NEW_TASK | {
    Loop.TEST_DESIGN,
    Loop.STUB_RETRY,
    Loop.TEST_REWRITE,
    Loop.TEST_DIAGNOSIS,
    Loop.SCOPE_AMEND,
    Loop.SEAM,
    Loop.UNNOTICED_FAULTS,
    Loop.TASK_REDO,
}

RENEWED_BY: Final[Mapping[str, frozenset[Loop]]] = {
    "run": frozenset(),
    "plan revision": frozenset({Loop.PLAN_REWORK}),
    "split revision": _TO_NEW_SPLIT,
    "draft": _TO_NEW_SPLIT | {Loop.SPLIT_REVIEW},
    "task": _TO_NEW_TASK,
    "task and red tree": _TO_NEW_RED,
    "slot": frozenset(Loop) - {Loop.REASK, Loop.UNUSABLE, Loop.HUMAN, Loop.DISPATCHES},
    "row of a role": frozenset(),  # no row spends it: it ends early what the limits of others end anyway
}
"""Whose edges a scope can begin anew after. HUMAN renews much, and each time costs a person's act."""


def limits_that_fill_each_other(_matrix: Matrix, bounds: Bounds) -> list[str]:
    """A limit may be filled again only by paying from one further out, so that the outermost runs dry in the end."""
    graph = {loop: RENEWED_BY[bound.scope] for loop, bound in bounds.items() if loop is not Loop.HUMAN}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return ["limits fill each other: " + " <- ".join(error.args[1])]
    return []


PROOFS: Final[Mapping[str, Callable[[Matrix, Bounds], list[str]]]] = {
    "totality": lambda matrix, _: totality(matrix),
    "unpaid_cycle": unpaid_cycle,
    "unpaid_refill": unpaid_refill,
    "dead_end": dead_end,
    "unbounded": unbounded,
    "limits": limits_that_fill_each_other,
}
