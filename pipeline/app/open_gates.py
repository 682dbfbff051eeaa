"""Knows which approval points a run waits at: what is asked, what to read, what each answer does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.matrix.recipes.next_steps import behind
from pipeline.outcomes import Reason, status_word
from pipeline.run.gates import GateAnswer, gate_place
from pipeline.run.summary_facts import last_note
from pipeline.steps.recipe_context import ReadRun
from pipeline.vocabulary import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.matrix.recipes.model import Step as RecipeStep
    from pipeline.run.recipe_run import RecipeRun
    from pipeline.run.run import Run

ANSWER = "answer"
"""What the answer to a question is called, in `NAME=VALUE`."""


@dataclass(frozen=True)
class StepGate:
    """A gate that waits.

    Args:
        step: Its name.
        asks: Whether it needs an answer (`ask`), or only a yes.
        question: What it says, with the values that it names.
        read: What the steps left that it depends on; absolute paths.
        answers: The commands that answer it, and what each does.
    """

    step: str
    asks: bool
    question: str
    read: tuple[str, ...]
    answers: tuple[GateAnswer, ...]


def open_gates(run: RecipeRun) -> tuple[StepGate, ...]:
    """Return the gates that the run waits at, in order; none while it is driven, or when it has ended."""
    if (run.state.outcome is None and not run.queued) or run.state.has_ended:
        return ()
    names = [name for name, lane in run.state.lanes.items() if lane.gate is not None]
    return tuple(_gate(run, name, alone=len(names) == 1) for name in names)


def gates_place(names: tuple[str, ...]) -> str:
    """Return where a run waits, in words."""
    return f"approval point{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _gate(run: RecipeRun, name: str, *, alone: bool) -> StepGate:
    here = ReadRun(run, name)
    step = run.machine.steps[run.state.lanes[name].step]
    return StepGate(
        step=name,
        asks=step.gate == "ask",
        question=here.with_values(step.prompt or "").strip(),
        read=tuple(str(path) for id_ in step.depends_on for path in here.left_by(id_)),
        answers=tuple(_answers(run, step, f"{run.info.run_id}{'' if alone else f' --step {name}'}")),
    )


def _answers(run: RecipeRun, step: RecipeStep, named: str) -> Iterator[GateAnswer]:
    waiting = [one.id for one in run.recipe.steps if step.id in one.depends_on]
    then = f"goes on with {', '.join(waiting)}" if waiting else "ends the step"
    if step.gate == "ask":
        yield GateAnswer(f'redfirst approve {named} {ANSWER}="..."', f"{then}, and hands on your answer")
    else:
        yield GateAnswer(f"redfirst approve {named}", then)
    if step.back_to is None:
        does = (
            f"ends the step as failed, so that {', '.join(waiting)} cannot begin"
            if waiting
            else "ends the step as failed"
        )
    else:
        does = f"does {step.back_to} again, from your feedback, then {', '.join(behind(run.machine, step.back_to))}"
    yield GateAnswer(f'redfirst reject {named} --feedback "..."', does)


def require_no_gate(run: RecipeRun) -> None:
    """Refuse to go on with a run that only a person's answer takes further.

    Raises:
        UserError: it waits at a gate.
    """
    gates = open_gates(run) if run.state.reason is Reason.APPROVAL else ()
    if gates:
        raise UserError(
            f"{run.info.run_id} waits at {gates_place(tuple(one.step for one in gates))}.",
            Reason.APPROVAL,
            actions=tuple(one.command for gate in gates for one in gate.answers),
        )


def meant(run: RecipeRun, step: str | None) -> StepGate:
    """Return the gate that is answered.

    Raises:
        UserError: none waits, or it is not clear which one is meant.
    """
    gates, name = open_gates(run), run.info.run_id
    if not gates:
        ended = run.state.has_ended
        action = f"redfirst show {name}" if ended else f"redfirst resume {name}"
        how = f"has ended ({run.state.outcome}, {run.state.reason})" if ended else "waits at no approval point"
        raise UserError(f"{name} {how}.", Reason.USAGE, actions=(action,))
    fitting = [gate for gate in gates if step in {None, gate.step}]
    if len(fitting) == 1:
        return fitting[0]
    place = gates_place(tuple(gate.step for gate in gates))
    if fitting:
        raise UserError(
            f"{name} waits at {place}. Say which one is answered: --step.",
            Reason.USAGE,
            details={"steps": [gate.step for gate in gates]},
            actions=tuple(gate.answers[0].command for gate in gates),
        )
    raise UserError(
        f"{name} waits at {place}, not at {step}: nothing was answered. Look at it: redfirst show {name}",
        Reason.USAGE,
        actions=(f"redfirst show {name}",),
    )


def require_gate(run: Run, at: str | None) -> str:
    """Return the gate that a run waits at.

    Raises:
        UserError: it waits at none, or not at the one that is meant.
    """
    here, name = run.state.trunk, run.info.run_id
    if here.step is not Step.GATE or here.gate is None:
        outcome = run.state.outcome
        stands = "queued" if run.queued else status_word(outcome, run.state.reason) if outcome else "running"
        answered = " It was answered already." if run.queued else ""
        look = f"redfirst show {name}"
        ended = run.state.has_ended
        then = f"Look at it: {look}" if ended else f"To go on: redfirst resume {name}"
        raise UserError(
            f"{name} does not wait at an approval point ({stands}, {here.step}).{answered} {then}",
            Reason.USAGE,
            actions=(look,) if ended else (f"redfirst resume {name}",),
        )
    if at not in {None, here.gate}:
        raise UserError(
            f"{name} waits at {gate_place(run)}, not at approval point {at}: nothing was answered. Look at what it "
            f"waits for: redfirst show {name}",
            Reason.USAGE,
            actions=(f"redfirst show {name}",),
        )
    return here.gate


def require_unasked(run: Run) -> None:
    """Refuse to go on with a run of an issue that only a person's answer takes further.

    Raises:
        UserError: it waits at a gate, or for an answer.
    """
    name = run.info.run_id
    if run.state.trunk.step is Step.GATE:
        ways = (f"redfirst approve {name}", f'redfirst reject {name} --feedback "..."')
        raise UserError(f"{name} waits at {gate_place(run)}: {', or '.join(ways)}", Reason.APPROVAL, actions=ways)
    if run.state.reason is Reason.INPUT:
        raise UserError(
            f"{name} waits for an answer of yours: {last_note(run)}",
            Reason.INPUT,
            actions=(f"redfirst show {name} --packet", f'redfirst answer {name} "..."'),
        )
