"""Writes summary.md from the journal and the evidence, without a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.judge.evidence.red_classes import red_words
from pipeline.judge.reports.markdown import bullets, sections
from pipeline.judge.reports.untrusted_text import one_line
from pipeline.matrix.engine.journal_kinds import DecisionMade
from pipeline.matrix.routing.state import TaskStatus
from pipeline.run import tracker
from pipeline.run.gates import SUMMARY, TO_BE_FILED, TO_BE_MADE
from pipeline.run.journal_kinds import PublishIntended
from pipeline.run.spending import by_phase, by_role, spent
from pipeline.run.summary_facts import dropped_tests
from pipeline.steps.asking.artifacts import suspicions_told, work_notes
from pipeline.steps.asking.reviews import all_last_reviews
from pipeline.steps.evidence_records import BASELINE, baseline_of, quarantine_of_run, read_evidence
from pipeline.steps.publication.follow_ups import not_testable_manifest
from pipeline.testing.measure.baseline import limit_of, not_protected
from pipeline.testing.measure.outcome_words import in_short, noticed_lines, survivors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.judge.evidence.red_tests import RedTests
    from pipeline.steps.context import Context


def write_summary(
    ctx: Context,
    *,
    commits: Sequence[str] = (),
    planned: Sequence[str] = (),
    to_file: Sequence[str] = (),
    follow_ups: Sequence[str] = (),
) -> str:
    """Write summary.md; return its name.

    Of what a person is asked about, `planned` are the subjects of the commits, `to_file` the titles of new issues.
    """
    info, state = ctx.run.info, ctx.state
    title = tracker.in_tree(ctx.repository, info.start_tree).read(ctx.issue).title
    head = (
        f"# {info.run_id}: {one_line(title)}\n\nIssue {ctx.issue}, branch `{info.branch}`, begun {info.started_at}.\n"
    )
    failed = state.failure if not commits else None
    decided = ctx.run.journal.of(DecisionMade)
    last_note = one_line(decided[-1].data.note) if decided else ""
    advice = [line for one in all_last_reviews(ctx).values() for line in one.ledger.advice(state.open_blockers)]
    # before the baseline there is nothing to say it of
    quarantined = quarantine_of_run(ctx).lines() if ctx.config.quarantine and ctx.path(BASELINE).exists() else ()
    text = head + sections(
        ("What Failed", f"{failed.value}: {last_note}" if failed else ""),
        ("Commits", bullets(_commit_lines(ctx, commits))),
        (TO_BE_MADE, bullets(planned)),
        (TO_BE_FILED, bullets(to_file)),
        ("Tasks", bullets(_task_lines(ctx))),
        ("Changed Files", bullets(_file_lines(ctx))),
        ("Evidence", _evidence(ctx)),
        ("Not Protected", bullets(_not_protected(ctx))),
        ("Quarantine", bullets(quarantined)),
        ("Without Tests", bullets(_without_tests(ctx))),
        ("Dropped Tests", bullets(dropped_tests(state))),
        ("What Agents Said", bullets(work_notes(ctx))),
        ("Told to the Final Review", bullets(suspicions_told(ctx))),
        ("Reviews", bullets(_reviews(ctx))),
        ("Proofs", bullets(_proofs(ctx))),
        ("Blockers on Record", bullets(_blockers(ctx))),
        ("Filed Follow-ups", bullets(follow_ups)),
        ("Advisory Notes (not filed)", bullets(advice)),
        ("Decisions", bullets(_decisions(ctx))),
        ("Rejected Writes", bullets(_rejected(ctx))),
        ("Left Out", bullets(_left_out(ctx))),
        ("Isolation", bullets(f"{key}: {value}" for key, value in sorted(ctx.box_facts.items()))),
        ("Usage", bullets(_usage(ctx))),
    )
    return ctx.write(SUMMARY, text)


def _commit_lines(ctx: Context, commits: Sequence[str]) -> list[str]:
    intended = ctx.run.journal.of(PublishIntended)
    base = intended[-1].data.base if intended and commits else None
    onto = [] if base is None else [f"on top of {base[:12]} {ctx.repository.subject(base)}, and measured there"]
    return [*(f"{commit[:12]} {ctx.repository.subject(commit)}" for commit in commits), *onto]


def _task_lines(ctx: Context) -> list[str]:
    shown = [task for task in ctx.state.tasks.values() if task.status is not TaskStatus.DROPPED]
    return [f"{task.id} [{task.status.value}] {one_line(task.spec.title)}" for task in shown]


def _file_lines(ctx: Context) -> list[str]:
    files = ctx.repository.numstat(ctx.state.start, ctx.state.head)
    return [
        f"`{one.path}`, " + ("binary" if one.added is None else f"{one.added} line(s) added, {one.deleted} deleted")
        for one in files
    ]


def _not_protected(ctx: Context) -> tuple[str, ...]:
    """Return which tests failed before the run already, so that it could not be told whether it breaks them."""
    if not ctx.path(BASELINE).exists():
        return ()
    excused = quarantine_of_run(ctx).excused if ctx.config.quarantine else ()
    return not_protected(baseline_of(ctx), limit_of(ctx), excused)


def _evidence(ctx: Context) -> str:
    parts: list[str] = []
    for task in ctx.state.tasks.values():
        evidence = read_evidence(ctx, task.id) if task.status is not TaskStatus.DROPPED else None
        if evidence is None or evidence.ledger is None:
            continue
        green = evidence.green
        lines = [f"proved by {evidence.proved_by}: its tests are that finding's"] if evidence.proved_by else []
        lines += ledger_lines(evidence.ledger)
        if evidence.noticing is not None and not evidence.ledger.red:
            lines += noticed_lines(evidence.noticing)
        none = "not GREEN" if task.status is not TaskStatus.ALREADY_DONE else "already done: nothing was implemented"
        lines.append(f"GREEN: {len(green.passed)} of these pass, {green.kept} other tests kept" if green else none)
        if evidence.probes:
            lines += [f"probes: {said}"] if (said := in_short(evidence.probes)) else []
            lines += [f"at that time no test noticed: {one_line(line)}" for line in survivors(evidence.probes)]
        parts.append(f"### Task {task.id}\n\n{bullets(lines)}")
    return "\n\n".join(parts)


def ledger_lines(ledger: RedTests) -> list[str]:
    """Return what was RED and what passed before and after; the cases of one function are one line."""
    red: dict[tuple[str, str], list[str]] = {}
    for entry, found in sorted(ledger.red.items()):
        red.setdefault((found.function, red_words(found.cls)), []).append(entry)
    guards: dict[str, list[str]] = {}
    for entry in sorted(ledger.guards):
        guards.setdefault(entry.partition("[")[0], []).append(entry)
    lines = [
        f"RED {_cases(function, entries)}: {cls}: {one_line(ledger.red[entries[0]].message)}"
        + (", and others" if len({ledger.red[entry].message for entry in entries}) > 1 else "")
        for (function, cls), entries in red.items()
    ]
    return [*lines, *(f"passes before and after: {_cases(function, entries)}" for function, entries in guards.items())]


def _cases(function: str, entries: Sequence[str]) -> str:
    return f"`{entries[0]}`" if len(entries) == 1 else f"`{function}` ({len(entries)} cases)"


def _without_tests(ctx: Context) -> list[str]:
    found = not_testable_manifest(ctx)
    return [f"task {entry['task']}: {entry.get('reason', '')}, signed off in {entry['judged_by']}" for entry in found]


def _reviews(ctx: Context) -> list[str]:
    return [
        f"{stage}: {record.signal.value} in review {record.review}, findings in all: {len(record.ledger.findings)}"
        for stage, record in all_last_reviews(ctx).items()
    ]


def _blockers(ctx: Context) -> list[str]:
    on_record = set(ctx.state.open_blockers)
    ledgers = [record.ledger for record in all_last_reviews(ctx).values()]
    return [f"{f.id} [{f.severity}] {f.headline}" for led in ledgers for f in led.open if f.id in on_record]


def _proofs(ctx: Context) -> list[str]:
    """Return what came of the proofs that @check gave, each with what became of its finding."""
    findings = [one for record in all_last_reviews(ctx).values() for one in record.ledger.findings]
    measured = [(one, one.measured) for one in findings if one.measured is not None]
    return [
        f"{one.id} [{one.severity}] {one_line(one.headline)}: {of.found}: {one_line(of.why)}"
        + (f"; {one.status.value}: {one_line(one.note)}" if one.status.value != of.found and one.note else "")
        for one, of in measured
    ]


def _decisions(ctx: Context) -> list[str]:
    made = (line.data for line in ctx.run.journal.of(DecisionMade))
    told = (f"{one.row}{f' (task {one.task})' if one.task else ''}: {one_line(one.note)}" for one in made)
    return [line.removesuffix(": ") for line in told]


def _rejected(ctx: Context) -> list[str]:
    found = [result for result in ctx.run.results.values() if result.violations]
    return [f"{r.dispatch}: `{v.path}` ({v.rule}): {one_line(v.why)}" for r in found for v in r.violations]


def _left_out(ctx: Context) -> list[str]:
    """Return what tools left behind and the project ignores; scratch that every run leaves is not worth a line."""
    found = [(r.dispatch, line) for r in ctx.run.results.values() for line in r.dropped if ".gitignore" in line]
    return [f"{dispatch}: `{one_line(line)}`" for dispatch, line in found]


def _usage(ctx: Context) -> list[str]:
    traffic = [result.model_traffic for result in ctx.run.results.values() if result.model_traffic is not None]
    asked = sum(each.requests for each in traffic)
    refused = sum(each.refused for each in traffic)
    through = [f"{asked} requests passed on to models, {refused} refused by the gateway"] if traffic else []
    parts = [f"@{role}: {taken}" for role, taken in by_role(ctx.run).items()]
    parts += [f"phase {phase}: {taken}" for phase, taken in by_phase(ctx.run).items()]
    return [str(spent(ctx.run)), *through, *parts]
