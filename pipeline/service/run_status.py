"""Says how a run stands, from its folded journal and the artifacts on disk (`show`)."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from pipeline.config.folders import state_folder
from pipeline.engine.journal import Journal
from pipeline.outcomes import Reason, exit_code
from pipeline.routing.vocabulary import Role, Signal
from pipeline.runs.activity_file import read_now
from pipeline.runs.drafts import vain_edit, without_effect
from pipeline.runs.events import PublishIntended
from pipeline.runs.facts import (
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
from pipeline.runs.folder import RunFolder
from pipeline.runs.gates import gate_of, open_gate
from pipeline.runs.lease import FileLease
from pipeline.runs.records import MIB, read_record
from pipeline.runs.roster import seen_from
from pipeline.runs.run import Run
from pipeline.runs.spending import by_phase, by_role, spent
from pipeline.runs.store import issue_of, state_of_run
from pipeline.service.document_lines import STAGES, dispatch_line, finding_line, read_evidence, read_review
from pipeline.service.documents import CostLine, LogDocument, ReviewShown, ShowDocument, TaskShown
from pipeline.service.landing import landed
from pipeline.service.next_lines import next_lines
from pipeline.service.other_worktrees import as_typed, gate_as_typed, text_as_typed
from todo import MappingSource, Tracker, TrackerError

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.git import Repository
    from pipeline.runs.drafts import VainEdit
    from pipeline.runs.run import Decided
    from pipeline.runs.spending import Spent
    from pipeline.service.documents import FindingLine

_FIRST_PAGE: Final = ("summary.md", "plan.md", "issue.md", "work.patch", "evidence/baseline.json")

_DESKS: Final = "dispatches/*/exchange/desk"
"""Where desks are named (`backends.desk`, which is heavy): without one, none is looked for."""


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
    actions = next_lines(there, run, live=live, desks=waiting, handed_in=any(desks.values()))
    reviews = reviews_shown(run)
    intended = run.journal.of(PublishIntended)
    is_landed = landed(there, run)
    return ShowDocument(
        run_id=info.run_id,
        issue=run.issue,
        title=title_of(run),
        branch=info.branch,
        base_branch=info.base_branch,
        start_commit=info.start_commit,
        recipe=info.recipe.name if info.recipe is not None else None,
        started_at=info.started_at,
        last_at=lines[-1].at if lines else info.started_at,
        epoch=run.journal.epoch,
        live=live,
        queued=run.queued and not live,
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
    from pipeline.backends.desk import desks_of  # noqa: PLC0415  (only for a run that is at work)

    state = state_of_run(state_folder(os.environ), repository, folder.name)
    found = [(desk, asked) for desk in desks_of(folder, state) if (asked := desk.asked()) is not None]
    return {asked.role: desk.report.exists() for desk, asked in found}


def _vain_edits(run: Run, here: Repository) -> tuple[VainEdit, ...]:
    edits = [vain_edit(run, name) for name in without_effect(run)]
    typed = (as_typed(filter(None, [edit.instead]), here, run.folder.parents[1], run.folder.name) for edit in edits)
    return tuple(replace(edit, instead=next(iter(commands), None)) for edit, commands in zip(edits, typed, strict=True))


def title_of(run: Run) -> str:
    """Return the title of its issue; nothing where there is no copy of it, or none that can be read."""
    return issue_title(run.folder)


def issue_title(folder: Path) -> str:
    """Return the title of the issue of the run in *folder*, from its copy of it."""
    issue = issue_of(folder.name) or ""
    try:
        content = read_record(folder, "issue.md", MIB)
        return Tracker(MappingSource({f"{issue}.md": content})).read(issue).title
    except (OSError, TrackerError):
        return ""


def tasks_shown(run: Run) -> tuple[TaskShown, ...]:
    """Return the tasks with their evidence."""
    return tuple(
        TaskShown(
            id=task.id,
            title=task.spec.title,
            state=task.status,
            testable=task.testable,
            evidence=read_evidence(run.folder, task.id),
        )
        for task in run.state.tasks.values()
    )


def reviews_shown(run: Run) -> tuple[ReviewShown, ...]:
    """Return the reviews, oldest first."""
    counts = dict.fromkeys(STAGES, 0)
    found: list[ReviewShown] = []
    for decided in run.history:
        step = decided.decision.step
        if step not in STAGES or decided.decision.row.startswith("any/"):
            continue
        if decided.event.signal == Signal.NOT_ASKED:  # a recipe left it out: there is no such review
            continue
        counts[step] += 1
        record = read_review(run.folder, STAGES[step], counts[step])
        found.append(
            ReviewShown(
                path=f"reviews/{STAGES[step]}-{counts[step]}.md",
                stage=STAGES[step],
                number=counts[step],
                verdict=_verdict(run, decided, Role.CHECK),
                advice=_verdict(run, decided, Role.SIMPLIFY),
                signal=Signal(decided.event.signal),
                must_fix=record.must_fix if record else (),
                open=tuple(map(finding_line, record.ledger.open)) if record else (),
                refuted=tuple(map(finding_line, record.ledger.refuted)) if record else (),
            )
        )
    return tuple(found)


def _verdict(run: Run, decided: Decided, role: Role) -> str | None:
    """Return what the role answered in the visit of a decision, in its own word."""
    for record in run.records.values():
        result = run.results.get(record.dispatch)
        if record.visit == decided.decision.visit and record.role is role and result and result.signal is None:
            verdict = (result.report or {}).get("verdict")
            return verdict if isinstance(verdict, str) else None
    return None


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
