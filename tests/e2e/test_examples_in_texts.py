"""Whole runs: the tests of a task are examples in a text file, which pytest runs as doctests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from e2e.shapes import TRACKER, answers, evidence
from kit import GREET, GREET_DONE, Project, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

USAGE, MORE = "docs/usage.txt", "docs/more.txt"
TEXT = "Usage\n=====\n\n>>> from greet import greet\n>>> greet('Ada')\n'Hello, Ada!'\n"
REFUSED = """
A name is needed:

>>> greet('')
Traceback (most recent call last):
ValueError: a name is needed
"""
FAREWELL = '\n\ndef farewell(name):\n    return f"Bye, {name}!"\n'
CONFIG = """[tool.pytest.ini_options]
pythonpath = ["."]
testpaths = ["docs"]
addopts = "--disable-plugin-autoload --doctest-glob=*.txt"
"""
DOCUMENTED = {"pyproject.toml": CONFIG, "greet.py": GREET, USAGE: TEXT, **TRACKER}
SYMBOL = {"path": "greet.py", "name": "farewell", "signature": "(name)", "new": True}


def played(tmp_path: Path, texts: dict[str, str]) -> tuple[Project, dict[str, Any]]:
    """Return the run of a task whose tests are these texts; the one that is there may change."""
    project = make_project(tmp_path, DOCUMENTED)
    entries = answers(DOCUMENTED, texts, {"greet.py": GREET_DONE + FAREWELL}, symbols=[SYMBOL])
    split = next(entry for entry in entries if entry["when"] == {"kind": "split"})
    split["report"]["tasks"][0]["tests_to_change"] = [{"id": USAGE, "reason": "it says more"}]
    project.use_script(entries, '[agents.simplify]\nbackend = "off"\n[limits]\ntest_rewrite = 0\n')
    return project, project.run()


@pytest.mark.broad
def test_what_an_example_expects_and_what_it_imports_is_red_where_it_is_missing(tmp_path: Path) -> None:
    bye = ">>> from greet import farewell\n>>> farewell('Ada')\n'Bye, Ada!'\n"
    project, document = played(tmp_path, {USAGE: TEXT + REFUSED, MORE: bye})
    assert document.get("outcome") == "completed", (project.rows(), document["_stderr"])
    assert "write-tests/RED" in project.rows(), project.rows()
    red = evidence(project, "task-1.json")["ledger"]["red"]
    assert {entry: found["cls"] for entry, found in red.items()} == {
        f"{USAGE}::usage.txt": "ASSERTION_MISMATCH",
        f"{MORE}::more.txt": "MISSING_BEHAVIOR",
    }
    assert "got \"'Hello, !'\\n\"" in red[f"{USAGE}::usage.txt"]["message"]
    checked = project.redfirst("verify", "HEAD~1")
    assert checked.returncode == 0, checked.stdout + checked.stderr
