"""Words that several commands print: dispatches, problems, notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.policy.characters import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeline.service.documents import DispatchLine
    from pipeline.verification.results import Problem


_MOST: Final = 20


def dispatch_text(line: DispatchLine) -> list[str]:
    """Return one dispatch as lines: what was asked, whether the answer counts, what the gate said and why."""
    question = f" ({line.question})" if line.question else ""
    task = f", task {line.task}" if line.task else ""
    asked = f"{line.dispatch}: @{line.role.value} {line.kind}{question}{task}, attempt {line.attempt}: "
    if line.state != "finished":
        return [asked + ("running" if line.state == "running" else "no result: its driver died; it is asked again")]
    ended = f"{line.signal.value}: {visible(line.complaint or '')}" if line.signal else "answered"
    lines = [asked + ended]
    if line.changed:
        lines.append(f"  {'admitted' if line.gate == 'admitted' else 'kept of it'}: {_listed(line.changed)}")
    lines += [f"  refused {visible(v.path)}, rule {visible(v.rule)}: {visible(v.why)}" for v in line.violations]
    if line.dropped:
        lines.append(f"  dropped as scratch: {_listed(line.dropped)}")
    lines += [f"  note: {visible(note)}" for note in line.notes]
    if line.quarantine:
        lines.append(f"  what was refused is kept in {visible(line.quarantine)}/")
    return lines


def _listed(paths: tuple[str, ...]) -> str:
    return ", ".join(map(visible, paths))


def count_of_tests(count: int) -> str:
    """Return a number of tests in words."""
    return f"{count} test{'' if count == 1 else 's'}"


def problems_text(problems: Iterable[Problem]) -> list[str]:
    """Return a line for each problem; of many that say the same, the first ones and how many more there are."""
    by_why: dict[str, list[Problem]] = {}
    for problem in problems:
        by_why.setdefault(problem.why, []).append(problem)
    lines: list[str] = []
    for why, same in by_why.items():
        lines += [f"    NO  {problem}" for problem in same[:_MOST]]
        lines += [f"    NO  and {len(same) - _MOST} more: {why}"] if len(same) > _MOST else []
    return lines


def notes_text(notes: Sequence[str]) -> list[str]:
    """Return a line for each note, up to a number."""
    more = [f"    note: and {len(notes) - _MOST} more (--json has all)"] if len(notes) > _MOST else []
    return [*(f"    note: {note}" for note in notes[:_MOST]), *more]
