"""What is advised before there is a run is executed: init, trust, doctor, issues, recipes, verify."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from e2e.next_scene import FILES
from e2e.next_table import SET_UP
from kit import make_project
from next_lines import Scene, actions_of, advised

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
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
def test_where_no_agent_is_installed(scene: Scene) -> None:
    project = scene.project
    network, *actions, demo = actions_of(project.document("init"))
    assert (network.split()[0], demo.split()[1]) == ("npm", "demo")
    scene.each([action.partition("   #")[0] for action in actions], SET_UP["no agent is installed"].lines)


def test_what_was_only_shown_is_written_by_the_same_words(scene: Scene) -> None:
    shown = scene.project.document("init", "--agent", "command", "--argv", "echo 'a b'", "--dry-run")
    scene.each(shown["next"], SET_UP["only shown"].lines)


@pytest.mark.broad
def test_a_program_of_one_s_own_from_its_configuration_to_a_run(scene: Scene) -> None:
    project = scene.project
    project.git("switch", "--quiet", "main")
    project.git("rm", "-r", "--quiet", "TODO")
    project.commit()
    steps = project.document("init", "--agent", "command", "--argv", "true")["next"]
    lines = list(SET_UP["configured"].lines.items())
    scene.in_turn(steps[:2], dict(lines[:2]))
    scene.within(project.redfirst("config", "show").stdout, SET_UP["not trusted yet"].lines)
    also = project.document("run", "PROJECT-1")["error"]["also"]
    (untrusted,) = (each for each in also if each["kind"] == "untrusted")
    scene.each(untrusted["safe_next_actions"], SET_UP["not trusted, and run"].lines)
    scene.within(project.redfirst("trust").stderr, SET_UP["no terminal to trust at"].lines)
    scene.in_turn(steps[2:], dict(lines[2:]))
    said = project.redfirst("config", "set", "limits.seam", "2").stdout
    scene.each(advised(said), SET_UP["a value was set"].lines)
    second = project.document("init", "--agent", "human")
    scene.each(actions_of(second), SET_UP["configured already"].lines)
    assert actions_of(project.document("init")) == actions_of(second), "a bare one would find no agent"


@pytest.mark.broad
def test_what_doctor_advises(scene: Scene) -> None:
    project = scene.project
    project.git("switch", "--quiet", "--detach")
    scene.within(doctor(scene), SET_UP["doctor: detached"].lines)
    project.git("switch", "--quiet", "work")
    project.git("branch", "--move", "main", "trunk")
    scene.within(
        doctor(scene),
        {"redfirst run ISSUE --base REF": SET_UP["doctor: no base"].lines["redfirst run ISSUE --base REF"]},
    )
    project.git("branch", "--move", "trunk", "main")
    project.write({"TODO/GAL-1.md": "no front matter\n"})
    project.commit()
    scene.within(doctor(scene), SET_UP["doctor: broken tracker"].lines)
    steps = project.document("init", "--agent", "human")["next"]
    scene.each(steps[2:], SET_UP["configured, and the tracker is broken"].lines)
    (project.root / "redfirst.toml").unlink()
    project.git("rm", "-r", "--quiet", "TODO")
    project.commit()
    scene.within(doctor(scene), SET_UP["doctor: no tracker"].lines)


def doctor(scene: Scene) -> str:
    return " ".join(check["advice"] or "" for check in scene.project.document("doctor")["checks"])


@pytest.mark.broad
def test_issues_recipes_and_commits(scene: Scene) -> None:
    project = scene.project
    new = project.redfirst("issue", "new", "--title", "A title")
    scene.within(new.stdout + new.stderr, SET_UP["a new issue"].lines)
    project.write({"bad.yaml": "name: 1\n"})
    scene.each(actions_of(project.document("recipes", "show", "bad.yaml")), SET_UP["a broken recipe"].lines)
    scene.each(actions_of(project.document("verify", "nonsense")), SET_UP["no such commit"].lines)
