"""`redfirst explain`: why each thing happened (contract 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline.cli.arguments import AsDocument, RunName
from pipeline.cli.text import dispatch_text
from pipeline.outcomes import Outcome
from pipeline.policy.characters import visible
from pipeline.terminal import paint

if TYPE_CHECKING:
    from pipeline.service.documents import DecisionLine, EvidenceLine, ExplainDocument, TestsLine
    from pipeline.terminal import Colour


_SHOWN_IDS: Final = 5
_SECONDS: Final = len("2026-11-20T14:02:07")
_GOOD: Final = frozenset(
    {
        "OK",
        "CLAIMED",
        "DRAFTED",
        "ONE_TASK",
        "ACCEPTABLE",
        "RED",
        "GREEN",
        "GREEN_INCOMPLETE",
        "PUBLISHED",
        "STUBBED",
        "SEAM_DONE",
    }
)


def explain(
    name: RunName,
    last: Annotated[bool, typer.Option("--last", help="Only the last decision.")] = False,
    as_document: AsDocument = False,
) -> None:
    """Say for each decision which row of the matrix fired, on what evidence, what it cost and what followed.

    Examples:
      redfirst explain GAL-39

      redfirst explain GAL-39 --last
    """
    from pathlib import Path  # noqa: PLC0415  (heavy imports are not on the path of --help)

    from pipeline.git import Repository  # noqa: PLC0415  (the same)
    from pipeline.runs.store import find_run  # noqa: PLC0415  (the same)
    from pipeline.service.explanation import explain_run  # noqa: PLC0415  (the same)
    from pipeline.terminal import print_document  # noqa: PLC0415  (the same)

    document = explain_run(find_run(Repository.find(Path.cwd()), name), last=last)
    if as_document:
        print_document(document)
    else:
        typer.echo(explain_text(document))


def explain_text(document: ExplainDocument) -> str:
    """Return the same for a person: one paragraph a decision, the reasons before the consequences."""
    stands = document.place
    if document.outcome is not None:
        stands = f"{document.outcome.value} ({document.reason.value if document.reason else '?'})"
    head = (
        f"{visible(document.run_id)} ({visible(document.issue)}): {visible(stands)}\n"
        f"decided by {visible(document.workflow)} {visible(document.workflow_version)}, "
        f"matrix {document.workflow_hash[:12]}"
    )
    paragraphs = [_paragraph(decision) for decision in document.decisions]
    return "\n\n".join([head, *(paragraphs or ["Nothing was decided yet."])])


def _paragraph(line: DecisionLine) -> str:
    task = f" task {visible(line.task)}" if line.task else ""
    slot = f" from @{line.role.value}" if line.role else ""
    phase = f"phase {line.phase}, " if line.phase != "-" else ""
    signal = paint(line.signal.value, _colour(line))
    head = f"{line.number}. {line.step}{task}: {signal}{slot}  ({phase}{line.at[:_SECONDS].replace('T', ' ')})"
    rows = [
        *(("before", visible(text)) for text in line.before),
        *(("asked", text) for dispatch in line.dispatches for text in dispatch_text(dispatch)),
        *(("measured", _tests_text(tests)) for tests in line.tests),
        *([("signal", visible(line.note))] if line.note else []),
        *(("found", visible(text)) for text in line.facts),
        (
            "rule",
            f"{line.row}" + (f": {line.says}" if line.says else "") + (f" ({line.source})" if line.source else ""),
        ),
        *(("paid", str(counter)) for counter in line.paid),
        *(("used up", f"{one.purse}, so: {one.follows}") for one in line.exhausted),
        *([("blockers", f"on record: {', '.join(map(visible, line.blockers))}")] if line.blockers else []),
        ("then", visible(line.then)),
        *(("evidence", _evidence_text(evidence)) for evidence in line.evidence),
    ]
    return "\n".join([head, *_columns(rows)])


def _columns(rows: list[tuple[str, str]]) -> list[str]:
    """Return the rows with their names in a column; a name that repeats is written once."""
    lines: list[str] = []
    before = ""
    for name, text in rows:
        lines.append(f"   {'' if name == before else name:<9} {text}")
        before = name
    return lines


def _colour(line: DecisionLine) -> Colour:
    if line.exhausted or line.outcome in {Outcome.FAILED, Outcome.REJECTED}:
        return "red"
    return "green" if line.signal.value in _GOOD else "yellow"


def _tests_text(line: TestsLine) -> str:
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(line.outcomes.items())) or "none ran"
    which = "all tests"
    if line.selected is not None:
        shown = ", ".join(map(visible, line.selected[:_SHOWN_IDS])) or "collected only"
        which = shown + (f" and {len(line.selected) - _SHOWN_IDS} more" if len(line.selected) > _SHOWN_IDS else "")
    ended = "" if line.state == "complete" else f"; the run was {visible(line.state)}"
    errors = f"; not collected: {', '.join(map(visible, line.collection_errors))}" if line.collection_errors else ""
    return f"{outcomes} ({which}, over tree {line.tree[:12]}){ended}{errors}"


def _evidence_text(line: EvidenceLine) -> str:
    kept = f", as it was: {visible(line.kept)}" if line.kept else ""
    said = {"as_decided": "", "changed": f"  (written again since{kept})", "missing": f"  (gone{kept})"}
    return visible(line.path) + said[line.state]
