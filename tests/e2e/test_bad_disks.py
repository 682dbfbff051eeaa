"""Disks that are full, read-only, or have something else where our folders go: told as such, and gone on after."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crashes import KILLED, die_at, footprint
from kit import HONEST, make_project

if TYPE_CHECKING:
    from kit import Project


pytestmark = pytest.mark.slow


def ready(tmp_path: Path) -> Project:
    """Return a project that could be run as it is."""
    project = make_project(tmp_path)
    project.use_script(HONEST)
    return project


@pytest.mark.parametrize("name", [".workflow", ".workflow/run-GAL-1", "state"])
@pytest.mark.broad(but_first=1)
def test_something_else_in_the_place_of_our_folders_is_named(tmp_path: Path, name: str) -> None:
    project = ready(tmp_path)
    place = project.home / "state" if name == "state" else project.root / name
    place.parent.mkdir(exist_ok=True)
    place.write_text("not a folder\n")
    document = project.document("run", "GAL-1")
    assert (document["_code"], document["error"]["kind"]) == (2, "disk"), document
    assert str(place) in document["error"]["message"]
    assert place.read_text() == "not a folder\n"
    assert project.git("for-each-ref", "refs/redfirst") == ""


def in_namespace(project: Project, script: str) -> list[dict[str, Any]]:
    """Run a shell script in a private mount namespace, where `$REDFIRST ...` prints documents; return those.

    The function `rf` of the script runs redfirst with `--json` and adds its exit code.
    """
    unshare = ["unshare", "--mount", "--map-root-user"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no private mount namespace")
    redfirst = Path(sys.executable).with_name("redfirst")
    lines = [
        "set -eu",
        f'rf() {{ code=0; "{redfirst}" "$@" --json || code=$?; echo "{{\\"_code\\": $code}}"; }}',
        script,
    ]
    done = subprocess.run(
        [*unshare, "sh", "-c", "\n".join(lines)],
        cwd=project.root,
        env=project.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    decoder, found, text = json.JSONDecoder(), list[dict[str, Any]](), done.stdout.strip()
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:].strip()
    return [{**document, **code} for document, code in zip(found[0::2], found[1::2], strict=True)]


@pytest.mark.broad
def test_a_read_only_disk_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    project = ready(tmp_path)
    before = footprint(project)
    documents = in_namespace(
        project,
        f"""
        mount --bind {project.root} {project.root}; mount -o remount,ro,bind {project.root}
        cd {project.root}; rf run GAL-1
        """,
    )
    assert [(d["_code"], d["error"]["kind"]) for d in documents] == [(2, "disk")]
    assert str(project.root) in documents[0]["error"]["message"]
    assert footprint(project) == before


@pytest.mark.slow
@pytest.mark.parametrize("place", ["run folder", "state folder"])
@pytest.mark.broad
def test_a_full_disk_stops_the_run_and_with_room_again_it_goes_on(tmp_path: Path, place: str) -> None:
    project = ready(tmp_path)
    folder = {
        "run folder": project.root / ".workflow",
        "state folder": project.home / "state",
    }[place]
    folder.mkdir(exist_ok=True)
    documents = in_namespace(
        project,
        f"""
        mkdir {tmp_path}/kept; cp -a {folder}/. {tmp_path}/kept/
        mount -t tmpfs -o size=24m none {folder}; cp -a {tmp_path}/kept/. {folder}/
        head -c 30000000 /dev/zero > {folder}/filler 2>/dev/null || true
        truncate -s -{150_000 if place == "run folder" else 60_000} {folder}/filler
        rf run GAL-1
        rm {folder}/filler
        if [ -e .workflow/run-GAL-1/run.json ]; then rf resume GAL-1; else rf run GAL-1; fi
        """,
    )
    full, after = documents
    assert (full["_code"], full["error"]["kind"]) == (2, "disk"), full
    assert "Make room" in full["error"]["message"]
    assert (after["_code"], after["outcome"]) == (0, "completed"), after["note"]


@pytest.mark.slow
@pytest.mark.broad
def test_a_disk_that_is_full_at_the_publication_leaves_the_branch_and_goes_on_later(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    grown = [*HONEST]
    grown[6] = {**grown[6], "run": ["sh", "-c", "yes '# more' | head -c 900000 >> greet.py"]}
    project.use_script(grown)
    assert die_at(project, "before git read-tree -m", 1, "run", "GAL-1") == KILLED
    start = project.git("rev-parse", "work")
    documents = in_namespace(
        project,
        f"""
        cp -a {project.root} {tmp_path}/kept
        mount -t tmpfs -o size=16m none {project.root}; cp -a {tmp_path}/kept/. {project.root}/; cd {project.root}
        head -c 20000000 /dev/zero > .workflow/filler 2>/dev/null || true
        truncate -s -300000 .workflow/filler
        rf resume GAL-1
        test $(git rev-parse work) = {start}
        rm .workflow/filler
        rf resume GAL-1
        git status --porcelain >&2; test -z "$(git status --porcelain)"
        test $(git rev-parse work) != {start}
        """,
    )
    full, after = documents
    assert (full["_code"], full["error"]["kind"]) == (2, "disk"), full
    assert "redfirst resume run-GAL-1" in full["error"]["safe_next_actions"]
    assert (after["_code"], after["outcome"]) == (0, "completed"), after["note"]
