"""What is advised where a command is refused is executed where it is printed (`next_table`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.next_scene import FILES, HONEST, detached, dirty, issue_with, make_scene, no_tracker
from e2e.next_table import TABLE
from next_lines import actions_of, advised

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kit import Project
    from next_lines import Scene

pytestmark = pytest.mark.slow


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return make_scene(tmp_path, HONEST * 2)


def _detached_from_its_own(project: Project) -> None:
    project.git("branch", "gal-1")
    detached(project)


def _odd_branch(project: Project) -> None:
    project.git("switch", "--quiet", "--create", "a\N{NO-BREAK SPACE}b")


def _unborn(project: Project) -> None:
    project.git("switch", "--quiet", "--orphan", "unborn")
    project.write(FILES)


def _no_base(project: Project) -> None:
    project.git("branch", "--quiet", "--move", "main", "trunk")


def _dirty_and_made(project: Project) -> None:
    project.write({"greet.sum": "greet n = n + 0\n", ".venv/pyvenv.cfg": ""})


def _no_identity(project: Project) -> None:
    for key in ("user.email", "user.name"):
        project.git("config", "--unset", key)
    project.git("config", "user.useConfigOnly", "true")


def _committed_workflow(project: Project) -> None:
    project.write({".workflow/notes.txt": "mine\n"})
    project.git("add", "--force", ".workflow")
    project.commit()


def _odd_claim(project: Project) -> None:
    blob = project.git("hash-object", "-w", "greet.sum")
    project.git("update-ref", "refs/redfirst/claims/GAL-1", blob)


def _nothing(project: Project) -> None:
    pass


REFUSALS: dict[str, tuple[Callable[[Project], None], list[str]]] = {
    "detached": (detached, ["run", "GAL-1"]),
    "detached, with a branch of the issue": (_detached_from_its_own, ["run", "GAL-1"]),
    "a branch with a space": (_odd_branch, ["run", "GAL-1"]),
    "no commit": (_unborn, ["run", "GAL-1"]),
    "on the base": (lambda project: (project.git("switch", "--quiet", "main"), None)[1], ["run", "GAL-1"]),
    "no base": (_no_base, ["run", "GAL-1"]),
    "no base for a worktree": (_no_base, ["run", "GAL-1", "--worktree"]),
    "no such base": (_nothing, ["run", "GAL-1", "--base", "nonsense"]),
    "dirty": (dirty, ["run", "GAL-1"]),
    "dirty with what tools made": (_dirty_and_made, ["run", "GAL-1"]),
    "a blocked issue": (issue_with("depends-on: []", "depends-on: [GAL-9]"), ["run", "GAL-1"]),
    "no tracker": (no_tracker, ["run", "GAL-1"]),
    "a broken tracker": (issue_with("status: Todo", "status: Soon"), ["run", "GAL-1"]),
    "no such issue": (_nothing, ["run", "GAL-9"]),
    "an issue that is not there": (_nothing, ["issue", "show", "GAL-9"]),
    "no id": (_nothing, ["run", "gal 1"]),
    "no identity": (_no_identity, ["run", "GAL-1"]),
    ".workflow is committed": (_committed_workflow, ["run", "GAL-1"]),
    "no run waits": (_nothing, ["approve"]),
    "no such recipe": (_nothing, ["run", "GAL-1", "--recipe", "nonsense"]),
    "a recipe of no issue": (_nothing, ["run", "GAL-1", "--recipe", "research"]),
    "a wrong word": (_nothing, ["run", "--no-such-flag"]),
    "no such diagram": (_nothing, ["routes", "--diagram", "phase7"]),
    "no such schema": (_nothing, ["schema", "nonsense"]),
    "wrong signals": (_nothing, ["simulate", "--signals", "greet.sum"]),
    "a claim that cannot be read": (_odd_claim, ["run", "GAL-1"]),
    "an unknown flag key": (_nothing, ["run", "GAL-1", "--set", "nonsense=1"]),
    "no role to explain": (_nothing, ["agents", "explain"]),
    "an unknown key": (_nothing, ["config", "get", "nonsense"]),
}


@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.broad(but_first=1)
def test_where_a_command_is_refused(scene: Scene, name: str) -> None:
    prepare, words = REFUSALS[name]
    prepare(scene.project)
    scene.each(actions_of(scene.project.document(*words)), TABLE[name].lines)


@pytest.mark.broad
def test_events_that_are_not_there(scene: Scene) -> None:
    for name, words in (("no such type of event", "--type"), ("no such event", "--since")):
        refusal = scene.project.redfirst("events", words, "nonsense").stderr
        scene.each(advised(refusal, "- "), TABLE[name].lines)


@pytest.mark.broad
def test_in_a_bare_repository(scene: Scene) -> None:
    bare = scene.place / "bare.git"
    scene.project.git("clone", "--quiet", "--bare", str(scene.project.root), str(bare))
    scene.project.git("branch", "mine", cwd=bare)
    scene.project.root = bare
    scene.each(actions_of(scene.project.document("run", "GAL-1")), TABLE["bare"].lines)
