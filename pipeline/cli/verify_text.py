"""What `verify` and `tdd` found, for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.verification.results import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.steps.probe_evidence import MutationEvidence, Survivor
    from pipeline.verification.results import CommitCheck, Problem, TddDocument, VerifyDocument

_ENDS: Final[Mapping[Status, str]] = {
    Status.VERIFIED: "Verified: every commit that claims evidence was RED before and is GREEN.",
    Status.REFUTED: "NOT verified: what is said above is not true.",
    Status.UNCHECKED: "Not checked: it can be told neither way here.",
    Status.NOTHING_CLAIMED: "Not checked: no commit claims evidence.",
}
_OVER: Final[Mapping[str | None, str]] = {
    "parent": "the parent's code",
    "start": "the code of the start of the run",
    "seam": "the seam that the commit brings",
    "stubs": "stubs of what the run introduced",
}


def verify_text(document: VerifyDocument) -> str:
    """Return the document in lines."""
    lines = [line for commit in document.commits for line in _commit(commit)]
    return "\n".join([*lines, _ENDS[document.status]])


def _commit(commit: CommitCheck) -> list[str]:
    lines = [f"{commit.commit[:12]} {commit.subject}: {commit.status.value.replace('_', ' ')}"]
    if commit.why:
        lines.append(f"    {commit.why}")
    if commit.evidence is not None:
        lines.append(f"    evidence of task {commit.task}: {commit.evidence}")
    if commit.tests:
        lines.append(f"    RED over {_OVER[commit.red_over]}, GREEN in the commit, {commit.kept} other tests kept:")
    for test in commit.tests:
        before = test.recorded if test.before_holds else f"{test.measured or 'no such test'}, not {test.recorded}"
        after = "passes" if test.after_holds else "does NOT pass"
        lines.append(f"      {test.id}: {before}; now {after}")
    return [*lines, *_problems(commit.problems), *(f"    note: {note}" for note in commit.notes)]


def tdd_text(document: TddDocument) -> str:
    """Return the document in lines."""
    lines = [f"Against {document.base[:12]}:"]
    for test in document.tests:
        mark = "ok " if test.holds else "NO "
        lines.append(f"    {mark} {test.id}: {test.measured}" + (f": {test.why}" if test.why else ""))
    lines += _problems(document.problems)
    lines += [f"    note: {note}" for note in document.notes]
    lines += _faults(document.mutation) if document.mutation is not None else []
    wanted = "RED for legal reasons" if document.check == "red" else f"GREEN, {document.kept} tests of the base kept"
    return "\n".join([*lines, f"{'' if document.ok else 'NOT '}{wanted}."])


def _faults(mutation: MutationEvidence) -> list[str]:
    left = f", {mutation.not_tried} not tried" if mutation.not_tried else ""
    unfit = f", {mutation.unfit} that do not compile" if mutation.unfit else ""
    head = f"    small faults in the change: {mutation.killed} of {mutation.tried} noticed{unfit}{left}"
    if not mutation.tried and not mutation.not_tried:
        return []
    told = [line for each in mutation.survivors for line in (_where(each), f"             {each.source}")]
    return [head, *told]


def _where(survivor: Survivor) -> str:
    return f"      no test notices {survivor.path}:{survivor.line}: {survivor.what}"


def _problems(problems: Iterable[Problem]) -> list[str]:
    return [f"    NO  {problem}" for problem in problems]
