"""Says how a run stands, from its folded journal and the artifacts on disk: what `show --json` prints."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from pipeline.app.documents import (
    STAGES,
    DispatchLine,
    Document,
    FindingLine,
    ReviewShown,
    TaskShown,
    dispatch_line,
    finding_line,
    read_review,
    reviews_shown,
    tasks_shown,
    title_of,
)
from pipeline.app.next_lines import landed, next_lines
from pipeline.app.other_worktrees import as_typed, gate_as_typed, text_as_typed
from pipeline.config.user_folders import state_folder
from pipeline.matrix.engine.journal import Journal
from pipeline.outcomes import Outcome, Reason, exit_code
from pipeline.run.activity_file import Doing, read_now
from pipeline.run.drafts import VainEdit, vain_edit, without_effect
from pipeline.run.folder import RunFolder
from pipeline.run.gates import OpenGate, gate_of, open_gate
from pipeline.run.journal_kinds import JournalLine, PublishIntended
from pipeline.run.lease import FileLease
from pipeline.run.run import Run
from pipeline.run.runs_of_repository import seen_from
from pipeline.run.spending import Spent, by_phase, by_role, spent
from pipeline.run.store import gone_on, state_of_run
from pipeline.run.summary_facts import (
    BoxFacts,
    Counter,
    UsageFacts,
    box_facts_of,
    commits_of,
    counters_of,
    dropped_tests,
    landed_on,
    last_note,
    not_before_of,
    place_of,
    usage_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.repo import Repository
    from pipeline.vocabulary import Role

_FIRST_PAGE: Final = ("summary.md", "plan.md", "issue.md", "work.patch", "evidence/baseline.json")

_DESKS: Final = "dispatches/*/exchange/desk"
"""Where desks are named (`backends.desk`, which is heavy): without one, none is looked for."""


class CostLine(Document):
    """What one role or one phase took. Null where a part is not known; `known` says the rest in words."""

    of: Literal["role", "phase"]
    name: str
    dispatches: int
    cost_usd: float | None
    tokens: int | None
    known: str


class ShowDocument(Document):
    """What `show --json` prints: how a run stands."""

    schema_: Literal["redfirst.show/1"] = Field(default="redfirst.show/1", alias="schema")
    ok: Literal[True] = True
    run_id: str
    issue: str
    title: str
    branch: str
    base_branch: str
    start_commit: str
    recipe: str | None = None
    """The name of the recipe that the run is of; null where an older version began it."""
    started_at: str
    last_at: str
    epoch: int
    live: bool
    queued: bool = False
    """It was answered, and no process drives it yet."""
    elsewhere: str | None = None
    """The machine that goes on with it, as far as this one has heard; null where none does."""
    outcome: Outcome | None
    reason: Reason | None
    exit_code: int | None
    step: str
    phase: str
    task: str | None
    place: str
    gate: str | None
    at_gate: OpenGate | None = None
    note: str
    not_before: str | None = None
    """When the limit of an account ends that it waits for, or is parked by."""
    now: tuple[Doing, ...]
    """What its driver is doing, and since when; empty where none is at work."""
    plan_revision: int
    tasks: tuple[TaskShown, ...]
    reviews: tuple[ReviewShown, ...]
    counters: tuple[Counter, ...]
    blockers: tuple[FindingLine, ...]
    dispatches: tuple[DispatchLine, ...]
    commits: tuple[str, ...]
    landed: bool | None = None
    """Whether the base has the commits of the run; null where there is nothing to merge."""
    landed_on: str | None = None
    """The branch that has them: what `land` put them on, else the base; null where none is known to have them."""
    follow_ups: tuple[str, ...]
    dropped_tests: tuple[str, ...] = ()
    sandbox: BoxFacts
    usage: UsageFacts
    spent: str = ""
    """What its dispatches took, in words."""
    costs: tuple[CostLine, ...]
    edits_without_effect: tuple[VainEdit, ...] = ()
    safe_next_actions: tuple[str, ...]
    run_dir: str
    artifacts: tuple[str, ...]


class LogDocument(Document):
    """What `show --log --json` prints: the journal."""

    schema_: Literal["redfirst.log/1"] = Field(default="redfirst.log/1", alias="schema")
    ok: Literal[True] = True
    run_id: str
    lines: tuple[JournalLine, ...]


def log_document(folder: Path) -> LogDocument:
    """Return the journal as it is."""
    return LogDocument(run_id=folder.name, lines=tuple(Journal.read(RunFolder(folder)).lines))


def show_run(folder: Path, here: Repository) -> ShowDocument:
    """Return how the run stands.

    Args:
        folder: Of the run, in any worktree.
        here: The repository as seen from where somebody stands, who is advised.

    Raises:
        UserError: the run is damaged.
    """
    live = FileLease.is_held(folder)
    run = Run.load(folder, driving=False)
    state, info, lines = run.state, run.info, run.journal.lines
    there = seen_from(here, folder)
    asks = live or state.reason in {None, Reason.INTERRUPTED}
    desks = _desks(there, folder) if asks and any(folder.glob(_DESKS)) else {}
    waiting = (role for role, handed_in in desks.items() if not handed_in)
    is_landed = landed(there, run)
    actions = next_lines(there, run, is_landed, live=live, desks=waiting, handed_in=any(desks.values()))
    reviews = reviews_shown(run)
    intended = run.journal.of(PublishIntended)
    return ShowDocument(
        run_id=info.run_id,
        issue=run.issue,
        title=title_of(folder),
        branch=info.branch,
        base_branch=info.base_branch,
        start_commit=info.start_commit,
        recipe=info.recipe.name if info.recipe is not None else None,
        started_at=info.started_at,
        last_at=lines[-1].at if lines else info.started_at,
        epoch=run.journal.epoch,
        live=live,
        queued=run.queued and not live,
        elsewhere=None if live else gone_on(folder),
        outcome=state.outcome,
        reason=state.reason,
        exit_code=exit_code(state.outcome, state.reason) if state.outcome and state.reason else None,
        step=state.trunk.step.value,
        phase=state.trunk.step.phase,
        task=state.current,
        place=place_of(run),
        gate=gate_of(run),
        at_gate=gate_as_typed(open_gate(run), here, folder.parents[1], folder.name),
        note=text_as_typed(last_note(run), here, folder.parents[1], folder.name),
        not_before=not_before_of(run, datetime.now(UTC) if live else None),
        now=read_now(folder, run.journal.epoch) if live else (),
        plan_revision=state.plan_revision,
        tasks=tasks_shown(run),
        reviews=reviews,
        counters=counters_of(run),
        blockers=_blockers(run),
        dispatches=tuple(dispatch_line(run, record, live=live) for record in run.records.values()),
        commits=commits_of(run),
        landed=is_landed,
        landed_on=landed_on(run) or (info.base_branch if is_landed else None),
        follow_ups=intended[-1].data.follow_ups if intended and commits_of(run) else (),
        dropped_tests=dropped_tests(state),
        sandbox=box_facts_of(run),
        usage=usage_of(run),
        spent=str(spent(run)),
        costs=costs_of(run),
        edits_without_effect=_vain_edits(run, here),
        safe_next_actions=as_typed(actions, here, folder.parents[1], folder.name),
        run_dir=str(folder),
        artifacts=_artifacts(run),
    )


def _desks(repository: Repository, folder: Path) -> dict[Role, bool]:
    """Return the roles at whose desks a person is asked, and whether the answer is handed in."""
    from pipeline.agents.backends.desk import desks_of  # noqa: PLC0415  (only for a run that is at work)

    state = state_of_run(state_folder(os.environ), repository, folder.name)
    found = [(desk, asked) for desk in desks_of(folder, state) if (asked := desk.asked()) is not None]
    return {asked.role: desk.report.exists() for desk, asked in found}


def _vain_edits(run: Run, here: Repository) -> tuple[VainEdit, ...]:
    edits = [vain_edit(run, name) for name in without_effect(run)]
    typed = (as_typed(filter(None, [edit.instead]), here, run.folder.parents[1], run.folder.name) for edit in edits)
    return tuple(replace(edit, instead=next(iter(commands), None)) for edit, commands in zip(edits, typed, strict=True))


def _blockers(run: Run) -> tuple[FindingLine, ...]:
    """Return the blockers on record, worst first, as the last review of each stage describes them."""
    found: dict[str, FindingLine] = {}
    for step, stage in STAGES.items():
        count = sum(d.decision.step is step and not d.decision.row.startswith("any/") for d in run.history)
        record = read_review(run.folder, stage, count) if count else None
        if record is not None:
            found |= {finding.id: finding_line(finding) for finding in record.ledger.open}
    on_record = [found[id_] for id_ in run.state.open_blockers if id_ in found]
    return tuple(sorted(on_record, key=lambda finding: finding.severity.rank))


def _artifacts(run: Run) -> tuple[str, ...]:
    """Return the artifacts that are on disk, those first that a person reads first."""
    there = [name for name in run.artifacts if (run.folder / name).is_file()]
    return tuple(sorted(there, key=lambda name: (name not in _FIRST_PAGE, name)))


# --- for a person --------------------------------------------------------------------------------------------------


def costs_of(run: Run) -> tuple[CostLine, ...]:
    """Return a line for each role, then one for each phase; empty while nobody asked a model."""
    lines = (
        *(_line("role", role, taken) for role, taken in by_role(run).items()),
        *(_line("phase", phase, taken) for phase, taken in by_phase(run).items()),
    )
    return lines if any(line.cost_usd is not None or line.tokens is not None for line in lines) else ()


def _line(of: Literal["role", "phase"], name: str, taken: Spent) -> CostLine:
    known = taken.asked > 0
    return CostLine(
        of=of,
        name=name,
        dispatches=taken.dispatches,
        cost_usd=taken.cost_usd if known and not taken.unpriced else None,
        tokens=taken.tokens if known and not taken.uncounted else None,
        known=str(taken),
    )
