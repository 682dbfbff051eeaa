"""`show`: how a run stands, from folding its journal and from the artifacts that are on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.cli.facts import (
    STAGES,
    dispatch_line,
    dispatch_text,
    finding_line,
    finding_text,
    read_evidence,
    read_review,
)
from pipeline.cli.listing import newest
from pipeline.cli.loglines import log_line
from pipeline.engine.journal import Journal
from pipeline.errors import UserError
from pipeline.outcomes import Outcome, Reason, exit_code
from pipeline.routing.state import TaskStatus
from pipeline.routing.vocabulary import Role, Signal
from pipeline.runs.events import PublishIntended
from pipeline.runs.folder import RunFolder
from pipeline.runs.lease import FileLease
from pipeline.runs.reading import (
    commits_of,
    counters_of,
    gate_of,
    place_of,
    safe_next_actions,
    sandbox_of,
    usage_of,
)
from pipeline.runs.run import Run
from pipeline.runs.store import find_run
from pipeline.service.costs import cost_text, costs_of
from pipeline.service.reading import LogDocument, ReviewShown, ShowDocument, TaskShown
from pipeline.terminal import paint, plain
from todo import MappingSource, Tracker, TrackerError

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.git import Repository
    from pipeline.runs.run import Decided
    from pipeline.service.reading import EvidenceShown, FindingLine

_RECENT: Final = 5
_FIRST_PAGE: Final = ("summary.md", "plan.md", "issue.md", "work.patch", "evidence/baseline.json")


def find(repository: Repository, name: str | None) -> Path:
    """Return the folder of the run called *name*, the newest one without a name.

    Raises:
        UserError: there is no such run, or no run at all.
    """
    if name is not None:
        return find_run(repository, name)
    folder = newest(repository)
    if folder is None:
        raise UserError(
            "There are no runs in this worktree yet.", Reason.USAGE, actions=("redfirst run ISSUE", "redfirst runs")
        )
    return folder


def log_document(folder: Path) -> LogDocument:
    """Return the journal as it is."""
    return LogDocument(run_id=folder.name, lines=tuple(Journal.read(RunFolder(folder)).lines))


def log_text(folder: Path) -> str:
    """Return the journal for a person."""
    return "\n".join(log_line(line) for line in Journal.read(RunFolder(folder)).lines)


def show_run(folder: Path) -> ShowDocument:
    """Return how the run stands.

    Raises:
        UserError: the run is damaged.
    """
    live = FileLease.is_held(folder)
    run = Run.load(folder, driving=False)
    state, info, lines = run.state, run.info, run.journal.lines
    reviews = _reviews(run)
    intended = run.journal.of(PublishIntended)
    return ShowDocument(
        run_id=info.run_id,
        issue=info.issue,
        title=_title(run),
        branch=info.branch,
        base_branch=info.base_branch,
        start_commit=info.start_commit,
        started_at=info.started_at,
        last_at=lines[-1].at if lines else info.started_at,
        epoch=run.journal.epoch,
        live=live,
        outcome=state.outcome,
        reason=state.reason,
        exit_code=exit_code(state.outcome, state.reason) if state.outcome and state.reason else None,
        step=state.trunk.step.value,
        phase=state.trunk.step.phase,
        task=state.current,
        place=place_of(run),
        gate=gate_of(run),
        note=run.history[-1].event.note if run.history else "",
        plan_revision=state.plan_revision,
        tasks=_tasks(run),
        reviews=reviews,
        counters=counters_of(run),
        blockers=_blockers(run),
        dispatches=tuple(dispatch_line(run, record, live=live) for record in run.records.values()),
        commits=commits_of(run),
        follow_ups=intended[-1].data.follow_ups if intended and commits_of(run) else (),
        sandbox=sandbox_of(run),
        usage=usage_of(run),
        costs=costs_of(run),
        safe_next_actions=safe_next_actions(run, live=live),
        run_dir=str(folder),
        artifacts=_artifacts(run),
    )


def _title(run: Run) -> str:
    path = run.folder / "issue.md"
    if not path.is_file():
        return ""
    try:
        return Tracker(MappingSource({f"{run.info.issue}.md": path.read_bytes()})).read(run.info.issue).title
    except TrackerError:
        return ""


def _tasks(run: Run) -> tuple[TaskShown, ...]:
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


def _reviews(run: Run) -> tuple[ReviewShown, ...]:
    counts = dict.fromkeys(STAGES, 0)
    found: list[ReviewShown] = []
    for decided in run.history:
        step = decided.decision.step
        if step not in STAGES or decided.decision.row.startswith("any/"):
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
                open=tuple(finding_line(finding) for finding in record.ledger.open) if record else (),
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
            found |= {finding.id: finding_line(finding) for finding in record.ledger.blockers}
    on_record = [found[id_] for id_ in run.state.open_blockers if id_ in found]
    return tuple(sorted(on_record, key=lambda finding: finding.severity.rank))


def _artifacts(run: Run) -> tuple[str, ...]:
    """Return the artifacts that are on disk, those first that a person reads first."""
    there = [name for name in run.artifacts if (run.folder / name).is_file()]
    return tuple(sorted(there, key=lambda name: (name not in _FIRST_PAGE, name)))


# --- for a person --------------------------------------------------------------------------------------------------


def show_text(document: ShowDocument) -> str:
    """Return the same for a person; what comes last is what to do next."""
    parts = [
        _head(document),
        _section("Tasks", [line for task in document.tasks for line in _task_text(task)]),
        _section("Reviews", [line for review in document.reviews for line in _review_text(review)]),
        _section("Blockers on record", [finding_text(finding) for finding in document.blockers]),
        _section("Purses", [str(counter) + ("" if counter.holds else ", closed") for counter in document.counters]),
        _section("Dispatches", _dispatches_text(document)),
        _section("Costs", [cost_text(line) for line in document.costs]),
        _section("Commits", [*document.commits, *(f"filed {plain(issue)}" for issue in document.follow_ups)]),
        _section("Artifacts", [f"{plain(document.run_dir)}/", *(f"  {plain(name)}" for name in document.artifacts)]),
        _section("Next", [plain(action) for action in document.safe_next_actions]),
    ]
    return "\n\n".join(part for part in parts if part)


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([title, *(f"  {line}" for line in lines)]) if lines else ""


def _head(document: ShowDocument) -> str:
    title = f": {plain(document.title)}" if document.title else ""
    lines = [
        f"{plain(document.run_id)}{title}",
        f"  state     {_state_text(document)}",
        f"  stands    {plain(document.place)}",
    ]
    if document.note:
        lines.append(f"  because   {plain(document.note)}")
    lines += [
        f"  branch    {plain(document.branch)}, from {document.start_commit[:12]} (base {plain(document.base_branch)})",
        f"  sandbox   {_sandbox_text(document)}",
        f"  usage     {_usage_text(document)}",
        f"  time      begun {document.started_at}, last event {document.last_at}",
    ]
    return "\n".join(lines)


def _state_text(document: ShowDocument) -> str:
    if document.outcome is None:
        return paint("running", "cyan") if document.live else paint("interrupted: its driver died", "red")
    good = document.outcome is Outcome.COMPLETED
    bad = document.outcome in {Outcome.FAILED, Outcome.REJECTED}
    colour = "green" if good else "red" if bad else "yellow"
    reason = document.reason.value if document.reason else "?"
    return f"{paint(document.outcome.value, colour)} ({reason}), exit code {document.exit_code}"


def _sandbox_text(document: ShowDocument) -> str:
    facts = document.sandbox
    if facts.backend is None:
        return "not on record"
    warning = ": NOTHING WAS ISOLATED, as configured" if facts.backend == "none" else ""
    return f"{plain(facts.backend)}, network {plain(facts.network or 'unknown')}{warning}"


def _usage_text(document: ShowDocument) -> str:
    usage = document.usage
    cost = "cost unknown" if usage.cost_usd is None else f"{usage.cost_usd:.4f} USD"
    tokens = (usage.input_tokens, usage.output_tokens)
    known = "tokens unknown" if None in tokens else f"{tokens[0]} tokens in, {tokens[1]} out"
    return f"{usage.dispatches} dispatch(es), {cost}, {known}"


def _task_text(task: TaskShown) -> list[str]:
    lines = [f"{plain(task.id)} [{task.state.value}] {plain(task.title)}".rstrip()]
    if task.evidence is not None and task.state is not TaskStatus.DROPPED:
        lines += [f"  {line}" for line in _evidence_text(task.evidence)]
    return lines


def _evidence_text(evidence: EvidenceShown) -> list[str]:
    lines = [
        f"RED {plain(red.id)}: {red.red_class}, {'legal' if red.legal else 'NOT LEGAL'}: {plain(red.message)}"
        for red in evidence.red
    ]
    lines += [f"guard {plain(id_)}: passes before and after" for id_ in evidence.guards]
    if evidence.not_testable is not None:
        said = plain(str(evidence.not_testable.get("reason", "")))
        signed = f", signed off in {plain(evidence.judged_by)}" if evidence.judged_by else ""
        lines.append(f"without tests ({said}){signed}")
    if evidence.green is not None:
        flaky = f", {len(evidence.green.flaky)} flaky" if evidence.green.flaky else ""
        lines.append(f"GREEN {len(evidence.green.passed)} of its tests pass, {evidence.green.kept} others kept{flaky}")
    return lines


def _review_text(review: ReviewShown) -> list[str]:
    said = plain(review.verdict or "no verdict on record")
    advice = f"; @simplify: {plain(review.advice)}" if review.advice else ""
    fix = f", must fix {', '.join(map(plain, review.must_fix))}" if review.must_fix else ""
    lines = [f"{review.stage} {review.number}: {said}, counted as {review.signal.value}{fix}{advice}"]
    return [*lines, *(f"  {finding_text(finding)}" for finding in review.open)]


def _dispatches_text(document: ShowDocument) -> list[str]:
    earlier = len(document.dispatches) - _RECENT
    recent = [line for dispatch in document.dispatches[-_RECENT:] for line in dispatch_text(dispatch)]
    more = f"({earlier} earlier: redfirst explain {document.run_id})"
    return ([more] if earlier > 0 else []) + recent
