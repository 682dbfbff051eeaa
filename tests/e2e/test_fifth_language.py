"""A language of one folder and one line drives whole runs: RED, stubs and GREEN, and the ways back.

Its tests take no process (`languages/sums`), so that these runs show what redfirst does with any language.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from e2e.lanes import diagnoses
from e2e.shapes import TRACKER, answers, done, red_of
from kit import make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

GREET = "greet n = n\n"
OLD = "nothing: greet 0 = 0\n"
FILES = {"greet.sum": GREET, "greet.check": OLD, "sums.project": "", **TRACKER}
TESTS = {"greet.check": f"{OLD}two: greet 2 = 4\n"}
CODE = {"greet.sum": "greet n = n * 2\n"}

TOOK = re.compile(r"\(\d+\.\d s\)|\(\d+ s\)")
TOLD = """\
    the whole suite before any change, to compare with ...
    the whole suite before any change, to compare with: 1 passed (T)
    tests over the old code, new ones must fail ...
    tests over the old code, new ones must fail: 1 failed, 1 passed (T)
    new tests over the old code again, traced, must fail ...
    new tests over the old code again, traced, must fail: 1 failed (T)
[6] write-tests task 1 of 1: RED: 1 test RED -> implement
007-implement-make: asking @make to implement, scripted
007-implement-make: answered (T)
    the whole suite over the new code, must pass ...
    the whole suite over the new code, must pass: 2 passed (T)
    the old tests as they were over the new code, must pass ...
    the old tests as they were over the new code, must pass: 1 passed (T)
[7] implement task 1 of 1: GREEN: 2 tests pass -> final-review
""".splitlines()
"""What is said while the task is worked on, but for the times."""


def make(tmp_path: Path) -> Project:
    project = make_project(tmp_path, FILES)
    project.env["TESTS_LANGUAGE"] = "languages.sums"
    return project


def test_an_issue_becomes_commits(tmp_path: Path) -> None:
    project = make(tmp_path)
    project.use_script(answers(FILES, TESTS, CODE))
    told = done(project)["_stderr"]
    assert [
        line for line in TOOK.sub("(T)", told).splitlines() if line.startswith(("    ", "007", "[6]", "[7]"))
    ] == TOLD
    assert red_of(project) == {"greet.check::two": "ASSERTION_MISMATCH"}
    assert project.git("show", "HEAD~1:greet.sum") == "greet n = n * 2"


@pytest.mark.broad
def test_a_new_function_is_scaffolded_first(tmp_path: Path) -> None:
    project = make(tmp_path)
    tests, code = {"greet.check": f"{OLD}three: triple 2 = 6\n"}, {"greet.sum": f"{GREET}triple n = n * 3\n"}
    entries = answers(FILES, tests, code, symbols=[{"path": "greet.sum", "name": "triple", "new": True}])
    stub = {
        "when": {"kind": "stub"},
        "files": {"greet.sum": f"{GREET}triple n = todo\n"},
        "report": {"result": "COMPLETE", "summary": "triple is there, as a stub"},
    }
    project.use_script([*entries[:5], stub, *entries[5:]])
    done(project)
    assert red_of(project) == {"greet.check::three": "MISSING_BEHAVIOR"}
    assert project.git("show", "HEAD~2:greet.sum") == f"{GREET}triple n = todo"


@pytest.mark.broad
def test_what_is_measured_counts_whatever_the_agent_claims(tmp_path: Path) -> None:
    project = make(tmp_path)
    entries = answers(FILES, TESTS, CODE)
    passing = {**entries[5], "files": {"greet.check": f"{OLD}one: greet 1 = 1\n"}}
    wrong = {**entries[6], "files": {"greet.sum": "greet n = n * 3\n"}}
    another = diagnoses(1, "test_design", "look at another number")
    again = diagnoses(1, "production_logic", "double it")
    project.use_script([*entries[:5], passing, another, entries[5], wrong, again, *entries[6:]])
    done(project)
    rows = project.rows()
    (passes,) = (line["data"] for line in project.journal() if line["data"].get("signal") == "PASSES_ALREADY")
    untried = "whether they notice faults could not be tried: `[probes] mutants` is 0"
    assert passes["event"]["note"] == f"1 test passing already; {untried}"
    assert rows.index("write-tests/PASSES_ALREADY") < rows.index("write-tests/RED")
    assert rows.index("implement/NOT_GREEN") < rows.index("implement/GREEN")
