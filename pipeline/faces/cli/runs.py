"""`redfirst runs`: the runs of all worktrees of the repository, one line each (contract 1)."""

from __future__ import annotations

import sys
from collections import Counter
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline.characters import visible
from pipeline.faces.cli.arguments import AsDocument
from pipeline.faces.cli.text import print_text, terminal_width, wrapped
from pipeline.outcomes import PAUSED, Outcome, Reason
from pipeline.progress import counted
from pipeline.reset_times import moment_words
from pipeline.terminal import Colour, paint, print_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeline.app.run_list import Rest, RunLine, RunsDocument


_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_WHERE: Final = 3
"""The column that says where a run stands, or why it ended."""
_GAP: Final = 2
MOST_ENDED: Final = 50
"""So many of the runs that have ended are listed, where not all are asked for."""
_WIDEST: Final = 10_000
_ALL: Final = 9
"""How many columns there are with that of the worktree."""
_COLOURS: Final[dict[str, Colour]] = {
    "running": "cyan",
    "queued": "cyan",
    Outcome.COMPLETED: "green",
    Outcome.COMPLETED_WITH_BLOCKERS: "yellow",
    Outcome.PARKED: "yellow",
    PAUSED: "yellow",
    Outcome.FAILED: "red",
    "interrupted": "red",
    "damaged": "red",
    "gone": "red",
}


def runs(
    everything: Annotated[bool, typer.Option("--all", help="Show the older ones, too.")] = False,
    as_document: AsDocument = False,
) -> None:
    """List the runs of all worktrees, the newest first.

    The newest 50 of those that have ended are shown. TIME is how long processes drove a run: waiting for you does not
    count. USD is what its models cost, with + where some of it is not known. The last line has the totals.

    Examples:
      redfirst runs

      redfirst runs --all

      redfirst runs --json
    """
    from pipeline.app.run_list import as_json, list_runs, newest_runs, with_removed
    from pipeline.repo import Repository

    repository = Repository.find(Path.cwd())
    if as_document:
        print_json(as_json(with_removed(repository, list_runs(repository))))
        return
    document, rest = (list_runs(repository), None) if everything else newest_runs(repository, MOST_ENDED)
    document = with_removed(repository, document, None if everything else MOST_ENDED)
    print_text(runs_text(document, terminal_width(sys.stdout), rest))


@lru_cache
def age_words(seconds: int | None) -> str:
    """Return an age in its largest unit: 45s, 12m, 3h, 9d."""
    if seconds is None:
        return "-"
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def runs_text(document: RunsDocument, width: int | None = None, rest: Rest | None = None) -> str:
    """Return the list for a person; `*` marks a run that a process drives now.

    Where it is wider than *width*, where a run stands goes on in the next lines. The last line has the totals, with
    the *rest* that is left out.
    """
    if not document.runs:
        return "No runs in this repository yet. Start one: redfirst run ISSUE"
    worktrees = worktree_labels(line.worktree for line in document.runs)
    several = len(worktrees) > 1
    head = ("", "RUN", "STATUS", "WHERE OR WHY", "TASKS", "TIME", "USD", "AGE", *(["WORKTREE"] if several else []))
    rows = [(*_row(line), *((worktrees[line.worktree],) if several else ())) for line in document.runs]
    if several and _least(head, rows) > (width or _WIDEST):  # then it stands below its run
        head, rows = head[:-1], [row[:-1] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    too_wide = max(sum(widths) + _GAP * (len(widths) - 1) - (width or _WIDEST), 0)
    widths[_WHERE] = max(widths[_WHERE] - too_wide, len(head[_WHERE]))
    aligned = (" " * _GAP).join(f"{{:{width}}}" for width in widths).format
    painted = {status: paint(status, _COLOURS.get(status)) for status in {line.status for line in document.runs}}
    shown = [aligned(*head).rstrip()]
    for line, row in zip(document.runs, rows, strict=True):
        more: list[str] = []
        if len(row[_WHERE]) > widths[_WHERE]:
            first, *more = wrapped(row[_WHERE], widths[_WHERE], hang=0)
            row = (*row[:_WHERE], first, *row[_WHERE + 1 :])  # noqa: PLW2901  (as it is shown)
        text = aligned(*row).rstrip()
        colour = painted[line.status]
        shown.append(text if colour == line.status else text.replace(f" {line.status} ", f" {colour} ", 1))
        shown += [f"{'':{sum(widths[:_WHERE]) + _GAP * _WHERE}}{part}" for part in more]
        shown += [f"{'':{widths[0] + 2 * _GAP}}in {worktrees[line.worktree]}"] if several and len(row) < _ALL else []
        shown += [f"   {visible(line.problem)}"] if line.problem is not None else []
    more = [f"{rest.runs:,} older ones have ended: redfirst runs --all"] if rest is not None and rest.runs else []
    return "\n".join([*shown, *more, _total(document.runs, rest)])


def _least(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> int:
    """Return how wide the list is where the column that can be broken is as narrow as its head."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head)) if column != _WHERE]
    return sum(widths) + len(head[_WHERE]) + _GAP * (len(head) - 1)


def _total(lines: Sequence[RunLine], rest: Rest | None) -> str:
    """Return what all runs took together."""
    driven = [line.driven_s for line in lines if line.driven_s is not None]
    known = [line.cost_known_usd for line in lines if line.cost_known_usd is not None]
    whole = all(line.cost_usd is not None for line in lines if line.cost_known_usd is not None)
    if rest is not None and rest.runs:
        driven.append(rest.driven_s)
        known += [] if rest.cost_usd is None else [rest.cost_usd]
        whole = whole and rest.is_whole
    parts = [counted(len(lines) + (rest.runs if rest is not None else 0), "run")]
    parts += [f"{time_words(sum(driven))} of work"] if driven else []
    parts += [f"{'' if whole else 'at least '}{sum(known):.2f} USD"] if known else []
    return ", ".join(parts)


@lru_cache
def time_words(seconds: int | None) -> str:
    """Return a duration in its two largest units: 45s, 12m05s, 3h07m, 2d04h."""
    if seconds is None:
        return "-"
    for size, unit, below, smaller in ((_DAY, "d", _HOUR, "h"), (_HOUR, "h", _MINUTE, "m"), (_MINUTE, "m", 1, "s")):
        if seconds >= size:
            return f"{seconds // size}{unit}{seconds % size // below:02}{smaller}"
    return f"{seconds}s"


def worktree_labels(paths: Iterable[str]) -> dict[str, str]:
    """Return the name of each worktree's folder, which may stand before a run's name; its path where two have one."""
    known = dict.fromkeys(paths)
    names = Counter(PurePath(path).name for path in known)
    return {path: visible(PurePath(path).name if names[PurePath(path).name] == 1 else path) for path in known}


def _row(line: RunLine) -> tuple[str, ...]:
    whole = "" if line.cost_usd is not None else "+"  # some of it is not known
    return (
        "*" if line.live else "",
        visible(line.name),
        line.status,
        where_words(line),
        f"{line.tasks_done}/{line.tasks_total}",
        time_words(line.driven_s),
        "-" if line.cost_known_usd is None else f"{line.cost_known_usd:.2f}{whole}",
        age_words(line.age_s),
    )


def where_words(line: RunLine) -> str:
    """Return where a run stands, or why it ended."""
    if line.problem is not None:
        return "-"
    task = f", task {line.task}" if line.task else ""
    task += f", not before {visible(moment_words(line.not_before))}" if line.not_before is not None else ""
    if line.outcome is None:
        return f"{line.step}{task}" if line.step is not None else "-"
    if line.removed:
        return f"{_ended_words(line)}, folder removed"
    if line.gate_place is not None:
        return f"at {line.gate_place.removeprefix('approval point ')}"  # the column has no room for more
    if line.reason is Reason.INTERRUPTED:
        return f"in {line.step}{task}" if line.step is not None else "-"
    if line.outcome in {Outcome.PARKED, Outcome.CANCELLED}:
        return f"{line.reason}, in {line.step}{task}" if line.step is not None else f"{line.reason}{task}"
    return _ended_words(line)


def _ended_words(line: RunLine) -> str:
    return f"landed on {visible(line.landed)}" if line.landed is not None else str(line.reason)
