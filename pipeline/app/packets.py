"""Collects what an approver sees at a gate, with a digest: an answer to something else does not count."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from pipeline.app.documents import DiffFile, Document, FindingLine, TaskShown, reviews_shown, tasks_shown, title_of
from pipeline.app.open_gates import meant, require_gate
from pipeline.errors import UserError
from pipeline.matrix.engine.journal_kinds import GateOpened, InputRequested
from pipeline.matrix.routing.state import TaskStatus
from pipeline.outcomes import Outcome, Reason, status_word
from pipeline.repo import GitError, Repository
from pipeline.run.drafts import drafts_of
from pipeline.run.gates import GateAnswer, open_gate
from pipeline.run.journal_kinds import StepStarted
from pipeline.run.recipe_run import RecipeRun, load_run
from pipeline.run.spending import spent
from pipeline.run.summary_facts import usage_of, work_tree
from pipeline.testing.measure.task_evidence import name_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipeline.matrix.engine.journal import Line
    from pipeline.run.run import Run
    from pipeline.run.spending import AnyRun

QUESTION: Final = "question"
"""What stands for a gate where an agent asks."""
_ISSUE: Final = "issue.md"


class PacketFile(Document):
    """A file of the run as it lies there now; of one that `counts` a person's edit counts when it is approved."""

    name: str
    sha256: str
    counts: bool
    text: str


class PacketDiff(Document):
    """What would be approved, against where the run began."""

    old: str
    new: str
    files: tuple[DiffFile, ...]
    patch: str


class Packet(Document):
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
    tasks: tuple[TaskShown, ...]
    diff: PacketDiff | None
    commits: tuple[str, ...]
    findings: tuple[FindingLine, ...]
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
        name, outcome = run.info.run_id, run.state.outcome
        stands = "queued" if run.queued else status_word(outcome, run.state.reason) if outcome else "running"
        raise UserError(
            f"{name} waits for no answer ({stands}). Look at it: redfirst show {name}",
            Reason.USAGE,
            actions=(f"redfirst show {name}",),
        )
    return run.journal.of(InputRequested)[-1].data.question


def _of_question(run: Run) -> Packet:
    name, run_id = require_question(run), run.info.run_id
    asked = run.journal.of(InputRequested)
    place = f"question {len(asked)}"
    names = [one for one in (_ISSUE, *drafts_of(run.state), name) if one in run.artifacts]
    files = _files(run, place, names, ())
    return Packet(
        run_id=run_id,
        issue=run.issue,
        title=title_of(run.folder),
        gate=QUESTION,
        place=place,
        asked_at=opened(run, QUESTION).at,
        question=files[-1].text,
        files=files,
        tasks=tasks_shown(run),
        diff=None,
        commits=(),
        findings=(),
        notes=(),
        cost_usd=usage_of(run).cost_usd,
        dispatches=run.state.dispatches,
        spent=str(spent(run)),
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
    tasks = tuple(task for task in tasks_shown(run) if task.state is not TaskStatus.DROPPED)
    for task in tasks:
        if task.evidence is None and name_of(task.id) in run.artifacts:
            raise _shut(run, gate.place, f"{name_of(task.id)} cannot be read")
    reviews = [one for one in reviews_shown(run) if one.path in set(names)]
    return Packet(
        run_id=run.info.run_id,
        issue=run.issue,
        title=title_of(run.folder),
        gate=name,
        place=gate.place,
        asked_at=opened(run, name).at,
        question="",
        files=_files(run, gate.place, (one for one in names if one in run.artifacts), edits),
        tasks=tasks,
        diff=_diff(repository, run, gate.place),
        commits=gate.commits,
        findings=reviews[-1].open if reviews else (),
        notes=(*gate.notes, *(f"{one.dispatch}: {note}" for one in run.results.values() for note in one.notes)),
        cost_usd=usage_of(run).cost_usd,
        dispatches=run.state.dispatches,
        spent=str(spent(run)),
        answers=gate.answers,
    )


def _of_recipe(run: RecipeRun, at: str | None) -> Packet:
    gate, taken = meant(run, at), spent(run)
    place = f"approval point {gate.step}"
    return Packet(
        run_id=run.info.run_id,
        issue=None,
        title=run.recipe.name,
        gate=gate.step,
        place=place,
        asked_at=opened(run, gate.step).at,
        question=gate.question,
        files=_files(run, place, (_below(run, path) for path in gate.read), ()),
        tasks=(),
        diff=None,
        commits=(),
        findings=(),
        notes=tuple(f"{one.dispatch}: {note}" for one in run.results.values() for note in one.notes),
        cost_usd=taken.cost_usd if taken.asked and not taken.unpriced else None,
        dispatches=run.state.dispatches,
        spent=str(taken),
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
        files = tuple(map(DiffFile.model_validate, repository.numstat(old, new)))
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
