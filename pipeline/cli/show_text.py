"""Words how a run stands: the page that `show` prints, all that is known, and what an approver sees at a gate."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pipeline.cli.text import (
    answer_rows,
    columned,
    counted,
    dispatch_text,
    first_rows,
    print_text,
    reading_rows,
    several_lines,
)
from pipeline.outcomes import PAUSED, Outcome, Reason, status_word
from pipeline.policy.characters import visible
from pipeline.progress import duration
from pipeline.reset_times import moment_words
from pipeline.routing.state import TaskStatus
from pipeline.service.documents import TO_FIX, finding_text
from pipeline.terminal import paint, print_document, visible_lines

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.git import Repository
    from pipeline.service.documents import EvidenceShown, ReviewShown, TaskShown
    from pipeline.service.packets import Packet
    from pipeline.service.run_status import ShowDocument

Rows = list[tuple[str, str]]
_LINES: Final = 20
_SECONDS: Final = len("2026-11-20T14:02:07")


def show_text(document: ShowDocument, width: int | None = None) -> str:
    """Return how a run stands in 20 lines, what matters most first; the last says how to see the rest."""
    groups: list[Rows] = [
        _edits(document),
        reading_rows(document.at_gate) if document.at_gate else [],
        [("blocker", finding_text(finding)) for finding in document.blockers],
        [("task", line) for line in map(_task_line, document.tasks)],
        [("dropped", visible(line)) for line in document.dropped_tests],
        _last_reviews(document),
        [("filed", ", ".join(map(visible, document.follow_ups)))] if document.follow_ups else [],
    ]
    rest = ("rest", f"evidence, reviews, dispatches: redfirst show {visible(document.run_id)} -v")
    rows, following = [("state", _state(document)), *_head(document)], _following(document)
    room = _LINES - 2 - len(columned([*rows, *following], width))
    filled = [group for group in groups if group]
    for place, group in enumerate(filled):
        fitting = first_rows(group, max(room - (len(filled) - place - 1), 1), width)
        taken = len(columned(fitting, width))
        if taken > room:
            break
        rows += fitting
        room -= taken
    return "\n".join([_title(document), *columned([*rows, *following, rest], width)])


def whole_text(document: ShowDocument, width: int | None = None) -> str:
    """Return all that is known of a run; what comes last is what to do next."""
    parts = [
        "\n".join([_title(document), *columned(_all_of_head(document), width)]),
        _section("Tasks", [line for task in document.tasks for line in task_text(task)]),
        _section("Reviews", [line for review in document.reviews for line in _review_text(review)]),
        _section("Blockers on record", [finding_text(finding) for finding in document.blockers]),
        _section("Tests dropped", list(map(visible, document.dropped_tests))),
        _section("Limits used", [str(counter) + ("" if counter.holds else ", past") for counter in document.counters]),
        _section("Dispatches", [line for dispatch in document.dispatches for line in dispatch_text(dispatch)]),
        _section(
            "Costs", [f"{'@' if line.of == 'role' else 'phase '}{line.name}: {line.known}" for line in document.costs]
        ),
        _section("Commits", [*document.commits, *(f"filed {visible(issue)}" for issue in document.follow_ups)]),
        _section(
            "Artifacts", [f"{visible(document.run_dir)}/", *(f"  {visible(name)}" for name in document.artifacts)]
        ),
        _section(
            "Approval point", columned(reading_rows(document.at_gate), None, indent=0) if document.at_gate else []
        ),
        _section("No effect", [line for _, text in _edits(document) for line in text.split("\n")]),
        _section("Next", [text for _, text in _following(document)]),
    ]
    return "\n\n".join(part for part in parts if part)


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([title, *(f"  {line}" for line in lines)]) if lines else ""


def _title(document: ShowDocument) -> str:
    return visible(document.run_id + (f": {document.title}" if document.title else ""))


def _head(document: ShowDocument) -> Rows:
    rows: Rows = []
    good = document.outcome in {Outcome.COMPLETED, Outcome.COMPLETED_WITH_BLOCKERS}
    if not good and document.at_gate is None:
        rows.append(("stands", visible(document.place)))
    rows += [("now", f"{visible(each.what)}, {_since(each.since)}") for each in document.now]
    # What the last decision said is why the run stopped only where that decision stopped it.
    if document.note and document.outcome is not None and not good:
        stopped = document.reason is Reason.INTERRUPTED  # by a person: what stays is said, and no cause
        rows.append(("kept" if stopped else "because", several_lines(document.note)))
    if document.not_before is not None:
        rows.append(("not before", _limit_text(document.not_before)))
    done = f", {counted(len(document.commits), 'commit')} of this run" if document.commits else ""
    done += f", landed on {document.landed_on}" if document.landed_on is not None else ""
    rows.append(("branch", visible(f"{document.branch} (base {document.base_branch}){done}")))
    if document.recipe not in {None, "issue"}:
        rows.append(("recipe", visible(str(document.recipe))))
    if document.sandbox.backend == "none":
        rows.append(("sandbox", _box_text(document)))
    rows.append(("usage", _usage_text(document)))
    rows.append(("time", f"begun {_moment(document.started_at)}, last event {_moment(document.last_at)} (UTC)"))
    return rows


def _all_of_head(document: ShowDocument) -> Rows:
    rows = [("state", _state(document)), *_head(document), ("start", document.start_commit)]
    return [*rows, ("sandbox", _box_text(document))] if document.sandbox.backend != "none" else rows


def _limit_text(not_before: str) -> str:
    return visible(f"{moment_words(not_before)}: then the limit of the account ends, and a `redfirst work` goes on")


def _moment(at: str) -> str:
    return at[:_SECONDS].replace("T", " ")


def _since(began: datetime) -> str:
    seconds = (datetime.now(UTC) - began).total_seconds()
    return f"for {duration(max(0.0, seconds))}, since {began:%H:%M:%S} UTC"


def _state(document: ShowDocument) -> str:
    """Return how a run stands, its word in a colour."""
    if document.outcome is None:
        if document.live:
            return paint("running", "cyan")
        if document.queued:
            return f"{paint('queued', 'cyan')}: answered, to be driven on"
        return paint("interrupted: the process that drove it is gone", "red")
    good = document.outcome is Outcome.COMPLETED
    bad = document.outcome in {Outcome.FAILED, Outcome.REJECTED}
    reason = document.reason.value if document.reason else "?"
    how = f"({reason})" if document.at_gate is None else f"at {document.at_gate.place}"
    code = "" if document.reason is Reason.ABANDONED else f", exit code {document.exit_code}"  # `abandon` ends with 0
    word = status_word(document.outcome, document.reason)
    coloured = paint(word, "green" if good else "red" if bad else "yellow")
    return f"{coloured}{'' if word == PAUSED else f' {how}'}{code}"


def _box_text(document: ShowDocument) -> str:
    facts = document.sandbox
    if facts.backend is None:
        return "not on record"
    warning = ": NOTHING WAS ISOLATED, as configured" if facts.backend == "none" else ""
    return f"{visible(facts.backend)}, network {visible(facts.network or 'unknown')}{warning}"


def _following(document: ShowDocument) -> Rows:
    if document.at_gate is not None and not document.live:
        return answer_rows(document.at_gate)
    itself = f"redfirst show {document.run_id}"
    return [("next", visible(action)) for action in document.safe_next_actions if action != itself]


def _edits(document: ShowDocument) -> Rows:
    edits = document.edits_without_effect
    commands = (f":\n  {visible(edit.instead)}" if edit.instead else "" for edit in edits)
    return [
        ("no effect", f"{visible(edit.path)} was edited: {edit.says}{command}")
        for edit, command in zip(edits, commands, strict=True)
    ]


def _usage_text(document: ShowDocument) -> str:
    return document.spent if document.usage.dispatches else "no agent was asked"


def _task_line(task: TaskShown) -> str:
    return f"{visible(task.id)} [{task.state.value}] {visible(task.title)}".rstrip()


def task_text(task: TaskShown) -> list[str]:
    """Return a task with its evidence, as lines."""
    lines = [_task_line(task)]
    if task.evidence is not None and task.state is not TaskStatus.DROPPED:
        lines += [f"  {line}" for line in _evidence_text(task.evidence)]
    return lines


def _evidence_text(evidence: EvidenceShown) -> list[str]:
    lines = [f"tests: the proof of {visible(evidence.proved_by)}"] if evidence.proved_by else []
    lines += [
        f"RED {visible(red.id)}: {red.red_class}, {'legal' if red.legal else 'NOT LEGAL'}: {visible(red.message)}"
        for red in evidence.red
    ]
    lines += [f"guard {visible(id_)}: passes before and after" for id_ in evidence.guards]
    if evidence.not_testable is not None:
        said = visible(str(evidence.not_testable.get("reason", "")))
        signed = f", signed off in {visible(evidence.judged_by)}" if evidence.judged_by else ""
        lines.append(f"without tests ({said}){signed}")
    if evidence.green is not None:
        flaky = f", {len(evidence.green.flaky)} flaky" if evidence.green.flaky else ""
        passed = counted(len(evidence.green.passed), "test")
        lines.append(f"GREEN: {passed} of the task, and {evidence.green.kept} that passed before{flaky}")
    return lines


def _last_reviews(document: ShowDocument) -> Rows:
    return [("review", _review_line(review)) for review in {each.stage: each for each in document.reviews}.values()]


def _review_line(review: ReviewShown) -> str:
    said = visible(review.verdict or "no verdict on record")
    counts = "" if said.replace(" ", "_") == review.signal.value else f", counted as {review.signal.value}"
    advice = f"; @simplify: {visible(review.advice)}" if review.advice else ""
    return f"{review.stage} {review.number}: {said}{counts}{advice}"


def _review_text(review: ReviewShown) -> list[str]:
    must = review.must_fix if review.signal in TO_FIX else ()
    found = [f"  {'to fix' if finding.id in must else 'left open'}: {finding_text(finding)}" for finding in review.open]
    found += [f"  settled: {finding_text(finding)}" for finding in review.refuted]
    return [_review_line(review), *found]


def show_packet(folder: Path, here: Repository, at: str | None, *, as_document: bool) -> None:
    """Print what is to be answered at the gate of a run."""
    from pipeline.runs.roster import seen_from  # noqa: PLC0415  (heavy, and only for this)
    from pipeline.service.other_worktrees import advice_as_typed, answers_as_typed  # noqa: PLC0415  (the same)
    from pipeline.service.packets import packet  # noqa: PLC0415  (the same)

    worktree = folder.parents[1]
    with advice_as_typed(here, worktree, folder.name):
        found = packet(seen_from(here, folder), folder, at)
    answers = answers_as_typed(found.answers, here, worktree, folder.name)
    found = found.model_copy(update={"answers": answers})
    if as_document:
        print_document(found)
    else:
        print_text(visible_lines(packet_text(found)))


def packet_text(packet: Packet) -> str:
    """Return a packet: what is asked, all that it rests on, and what each answer does."""
    of = f" of {packet.issue}: {packet.title}" if packet.issue else f": {packet.title}"
    parts = [f"{packet.run_id}{of}\nwaits at {packet.place} since {packet.asked_at}"]
    parts += [packet.question] if packet.question else []
    for file in (one for one in packet.files if one.text != packet.question):
        counts = " (an edit of it counts)" if file.counts else ""
        parts.append(f"--- {file.name}{counts}\n{file.text}")
    parts += [f"--- diff\n{packet.diff.patch}"] if packet.diff is not None else []
    for title, lines in (
        ("tasks", tuple(line for task in packet.tasks for line in task_text(task))),
        ("to commit", packet.commits),
        ("open findings", tuple(map(finding_text, packet.findings))),
        ("notes", packet.notes),
    ):
        parts += ["\n".join([f"--- {title}", *(f"  {line}" for line in lines)])] if lines else []
    parts.append(f"cost so far: {packet.spent}\ndigest: {packet.digest}")
    parts.append("\n".join(f"  next: {one.command}\n        {one.does}" for one in packet.answers))
    return "\n\n".join(part.rstrip("\n") for part in parts)
