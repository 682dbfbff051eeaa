"""What is advised where a command is refused, and before there is a run, is executed where it is printed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from e2e.next_scene import FILES, HONEST, detached, dirty, issue_with, make_scene, no_tracker
from e2e.next_table import SET_UP, TABLE
from kit import make_project
from next_lines import Scene, actions_of, advised

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kit import Project

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


# --- before there is a run: init, trust, doctor, issues, recipes, verify ----------------------------------------------


@pytest.fixture
def fresh(tmp_path: Path) -> Scene:
    """A project on a machine with git and without any agent."""
    place = tmp_path / "a place"
    place.mkdir()
    project = make_project(place, FILES)
    tools = tmp_path / "programs"
    tools.mkdir()
    for name in ("git", "sh", "echo", "true", "ls", "bwrap", "unshare", "nsenter"):
        (tools / name).symlink_to(shutil.which(name) or name)
    (tools / "editor").write_text('#!/bin/sh\necho "Names that are empty are refused." >> "$1"\n', encoding="utf-8")
    (tools / "editor").chmod(0o755)
    project.env |= {"TESTS_LANGUAGE": "languages.sums", "PATH": str(tools), "EDITOR": "editor"}
    return Scene(project, place, filled={"NAME": "gemini"})


@pytest.mark.broad
def test_where_no_agent_is_installed(fresh: Scene) -> None:
    project = fresh.project
    network, *actions, demo = actions_of(project.document("init"))
    assert (network.split()[0], demo.split()[1]) == ("npm", "demo")
    fresh.each([action.partition("   #")[0] for action in actions], SET_UP["no agent is installed"].lines)


def test_what_was_only_shown_is_written_by_the_same_words(fresh: Scene) -> None:
    shown = fresh.project.document("init", "--agent", "command", "--argv", "echo 'a b'", "--dry-run")
    fresh.each(shown["next"], SET_UP["only shown"].lines)


@pytest.mark.broad
def test_a_program_of_one_s_own_from_its_configuration_to_a_run(fresh: Scene) -> None:
    project = fresh.project
    project.git("switch", "--quiet", "main")
    project.git("rm", "-r", "--quiet", "TODO")
    project.commit()
    steps = project.document("init", "--agent", "command", "--argv", "true")["next"]
    lines = list(SET_UP["configured"].lines.items())
    fresh.in_turn(steps[:2], dict(lines[:2]))
    fresh.within(project.redfirst("config", "show").stdout, SET_UP["not trusted yet"].lines)
    also = project.document("run", "PROJECT-1")["error"]["also"]
    (untrusted,) = (each for each in also if each["kind"] == "untrusted")
    fresh.each(untrusted["safe_next_actions"], SET_UP["not trusted, and run"].lines)
    fresh.within(project.redfirst("trust").stderr, SET_UP["no terminal to trust at"].lines)
    fresh.in_turn(steps[2:], dict(lines[2:]))
    said = project.redfirst("config", "set", "limits.seam", "2").stdout
    fresh.each(advised(said), SET_UP["a value was set"].lines)
    second = project.document("init", "--agent", "human")
    fresh.each(actions_of(second), SET_UP["configured already"].lines)
    assert actions_of(project.document("init")) == actions_of(second), "a bare one would find no agent"


@pytest.mark.broad
def test_what_doctor_advises(fresh: Scene) -> None:
    project = fresh.project
    project.git("switch", "--quiet", "--detach")
    fresh.within(doctor(fresh), SET_UP["doctor: detached"].lines)
    project.git("switch", "--quiet", "work")
    project.git("branch", "--move", "main", "trunk")
    fresh.within(
        doctor(fresh),
        {"redfirst run ISSUE --base REF": SET_UP["doctor: no base"].lines["redfirst run ISSUE --base REF"]},
    )
    project.git("branch", "--move", "trunk", "main")
    project.write({"TODO/GAL-1.md": "no front matter\n"})
    project.commit()
    fresh.within(doctor(fresh), SET_UP["doctor: broken tracker"].lines)
    steps = project.document("init", "--agent", "human")["next"]
    fresh.each(steps[2:], SET_UP["configured, and the tracker is broken"].lines)
    (project.root / "redfirst.toml").unlink()
    project.git("rm", "-r", "--quiet", "TODO")
    project.commit()
    fresh.within(doctor(fresh), SET_UP["doctor: no tracker"].lines)


def doctor(fresh: Scene) -> str:
    return " ".join(check["advice"] or "" for check in fresh.project.document("doctor")["checks"])


@pytest.mark.broad
def test_issues_recipes_and_commits(fresh: Scene) -> None:
    project = fresh.project
    new = project.redfirst("issue", "new", "--title", "A title")
    fresh.within(new.stdout + new.stderr, SET_UP["a new issue"].lines)
    project.write({"bad.yaml": "name: 1\n"})
    fresh.each(actions_of(project.document("recipes", "show", "bad.yaml")), SET_UP["a broken recipe"].lines)
    fresh.each(actions_of(project.document("verify", "nonsense")), SET_UP["no such commit"].lines)
