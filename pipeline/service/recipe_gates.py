"""Shows and answers the gates that a recipe's run waits at: what is asked, what to read, what each answer does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.engine.events import GateAnswered
from pipeline.engine.run import sha256_hex
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.recipes.machine import behind
from pipeline.runs.gates import GateAnswer
from pipeline.steps import recipe_gate
from pipeline.steps.recipe_context import ReadRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pipeline.engine.events import Answerer
    from pipeline.recipes.model import Step
    from pipeline.runs.recipe_run import RecipeRun
    from pipeline.steps.recipe_context import RecipeContext

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


def _answers(run: RecipeRun, step: Step, named: str) -> Iterator[GateAnswer]:
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


def approve(
    ctx: RecipeContext, by: Answerer, step: str | None, given: Mapping[str, str], look: Callable[[str], object]
) -> None:
    """Let the run through a gate; what a person answers is handed on.

    Args:
        ctx: The run.
        by: Who approves.
        step: The gate that is meant; None for the only one that waits.
        given: What they answer, where it asks a question.
        look: Raises a UserError where what is approved cannot be shown, or is not what they looked at.

    Raises:
        UserError: no gate is open, it is not clear which one is meant, or what is given is not what it asks for.
    """
    gate = meant(ctx.run, step)
    unknown = sorted(given.keys() - {ANSWER})
    if unknown or (given and not gate.asks):
        takes = f'{ANSWER}="..."' if gate.asks else "no value"
        raise UserError(
            f"Approval point {gate.step} takes {takes}, and not {', '.join(unknown or given)}.", Reason.USAGE
        )
    answer = given.get(ANSWER, "")
    if gate.asks and not answer.strip(" .\t\n"):  # a line of advice as it was printed has dots there
        raise UserError(
            f"Approval point {gate.step} asks a question: {gate.question or 'see its recipe'}",
            Reason.USAGE,
            actions=(gate.answers[0].command,),
        )
    look(gate.step)
    ctx.go_on()
    ctx.say(f"{gate.step}: approved")
    event = recipe_gate.approved(ctx.seen_from(gate.step), answer)
    ctx.run.answer_gate("approved", event, _hashes(ctx, gate), by)


def reject(ctx: RecipeContext, by: Answerer, step: str | None, feedback: str, look: Callable[[str], object]) -> None:
    """Say no at a gate: the step has failed, or what it names is done again with the feedback.

    Raises:
        UserError: no gate is open, it is not clear which one is meant, or the feedback is empty.
    """
    gate = meant(ctx.run, step)
    if not feedback.strip(" .\t\n"):
        raise UserError("--feedback says nothing: what is done next has nothing to go by.", Reason.USAGE)
    look(gate.step)
    ctx.go_on()
    number = len(ctx.run.journal.of(GateAnswered)) + 1
    event = recipe_gate.rejected(ctx.seen_from(gate.step), feedback, number)
    ctx.run.answer_gate("rejected", event, _hashes(ctx, gate), by)
    to = ctx.run.machine.step_of(gate.step).back_to
    again = to is not None and gate.step not in ctx.run.state.settled
    ctx.say(f"{gate.step}: rejected -> {f'{to} and what is behind it are done again' if again else 'failed'}")


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


def _hashes(ctx: RecipeContext, gate: StepGate) -> dict[str, str]:
    """Return the sha256 of what a person was shown, by its name in the run."""
    names = (str(Path(path).relative_to(ctx.run.folder)) for path in gate.read)
    return {name: sha256_hex(ctx.run.read(name)) for name in names}
