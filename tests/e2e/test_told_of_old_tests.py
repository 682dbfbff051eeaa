"""Whole runs: a constant of old tests that is loosened, and an old doctest that is emptied, are told to @check."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from kit import AFTER_MAKE, FILES, GREET, GREET_DONE, MAKE, TESTS, UNTIL_TESTS, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.broad]

OLD = """EPS = 1e-9
CASES = [("Ada", "Hello, Ada!"), ("Bob", "Hello, Bob!")]


def test_size():
    assert abs(size("Ada") - 3.0) < EPS


def test_all():
    for name, said in CASES:
        assert greet(name) == said
"""
HEAD = "import pytest\n\nfrom greet import greet, size\n\n"
NEW = '\n\ndef test_empty():\n    with pytest.raises(ValueError):\n        greet("")\n'
SIZE = "\n\ndef size(name):\n    return float(len(name))\n"
SHOWN = '"""Greetings."""\n\n\ndef greet(name):\n    """Greet.\n\n    >>> greet("Ada")\n    \'Hello, Ada!\'\n    """\n'
RETURNS = '    return f"Hello, {name}!"\n'
REFUSES = '    if not name:\n        raise ValueError("a name is needed")\n'
DOCTESTS = '[tool.pytest.ini_options]\naddopts = "--disable-plugin-autoload --doctest-modules"\npythonpath = ["."]\n'


def test_a_constant_and_a_table_of_old_tests_are_told_for_who_uses_them(tmp_path: Path) -> None:
    loose = OLD.replace("1e-9", "10.0").replace(', ("Bob", "Hello, Bob!")', "")
    files = {**FILES, "greet.py": GREET + SIZE, "tests/test_greet.py": HEAD + OLD}
    project = make_project(tmp_path, files)
    tests = {**TESTS, "files": {"tests/test_greet.py": HEAD + loose + NEW}, "report": {"verdict": "TESTS_READY"}}
    made = {**MAKE, "files": {"greet.py": GREET_DONE + SIZE.replace("float(len(name))", "5.0")}}
    judged = {"when": {"kind": "judge", "question": "tests"}, "report": {"verdict": "ACCEPTABLE"}}
    project.use_script([*UNTIL_TESTS, tests, judged, made, *AFTER_MAKE])
    project.run()
    assert "write-tests/CHANGED_OLD_TEST" in project.rows(), "their own lines are what they were, and @check is asked"
    told = json.loads((project.run_folder() / "evidence/task-1.json").read_text())["loosened"]
    assert told == [
        "tests/test_greet.py: test_size: a tolerance is raised (line 10)",
        "tests/test_greet.py: test_all: 1 of 2 assertions are gone (line 13)",
    ]


@pytest.mark.broad
def test_an_old_doctest_that_the_implementer_empties_is_told_in_the_final_review(tmp_path: Path) -> None:
    project = make_project(tmp_path, {**FILES, "greet.py": SHOWN + RETURNS, "pyproject.toml": DOCTESTS})
    emptied = SHOWN.replace(">>> greet", ">>> _ = greet").replace("    'Hello, Ada!'\n", "")
    made = {**MAKE, "files": {"greet.py": emptied + REFUSES + RETURNS}}
    project.use_script([*UNTIL_TESTS, TESTS, made, *AFTER_MAKE])
    document = project.run()
    assert document["outcome"] == "completed"
    told = (project.run_folder() / "reviews/suspicions-1.md").read_text()
    assert "greet.py: an example in its documentation is gone, or is another now: `>>> greet" in told
