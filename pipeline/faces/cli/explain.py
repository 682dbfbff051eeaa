"""`redfirst explain`: why each thing happened (contract 1)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline.app.run_list import find
from pipeline.characters import on_one_line, visible
from pipeline.faces.cli.arguments import AsDocument, RunName
from pipeline.faces.cli.text import (
    columned,
    dispatch_text,
    first_rows,
    print_text,
    several_lines,
    terminal_width,
    to_the_second,
    wrapped,
)
from pipeline.outcomes import Outcome, Reason, stands_words
from pipeline.progress import duration, few
from pipeline.repo import Repository
from pipeline.run.records import is_of_recipe
from pipeline.run.runs_of_repository import Roster
from pipeline.terminal import Colour, paint, print_document

if TYPE_CHECKING:
    from pipeline.app.explanation import DecisionLine, EvidenceLine, ExplainDocument, TestsLine


_LINES: Final = 20
_NOTHING: Final = "Nothing was decided yet."
_SHOWN_IDS: Final = 5
_GOOD: Final = frozenset({
    *("OK", "CLAIMED", "DRAFTED", "ONE_TASK", "NOT_ASKED", "ACCEPTABLE"),
    *("RED", "GREEN", "GREEN_INCOMPLETE", "PUBLISHED", "STUBBED", "SEAM_DONE"),
})  # fmt: skip


def explain(
    name: RunName = None,
    last: Annotated[bool, typer.Option("--last", help="Only the last decision, whole.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Every decision, whole.")] = False,
    as_document: AsDocument = False,
) -> None:
    """Say why a run stands where it does, in 20 lines.

    These are its last decision, and what went back or cost a try. With -v each decision says which row of the matrix
    fired, on what evidence, what it counted for and what followed.

    Examples:
      redfirst explain

      redfirst explain GAL-39

      redfirst explain GAL-39 --last

      redfirst explain GAL-39 -v
    """
    from pipeline.app.explanation import explain_run, explain_steps
    from pipeline.faces.cli.show import decisions_text

    here = Repository.find(Path.cwd())
    folder = find(Roster(here), name)
    width = terminal_width(sys.stdout)
    if is_of_recipe(folder):
        of_steps = explain_steps(folder, last=last)
        print_document(of_steps) if as_document else print_text(decisions_text(of_steps, whole=verbose or last))
        return
    document = explain_run(folder, here, last=last)
    if as_document:
        print_document(document)
    else:
        print_text(whole_text(document, width) if verbose or last else explain_text(document, width))


def whole_text(document: ExplainDocument, width: int | None = None) -> str:
    """Return every decision: one paragraph each, the reasons before the consequences."""
    decided_by = f"decided by {visible(document.workflow)} {visible(document.workflow_version)}"
    paragraphs = ["\n".join([_head(line), *columned(_reasons(line), width, indent=3)]) for line in document.decisions]
    stands = "\n".join([*wrapped(_stands(document), width), *_since(document, width), decided_by])
    return "\n\n".join([stands, *(paragraphs or [_NOTHING])])


def explain_text(document: ExplainDocument, width: int | None = None) -> str:
    """Return in 20 lines why the run stands where it does; the last says how to see the rest."""
    if not document.decisions:
        return f"{_stands(document)}\n{_NOTHING}"
    *earlier, last = document.decisions
    if document.reason is Reason.ABANDONED and last.reason is Reason.INTERRUPTED:
        last = last.model_copy(update={"note": "", "says": ""})  # what was kept for going on is not any more
    whole = f"every decision, with evidence: redfirst explain {visible(document.run_id)} -v"
    lines = [*wrapped(_stands(document), width), *_since(document, width), _head(last)]
    # What follows and the rule that says so always fit; the evidence and the dispatches are for -v.
    lines += columned(first_rows(_in_short(last), _LINES // 2, width), width, indent=3)
    # Waiting at a gate was asked for: nothing went wrong.
    back = [one for one in earlier if one.paid or one.exhausted or (one.outcome and one.reason is not Reason.APPROVAL)]
    detours = [(f"{line.number}.", _detour(line)) for line in reversed(back)]
    if detours:
        lines.append("before that, the newest first, what was sent back or tried again:")
        lines += columned(first_rows(detours, _LINES - 1 - len(lines), width), width, indent=3)
    elif earlier:
        lines.append("before that every step led to the next one, nothing was tried again")
    return "\n".join([*lines, *columned([("rest", whole)], width, indent=0)])


def _stands(document: ExplainDocument) -> str:
    stands = f"in {document.place}" if not document.place.startswith("at ") else document.place
    if document.reason is Reason.ABANDONED:
        stands = "abandoned by a person, after this decision"
    elif document.reason is Reason.APPROVAL:
        stands = f"parked {document.place}"
    elif document.queued and not document.live:
        stands = f"queued {stands}: answered, to be driven on"
    elif document.outcome is None and not document.live:
        stands = f"interrupted {stands}: the process that drove it is gone"
    elif document.reason is Reason.INTERRUPTED:
        stands = f"paused {stands}"
    elif document.outcome is not None:
        stands = stands_words(document.outcome, document.reason)
    return visible(f"{document.run_id}: {stands}")


def _since(document: ExplainDocument, width: int | None) -> list[str]:
    rows = [("since", f"{to_the_second(line.at)} {visible(line.says)}") for line in document.since]
    return columned(first_rows(rows, _LINES // 4, width), width, indent=0)


def _head(line: DecisionLine) -> str:
    task = f" task {visible(line.task)}" if line.task else ""
    slot = f" from @{line.role.value}" if line.role else ""
    phase = f"phase {line.phase}, " if line.phase != "-" else ""
    signal = paint(line.signal.value, _colour(line))
    return f"{line.number}. {line.step}{task}: {signal}{slot}  ({phase}{to_the_second(line.at)})"


def _reasons(line: DecisionLine) -> list[tuple[str, str]]:
    is_said = line.note in [dispatch.complaint for dispatch in line.dispatches]
    return [
        *(("before", visible(text)) for text in line.before),
        *(("asked", text) for dispatch in line.dispatches for text in dispatch_text(dispatch)),
        *(("measured", _tests_text(tests)) for tests in line.tests),
        *([("signal", several_lines(line.note))] if line.note and not is_said else []),
        *(("found", visible(text)) for text in line.facts if text != line.note),
        ("rule", line.row + (f": {line.says}" if line.says else "") + (f" ({line.source})" if line.source else "")),
        *(("counts", str(counter)) for counter in line.paid),
        *(("used up", f"{one.counter}, so: {one.follows}") for one in line.exhausted),
        *([("blockers", f"on record: {', '.join(map(visible, line.blockers))}")] if line.blockers else []),
        ("then", visible(line.then)),
        *(("evidence", _evidence_text(evidence)) for evidence in line.evidence),
    ]


def _in_short(line: DecisionLine) -> list[tuple[str, str]]:
    label = "kept" if line.reason is Reason.INTERRUPTED else "because"
    said = [(label, several_lines(line.note))] if line.note else [("because", line.says)] if line.says else []
    return [
        *said,
        *(("used up", f"{one.counter}, so: {one.follows}") for one in line.exhausted),
        ("then", visible(line.then)),
        *([("blockers", f"on record: {', '.join(map(visible, line.blockers))}")] if line.blockers else []),
        *(("found", visible(text)) for text in line.facts if text != line.note),
    ]


def _detour(line: DecisionLine) -> str:
    task = f", task {visible(line.task)}" if line.task else ""
    counts = "".join(f" ({one.loop.value} {one.spent} of {one.limit})" for one in line.paid if one.limit)
    return f"{line.step}{task}: {line.signal.value}: {visible(on_one_line(line.note or line.says))}{counts}"


def _colour(line: DecisionLine) -> Colour:
    if line.exhausted or line.outcome in {Outcome.FAILED, Outcome.REJECTED}:
        return "red"
    return "green" if line.signal.value in _GOOD else "yellow"


def _tests_text(line: TestsLine) -> str:
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(line.outcomes.items())) or "none ran"
    which = "all tests"
    if line.selected is not None:
        which = few(map(visible, line.selected), _SHOWN_IDS) or "collected only"
    ended = "" if line.state == "complete" else f"; the run was {visible(line.state)}"
    errors = f"; not collected: {', '.join(map(visible, line.collection_errors))}" if line.collection_errors else ""
    what = f"{visible(line.what)}: " if line.what else ""
    took = f", {duration(line.seconds)}" if line.seconds is not None else ""
    return f"{what}{outcomes} ({which}{took}){ended}{errors}"


def _evidence_text(line: EvidenceLine) -> str:
    kept = f", as it was: {visible(line.kept)}" if line.kept else ""
    said = {"as_decided": "", "changed": f"  (written again since{kept})", "missing": f"  (gone{kept})"}
    return visible(line.path) + said[line.state]
