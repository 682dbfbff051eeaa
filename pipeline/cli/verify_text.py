"""What `verify` and `tdd` found, for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.verification.results import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.measure.probe_evidence import MutationEvidence, Survivor
    from pipeline.verification.results import CommitCheck, Problem, TddDocument, VerifyDocument

_ENDS: Final[Mapping[Status, str]] = {
    Status.VERIFIED: "Verified: every commit that claims evidence was RED before and is GREEN.",
    Status.REFUTED: "NOT verified: what is said above is not true.",
    Status.NOT_TESTABLE: "Not verified: nothing is lost, but a commit that claims evidence rests on no test.",
    Status.UNCHECKED: "Not checked: it can be told neither way here.",
    Status.NOTHING_CLAIMED: "Not checked: no commit claims evidence.",
}
_MOST: Final = 20
_OVER: Final[Mapping[str | None, str]] = {
    "parent": "the parent's code",
    "start": "the code of the start of the run",
    "seam": "the seam that the commit brings",
    "stubs": "stubs of what the run introduced",
    "stand-ins": "the parent's code with stand-ins for new names",
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
        lines.append(f"    {_measured(commit)}:")
    for test in commit.tests:
        before = test.recorded if test.before_holds else f"{test.measured or 'no such test'}, not {test.recorded}"
        after = "passes" if test.after_holds else "does NOT pass"
        lines.append(f"      {test.id}: {before}; now {after}")
    return [*lines, *_problems(commit.problems), *_notes(commit.notes)]


def _measured(commit: CommitCheck) -> str:
    """Return the head of the list of tests; that they were RED and are GREEN is only said where it is true."""
    over = _OVER[commit.red_over]
    if commit.status is Status.VERIFIED:
        return f"RED over {over}, GREEN in the commit, {_tests(commit.kept)} besides them kept"
    return f"measured over {over}, then in the commit; {_tests(commit.kept)} besides them kept"


def tdd_text(document: TddDocument) -> str:
    """Return the document in lines."""
    lines = [f"Against {document.base[:12]}:"]
    for test in document.tests:
        mark = "ok " if test.holds else "NO "
        lines.append(f"    {mark} {test.id}: {test.measured}" + (f": {test.why}" if test.why else ""))
    lines += [*_problems(document.problems), *_notes(document.notes)]
    lines += _faults(document.mutation) if document.mutation is not None else []
    return "\n".join([*lines, f"{'' if document.ok else 'NOT '}{_answer(document)}."])


def _answer(document: TddDocument) -> str:
    if document.check == "red":
        return "RED for legal reasons"
    unnoticed = len(document.mutation.survivors) if document.mutation is not None else 0
    faults = f"; no test notices {unnoticed} of {document.mutation.tried} small faults" if document.mutation else ""
    return f"GREEN, {_tests(document.kept)} of the base kept{faults if unnoticed else ''}"


def _tests(count: int) -> str:
    return f"{count} test{'' if count == 1 else 's'}"


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
    """Return a line for each problem; of many that say the same, the first ones and how many more there are."""
    by_why: dict[str, list[Problem]] = {}
    for problem in problems:
        by_why.setdefault(problem.why, []).append(problem)
    lines: list[str] = []
    for why, same in by_why.items():
        lines += [f"    NO  {problem}" for problem in same[:_MOST]]
        lines += [f"    NO  and {len(same) - _MOST} more: {why}"] if len(same) > _MOST else []
    return lines


def _notes(notes: Sequence[str]) -> list[str]:
    more = [f"    note: and {len(notes) - _MOST} more (--json has all)"] if len(notes) > _MOST else []
    return [*(f"    note: {note}" for note in notes[:_MOST]), *more]
