"""One worktree, one unfinished run; what a deleted run folder leaves can be given back."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from kit import HONEST, ISSUE, UNTIL_TESTS, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.mark.broad
def test_a_second_unfinished_run_in_one_worktree_is_refused_before_any_agent_is_asked(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.write({"TODO/GAL-2.md": ISSUE.replace("GAL-1", "GAL-2")})
    project.commit("a second issue")
    project.use_script(HONEST)
    assert project.run("--approve", "plan")["reason"] == "approval"

    refused = project.document("run", "GAL-2")
    assert (refused["_code"], refused["error"]["kind"]) == (75, "locked")
    assert "redfirst abandon run-GAL-1" in refused["error"]["safe_next_actions"]
    assert not project.run_folder("run-GAL-2").exists()

    assert project.document("approve", "GAL-1")["outcome"] == "completed"


@pytest.mark.broad
def test_the_claim_of_a_run_whose_folder_was_deleted_can_be_given_back(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script(UNTIL_TESTS)
    assert project.run("--approve", "split")["reason"] == "approval"
    shutil.rmtree(project.root / ".workflow")
    project.git("checkout", "--", "TODO")
    assert project.document("run", "GAL-1")["error"]["kind"] == "claimed_elsewhere"

    freed = project.document("abandon", "run-GAL-1")
    assert (freed["_code"], freed["issue"]) == (0, "GAL-1")
    assert project.git("for-each-ref", "refs/redfirst/claims") == ""
    project.use_script(HONEST)
    assert project.run()["outcome"] == "completed"


def test_a_folder_with_a_dollar_in_its_name_is_found(tmp_path: Path) -> None:
    place = tmp_path / "$HOME and $x"
    place.mkdir()
    project = make_project(place)
    assert project.document("runs")["ok"] is True
