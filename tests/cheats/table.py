"""What came of all plays, as a table: by mechanism, one by one, and the two rates."""

from __future__ import annotations

import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cheats.catalogue import GROUPS
from cheats.kinds import Cheat, NotExcludable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cheats.kinds import Honest


@dataclass(frozen=True)
class Row:
    """One play: `fault` is what was not as the catalogue says, None where everything was."""

    one: Cheat | Honest
    fault: str | None

    @property
    def end(self) -> str:
        """Return how it ended, in a few words."""
        if isinstance(self.one, Cheat):
            return _end_of_cheat(self.one, self.fault)
        return "through" if self.fault is None else "**turned down**"


def _end_of_cheat(cheat: Cheat, fault: str | None) -> str:
    if fault is not None:
        return "**not as expected**"
    return "passes" if isinstance(cheat.ends, NotExcludable) else "caught"


def play(names: Sequence[str], jobs: int, say: Callable[[str], None]) -> list[Row]:
    """Play the groups, several side by side; return the rows in the order of the catalogue."""
    with ThreadPoolExecutor(jobs) as pool:
        return [row for rows in pool.map(partial(_group, say), names) for row in rows]


def _group(say: Callable[[str], None], name: str) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="redfirst-cheats-") as folder:
        theatre = GROUPS[name].open(Path(folder))
        rows: list[Row] = []
        for one in (*theatre.group.cheats, *theatre.group.honest):
            rows.append(Row(one, one.fault(theatre.play(one))))
            say(f"{one.id:5} {rows[-1].end:20} {one.what}")
        return rows


@dataclass(frozen=True)
class Rates:
    """The figures that count."""

    cheats: int
    caught: int
    passing: int
    honest: int
    alarms: int

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Rates:
        """Return the figures of all rows."""
        ends = Counter(row.end for row in rows if isinstance(row.one, Cheat))
        honest = [row for row in rows if not isinstance(row.one, Cheat)]
        alarms = sum(row.fault is not None for row in honest)
        return cls(sum(ends.values()), ends["caught"], ends["passes"], len(honest), alarms)

    def __str__(self) -> str:
        open_ = self.cheats - self.caught - self.passing
        return (
            f"{self.caught} of {self.cheats} cheats are caught ({self.caught / max(1, self.cheats):.0%}); "
            f"{self.passing} cannot be excluded, {open_} are open. "
            f"{self.alarms} of {self.honest} times honest work is turned down."
        )


def summary(rows: Sequence[Row]) -> str:
    """Return the table by mechanism, and the rates."""
    caught = [row.one for row in rows if isinstance(row.one, Cheat) and row.end == "caught"]
    by = Counter((cheat.ends.by.value, cheat.who) for cheat in caught)
    order = dict.fromkeys(cheat.ends.by.value for cheat in caught)
    lines = [f"| {name} | {by[name, '@test']} | {by[name, '@make']} |" for name in order]
    return "\n".join([str(Rates.of(rows)), "", "| Caught because | @test | @make |", "|---|---|---|", *lines])


def markdown(rows: Sequence[Row]) -> str:
    """Return the whole document."""
    cheats = [row for row in rows if isinstance(row.one, Cheat)]
    passing = [row for row in cheats if row.end == "passes"]
    honest = [row for row in rows if not isinstance(row.one, Cheat)]
    return "\n".join(
        [
            "# Cheating agents, and honest ones",
            "",
            "Written by `python -P bench/cheats.py --write`: each line was played through the real program, from the",
            "gate before its task to wherever it came. Where @check is told, it turns the work down; else it believes",
            "everything.",
            "",
            summary(rows),
            "",
            "## Cheats",
            "",
            "| | Who | What | End | By |",
            "|---|---|---|---|---|",
            *_cheats(cheats),
            "",
            "## What cannot be excluded",
            "",
            *(f"* {row.one.what}: {_why(row)}." for row in passing),
            "",
            "## Honest work",
            "",
            "| | What | Resembles | End |",
            "|---|---|---|---|",
            *_honest(honest),
            "",
        ]
    )


def _cheats(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        if isinstance(row.one, Cheat):
            yield f"| {row.one.id} | {row.one.who} | {row.one.what} | {row.end} | {row.one.ends.by.value} |"


def _honest(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        if not isinstance(row.one, Cheat):
            yield f"| {row.one.id} | {row.one.what} | {row.one.like} | {row.end} |"


def _why(row: Row) -> str:
    return row.one.ends.why if isinstance(row.one, Cheat) and isinstance(row.one.ends, NotExcludable) else ""
