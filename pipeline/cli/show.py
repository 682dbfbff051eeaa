"""`redfirst show`: how a run stands, and its log (contract 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline.cli.arguments import AsDocument
from pipeline.cli.journal_lines import log_line
from pipeline.cli.text import dispatch_text
from pipeline.engine.journal import Journal
from pipeline.outcomes import Outcome
from pipeline.policy.characters import visible
from pipeline.routing.state import TaskStatus
from pipeline.runs.folder import RunFolder
from pipeline.service.run_facts import finding_text
from pipeline.terminal import paint

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.service.documents import CostLine, EvidenceShown, ReviewShown, ShowDocument, TaskShown


_RECENT: Final = 5


def show(
    name: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="A run, or a prefix; default: the newest.")
    ] = None,
    log: Annotated[bool, typer.Option("--log", help="The journal, one line an event.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="With --log: go on until the run ends or parks.")] = False,
    as_document: AsDocument = False,
) -> None:
    """Show how a run stands, and what can be done next.

    Examples:
      redfirst show GAL-39

      redfirst show --log --follow
    """
    from pathlib import Path  # noqa: PLC0415  (heavy imports are not on the path of --help)

    from pipeline.cli.journal_lines import follow as follow_log  # noqa: PLC0415  (the same)
    from pipeline.errors import UserError  # noqa: PLC0415  (the same)
    from pipeline.git import Repository  # noqa: PLC0415  (the same)
    from pipeline.outcomes import Reason  # noqa: PLC0415  (the same)
    from pipeline.service.run_status import find, log_document, show_run  # noqa: PLC0415  (the same)
    from pipeline.terminal import print_document  # noqa: PLC0415  (the same)

    if follow and (as_document or not log):
        raise UserError("--follow belongs to --log, and prints lines as they come: no --json.", Reason.USAGE)
    folder = find(Repository.find(Path.cwd()), name)
    if follow:
        follow_log(folder, typer.echo)
    elif log and as_document:
        print_document(log_document(folder))
    elif log:
        typer.echo(log_text(folder))
    elif as_document:
        print_document(show_run(folder))
    else:
        typer.echo(show_text(show_run(folder)))


def log_text(folder: Path) -> str:
    """Return the journal for a person."""
    return "\n".join(log_line(line) for line in Journal.read(RunFolder(folder)).lines)


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
        _section("Commits", [*document.commits, *(f"filed {visible(issue)}" for issue in document.follow_ups)]),
        _section(
            "Artifacts", [f"{visible(document.run_dir)}/", *(f"  {visible(name)}" for name in document.artifacts)]
        ),
        _section("Edited after its gate: no effect", _edits_text(document)),
        _section("Next", [visible(action) for action in document.safe_next_actions]),
    ]
    return "\n\n".join(part for part in parts if part)


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([title, *(f"  {line}" for line in lines)]) if lines else ""


def _head(document: ShowDocument) -> str:
    title = f": {visible(document.title)}" if document.title else ""
    lines = [
        f"{visible(document.run_id)}{title}",
        f"  state     {_state_text(document)}",
        f"  stands    {visible(document.place)}",
    ]
    if document.note:
        lines.append(f"  because   {visible(document.note)}")
    lines += [
        visible(f"  branch    {document.branch}, from {document.start_commit[:12]} (base {document.base_branch})"),
        f"  sandbox   {_box_text(document)}",
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


def _box_text(document: ShowDocument) -> str:
    facts = document.sandbox
    if facts.backend is None:
        return "not on record"
    warning = ": NOTHING WAS ISOLATED, as configured" if facts.backend == "none" else ""
    return f"{visible(facts.backend)}, network {visible(facts.network or 'unknown')}{warning}"


def _edits_text(document: ShowDocument) -> list[str]:
    edits = document.edits_without_effect
    return [line for edit in edits for line in (f"{visible(edit.path)}: {edit.says}", f"  {visible(edit.instead)}")]


def _usage_text(document: ShowDocument) -> str:
    usage = document.usage
    cost = "cost unknown" if usage.cost_usd is None else f"{usage.cost_usd:.4f} USD"
    tokens = (usage.input_tokens, usage.output_tokens)
    known = "tokens unknown" if None in tokens else f"{tokens[0]} tokens in, {tokens[1]} out"
    return f"{usage.dispatches} dispatch(es), {cost}, {known}"


def _task_text(task: TaskShown) -> list[str]:
    lines = [f"{visible(task.id)} [{task.state.value}] {visible(task.title)}".rstrip()]
    if task.evidence is not None and task.state is not TaskStatus.DROPPED:
        lines += [f"  {line}" for line in _evidence_text(task.evidence)]
    return lines


def _evidence_text(evidence: EvidenceShown) -> list[str]:
    lines = [
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
        lines.append(f"GREEN {len(evidence.green.passed)} of its tests pass, {evidence.green.kept} others kept{flaky}")
    return lines


def _review_text(review: ReviewShown) -> list[str]:
    said = visible(review.verdict or "no verdict on record")
    advice = f"; @simplify: {visible(review.advice)}" if review.advice else ""
    fix = f", must fix {', '.join(map(visible, review.must_fix))}" if review.must_fix else ""
    lines = [f"{review.stage} {review.number}: {said}, counted as {review.signal.value}{fix}{advice}"]
    return [*lines, *(f"  {finding_text(finding)}" for finding in review.open)]


def _dispatches_text(document: ShowDocument) -> list[str]:
    earlier = len(document.dispatches) - _RECENT
    recent = [line for dispatch in document.dispatches[-_RECENT:] for line in dispatch_text(dispatch)]
    more = f"({earlier} earlier: redfirst explain {document.run_id})"
    return ([more] if earlier > 0 else []) + recent


def cost_text(line: CostLine) -> str:
    """Return the same for a person."""
    return f"{'@' if line.of == 'role' else 'phase '}{line.name}: {line.known}"
