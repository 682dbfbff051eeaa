"""Describes the gate that a run waits at: which of how many, what to read, what each answer does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.outcomes import Outcome
from pipeline.reports.markdown import parse
from pipeline.routing.vocabulary import Step
from pipeline.runs.drafts import PLAN, open_drafts, undone_edits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.runs.run import Run

WAYS_BACK: Final = {"plan": ("plan",), "split": ("split", "plan"), "commit": ("fix", "split", "plan")}
"""The gates in their order, and where each can send a run back to; the first is its default."""
SUMMARY: Final = "summary.md"
TO_BE_MADE: Final = "Commits to Be Made"
"""The section of summary.md that names them, while a run waits at approval point commit."""
TO_BE_FILED: Final = "Issues to Be Filed"
"""The section of summary.md that has their titles, while a run waits at approval point commit."""

_STAGES: Final = {"plan": "plan", "split": "split", "commit": "final"}
_APPROVED: Final = {
    "plan": "goes on with plan.md as you leave it: it is split into tasks",
    "split": "goes on with the tasks as you leave them: tests are written",
    "commit": "puts the commits on {branch}",
}
_REJECTED: Final = {
    ("plan", "plan"): "drafts the plan again, from what you leave and your feedback",
    ("split", "split"): "cuts the tasks again, from what you leave and your feedback",
    ("split", "plan"): "drafts the plan again, from what you leave; drops the tasks",
    ("commit", "fix"): "makes fix tasks of your feedback; what is done stays",
    ("commit", "split"): "cuts further tasks from the plan; what is done stays",
    ("commit", "plan"): "begins again with the plan; what is done becomes a patch",
}


@dataclass(frozen=True)
class GateAnswer:
    """A command that answers a gate, and what it does there."""

    command: str
    does: str


@dataclass(frozen=True)
class OpenGate:
    """A gate that a run waits at. Paths are absolute; `edit` are the files of which an edit counts when it is approved.

    `place` has the name, and its number among the gates of the run; `commits` are the subjects of what would be
    committed; `notes` say which edit of a person a new draft undoes, and which issues are filed with the commits.
    """

    name: str
    place: str
    edit: tuple[str, ...]
    read: tuple[str, ...]
    commits: tuple[str, ...]
    answers: tuple[GateAnswer, ...]
    notes: tuple[str, ...] = ()


def gate_of(run: Run) -> str | None:
    """Return the gate that the run waits at (plan, split, commit), or None."""
    waits = run.state.trunk.step is Step.GATE and run.state.outcome is Outcome.PARKED
    return run.state.trunk.gate if waits else None


def gate_place(run: Run) -> str | None:
    """Return where among its gates the run waits: `approval point plan (1 of 3)`; None where it waits at none.

    A run may wait at commit for its blockers alone, unasked.
    """
    name = gate_of(run)
    if name is None:
        return None
    gates = [gate for gate in WAYS_BACK if gate in run.state.gates or gate == name]
    return f"approval point {name} ({gates.index(name) + 1} of {len(gates)})"


def open_gate(run: Run) -> OpenGate | None:
    """Return the gate that the run waits at, None where it waits at none."""
    name, place = gate_of(run), gate_place(run)
    if name is None or place is None:
        return None
    edit = open_drafts(run.state)
    further = {"plan": (), "split": (PLAN,), "commit": (SUMMARY,)}[name]
    read = [one for one in (*further, *_last_review(run, _STAGES[name])) if (run.folder / one).is_file()]
    to_file = _planned(run, TO_BE_FILED) if name == "commit" else ()
    return OpenGate(
        name=name,
        place=place,
        edit=tuple(str(run.folder / one) for one in edit),
        read=tuple(str(run.folder / one) for one in read),
        commits=_planned(run, TO_BE_MADE) if name == "commit" else (),
        answers=tuple(_answers(run, name)),
        notes=(*undone_edits(run), *(f"your approval files this issue, too: {title}" for title in to_file)),
    )


def _answers(run: Run, name: str) -> Iterator[GateAnswer]:
    run_id = run.info.run_id
    if name == "commit":
        yield GateAnswer(f"redfirst diff {run_id}", "shows what would be committed")
    yield GateAnswer(f"redfirst approve {run_id}", _APPROVED[name].format(branch=run.info.branch))
    for to in WAYS_BACK[name]:
        way = "" if to == WAYS_BACK[name][0] else f" --to {to}"
        yield GateAnswer(f'redfirst reject {run_id}{way} --feedback "..."', _REJECTED[name, to])
    yield GateAnswer(f"redfirst abandon {run_id}", "ends the run without a commit; its work stays as work.patch")


def _last_review(run: Run, stage: str) -> tuple[str, ...]:
    found = [re.fullmatch(rf"reviews/{stage}-(\d+)\.md", name) for name in run.artifacts]
    numbers = [int(match[1]) for match in found if match is not None]
    last = f"reviews/{stage}-{max(numbers, default=0)}"
    return (f"{last}.md", f"{last}-simplify.md") if numbers else ()


def _planned(run: Run, title: str) -> tuple[str, ...]:
    """Return the lines of a section of the summary."""
    try:
        document = parse(run.read(SUMMARY).decode("utf-8", "replace"))
    except OSError:
        return ()
    return tuple(line.text.removeprefix("- ") for line in document.section(title) if line.text.startswith("- "))
