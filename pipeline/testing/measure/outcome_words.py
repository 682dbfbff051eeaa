"""Describes the outcomes of tests and of probes in words."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence.observation import Ended, Observation, TestRecord
from pipeline.judge.reports.markdown import bullets, sections
from pipeline.judge.reports.untrusted_text import fenced, one_line
from pipeline.progress import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipeline.testing.measure import task_evidence


_SAID: Final = {
    Ended.PASSED: "passes",
    Ended.FAILED: "fails",
    Ended.SKIPPED: "is skipped, and only a test that passes counts",
    Ended.XFAILED: "is expected to fail and does, and only a test that passes counts",
    Ended.XPASSED: "is expected to fail and passes",
    Ended.STRICT_XPASS: "is marked as a strict xfail and passes",
    Ended.TIMED_OUT: "does not end in time",
    Ended.CRASHED: "ends the whole test process",
}


def seen(record: TestRecord | None) -> str:
    """Return the outcome of a test in words, with the beginning of its fault or reason."""
    if record is None:
        return "is not among the tests that were collected"
    words = "was collected but not run" if record.outcome is None else _SAID[record.outcome]
    why = record.fault.raised.message if record.fault is not None else record.reason
    return f"{words}: {one_line(why)}" if why else words


def in_sum(outcomes: Iterable[Ended | None]) -> str:
    """Return how many tests there are and how they ended, the most first; the parts are the whole."""
    counts = Counter("did not run" if outcome is None else str(outcome).replace("_", " ") for outcome in outcomes)
    parts = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    return f"{counted(counts.total(), 'test')}{f': {parts}' if parts else ''}"


def named(ids: Iterable[str], observation: Observation) -> str:
    """Return test ids in words, each with its outcome unless it simply failed; other sentences stay."""
    records = observation.records
    return ", ".join(
        f"{entry} {seen(records[entry])}"
        if entry in records and records[entry].outcome not in {Ended.FAILED, Ended.PASSED}
        else entry
        for entry in ids
    )


_WHERE: Final = (
    "These results, but those over the old production, were measured over tree {}. That tree is the task's work before "
    "it was put over other tasks. Its tests stand on nothing that these changed."
)

_NOTHING: Final = "\nNothing was tried.\n"


def probes_md(task: str, probes: task_evidence.ProbeEvidence) -> str:
    """Return the Markdown document on one task's probes. Text from code or tests in it is made harmless."""
    said = f"\n{_WHERE.format(probes.measured[:12])}\n" if probes.measured else ""
    found = sections(
        ("GREEN again", _repeated(probes.repeated) if probes.repeated is not None else ""),
        ("Old tests again", _old(probes.old) if probes.old is not None else ""),
        ("Over the old production", _reverted(probes.revert) if probes.revert is not None else ""),
        ("What the tests run", _reached(probes.reach) if probes.reach is not None else ""),
        ("Small faults in the changed lines", _mutated(probes.mutation) if probes.mutation is not None else ""),
        ("Quarantine", bullets(probes.quarantine)),
    )
    return f"# Probes of the tests of task {task}\n{said}{found or _NOTHING}"


def in_short(probes: task_evidence.ProbeEvidence) -> str:
    """Return the probes' results on one line, empty if nothing was tried."""
    return "; ".join(_said(probes))


def survivors(probes: task_evidence.ProbeEvidence) -> list[str]:
    """Return one line for each fault that no test detected, with its place."""
    found = probes.mutation.survivors if probes.mutation is not None else ()
    return [_placed(survivor) for survivor in found]


def noticed_lines(found: task_evidence.NoticingEvidence) -> Iterator[str]:
    """Yield what tests that pass over the code as it is notice, one line each; foreign text in it is made harmless."""
    if found.trouble:
        yield f"whether they notice faults could not be tried: {one_line(found.trouble)}"
        return
    yield f"they notice {found.killed} of {found.tried} small faults in the code that they look at{_beside(found)}"
    yield from (f"`{test}` notices none of these by an assertion of its own" for test in found.blind)
    if found.survivors:
        left = "; ".join(one_line(_placed(survivor)) for survivor in found.survivors)
        yield f"no added test noticed these, and old ones were not tried: {left}"
    if found.thrown:
        left = "; ".join(one_line(_placed(survivor)) for survivor in found.thrown)
        yield f"these did not compile or only made the code throw, which shows nothing of a test: {left}"


def _beside(found: task_evidence.NoticingEvidence) -> str:
    more = [f"{found.unfit} did not compile or only made the code throw"] if found.unfit else []
    more += [f"{found.not_tried} not tried, the time was over"] if found.not_tried else []
    return f" ({', '.join(more)})" if more else ""


def _said(probes: task_evidence.ProbeEvidence) -> Iterator[str]:
    if probes.repeated is not None and probes.repeated.unstable:
        yield f"{len(probes.repeated.unstable)} test(s) are not always GREEN"
    if probes.old is not None and probes.old.unstable:
        yield f"{len(probes.old.unstable)} old test(s) pass only sometimes now"
    if probes.revert is not None and probes.revert.problems:
        yield f"{len(probes.revert.problems)} test(s) are not RED over the old production"
    if probes.reach is not None and probes.reach.elsewhere:
        yield f"{len(probes.reach.elsewhere)} test(s) never enter what was changed"
    mutation = probes.mutation
    if mutation is not None and mutation.trouble:
        yield f"no faults tried: {one_line(mutation.trouble)}"
    elif mutation is not None and mutation.tried:
        left = f", {mutation.not_chosen} more are possible" if mutation.not_chosen else ""
        left += f", {mutation.not_tried} not tried" if mutation.not_tried else ""
        left += f", {mutation.unfit} did not compile" if mutation.unfit else ""
        yield f"{mutation.killed} of {mutation.tried} small faults noticed{left} ({mutation.seconds:.0f} s)"


def _repeated(found: task_evidence.RepeatEvidence) -> str:
    if not found.unstable:
        return f"{found.runs} runs of the task's tests agree: all pass."
    lines = [f"`{entry}`: {', then '.join(ended)}" for entry, ended in found.unstable.items()]
    said = "The first run is that of all tests, each further one of the tests in question by themselves."
    return f"Runs of the same tests on the same code do not agree. {said}\n\n{bullets(lines)}"


def _old(found: task_evidence.OldEvidence) -> str:
    if not found.asked:
        return ""
    doubtful = [f"`{entry}` fails sometimes over the code before as well: not counted" for entry in found.doubtful]
    if not found.unstable:
        said = f"{found.asked} old test(s) that touch the files of the task pass again by themselves."
        return f"{said}\n\n{bullets(doubtful)}".strip()
    lines = [f"`{entry}`: {', then '.join(ended)}" for entry, ended in found.unstable.items()]
    said = "Old tests pass only sometimes now, and passed each time over the code before. The first run is that of all"
    return f"{said} tests, each further one of the tests in question by themselves.\n\n{bullets([*lines, *doubtful])}"


def _reverted(found: task_evidence.RevertEvidence) -> str:
    if found.unsure:
        return f"Not measured: tests and code of one file cannot be told apart.\n\n{bullets(found.unsure)}"
    lines = [f"`{entry}`: {why}" for entry, why in found.problems.items()]
    lines += [f"`{entry}`: came with the candidate, and passes on the old code too" for entry in found.passing]
    held = f"{len(found.held)} test(s) are RED over the code before."
    if found.measured:
        held = f"{held} The tests are as they were when RED was measured, over tree {found.measured[:12]}."
    return f"{held}\n\n{bullets(lines)}".strip()


def _reached(found: task_evidence.ReachEvidence) -> str:
    lines = [f"`{entry}` never enters a function of the changed files" for entry in found.elsewhere]
    changed = ", ".join(f"`{path}`" for path in found.changed)
    head = f"{found.entering} of the RED test(s) enter a function of {changed}, as far as it was traced."
    note = "That is right for constants and declarations; else ask what such a test would notice."
    return "\n\n".join([head, bullets(lines), note]) if lines else head


def _mutated(found: task_evidence.MutationEvidence) -> str:
    if found.trouble:
        return f"Nothing was tried: {one_line(found.trouble)}"
    if not (found.tried or found.unfit or found.uncompiled or found.not_tried or found.not_chosen):
        return "No fault fits these lines."
    counted = [f"{found.killed} noticed", f"{len(found.survivors)} not noticed by any test that was run"]
    if found.unfit:
        counted.append(f"{found.unfit} did not compile or could not be imported")
    if found.uncompiled:
        counted.append(f"{found.uncompiled} in code that this build does not compile")
    if found.not_tried:
        counted.append(f"{found.not_tried} not tried, the time was over: read the changed lines for more")
    if found.not_chosen:
        counted.append(f"{found.not_chosen} more are possible and were not chosen (`[probes] mutants`)")
    head = f"{found.seconds:.0f} s: {', '.join(counted)}."
    if found.unnoticed:
        functions = bullets(f"`{name}`" for name in found.unnoticed)
        head = f"{head}\n\nNo test notices any fault that was tried in:\n\n{functions}"
    if not found.survivors:
        return head
    run = f"all of the {found.asked} test(s) that were run" if found.asked else "the tests that were run"
    who = f"With each of these changes {run} pass: the task's own, and any others that use the changed files."
    note = f"{who} It may change nothing that matters, or a test is missing."
    return "\n\n".join([head, note, *(f"{bullets([_placed(one)])}\n\n{fenced(one.source)}" for one in found.survivors)])


def _placed(survivor: task_evidence.Survivor) -> str:
    return f"{survivor.path}:{survivor.line}: {survivor.what}"
