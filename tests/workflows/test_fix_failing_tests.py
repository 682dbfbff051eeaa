"""The recipe `fix-failing-tests`: from tests that fail to a commit that a person approved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from crashes import problems
from kit import FILES, GREET_DONE, TEST_GREET_NEW, make_project
from workflows.test_runs_of_recipes import LOOSE, answer

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

CAUSE = {"title": "refuse an empty name", "cause": "greet formats whatever it is given", "files": ["greet.py"]}


def test_failing_tests_become_a_commit_that_a_person_approved(tmp_path: Path) -> None:
    project = make_project(tmp_path, {**FILES, "tests/test_greet.py": TEST_GREET_NEW})
    fix = {"when": {"step": "fix"}, "report": {"result": "COMPLETE", "summary": "raises ValueError"}}
    fine = {"when": {"step": "fix", "kind": "review-step", "role": "check"}, "report": {"verdict": "ACCEPTABLE"}}
    script = [
        answer("cause", "Names are not checked.", payload=CAUSE),
        {**fix, "files": {"greet.py": "def greet(name):\n    raise ValueError(name)\n"}},
        {**fix, "files": {"greet.py": GREET_DONE}},
        fine,
    ]
    project.use_script(script, LOOSE)
    start = project.git("rev-parse", "work")
    parked = project.document("run", "fix-failing-tests", "code=greet.py")
    assert (parked["_code"], parked["outcome"], parked["reason"]) == (4, "parked", "approval"), parked
    assert project.untouched_since(start), "nothing of the user's is written before a person approves"
    rows = project.rows("run-fix-failing-tests")
    assert "accept/NOT_MET" in rows, "what mends one test and breaks another does not count"
    assert "1 failed" in (project.run_folder("run-fix-failing-tests") / "steps/reproduce/reproduce.md").read_text()
    done = project.document("approve", "run-fix-failing-tests")
    assert (done["outcome"], done["_code"], done["dispatches"]) == ("completed", 0, 4), done
    assert project.git("log", "--format=%s", "main..work") == "fix: refuse an empty name"
    assert project.git("diff", "--name-only", "main", "work") == "greet.py"
    assert (project.root / "greet.py").read_text() == GREET_DONE
    assert problems(project) == []
