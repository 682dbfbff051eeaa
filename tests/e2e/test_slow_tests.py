"""Whole runs: tests that take their time, as those of properties do, and more of it while they are traced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.shapes import TRACKER, answers, evidence
from kit import FILES, GREET, GREET_DONE, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.broad]

LIMIT_S = 4
# a stand-in for many calls: each costs more where it is traced, whatever the machine
SLOW = f"""
import sys
import time


def traced():
    monitoring = getattr(sys, "monitoring", None)
    return sys.getprofile() is not None or (monitoring is not None and monitoring.get_tool(2) is not None)


def take_time():
    end = time.monotonic() + ({LIMIT_S} + 1 if traced() else 0)
    while time.monotonic() < end:
        pass
"""
TESTS = """import pytest

import slow
from greet import greet


def test_nobody():
    slow.take_time()
    with pytest.raises(ValueError, match="needed"):
        greet("")
"""
CONFIG = f'[toolchains.pytest]\ntest_timeout_s = {LIMIT_S}\n[agents.simplify]\nbackend = "off"\n'
FILES_NOW = {
    "pyproject.toml": FILES["pyproject.toml"],
    "greet.py": GREET,
    "slow.py": SLOW,
    "tests/test_old.py": "def test_old():\n    pass\n",
    **TRACKER,
}


def test_a_test_that_is_too_slow_only_while_it_is_traced_is_red(tmp_path: Path) -> None:
    project = make_project(tmp_path, FILES_NOW)
    project.use_script(answers(FILES_NOW, {"tests/test_new.py": TESTS}, {"greet.py": GREET_DONE}), CONFIG)
    document = project.run()
    assert document.get("outcome") == "completed", (project.rows(), document["_stderr"])
    (red,) = evidence(project, "task-1.json")["ledger"]["red"].values()
    assert red["cls"] == "ASSERTION_MISMATCH"
