"""Whole runs: old tests that pass only because of new files are broken, and honest new files are no trouble."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from e2e.test_done_is_done import BREAKING, TEST_NEW, is_unpublished, played, project_of, until_tests
from kit import AFTER_MAKE, MAKE, TESTS

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = pytest.mark.slow

PATCHES = """import greet as _module

_said = _module.greet
_module.greet = lambda name: _said(name).replace(".", "!")
"""


def story(project: Project, files: dict[str, str], made: str = BREAKING) -> dict[str, Any]:
    """Return the document of a run whose @test brings these files."""
    task = {"test_files": [{"path": path, "action": "create"} for path in files]}
    tests: Entry = {**TESTS, "files": files, "report": {"verdict": "TESTS_READY"}}
    return played(project, [*until_tests(**task), tests, {**MAKE, "files": {"greet.py": made}}, *AFTER_MAKE])


@pytest.mark.broad
def test_a_new_module_that_patches_the_code_is_not_there_when_old_tests_are_run_again(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    project.probed = True
    document = story(project, {"tests/test_a_new.py": f"{PATCHES}\n{TEST_NEW}"})
    assert "implement/GREEN_UNSTABLE" in project.rows(), document["_stderr"]
    assert is_unpublished(project, document)
    assert "the old tests as they were" not in document["_stderr"], "new files of tests alone cost no measurement"
