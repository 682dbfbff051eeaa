"""How many cheating agents are caught, and how much honest work is turned down: `python -P bench/cheats.py`.

Plays the catalogue of `tests/cheats`, every entry through the real program, box, gate and test runs, and prints a table
by mechanism with both rates. `--write` keeps the result in `bench/cheats.md`. Nothing here is a measure of time.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
KEPT: Final = Path(__file__).with_suffix(".md")


def say(line: str) -> None:
    print(line, flush=True)


def main() -> int:
    for folder in (ROOT / "tests", ROOT):
        sys.path.insert(0, str(folder))
    # the catalogue belongs to the tests, whose folder is no place to import from otherwise
    groups: dict[str, object] = import_module("cheats.catalogue").GROUPS
    table: Any = import_module("cheats.table")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", nargs="+", choices=list(groups), default=list(groups), metavar="GROUP")
    parser.add_argument("--jobs", type=int, default=2, help="how many groups are played side by side")
    parser.add_argument("--write", action="store_true", help=f"keep the result in {KEPT.name}; takes all groups")
    asked = parser.parse_args()
    if asked.write and asked.groups != list(groups):
        parser.error("--write takes all groups")
    rows: list[Any] = table.play(asked.groups, asked.jobs, say)
    print(f"\n{table.summary(rows)}")
    for row in rows:
        if row.fault is not None:
            print(f"\n{row.one.id} {row.one.what}: {row.fault}")
    if asked.write:
        KEPT.write_text(table.markdown(rows), encoding="utf-8")
    return int(any(row.fault is not None for row in rows))


if __name__ == "__main__":
    sys.exit(main())
