"""Runs a recipe whose steps are its own, and words how such a run stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.cli.text import near, print_text, several_lines
from pipeline.outcomes import Reason, stands_words
from pipeline.progress import duration
from pipeline.reset_times import moment_words
from pipeline.terminal import print_document, visible_lines

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.git import Repository
    from pipeline.service.explanation import RecipeExplainDocument
    from pipeline.service.run_result import RecipeDocument, StepLine
    from pipeline.steps.recipe_context import Words

_SHOWN: Final = 1_000
"""Characters of what a gate or a note says; `--json` has all of it."""


def show(folder: Path, here: Repository, *, as_document: bool) -> None:
    """Print how a run stands, from what is on disk, with advice as it works where somebody stands."""
    from pipeline.runs.recipe_run import RecipeRun  # noqa: PLC0415
    from pipeline.steps.recipe_context import ReadRun  # noqa: PLC0415

    tell(ReadRun(RecipeRun.load(folder, driving=False)), here, as_document=as_document)


def tell(ctx: Words, here: Repository, *, as_document: bool, driven: bool = False) -> RecipeDocument:
    """Print how a run stands; return that."""
    from pipeline.service.run_result import shown_from  # noqa: PLC0415

    document = shown_from(ctx, here, driven=driven)
    if as_document:
        print_document(document)
    else:
        print_text(visible_lines(steps_text(document)))
    return document


def steps_text(document: RecipeDocument) -> str:
    """Return how a run stands, for a person."""
    from pipeline.service.documents import finding_text  # noqa: PLC0415
    from pipeline.service.open_gates import gates_place  # noqa: PLC0415
    from pipeline.service.run_result import WELL, counted_checkpoints  # noqa: PLC0415

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
        if document.outcome not in WELL
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
    how = stands_words(document.outcome, document.reason) if document.outcome and document.reason else "running"
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
