"""A clone with no local branch of the base: origin's own is the base, and landing is a push that the user types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kit import AFTER_MAKE, MAKE, PLAN, PLAN_ACCEPTED, PLAN_SIMPLE, SPLIT, SPLIT_ACCEPTED, TESTS, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

STORY = [PLAN, PLAN_ACCEPTED, PLAN_SIMPLE, SPLIT, SPLIT_ACCEPTED, TESTS, MAKE, *AFTER_MAKE]


def cloned(tmp_path: Path) -> tuple[Project, Path]:
    """Return a project whose base, `trunk`, is only origin's."""
    project = make_project(tmp_path)
    project.use_script(STORY)
    hub = tmp_path / "hub.git"
    project.git("init", "-q", "--bare", "-b", "trunk", str(hub))
    project.git("remote", "add", "origin", str(hub))
    project.git("push", "-q", "origin", "HEAD:trunk")
    project.git("fetch", "-q", "origin")
    project.git("remote", "set-head", "origin", "trunk")
    here = project.git("branch", "--show-current").strip()
    for name in project.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split():
        if name != here:
            project.git("branch", "-q", "-D", name)
    return project, hub


@pytest.mark.broad
def test_origins_own_branch_is_the_base_and_land_says_what_to_push(tmp_path: Path) -> None:
    project, hub = cloned(tmp_path)
    branch = project.git("branch", "--show-current").strip()
    said = {check["id"]: check for check in project.document("doctor", "--json")["checks"]}
    assert said["repository"]["message"].endswith("base origin/trunk")
    document = project.run()
    assert document["outcome"] == "completed", document
    push = f"git push origin {branch}:trunk"
    assert push in str(document)
    refused = project.redfirst("land")
    assert refused.returncode == 2
    assert push in refused.stderr + refused.stdout
    assert project.git("rev-parse", "origin/trunk") != project.git("rev-parse", "HEAD")  # nobody pushed
    project.git(*push.split()[1:])
    assert project.git("rev-parse", "trunk", cwd=hub) == project.git("rev-parse", "HEAD")
    assert push not in project.redfirst("show").stdout


def test_a_local_branch_of_that_name_is_the_base(tmp_path: Path) -> None:
    project, _ = cloned(tmp_path)
    project.git("branch", "trunk", "origin/trunk")
    said = {check["id"]: check for check in project.document("doctor", "--json")["checks"]}
    assert said["repository"]["message"].endswith("base trunk")
