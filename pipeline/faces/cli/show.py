"""`redfirst show` and `redfirst diff`: how a run stands, its log, what is to be answered, and its work (contract 1)."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline.app.documents import TO_FIX, EvidenceShown, ReviewShown, TaskShown, finding_text
from pipeline.app.journal_lines import follow as follow_log
from pipeline.app.journal_lines import log_line
from pipeline.app.next_lines import advice_as_typed, document_as_typed
from pipeline.app.run_list import find, running_beside
from pipeline.app.run_status import DiffDocument, ShowDocument, diff_run, log_document, show_run
from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.faces.cli.arguments import AsDocument, RunName, StepMeant
from pipeline.faces.cli.text import (
    answer_rows,
    columned,
    dispatch_text,
    first_rows,
    near,
    print_result,
    print_text,
    reading_rows,
    say,
    several_lines,
    terminal_width,
    to_the_second,
)
from pipeline.matrix.engine.journal import Journal
from pipeline.matrix.routing.state import TaskStatus
from pipeline.outcomes import COMPLETED, PAUSED, Outcome, Reason, stands_words, status_word
from pipeline.progress import counted, duration
from pipeline.repo import Repository
from pipeline.reset_times import moment_words
from pipeline.run.folder import RunFolder
from pipeline.run.records import is_of_recipe
from pipeline.run.runs_of_repository import Roster, seen_from
from pipeline.terminal import Colour, paint, print_document, visible_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.app.explanation import RecipeExplainDocument
    from pipeline.app.gate_packets import Packet
    from pipeline.app.run_result import RecipeDocument, StepLine
    from pipeline.steps.recipe_context import Words


def show(
    name: RunName = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="All of it: evidence, reviews, dispatches.")] = False,
    log: Annotated[bool, typer.Option("--log", help="The journal, one line an event.")] = False,
    packet: Annotated[
        bool, typer.Option("--packet", help="What is to be answered, and the digest for --seen.")
    ] = False,
    step: StepMeant = None,
    follow: Annotated[bool, typer.Option("--follow", help="With --log: go on until the run ends or parks.")] = False,
    as_document: AsDocument = False,
) -> None:
    """Show how a run stands and what you can do next, in 20 lines.

    Examples:
      redfirst show GAL-39

      redfirst show GAL-39 -v

      redfirst show --log --follow

      redfirst show GAL-39 --packet
    """
    for refused, why in (
        (follow and (as_document or not log), "--follow belongs to --log, and prints lines as they come: no --json."),
        (packet and (log or verbose), "--packet is a page of its own, without --log and --verbose."),
        (
            step is not None and not packet,
            "--step belongs to --packet: the approval point of a recipe's run that is shown.",
        ),
    ):
        if refused:
            raise UserError(why, Reason.USAGE)
    here = Repository.find(Path.cwd())
    roster = Roster(here)
    folder = find(roster, name)
    width = terminal_width(sys.stdout)
    if packet:
        show_packet(folder, here, step, as_document=as_document)
    elif not log and is_of_recipe(folder):
        show_steps(folder, here, as_document=as_document)
    elif follow:
        follow_log(folder, print_text)
    elif log and as_document:
        print_document(log_document(folder))
    elif log:
        print_text(log_text(folder))
    elif as_document:
        print_document(show_run(folder, here))
    else:
        text_of = whole_text if verbose else show_text
        print_text(text_of(show_run(folder, here), width))
    if name is None and not (as_document or log):
        for other in running_beside(roster, folder):
            say(f"also running: {other}")


def log_text(folder: Path) -> str:
    """Return the journal for a person."""
    return "\n".join(log_line(line) for line in Journal.read(RunFolder(folder)).lines)


Rows = list[tuple[str, str]]
_LINES: Final = 20


def show_text(document: ShowDocument, width: int | None = None) -> str:
    """Return how a run stands in 20 lines, what matters most first; the last says how to see the rest."""
    groups: list[Rows] = [
        _edits(document),
        reading_rows(document.at_gate) if document.at_gate else [],
        [("open" if document.outcome is None else "blocker", finding_text(one)) for one in document.blockers],
        [("task", line) for line in map(_task_line, document.tasks)],
        [("dropped", visible(line)) for line in document.dropped_tests],
        [("review", _review_line(one)) for one in document.reviews],
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
    head = [("state", _state(document)), *_head(document), ("start", document.start_commit)]
    head += [("sandbox", _box_text(document))] if document.sandbox.backend != "none" else []
    parts = [
        "\n".join([_title(document), *columned(head, width)]),
        _section("Tasks", [line for task in document.tasks for line in task_text(task)]),
        _section("Reviews", [line for review in document.reviews for line in _review_text(review)]),
        _section("Findings open on record", [finding_text(finding) for finding in document.blockers]),
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


def _head(document: ShowDocument) -> Iterator[tuple[str, str]]:
    good = document.outcome in COMPLETED
    if not good and document.at_gate is None:
        yield "stands", visible(document.place)
    yield from (("now", f"{visible(each.what)}, {_since(each.since)}") for each in document.now)
    # What the last decision said is why the run stopped only where that decision stopped it.
    if document.note and document.outcome is not None and not good:
        stopped = document.reason is Reason.INTERRUPTED  # by a person: what stays is said, and no cause
        yield "kept" if stopped else "because", several_lines(document.note)
    if document.not_before is not None:
        ends = f"{moment_words(document.not_before)}: then the limit of the account ends"
        yield "not before", visible(f"{ends}, and a `redfirst work` goes on")
    done = f", {counted(len(document.commits), 'commit')} of this run" if document.commits else ""
    done += f", landed on {document.landed_on}" if document.landed_on is not None else ""
    yield "branch", visible(f"{document.branch} (base {document.base_branch}){done}")
    if document.recipe not in {None, "issue"}:
        yield "recipe", visible(str(document.recipe))
    if document.sandbox.backend == "none":
        yield "sandbox", _box_text(document)
    yield "usage", document.spent if document.usage.dispatches else "no agent was asked"
    yield "time", f"begun {to_the_second(document.started_at)}, last event {to_the_second(document.last_at)} (UTC)"


def _since(began: datetime) -> str:
    seconds = (datetime.now(UTC) - began).total_seconds()
    return f"for {duration(max(0.0, seconds))}, since {began:%H:%M:%S} UTC"


def _state(document: ShowDocument) -> str:
    """Return how a run stands, its word in a colour."""
    if document.elsewhere is not None:
        return f"{paint('elsewhere', 'yellow')}: {document.elsewhere} goes on with it, and this is how it stood here"
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
    told = ((edit, f":\n  {visible(edit.instead)}" if edit.instead else "") for edit in document.edits_without_effect)
    return [("no effect", f"{visible(edit.path)} was edited: {edit.says}{command}") for edit, command in told]


def _task_line(task: TaskShown) -> str:
    return f"{visible(task.id)} [{task.state.value}] {visible(task.title)}".rstrip()


def task_text(task: TaskShown) -> Iterator[str]:
    """Yield a task with its evidence, as lines."""
    yield _task_line(task)
    if task.evidence is not None and task.state is not TaskStatus.DROPPED:
        yield from (f"  {line}" for line in _evidence_text(task.evidence))


def _evidence_text(evidence: EvidenceShown) -> Iterator[str]:
    if evidence.proved_by:
        yield f"tests: the proof of {visible(evidence.proved_by)}"
    for red in evidence.red:
        yield f"RED {visible(red.id)}: {red.red_class}, {'legal' if red.legal else 'NOT LEGAL'}: {visible(red.message)}"
    yield from (f"guard {visible(id_)}: passes before and after" for id_ in evidence.guards)
    if evidence.not_testable is not None:
        said = visible(str(evidence.not_testable.get("reason", "")))
        signed = f", signed off in {visible(evidence.judged_by)}" if evidence.judged_by else ""
        yield f"without tests ({said}){signed}"
    if evidence.green is not None:
        flaky = f", {len(evidence.green.flaky)} flaky" if evidence.green.flaky else ""
        passed = counted(len(evidence.green.passed), "test")
        yield f"GREEN: {passed} of the task, and {evidence.green.kept} that passed before{flaky}"


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
    from pipeline.app.gate_packets import packet

    worktree = folder.parents[1]
    with advice_as_typed(here, worktree, folder.name):
        found = packet(seen_from(here, folder), folder, at)
    found = document_as_typed(found, here, worktree, folder.name)
    print_result(found, packet_text, as_document=as_document)


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


_SHOWN: Final = 1_000
"""Characters of what a gate or a note says; `--json` has all of it."""


def show_steps(folder: Path, here: Repository, *, as_document: bool) -> None:
    """Print how a run stands, from what is on disk, with advice as it works where somebody stands."""
    from pipeline.run.recipe_run import RecipeRun
    from pipeline.steps.recipe_context import Words

    tell_steps(Words(RecipeRun.load(folder, driving=False)), here, as_document=as_document)


def tell_steps(ctx: Words, here: Repository, *, as_document: bool, driven: bool = False) -> RecipeDocument:
    """Print how a run stands; return that."""
    from pipeline.app.run_result import shown_from

    document = shown_from(ctx, here, driven=driven)
    print_result(document, steps_text, as_document=as_document)
    return document


def steps_text(document: RecipeDocument) -> str:
    """Return how a run stands, for a person."""
    from pipeline.app.gate_packets import gates_place
    from pipeline.app.run_result import counted_checkpoints

    how = "running" if document.live else "interrupted: the process that drove it is gone"
    how = "queued: answered, to be driven on" if document.queued else how
    if document.outcome is not None and document.reason is not None:
        how = stands_words(document.outcome, document.reason)
    if document.outcome is not None and document.reason is Reason.APPROVAL:
        how = f"{document.outcome.value} at {gates_place(tuple(gate.step for gate in document.gates))}"
    lines = [f"{document.run_id}: {how}: {counted_checkpoints(document)}"]
    lines += [f"  now: {one.what}" for one in document.now]
    if document.note and not document.live:
        lines.append(f"  {several_lines(document.note)}")
    if document.not_before is not None:
        lines.append(f"  not before: {moment_words(document.not_before)}, when the limit of the account ends")
    waiting = {gate.step for gate in document.gates}
    lines += [
        f"  {line.step}: {_standing(line, waiting)}" + (f": {several_lines(shortened(line.why))}" if line.why else "")
        for line in document.steps
        if document.outcome not in COMPLETED
    ]
    lines += [f"  blocker on record: {one.step}: {finding_text(one)}" for one in document.blockers]
    lines += [
        f"  contract {one.name}: {one.provider} provides it, {', '.join(one.consumers) or 'nobody'} relies on it, "
        f"not kept to by {', '.join(one.open)}"
        for one in document.seam_obligations
        if document.outcome is not None
    ]
    lines += [f"  note {note.step}: {several_lines(shortened(note.text))}" for note in document.notes]
    for gate in document.gates:
        lines.append(f"  approval point {gate.step}: {several_lines(shortened(gate.question) or 'yes or no')}")
        lines += [f"    read: {near(path)}" for path in gate.read]
    if document.output and document.output.strip():
        lines += ["", document.output.rstrip(), ""]
    if document.commits:
        lines.append(f"  on the branch: {', '.join(commit[:12] for commit in document.commits)}")
    lines.append(f"  {duration(document.seconds)}, {document.spent}")
    lines.append(f"  everything is in {near(document.run_dir)}")
    does = {one.command: one.does for gate in document.gates for one in gate.answers}
    for action in document.safe_next_actions:
        lines += [f"  next: {action}", *([f"          {does[action]}"] if action in does else [])]
    return "\n".join(lines)


def _standing(line: StepLine, waiting: set[str]) -> str:
    if line.checkpoint is None:
        return "waits for you" if line.step in waiting else "not begun"
    return line.checkpoint.value


def decisions_text(document: RecipeExplainDocument, *, whole: bool) -> str:
    """Return why a run stands as it does, for a person: the steps that are not ready, then the decisions.

    Args:
        document: The run.
        whole: Every decision with its row; else those of steps that did not come out at once.
    """
    how = "running" if document.live else "interrupted"
    how = stands_words(document.outcome, document.reason) if document.outcome and document.reason else how
    lines = [f"{document.run_id}: {how}"]
    lines += [f"  {one.step}: {one.checkpoint}: {several_lines(shortened(one.why))}" for one in document.steps]
    for one in document.decisions:
        if not whole and not one.note and not one.paid and not one.exhausted:
            continue
        said = f": {several_lines(shortened(one.note))}" if one.note else ""
        lines.append(f"{one.number}. {one.step or 'begin'}: {one.signal}{said}")
        lines += [f"   paid {bound.partition('@')[0]} {count}" for bound, count in one.paid.items()]
        lines += [f"   used up: {bound.partition('@')[0]}" for bound in one.exhausted]
        lines += [f"   rule {one.row}", *(f"   then {then}" for then in one.then)] if whole else []
    if not whole:
        lines.append(f"every decision: redfirst explain {document.run_id} -v")
    return visible_lines("\n".join(lines))


def shortened(text: str) -> str:
    """Return the beginning of a text that may be long: what an agent said may be in it."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."


# --- the work of a run, as a patch -----------------------------------------------------------------------------

_COLOURS: Final[tuple[tuple[str, Colour | None], ...]] = (
    ("+++", None), ("---", None), ("+", "green"), ("-", "red"), ("@@", "cyan"),
)  # fmt: skip


def diff(
    name: RunName = None,
    stat: Annotated[bool, typer.Option("--stat", help="The paths and how many lines each gained and lost.")] = False,
    task: Annotated[str | None, typer.Option("--task", metavar="ID", help="Only the work of this task.")] = None,
    as_document: AsDocument = False,
) -> None:
    """Show the work of a run so far, as a patch against its start.

    Your branch and your files are not looked at.

    Examples:
      redfirst diff

      redfirst diff GAL-39 --stat

      redfirst diff GAL-39 --task 2 | git apply --check
    """
    repository = Repository.find(Path.cwd())
    if name is None:
        name = find(Roster(repository), None, of_issue=True).name
        say(f"{name}: the newest run")
    document = diff_run(repository, name, task=task, stat=stat)
    if as_document:
        print_document(document)
        return
    text = diff_text(document)
    typer.echo(text or "No change so far.", nl=not text.endswith("\n"), err=not text)


def diff_text(document: DiffDocument) -> str:
    """Return the patch as it is when a program reads it; on a terminal, controls are shown and lines coloured."""
    if document.patch is None:
        return _stat(document)
    if not sys.stdout.isatty():
        return document.patch
    return "\n".join(map(_painted, visible_lines(document.patch).split("\n")))


def _painted(line: str) -> str:
    return paint(line, next((colour for start, colour in _COLOURS if line.startswith(start)), None))


def _stat(document: DiffDocument) -> str:
    names = [visible(file.path) for file in document.files]
    width = max(map(len, names), default=0)
    counts = ("binary" if file.added is None else f"+{file.added} -{file.deleted}" for file in document.files)
    lines = [f"{name:{width}}  {count}" for name, count in zip(names, counts, strict=True)]
    if lines:
        added = sum(file.added or 0 for file in document.files)
        deleted = sum(file.deleted or 0 for file in document.files)
        lines.append(f"{counted(len(names), 'file')}, +{added} -{deleted}")
    return "\n".join(lines)
