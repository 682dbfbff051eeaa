"""Writes down what a step of a recipe came to: its checkpoint, its bundle, and what it leaves open."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, cast

from pydantic import Field

from pipeline.data_types import Frozen
from pipeline.matrix.engine.journal_kinds import DecisionMade, RunParked, RunResumed
from pipeline.matrix.recipes.next_steps import held_by, honours, seams_of
from pipeline.matrix.recipes.step_table import Checkpoint
from pipeline.run.journal_kinds import DispatchStarted, StepSettled, StepStarted
from pipeline.steps.asking.review_record import ReviewRecord
from pipeline.steps.recipe_ask import REVIEW
from pipeline.steps.recipe_context import CollisionError, RecipeContext, Words, base_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.judge.reports.findings import Finding
    from pipeline.run.recipe_run import RecipeRun


class StepError(Frozen):
    """Why a step did not come out: the signal in small letters, and what was said of it."""

    kind: str
    message: str


class LeftFile(Frozen):
    """A file that a step left, by its path in the run."""

    path: str
    sha256: str


class Verified(Frozen):
    """What somebody else than the author looked at: by whom, what, and the sha256 of what they looked at."""

    by: str
    what: str
    digest: str


class PayloadLeft(Frozen):
    """A payload that others may use: its form, the dispatch that it is from (`measured`: none), and where it is."""

    schema_: str = Field(alias="schema")
    provenance: str
    valid: bool
    path: str


class SeamSaid(Frozen):
    """A contract between steps, and whether this one says that it keeps to it."""

    name: str
    state: Literal["honoured", "not_honoured", "not_reported"]


class Bundle(Frozen):
    """What others may build on; `dependent_safe` is whether those may that take nothing half."""

    dependent_safe: bool
    artifacts: tuple[LeftFile, ...]
    verification: tuple[Verified, ...]
    limitations: tuple[str, ...]
    payloads: tuple[PayloadLeft, ...]
    seams: tuple[SeamSaid, ...]


class StepOutcome(Frozen):
    """How a step came out. `wave` is the start that it belongs to, `seconds` how long it took, all tries together."""

    schema_: Literal["redfirst.step-outcome/1"] = Field(default="redfirst.step-outcome/1", alias="schema")
    step: str
    wave: int
    dispatches: tuple[str, ...]
    session: str | None
    """The product's name of the last conversation, where it has one."""
    signal: str | None
    checkpoint: Checkpoint
    summary: str
    seconds: float
    error: StepError | None
    base_tree: str
    tree: str
    held_by: tuple[str, ...]
    bundle: Bundle
    safe_next_actions: tuple[str, ...]


_REVIEW_RECORD: Final = re.compile(r"/review-\d+\.json$")
_LINE: Final = 200
"""Characters of a summary."""


def write_outcome(ctx: RecipeContext, name: str, checkpoint: Checkpoint) -> str:
    """Write `steps/<name>/outcome.json` of a step that is settled; return its name."""
    document = _outcome(ctx, name, checkpoint)
    return ctx.write_json(f"steps/{name}/outcome.json", document.model_dump(mode="json", by_alias=True))


def _outcome(ctx: RecipeContext, name: str, checkpoint: Checkpoint) -> StepOutcome:
    run, step = ctx.run, ctx.run.machine.step_of(name)
    asked = [one.dispatch for one in run.records.values() if one.lane == name]
    results = [run.results[one] for one in asked if one in run.results]
    last = last_decision(run, name)
    base = _base(ctx, name)
    actions = (f"redfirst resume {run.info.run_id}", f"redfirst resume {run.info.run_id} --step {name}")
    return StepOutcome(
        step=name,
        wave=run.machine.plan.waves[step.id],
        dispatches=tuple(asked),
        session=results[-1].session if results else None,
        signal=last.signal if last is not None else None,
        checkpoint=checkpoint,
        summary=summary_of(ctx, name),
        seconds=round(seconds_of(run, name), 3),
        error=error_of(last, checkpoint),
        base_tree=base,
        tree=run.state.trees.get(name, base),
        held_by=held_by(run.machine, run.state, step) if checkpoint is Checkpoint.HELD else (),
        bundle=_bundle(ctx, name, checkpoint, last),
        safe_next_actions=() if checkpoint is Checkpoint.READY else actions,
    )


def _bundle(ctx: RecipeContext, name: str, checkpoint: Checkpoint, last: DecisionMade | None) -> Bundle:
    """Return what others may build on; of a step that did not come out that is nothing."""
    run, step = ctx.run, ctx.run.machine.step_of(name)
    answers = [one for one in run.records.values() if one.lane == name and one.kind != REVIEW]
    answered = next((one.dispatch for one in reversed(answers) if one.dispatch in run.results), None)
    said = (run.results[answered].report or {}) if answered is not None else {}
    files = tuple(LeftFile(path=path, sha256=_sha256(ctx, path)) for path in ctx.left(name))
    payload = f"steps/{name}/{name}.json"
    digests = {one.path: one.sha256 for one in files}
    form = step.payload if isinstance(step.payload, str) else "test_evidence.v1" if step.tests else "inline"
    verified = [Verified(by="redfirst", what=f"payload: {form}", digest=digests[payload])] if payload in digests else []
    for path in last.evidence if last is not None and checkpoint.is_usable else ():
        found = [one for one in run.records.values() if path == f"dispatches/{one.dispatch}/result.json"]
        if found and found[-1].kind == REVIEW:
            verified.append(Verified(by=f"@{found[-1].role.value}", what="review", digest=_sha256(ctx, path)))
        elif not found and path != payload:
            verified.append(Verified(by="redfirst", what=path, digest=_sha256(ctx, path)))
    seams = {str(one["name"]): one for one in cast("list[dict[str, object]]", said.get("seams") or [])}
    notes = [f"{seam}: {one['note']}" for seam, one in seams.items() if one.get("note")]
    limits = [str(said.get("limitations") or "").strip(), last.note.strip() if last is not None else "", *notes]
    return Bundle(
        dependent_safe=checkpoint is Checkpoint.READY,
        artifacts=files,
        verification=tuple(verified),
        limitations=tuple(dict.fromkeys(filter(None, limits))) if checkpoint.is_usable else (),
        payloads=(PayloadLeft(schema=form, provenance=answered or "measured", valid=True, path=payload),)
        if payload in digests
        else (),
        seams=tuple(_seam(run, name, seam, seams) for seam in seams_of(step))
        if checkpoint is not Checkpoint.HELD
        else (),
    )


def _seam(run: RecipeRun, name: str, seam: str, said: Mapping[str, object]) -> SeamSaid:
    if honours(run.state, name, seam):
        return SeamSaid(name=seam, state="honoured")
    return SeamSaid(name=seam, state="not_honoured" if seam in said else "not_reported")


def summary_of(ctx: Words, name: str) -> str:
    """Return what a step says of itself, in its first line; of one that is still to be done nothing."""
    if ctx.run.state.settled.get(name, Checkpoint.HELD) is Checkpoint.HELD:  # what lies there is of before
        return ""
    return ctx.words_of(name).strip().partition("\n")[0][:_LINE]


def last_decision(run: RecipeRun, name: str) -> DecisionMade | None:
    """Return what was decided last about a step, None where it never began."""
    return next((line.data for line in reversed(run.journal.of(DecisionMade)) if line.data.lane == name), None)


def left_open(ctx: Words, name: str) -> tuple[Finding, ...]:
    """Return the findings that are on record of a step: those that its last review leaves open at its end."""
    ids, last = ctx.run.state.blockers.get(name, ()), last_decision(ctx.run, name)
    for path in last.evidence if ids and last is not None else ():
        if _REVIEW_RECORD.search(path):
            open_ = ReviewRecord.model_validate_json(ctx.run.read(path)).ledger.open
            return tuple(finding for finding in open_ if finding.id in ids)
    return ()


def error_of(last: DecisionMade | None, checkpoint: Checkpoint) -> StepError | None:
    """Return why a step did not come out, by what was decided last about it; None where it did, or never began."""
    if last is None or checkpoint not in {Checkpoint.FAILED, Checkpoint.NEEDS_ORCHESTRATOR}:
        return None
    return StepError(kind=last.signal.lower(), message=last.note)


def seconds_of(run: RecipeRun, name: str) -> float:
    """Return for how many seconds a step was worked on, by the journal; what no driver was there for does not count."""
    took, began = 0.0, ""
    for line in run.journal.lines:
        data = line.data
        if isinstance(data, DispatchStarted) and data.lane == name:
            began = began or line.at
        elif isinstance(data, StepStarted) and data.step == name:
            began = line.at
        elif isinstance(data, RunResumed | RunParked):
            began = ""
        elif isinstance(data, StepSettled) and data.step == name and began:
            took += (datetime.fromisoformat(line.at) - datetime.fromisoformat(began)).total_seconds()
            began = ""
    return took


def _base(ctx: RecipeContext, name: str) -> str:
    try:
        return base_of(ctx, name)
    except CollisionError:
        return ctx.run.info.start_tree


def _sha256(ctx: RecipeContext, path: str) -> str:
    return hashlib.sha256(ctx.run.read(path)).hexdigest()
