"""Says how a run stands, from its folded journal, artifacts and trees: what `show --json` and `diff --json` print."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from pipeline.app import documents
from pipeline.app.next_lines import as_typed, document_as_typed, landed, next_lines
from pipeline.config.user_folders import state_folder
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.matrix.engine.journal import Journal
from pipeline.outcomes import Outcome, Reason, exit_code
from pipeline.repo import GitError, Repository
from pipeline.run import summary_facts
from pipeline.run.activity_file import Doing, read_now
from pipeline.run.drafts import VainEdit, vain_edit, without_effect
from pipeline.run.folder import RunFolder
from pipeline.run.gates import OpenGate, gate_of, open_gate
from pipeline.run.journal_kinds import JournalLine, PublishIntended
from pipeline.run.lease import FileLease
from pipeline.run.run import Run
from pipeline.run.runs_of_repository import find_run, seen_from
from pipeline.run.spending import Spent, by_phase, by_role, spent
from pipeline.run.store import gone_on, run_ref, state_of_run

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.vocabulary import Role


_FIRST_PAGE: Final = ("summary.md", "plan.md", "issue.md", "work.patch", "evidence/baseline.json")

_DESKS: Final = "dispatches/*/exchange/desk"
"""Where desks are named (`backends.desk`, which is heavy): without one, none is looked for."""


class CostLine(Frozen):
    """What one role or one phase took. Null where a part is not known; `known` says the rest in words."""

    of: Literal["role", "phase"]
    name: str
    dispatches: int
    cost_usd: float | None
    tokens: int | None
    known: str


class ShowDocument(Frozen):
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
    tasks: tuple[documents.TaskShown, ...]
    reviews: tuple[documents.ReviewShown, ...]
    counters: tuple[summary_facts.Counter, ...]
    blockers: tuple[documents.FindingLine, ...]
    dispatches: tuple[documents.DispatchLine, ...]
    commits: tuple[str, ...]
    landed: bool | None = None
    """Whether the base has the commits of the run; null where there is nothing to merge."""
    landed_on: str | None = None
    """The branch that has them: what `land` put them on, else the base; null where none is known to have them."""
    follow_ups: tuple[str, ...]
    dropped_tests: tuple[str, ...] = ()
    sandbox: summary_facts.BoxFacts
    usage: summary_facts.UsageFacts
    spent: str = ""
    """What its dispatches took, in words."""
    costs: tuple[CostLine, ...]
    edits_without_effect: tuple[VainEdit, ...] = ()
    safe_next_actions: tuple[str, ...]
    run_dir: str
    artifacts: tuple[str, ...]


class LogDocument(Frozen):
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
    intended = run.journal.of(PublishIntended)
    artifacts = [name for name in run.artifacts if (folder / name).is_file()]
    shown = ShowDocument.from_fields(
        info,
        state,
        issue=run.issue,
        title=documents.title_of(folder),
        recipe=info.recipe.name if info.recipe is not None else None,
        last_at=lines[-1].at if lines else info.started_at,
        epoch=run.journal.epoch,
        live=live,
        queued=run.queued and not live,
        elsewhere=None if live else gone_on(folder),
        exit_code=exit_code(state.outcome, state.reason) if state.outcome and state.reason else None,
        step=state.trunk.step.value,
        phase=state.trunk.step.phase,
        task=state.current,
        place=summary_facts.place_of(run),
        gate=gate_of(run),
        at_gate=open_gate(run),
        note=summary_facts.last_note(run),
        not_before=summary_facts.not_before_of(run, datetime.now(UTC) if live else None),
        now=read_now(folder, run.journal.epoch) if live else (),
        tasks=documents.tasks_shown(run),
        reviews=tuple(documents.reviews_shown(run)),
        counters=summary_facts.counters_of(run),
        blockers=_blockers(run),
        dispatches=tuple(documents.dispatch_line(run, record, live=live) for record in run.records.values()),
        commits=summary_facts.commits_of(run),
        landed=is_landed,
        landed_on=summary_facts.landed_on(run) or (info.base_branch if is_landed else None),
        follow_ups=intended[-1].data.follow_ups if intended and summary_facts.commits_of(run) else (),
        dropped_tests=summary_facts.dropped_tests(state),
        sandbox=summary_facts.box_facts_of(run),
        usage=summary_facts.usage_of(run),
        spent=str(spent(run)),
        costs=costs_of(run),
        edits_without_effect=_vain_edits(run, here),
        safe_next_actions=next_lines(there, run, is_landed, live=live, desks=waiting, handed_in=any(desks.values())),
        run_dir=str(folder),
        artifacts=tuple(sorted(artifacts, key=lambda name: (name not in _FIRST_PAGE, name))),
    )
    return document_as_typed(shown, here, folder.parents[1], folder.name)


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


def _blockers(run: Run) -> tuple[documents.FindingLine, ...]:
    """Return the blockers on record, worst first, as the last review of each stage describes them."""
    found: dict[str, documents.FindingLine] = {}
    for step, stage in documents.STAGES.items():
        count = sum(d.decision.step is step and not d.decision.row.startswith("any/") for d in run.history)
        record = documents.read_review(run.folder, stage, count) if count else None
        if record is not None:
            found |= {finding.id: documents.finding_line(finding) for finding in record.ledger.open}
    on_record = [found[id_] for id_ in run.state.open_blockers if id_ in found]
    return tuple(sorted(on_record, key=lambda finding: finding.severity.rank))


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


class DiffDocument(Frozen):
    """What `diff --json` prints. `old` and `new` are trees; `patch` is null with `--stat`."""

    schema_: Literal["redfirst.diff/1"] = Field(default="redfirst.diff/1", alias="schema")
    ok: Literal[True] = True
    run_id: str
    task: str | None
    old: str
    new: str
    files: tuple[documents.DiffFile, ...]
    patch: str | None


def diff_run(repository: Repository, name: str, *, task: str | None, stat: bool) -> DiffDocument:
    """Return the work of a run, or of one of its tasks, against where it began.

    Raises:
        UserError: no such run or task, or git has removed the objects.
    """
    folder = find_run(repository, name)
    repository = seen_from(repository, folder)
    run = Run.load(folder, driving=False)
    old, new = (run.state.start, summary_facts.work_tree(run)) if task is None else _task_trees(run, task)
    missing = [tree for tree in (old, new) if repository.resolve(f"{tree}^{{tree}}") is None]
    if missing:
        raise _gone(repository, run, missing[0])
    try:
        files = tuple(map(documents.DiffFile.from_fields, repository.numstat(old, new)))
        patch = None if stat else repository.patch(old, new)
    except GitError as error:
        raise _gone(repository, run, error.stderr.strip()) from error
    return DiffDocument(run_id=run.info.run_id, task=task, old=old, new=new, files=files, patch=patch)


def _task_trees(run: Run, task: str) -> tuple[str, str]:
    found = run.state.tasks.get(task)
    if found is None:
        known = ", ".join(run.state.tasks) or "none yet"
        raise UserError(
            f"{run.info.run_id} has no task {task!r} (tasks: {known}).",
            Reason.USAGE,
            details={"tasks": list(run.state.tasks)},
            actions=(f"redfirst show {run.info.run_id}",),
        )
    start = found.start or run.state.head
    return start, found.candidate or found.red or found.tests or found.stubs or start


def _gone(repository: Repository, run: Run, what: str) -> UserError:
    ref = run_ref(repository, run.info.run_id)
    there = "is there, but does not hold them" if repository.resolve(ref) else "is gone"
    return UserError(
        f"git no longer has the objects of {run.info.run_id} ({what}): its ref {ref} {there}. Reports, evidence and "
        f"journal are still in {run.folder}.",
        Reason.USAGE,
        path=ref,
        actions=(f"redfirst show {run.info.run_id}", f"redfirst explain {run.info.run_id}"),
    )
