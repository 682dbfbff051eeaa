"""The tutorial: what it says to type is typed, and what it shows is what is printed (scripts/play-tutorial.py)."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "play-tutorial.py"


def typed(block: str) -> list[Any]:
    found: list[Any] = runpy.run_path(str(SCRIPT))["typed_in"](block)
    return found


def test_a_page_is_mended_where_something_else_is_printed_and_leaves_out_what_it_left_out() -> None:
    block = "$ cat <<'END'\n> $ one\n>\n> END\n...\ndone: 2 commits\n  next: land\n...\n$ true\n^C\n...\n"
    first, second = typed(block)
    assert (first.command, second.command) == (("cat <<'END'", "$ one", "", "END"), ("true",))
    assert "".join(f"{line}\n" for line in [*first.lines, *second.lines]) == block
    screen = ["begun", "done: 3 commits", "  of four", "  next: land"]
    assert first.in_place_of_shown(["begun", *first.shown[1:3], "more"]).shown == first.shown
    assert first.in_place_of_shown(screen).shown == ("...", *screen[1:])
    assert second.in_place_of_shown(["stopped"]).shown == ("^C", "...")
    assert second.in_place_of_shown([]).shown == ("^C",)


@pytest.mark.slow
@pytest.mark.broad
def test_what_the_tutorial_shows_is_what_is_printed() -> None:
    # its pages show what pytest prints by itself
    env = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], env=env, capture_output=True, text=True, timeout=1500, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
