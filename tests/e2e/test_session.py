"""The recorded session in `docs`: it is what the program does today, at every station (scripts/record-session.py)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.session.steps import STATIONS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "session.md"
ENDS = {
    "Install": "redfirst 0.",
    "Init": "Allowed, until one of these values changes.",
    "Doctor": "A run can be started; the warnings say how, or what to mend first.",
    "First issue": "SLUGS-1  Todo",
    "A run with two gates": "parked at gate plan (1 of 2)",
    "An edit": "A title without a letter or digit is a ValueError. ",
    "A rejection": "> A title without a letter or digit is a ValueError that names it.",
    "An approval, and Ctrl-C": "Go on: redfirst resume run-SLUGS-1",
    "Resume": "parked at gate commit (2 of 2)",
    "The second gate": "run-SLUGS-1: completed (done)",
    "Landing by hand": "Verified: every commit that claims evidence was RED before and is GREEN.",
}


def stations(page: Path) -> dict[str, str]:
    """Return the sections of a page by their titles."""
    _, *pairs = re.split(r"^## \d+\. (.+)\n", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def typed(section: str) -> list[str]:
    """Return what was typed; the prompts are left out."""
    return [line[2:] for line in section.split("\n") if line.startswith(("$ ", "> ")) and line != "> "]


def test_the_page_has_what_is_typed_in_its_order_and_each_end() -> None:
    there = stations(PAGE)
    assert list(there) == list(STATIONS) == list(ENDS)
    for station, steps in STATIONS.items():
        lines = iter(typed(there[station]))
        for line in (line for step in steps for line in step.line.split("\n") if line):
            assert line in lines, f"{station}: {line} is not there; record again: scripts/record-session.py"
        assert ENDS[station] in there[station]


@pytest.mark.slow
@pytest.mark.broad
def test_the_session_can_be_recorded_and_types_what_the_page_has(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "record-session.py"
    done = subprocess.run(
        [sys.executable, str(script), "--to", str(tmp_path)], capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    there, before = stations(tmp_path / "session.md"), stations(PAGE)
    for station, end in ENDS.items():
        assert end in there[station]
        assert [line for line in there[station].split("\n") if line.startswith("$ ")] == [
            line for line in before[station].split("\n") if line.startswith("$ ")
        ]
    text = (tmp_path / "session.cast").read_text(encoding="utf-8")
    header, *events = [json.loads(line) for line in text.splitlines()]
    assert (header["version"], header["width"], header["height"]) == (2, 80, 24)
    assert [at for at, _, _ in events] == sorted(at for at, _, _ in events)
    assert "@make (command)" in text  # the status line
    assert str(Path.home()) + "/" not in text
    assert str(ROOT) not in text
