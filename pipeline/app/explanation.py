"""Builds the document of `explain`: each decision with its row, signal, facts and limits, and what followed.

Nothing is told that is not on disk. What happened between two decisions is read from the journal lines between them;
an artifact that was written again since is named as such and not quoted, because it is not what was decided on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, assert_never

from pydantic import Field

from pipeline.app import documents
from pipeline.app.next_lines import texts_as_typed
from pipeline.app.run_result import why_not_ready
from pipeline.data_types import Frozen
from pipeline.judge.reports.markdown import parse
from pipeline.matrix.engine.journal_kinds import ArtifactWritten, ConfigChanged, DecisionMade, GateAnswered, RunResumed
from pipeline.matrix.engine.protocols import TRUNK, action_value
from pipeline.matrix.engine.run import sha256_hex
from pipeline.matrix.routing import actions
from pipeline.matrix.routing.matrix import BOUNDS, MATRIX
from pipeline.matrix.routing.plain_words import WRONG
from pipeline.outcomes import PAUSED, Outcome, Reason, stands_words
from pipeline.progress import counted
from pipeline.run import journal_kinds
from pipeline.run.drafts import edit_words
from pipeline.run.lease import FileLease
from pipeline.run.recipe_run import RecipeRun
from pipeline.run.run import Decided, Run
from pipeline.run.summary_facts import Counter, counter_of, exhausted_counter, lanes_words, place_of
from pipeline.vocabulary import Role, Signal, Step

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.matrix.engine.journal import Line
    from pipeline.matrix.routing.state import RunState
    from pipeline.repo import Repository


_ROWS: Final = {row.id: row for row in MATRIX}
_REVIEW: Final = re.compile(r"reviews/(?P<stage>plan|split|final)-(?P<number>\d+)\.md")
_QUOTABLE: Final = re.compile(r"(evidence|judgements)/.+\.md|reviews/hygiene-.+\.md|feedback-\d+\.md")
_MOST_QUOTED: Final = 12
_WAYS: Final[Mapping[type[actions.Action], str]] = {
    actions.Return: "back to who asked: ",
    actions.Again: "the same agent is asked again, told why: ",
    actions.LeaveOut: "on without this agent: ",
    actions.Forward: "on, as approved: ",
}


class Exhausted(Frozen):
    """A limit that was found reached, and what the matrix says follows."""

    counter: Counter = Field(validation_alias="purse", serialization_alias="purse")  # the key is contract
    follows: str


class EvidenceLine(Frozen):
    """An artifact that a decision was based on. `changed`: it was written again since; `missing`: it is gone.

    `kept` is where it lies as it was then, where it is not as decided and some version is.
    """

    path: str
    state: Literal["as_decided", "changed", "missing"]
    kept: str | None = None


class TestsLine(Frozen):
    """One test run of the harness: what was run, over which tree, how the tests ended, how long that took.

    `what` and `seconds` are empty and null for runs of older versions.
    """

    what: str
    tree: str
    selected: tuple[str, ...] | None
    state: str
    outcomes: Mapping[str, int]
    collection_errors: tuple[str, ...]
    command: tuple[str, ...]
    seconds: float | None


class DecisionLine(Frozen):
    """One decision: the row that fired, the signal and what it rests on, what was paid, what followed."""

    number: int
    seq: int
    at: str
    step: str
    phase: str
    task: str | None
    visit: int
    signal: Signal
    role: Role | None
    note: str
    row: str
    source: str
    says: str
    action: Mapping[str, str | None]
    then: str
    before: tuple[str, ...]
    dispatches: tuple[documents.DispatchLine, ...]
    tests: tuple[TestsLine, ...]
    facts: tuple[str, ...]
    evidence: tuple[EvidenceLine, ...]
    paid: tuple[Counter, ...]
    exhausted: tuple[Exhausted, ...]
    blockers: tuple[str, ...]
    outcome: Outcome | None
    reason: Reason | None


class SinceLine(Frozen):
    """What happened behind the last decision: a resumption, a landing, or why it did not land."""

    at: str
    says: str


class ExplainDocument(Frozen):
    """What `explain --json` prints: the decisions, oldest first, and what happened behind the last one."""

    schema_: Literal["redfirst.explain/1"] = Field(default="redfirst.explain/1", alias="schema")
    ok: Literal[True] = True
    run_id: str
    issue: str
    workflow: str
    workflow_version: str
    workflow_hash: str
    redfirst_version: str
    outcome: Outcome | None
    reason: Reason | None
    live: bool = False
    queued: bool = False
    place: str
    decisions: tuple[DecisionLine, ...]
    since: tuple[SinceLine, ...] = ()


def explain_run(folder: Path, here: Repository, *, last: bool = False) -> ExplainDocument:
    """Return the decisions of a run, all or only the last one.

    Args:
        folder: Of the run, in any worktree.
        here: The repository as seen from where somebody stands: commands in notes work there.
        last: Only the last one.

    Raises:
        UserError: the run is damaged.
    """
    live = FileLease.is_held(folder)
    run = Run.load(folder, driving=False)
    decided = {one.line.seq: one for one in run.history}
    written: dict[str, str] = {}
    between: list[Line] = []
    found: list[DecisionLine] = []
    for line in run.journal.lines:
        if isinstance(line.data, ArtifactWritten):
            written[line.data.path] = line.data.sha256
        if not isinstance(line.data, DecisionMade):
            between.append(line)
            continue
        found.append(_decision(run, decided[line.seq], len(found) + 1, between, written, live=live))
        between = []
    chosen = found[-1:] if last else found
    notes = texts_as_typed([line.note for line in chosen], here, folder.parents[1], folder.name)
    return ExplainDocument.from_fields(
        run,
        run.info,
        run.state,
        live=live,
        place=place_of(run),
        decisions=tuple(line.model_copy(update={"note": note}) for line, note in zip(chosen, notes, strict=True)),
        since=tuple(SinceLine(at=line.at, says=says) for line in between for says in _happening(line, run.info.branch)),
    )


def _decision(
    run: Run, decided: Decided, number: int, between: list[Line], written: dict[str, str], *, live: bool
) -> DecisionLine:
    decision, event, before, after = decided.decision, decided.event, decided.before, decided.after
    seen = after.seen_from(event.lane) if event.lane in after.lanes else after
    row = _ROWS.get(decision.row)
    evidence = tuple(_evidence(run, path, written) for path in event.evidence)
    finished = {
        line.data.dispatch
        for line in between
        if isinstance(line.data, journal_kinds.DispatchStarted | journal_kinds.DispatchFinished)
    }
    records = [record for record in run.records.values() if record.dispatch in finished]
    if event.lane != TRUNK:  # what stands between two lines may be of any lane
        records = [record for record in run.records.values() if record.visit == decision.visit]
    return DecisionLine.from_fields(
        decision,
        event,
        decided.line,
        number=number,
        step=decision.step.value,
        phase=decision.step.phase,
        source=row.source if row else "",
        says=row.says if row else "",
        action=action_value(decision.action),
        then=then_words(decision.action, seen),
        before=tuple(says for line in between for says in _happening(line, run.info.branch)),
        dispatches=tuple(documents.dispatch_line(run, record, live=live) for record in records),
        tests=tuple(
            TestsLine.from_fields(line.data) for line in between if isinstance(line.data, journal_kinds.MeasuredTests)
        ),
        facts=tuple(_facts(run, decided, evidence)),
        evidence=evidence,
        paid=tuple(counter_of(before, key, count) for key, count in decision.counters.items()),
        exhausted=tuple(_exhausted(decided)),
        blockers=after.open_blockers if decision.step in documents.STAGES and after.blockers != before.blockers else (),
        outcome=after.outcome,
        reason=after.reason,
    )


def _evidence(run: Run, path: str, written: dict[str, str]) -> EvidenceLine:
    file, then = run.folder / path, written.get(path)
    if file.is_file() and then in {None, sha256_hex(file.read_bytes())}:
        return EvidenceLine(path=path, state="as_decided")
    same = [name for name, digest in run.artifacts.items() if digest == then and (run.folder / name).is_file()]
    state = "changed" if file.is_file() else "missing"
    return EvidenceLine(path=path, state=state, kept=same[-1] if same else None)


def _happening(line: Line, branch: str) -> Iterator[str]:
    match line.data:
        case RunResumed(was=was):
            stood = PAUSED if was == Outcome.CANCELLED else was or "interrupted"  # an abandoned one cannot go on
            yield f"the run was resumed on {line.host}, where it was {stood} before"
        case GateAnswered(gate=gate, answer=answer, actor=actor, edited=edited):
            who = actor or "a person"
            yield f"{who} answered at approval point {gate}: {answer}"
            yield from (edit_words(name, kept, who) for name, kept in edited.items())
        case ConfigChanged(limits=limits, changes=changes):
            said = ", ".join(f"{loop} = {limit}" for loop, limit in sorted(limits.items()))
            yield f"the configuration changed: {'; '.join(changes) or f'limits from here on: {said}'}"
        case journal_kinds.GatesAsked(gates=gates):
            yield f"it waits for a person at {', '.join(gates)}, too, from here on"
        case journal_kinds.Landed(onto=onto, base=base, commits=commits):
            said = f"landed: {onto} has the {counted(len(commits), 'commit')} of {branch}"
            yield f"{said}, put onto {base[:12]}; the last one is {commits[-1][:12]}"
        case journal_kinds.LandingRefused(onto=onto, found=found, why=why):
            yield f"did not land on {onto}: {'; '.join(why) or found.replace('_', ' ')}"
        case _:
            pass


def _exhausted(decided: Decided) -> Iterator[Exhausted]:
    """Yield the limits that were reached, in their order, each with what the matrix says follows (matrix 2)."""
    for loop in decided.decision.exhausted:
        bound, role = BOUNDS[loop], decided.event.role
        action = bound.by_role.get(role, bound.exhausted) if role else bound.exhausted
        before = decided.before.seen_from(decided.event.lane)
        counter = exhausted_counter(before, loop, role)
        yield Exhausted(counter=counter, follows=action_words(action, before.trunk.origin))


# --- what the evidence says ------------------------------------------------------------------------------------------


def _facts(run: Run, decided: Decided, evidence: tuple[EvidenceLine, ...]) -> Iterator[str]:
    """Yield what the artifacts say that the decision was based on, as long as they are what they were."""
    for path in (line.path for line in evidence if line.state == "as_decided"):
        review = _REVIEW.fullmatch(path)
        if review is not None and decided.decision.step in documents.STAGES:
            yield from _findings(run, decided, int(review["number"]))
        elif _QUOTABLE.fullmatch(path):
            yield from _quoted(run.folder / path, path)


def _findings(run: Run, decided: Decided, number: int) -> list[str]:
    record = documents.read_review(run.folder, documents.STAGES[decided.decision.step], number)
    if record is None:
        return []
    must = [finding for finding in record.ledger.open if finding.id in record.must_fix]
    said = "to fix" if decided.event.signal in documents.TO_FIX else "left open"
    return [f"{said}: {documents.finding_text(documents.finding_line(finding))}" for finding in must]


def _quoted(path: Path, name: str) -> list[str]:
    """Return what an artifact states: its list, or else its text; without the output of programs in its fences."""
    document = parse(path.read_text(encoding="utf-8", errors="replace"))
    lines = [line.text.strip() for line in document.prose if line.text.strip() and not line.is_heading]
    bullets = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    found = bullets or lines
    more = [f"... {len(found) - _MOST_QUOTED} more in {name}"] if len(found) > _MOST_QUOTED else []
    return found[:_MOST_QUOTED] + more


# --- of a recipe with its own steps -----------------------------------------------------------------------------------


class StepDecision(Frozen):
    """One decision: the step, its signal, the row that fired, what was paid, and what followed of it."""

    number: int
    seq: int
    at: str
    step: str
    signal: str
    note: str
    row: str
    action: Mapping[str, str | None]
    paid: Mapping[str, int]
    exhausted: tuple[str, ...]
    then: tuple[str, ...]
    evidence: tuple[str, ...]


class StepStanding(Frozen):
    """A step that is over and not ready, and why."""

    step: str
    checkpoint: str
    why: str


class RecipeExplainDocument(Frozen):
    """What `explain --json` prints of a recipe's run: the decisions, oldest first."""

    schema_: Literal["redfirst.recipe-explain/1"] = Field(default="redfirst.recipe-explain/1", alias="schema")
    ok: Literal[True] = True
    run_id: str
    outcome: Outcome | None
    reason: Reason | None
    live: bool
    steps: tuple[StepStanding, ...]
    decisions: tuple[StepDecision, ...]


def explain_steps(folder: Path, *, last: bool = False) -> RecipeExplainDocument:
    """Return the decisions of a run, all or only the last one, and the steps that are not ready.

    Raises:
        UserError: the run is damaged.
    """
    run = RecipeRun.load(folder, driving=False)
    decisions = [
        StepDecision.from_fields(
            one.decision,
            one.event,
            one.line,
            number=number,
            step="" if one.event.lane == TRUNK else one.event.lane,
            signal=str(one.event.signal),
            action=action_value(one.decision.action),
            paid=one.decision.counters,
            then=tuple(_followed(effect.kind, effect.data) for effect in one.decision.effects),
        )
        for number, one in enumerate(run.history, 1)
    ]
    return RecipeExplainDocument.from_fields(
        run.info,
        run.state,
        live=FileLease.is_held(folder),
        steps=tuple(
            StepStanding(step=name, checkpoint=how.value, why=why)
            for name, how in run.state.settled.items()
            if (why := why_not_ready(run, name))
        ),
        decisions=tuple(decisions[-1:] if last else decisions),
    )


def _followed(kind: str, data: Mapping[str, str]) -> str:
    """Return an effect in words."""
    words = kind.removeprefix("step_").removeprefix("run_").replace("_", " ")
    step = f"{data['step']} " if "step" in data else "the run is "
    more = data.get("checkpoint") or data.get("reason") or ""
    return f"{step}{words}{f': {more}' if more else ''}"


# --- for a person ----------------------------------------------------------------------------------------------------


def action_words(action: actions.Action, origin: Step | None = None) -> str:
    """Return what the matrix says is to be done, in words.

    Args:
        action: The action, after bounds.
        origin: The step that a judgement was asked by, for `Return`.
    """
    match action:
        case actions.Goto(to, ask):
            return to.value + (f" ({ask.value})" if ask else "")
        case actions.Retry(to, loop, ask):
            return to.value + (f" ({ask.value})" if ask else "") + f" (counts for {loop.value})"
        case actions.Return(loop):
            return f"back to {origin.value if origin else 'the step that asked'} (counts for {loop.value})"
        case actions.Again(loop):
            return f"ask the same agent again (counts for {loop.value})"
        case actions.AskPerson(loop):
            return f"ask a person, then the same agent again (counts for {loop.value})"
        case actions.LeaveOut():
            return "go on without this agent"
        case actions.NextTask():
            return "the next task"
        case actions.Forward():
            return "on, as approved"
        case actions.Stop(outcome, reason):
            return stands_words(outcome, reason)
        case _:
            assert_never(action)


def then_words(action: actions.Action, after: RunState) -> str:
    """Return what followed a decision: where the run went, and in which way when that is not plain."""
    where = standing_words(after)
    if not isinstance(action, actions.NextTask):
        return _WAYS.get(type(action), "") + where
    if after.beside:
        return f"{'side by side' if len(after.beside) > 1 else 'the next task'}: {where}"
    if after.trunk.step is Step.INTEGRATE:
        return f"it waits for its turn: {where}"
    return f"the next task: {where}" if after.current else f"no task is left: {where}"


def standing_words(state: RunState) -> str:
    """Return where a decision left the run: the outcome, the gate, or the step and task that came next."""
    if state.trunk.step is Step.GATE and state.trunk.gate:
        return f"waits at approval point {state.trunk.gate} for a person"
    if state.outcome is not None:
        kept = f", at {state.trunk.step.value}" if state.outcome in {Outcome.PARKED, Outcome.CANCELLED} else ""
        return f"{stands_words(state.outcome, state.reason)}{kept}"
    if state.beside:
        return lanes_words(state)
    task = f", task {state.current}" if state.current else ""
    ask = f" ({state.trunk.ask.value})" if state.trunk.ask else ""
    return f"{state.trunk.step.value}{ask}{task}"


_NOT_AGENTS: Final = frozenset({Step.INTEGRATE.value, Step.PUBLISH.value})
"""Where work that was right where it was done does not fit what others did."""
_RESULT: Final = re.compile(r"dispatches/([^/]+)/")


@dataclass(frozen=True)
class Mistake:
    """Something that an agent did wrong.

    Args:
        at: When it was decided.
        step: Where.
        task: At which task; empty before there were any.
        signal: The word of the matrix.
        who: The role.
        says: What it did, behind its name.
        note: What was found.
        then: What followed.
        dispatch: Which dispatch it was.
        evidence: The files that show it, as they were.
    """

    at: str
    step: str
    task: str
    signal: str
    who: str
    says: str
    note: str
    then: str
    dispatch: str | None
    evidence: tuple[str, ...]


def mistakes_of(document: ExplainDocument) -> Iterator[Mistake]:
    """Yield what agents did wrong, in its order."""
    for line in document.decisions:
        if line.signal not in WRONG or line.step in _NOT_AGENTS:
            continue
        dispatch = _dispatch_of(line)
        roles = {one.dispatch: one.role.value for one in line.dispatches}
        files = (one.path if one.state == "as_decided" else one.kept for one in line.evidence)
        yield Mistake(
            at=line.at,
            step=line.step,
            task=line.task or "",
            signal=line.signal.value,
            who=line.role.value if line.role is not None else roles.get(dispatch or "", "agent"),
            says=WRONG[line.signal],
            note=line.note,
            then=line.then,
            dispatch=dispatch,
            evidence=tuple(name for name in files if name is not None and name.endswith(".md")),
        )


def _dispatch_of(line: DecisionLine) -> str | None:
    """Return the dispatch that a decision was about: the one whose result it rests on, else the last one."""
    named = [found[1] for one in line.evidence if (found := _RESULT.match(one.path))]
    return named[-1] if named else next((one.dispatch for one in reversed(line.dispatches)), None)
