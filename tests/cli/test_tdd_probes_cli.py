"""`redfirst tdd check-green --probes`: what the tests of a worktree do not notice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kit import GREET_DONE, TEST_GREET_NEW, make_project

from pipeline.faces.cli.verify import tdd_text
from pipeline.testing.verification.results import TddDocument

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

TWO = GREET_DONE.replace("    return f", "    if len(name) > 20:\n        name = name[:20]\n    return f")
OLD_QUARANTINED = """
[[quarantine]]
id = "tests/test_greet.py::test_greets_by_name"
owner = "Ada"
expires = 2999-01-01
why = "rewritten soon"
"""


@pytest.mark.broad
def test_faults_that_no_test_notices_are_shown_and_refuse_nothing(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.probed = True
    project.write({"tests/test_greet.py": TEST_GREET_NEW, "greet.py": TWO})
    project.configure("[probes]\nmutants = 6\nseconds = 300\n")
    found = project.document("tdd", "check-green", "--probes")
    assert (found["_code"], found["ok"]) == (0, True), found
    survivors = [(each["path"], each["line"], each["source"]) for each in found["mutation"]["survivors"]]
    assert ("greet.py", 7, "if len(name) > 20:") in survivors
    assert found["mutation"]["killed"] >= 1
    document = TddDocument.model_validate({key: value for key, value in found.items() if not key.startswith("_")})
    text = tdd_text(document)
    assert "no test notices greet.py:7: " in text
    assert "if len(name) > 20:" in text
    unnoticed, tried = len(survivors), len(survivors) + found["mutation"]["killed"]
    last = text.splitlines()[-1]
    assert last == f"GREEN, 1 test of the base kept; no test notices {unnoticed} of {tried} small faults."


@pytest.mark.broad
def test_a_test_that_passes_over_the_base_as_well_is_refused(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.probed = True
    guard = TEST_GREET_NEW + '\n\ndef test_greets_bob():\n    assert greet("Bob") == "Hello, Bob!"\n'
    project.write({"tests/test_greet.py": guard, "greet.py": GREET_DONE})
    project.configure("[probes]\nmutants = 0\n")
    found = project.document("tdd", "check-green", "--probes")
    assert (found["_code"], found["mutation"]) == (7, None)
    (problem,) = found["problems"]
    assert problem["id"] == "tests/test_greet.py::test_greets_bob"
    assert "not RED over the base" in problem["why"]


@pytest.mark.broad
def test_a_quarantined_test_is_no_regression_and_is_named(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.probed = True
    project.write({"redfirst.toml": OLD_QUARANTINED})
    project.commit("quarantine")
    broken = GREET_DONE.replace("Hello", "Hi")
    project.write({"tests/test_greet.py": TEST_GREET_NEW, "greet.py": broken})
    found = project.document("tdd", "check-green")
    assert (found["_code"], found["problems"]) == (0, []), found
    assert any(note.startswith("quarantined, does not count: tests/test_greet.py") for note in found["notes"])
