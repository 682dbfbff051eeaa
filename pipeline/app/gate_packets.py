"""Knows the gates that a run waits at, and collects what an approver sees there, with a digest.

An answer to something else than was seen does not count.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from pipeline.app import documents
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.matrix.engine.journal_kinds import GateOpened, InputRequested
from pipeline.matrix.recipes.next_steps import behind
from pipeline.matrix.routing.state import TaskStatus
from pipeline.outcomes import Outcome, Reason
from pipeline.repo import GitError, Repository
from pipeline.run.drafts import drafts_of
from pipeline.run.gates import GateAnswer, gate_place, open_gate
from pipeline.run.journal_kinds import StepStarted
from pipeline.run.recipe_run import RecipeRun, load_run
from pipeline.run.spending import spent
from pipeline.run.summary_facts import last_note, usage_of, work_tree
from pipeline.steps.recipe_context import Words
from pipeline.testing.measure.task_evidence import name_of
from pipeline.vocabulary import Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pipeline.matrix.engine.journal import Line
    from pipeline.matrix.recipes.model import Step as RecipeStep
    from pipeline.run.run import Run
    from pipeline.run.spending import AnyRun


QUESTION: Final = "question"
"""What stands for a gate where an agent asks."""
_ISSUE: Final = "issue.md"


class PacketFile(Frozen):
    """A file of the run as it lies there now; of one that `counts` a person's edit counts when it is approved."""

    name: str
    sha256: str
    counts: bool
    text: str


class PacketDiff(Frozen):
    """What would be approved, against where the run began."""

    old: str
    new: str
    files: tuple[documents.DiffFile, ...]
    patch: str


class Packet(Frozen):
    """What an approver sees at a gate (`show --packet`). `digest` is of all the rest: `approve --seen DIGEST`."""

    schema_: Literal["redfirst.packet/1"] = Field(default="redfirst.packet/1", alias="schema")
    ok: Literal[True] = True
    run_id: str
    issue: str | None
    title: str
    gate: str
    """plan, split or commit, or `question`; of a recipe's run the name of the step."""
    place: str
    asked_at: str
    question: str
    files: tuple[PacketFile, ...]
    tasks: tuple[documents.TaskShown, ...]
    diff: PacketDiff | None
    commits: tuple[str, ...]
    findings: tuple[documents.FindingLine, ...]
    """What the last review of this stage left open."""
    notes: tuple[str, ...]
    """Which edit of a person a new draft undoes, and what the gate of changes noted of what agents left."""
    cost_usd: float | None
    dispatches: int
    spent: str
    answers: tuple[GateAnswer, ...]
    digest: str = ""


def packet(repository: Repository, folder: Path, at: str | None = None) -> Packet:
    """Return what an approver sees at the gate of a run.

    Args:
        repository: As seen from the worktree that keeps the run.
        folder: Of the run.
        at: The gate that is meant, of a recipe's run the step; None for the only one that waits.

    Raises:
        UserError: no gate waits, it is not the one that is meant, or something of it cannot be shown.
    """
    return packet_of(repository, load_run(folder, driving=False), at)


def packet_of(repository: Repository, run: Run | RecipeRun, at: str | None = None) -> Packet:
    """Return the packet of a run that is read already (see `packet`)."""
    made = _of_recipe(run, at) if isinstance(run, RecipeRun) else _of_issue(repository, run, at)
    said = json.dumps(made.model_dump(mode="json", by_alias=True), sort_keys=True, separators=(",", ":"))
    return made.model_copy(update={"digest": hashlib.sha256(said.encode()).hexdigest()})


def require_seen(repository: Repository, run: Run | RecipeRun, at: str | None, seen: str | None) -> Packet:
    """Return what waits when it can be shown, and is what somebody has *seen*, if they say.

    Raises:
        UserError: it cannot; or it is something else than they saw: reason `stale`.
    """
    now = packet_of(repository, run, at)
    if seen is not None and seen != now.digest:
        name = run.info.run_id
        raise UserError(
            f"{name} waits at {now.place} with something else than you looked at. Nothing was answered. Look again: "
            f"redfirst show {name} --packet",
            Reason.STALE,
            details={"seen": seen, "digest": now.digest, "gate": now.gate},
            actions=(f"redfirst show {name} --packet",),
        )
    return now


def require_question(run: Run) -> str:
    """Return the artifact with the question that a run waits with.

    Raises:
        UserError: it waits with none.
    """
    if run.state.reason is not Reason.INPUT or run.state.outcome is not Outcome.PARKED:
        name = run.info.run_id
        raise UserError(
            f"{name} waits for no answer ({documents.standing_of(run)}). Look at it: redfirst show {name}",
            Reason.USAGE,
            actions=(f"redfirst show {name}",),
        )
    return run.journal.of(InputRequested)[-1].data.question


def _packet(run: Run | RecipeRun, gate: str, place: str, **own: object) -> Packet:
    """Return a packet, with nothing where the gate has no *own* word."""
    nothing = {"issue": None, "question": "", "tasks": (), "diff": None, "commits": (), "findings": (), "notes": ()}
    about = {"run_id": run.info.run_id, "gate": gate, "place": place, "asked_at": opened(run, gate).at}
    took = {"dispatches": run.state.dispatches, "spent": str(spent(run))}
    return Packet.model_validate({**nothing, **about, **took, **own})


def _of_question(run: Run) -> Packet:
    name, run_id = require_question(run), run.info.run_id
    place = f"question {len(run.journal.of(InputRequested))}"
    files = _files(run, place, [one for one in (_ISSUE, *drafts_of(run.state), name) if one in run.artifacts], ())
    return _packet(
        run,
        QUESTION,
        place,
        issue=run.issue,
        title=documents.title_of(run.folder),
        question=files[-1].text,
        files=files,
        tasks=documents.tasks_shown(run),
        cost_usd=usage_of(run).cost_usd,
        answers=(
            GateAnswer(f'redfirst answer {run_id} "..."', "asks again, with your answer"),
            GateAnswer(f"redfirst abandon {run_id}", "ends the run without a commit. Its work stays as work.patch"),
        ),
    )


def _of_issue(repository: Repository, run: Run, at: str | None) -> Packet:
    if run.state.reason is Reason.INPUT and at is None:
        return _of_question(run)
    name = require_gate(run, at)
    gate = open_gate(run)
    if gate is None:  # answered, and its driver died before it was decided
        raise _shut(run, name, "its answer is half on record", (f"redfirst approve {run.info.run_id}",))
    edits = {_below(run, path) for path in gate.edit}
    names = (_ISSUE, *drafts_of(run.state), *edits, *(_below(run, path) for path in gate.read))
    tasks = tuple(task for task in documents.tasks_shown(run) if task.state is not TaskStatus.DROPPED)
    for task in tasks:
        if task.evidence is None and name_of(task.id) in run.artifacts:
            raise _shut(run, gate.place, f"{name_of(task.id)} cannot be read")
    reviews = [one for one in documents.reviews_shown(run) if one.path in set(names)]
    return _packet(
        run,
        name,
        gate.place,
        issue=run.issue,
        title=documents.title_of(run.folder),
        files=_files(run, gate.place, (one for one in names if one in run.artifacts), edits),
        tasks=tasks,
        diff=_diff(repository, run, gate.place),
        commits=gate.commits,
        findings=reviews[-1].open if reviews else (),
        notes=(*gate.notes, *(f"{one.dispatch}: {note}" for one in run.results.values() for note in one.notes)),
        cost_usd=usage_of(run).cost_usd,
        answers=gate.answers,
    )


def _of_recipe(run: RecipeRun, at: str | None) -> Packet:
    gate, taken = meant(run, at), spent(run)
    place = f"approval point {gate.step}"
    return _packet(
        run,
        gate.step,
        place,
        title=run.recipe.name,
        question=gate.question,
        files=_files(run, place, (_below(run, path) for path in gate.read), ()),
        notes=tuple(f"{one.dispatch}: {note}" for one in run.results.values() for note in one.notes),
        cost_usd=taken.cost_usd if taken.asked and not taken.unpriced else None,
        answers=gate.answers,
    )


def _below(run: AnyRun, path: str) -> str:
    return path.removeprefix(f"{run.folder}/")


def opened(run: AnyRun, gate: str) -> Line:
    """Return the line of the journal by which a gate was opened last, or a question asked."""
    if gate == QUESTION and not isinstance(run, RecipeRun):
        return run.journal.of(InputRequested)[-1]
    kind, said = (StepStarted, "step") if isinstance(run, RecipeRun) else (GateOpened, "gate")
    return next(line for line in reversed(run.journal.of(kind)) if getattr(line.data, said) == gate)


def _files(run: AnyRun, place: str, names: Iterable[str], counting: Iterable[str]) -> tuple[PacketFile, ...]:
    found: list[PacketFile] = []
    for name in dict.fromkeys(names):
        try:
            content = run.read(name)
        except OSError as error:
            raise _shut(run, place, f"{name} cannot be read ({error.strerror})") from error
        digest, text = hashlib.sha256(content).hexdigest(), content.decode("utf-8", "replace")
        found.append(PacketFile(name=name, sha256=digest, counts=name in set(counting), text=text))
    return tuple(found)


def _diff(repository: Repository, run: Run, place: str) -> PacketDiff | None:
    old, new = run.state.start, work_tree(run)
    if old == new:
        return None
    try:
        files = tuple(map(documents.DiffFile.from_fields, repository.numstat(old, new)))
        return PacketDiff(old=old, new=new, files=files, patch=repository.patch(old, new))
    except GitError as error:
        raise _shut(run, place, f"its files are not in git any more ({error.stderr.strip()})") from error


def _shut(run: AnyRun, place: str, why: str, actions: tuple[str, ...] = ()) -> UserError:
    """Return the refusal of what cannot be shown: nobody approves what they cannot see."""
    name = run.info.run_id
    return UserError(
        f"{name} waits at {place}, and its packet cannot be shown: {why}. It stays shut. Nothing was answered.",
        Reason.USAGE,
        path=str(run.folder),
        actions=actions or (f"redfirst show {name}", f"redfirst abandon {name}"),
    )


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
    here = Words(run, name)
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
        stands = documents.standing_of(run)
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
