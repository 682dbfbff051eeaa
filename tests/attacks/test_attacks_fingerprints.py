"""Tests and checks that change the user's repository while they are measured, where no box holds them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest
from kit import BARE_PYTEST, FILES, HONEST, TEST_GREET, TEST_GREET_NEW, TESTS, UNTIL_TESTS, Entry, make_project
from steps.probed import seen, tree_of, without_run

from pipeline.process import BoxError
from pipeline.repo import Repository
from pipeline.run.store import keep_key, publish_ref
from pipeline.sandbox.escapes import EscapeError
from pipeline.sandbox.views.copies import Copies
from pipeline.testing.measure.measuring import measure_types

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

HOOK: Final = """
import pathlib
hook = pathlib.Path(ROOT, ".git", "hooks", "post-checkout")
hook.parent.mkdir(exist_ok=True)
hook.write_text("#!/bin/sh\\n")
hook.chmod(0o755)
"""
SETTING: Final = """
import subprocess
subprocess.run(["git", "-C", ROOT, "config", "core.fsmonitor", "false"], check=True)
"""
REPLACED: Final = """
import subprocess
made = subprocess.run(
    ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", ROOT, "commit-tree", "-m", "x", "HEAD^{tree}"],
    check=True, capture_output=True, text=True,
)
subprocess.run(["git", "-C", ROOT, "replace", "HEAD", made.stdout.strip()], check=True)
"""
REF: Final = """
import subprocess
subprocess.run(["git", "-C", ROOT, "update-ref", REF, "HEAD"], check=True)
"""
PLANTS: Final = {"hooks": HOOK, "config": SETTING, "replace refs": REPLACED}
LOOSE: Final = 'sandbox = "none"\n'


def planting(project: Project, plant: str) -> str:
    """Return code that plants something in the project's repository when it is loaded; it knows the refs of its run."""
    keep_key(project.root)  # as the first run of a worktree does: its refs go by that name
    ref = publish_ref(Repository.find(project.root), "run-GAL-1")
    return f"ROOT, REF = {str(project.root)!r}, {ref!r}\n{plant}\n"


def is_planted(project: Project) -> bool:
    """Return whether any of it arrived."""
    hooks = project.root / ".git" / "hooks" / "post-checkout"
    kept = project.git("config", "--default", "", "core.fsmonitor") + project.git("for-each-ref", "refs/replace")
    return hooks.exists() or bool(kept)


@pytest.mark.parametrize("part", PLANTS)
@pytest.mark.broad(but_first=1)
def test_tests_that_change_the_repository_are_not_believed(part: str, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.write({"tests/test_greet.py": planting(project, PLANTS[part]) + TEST_GREET})
    project.commit()
    with without_run(project) as lab:
        with pytest.raises(EscapeError, match="changed outside its view") as caught:
            seen(lab)
        assert {each.part for each in caught.value.escape.parts} == {part}
        assert is_planted(project)


@pytest.mark.broad
def test_without_the_watch_nobody_would_have_noticed(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.write({"tests/test_greet.py": planting(project, HOOK) + TEST_GREET})
    project.commit()
    with without_run(project) as lab:
        lab.copies = Copies(lab.checkout, "unwatched", lab.box)
        assert len(seen(lab).records) == 1
        assert is_planted(project)


@pytest.mark.broad
def test_a_change_that_was_there_before_is_nobodys(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.write({"tests/test_greet.py": TEST_GREET})
    exec(planting(project, HOOK), {})  # noqa: S102  (the user's own)
    with without_run(project) as lab:
        assert len(seen(lab).records) == 1


@pytest.mark.broad
def test_what_is_remembered_is_not_watched(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    with without_run(project) as lab:
        first = seen(lab)
        lab.copies = Copies(lab.checkout, "none", lab.box, watch=_nobody_asks)
        assert seen(lab) == first


def _nobody_asks() -> Any:
    raise AssertionError("a snapshot was taken for what is remembered")


def test_tests_that_end_their_box_are_watched_all_the_same(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    with without_run(project) as lab, pytest.raises(EscapeError), lab.copies.lent(tree_of(lab, "HEAD")):
        _plants_and_breaks(project)


def _plants_and_breaks(project: Project) -> None:
    exec(planting(project, HOOK), {})  # noqa: S102  (as a test would)
    raise BoxError("the box broke")


@pytest.mark.broad
def test_what_type_checks_is_watched_too(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    plant = planting(project, HOOK)
    project.write({"conftest.py": plant, "pyproject.toml": BARE_PYTEST + 'pythonpath = ["."]\n'})
    project.commit()
    with without_run(project) as lab, pytest.raises(EscapeError):
        anyio.run(measure_types, lab, tree_of(lab, "HEAD"))


# --- in a run ---------------------------------------------------------------------------------------------------------


def written(project: Project, plant: str) -> list[Entry]:
    """Return the answers up to tests that plant something."""
    poisoned = {"tests/test_greet.py": planting(project, plant) + TEST_GREET_NEW}
    return [*UNTIL_TESTS, {**TESTS, "files": poisoned}]


def assert_escaped(project: Project, document: dict[str, Any], *, part: str, step: str, start: str) -> None:
    assert (document["outcome"], document["reason"], document["_code"]) == ("failed", "escape", 6), document
    assert project.rows()[-2:] == ["any/ESCAPE", "failure/HANDLED"]
    decided = next(line["data"] for line in project.journal() if line["data"].get("row") == "any/ESCAPE")
    assert decided["step"] == step
    kept = json.loads((project.run_folder() / "evidence" / "escape.json").read_text())
    assert {each["part"] for each in kept["parts"]} == {part}
    explained = project.redfirst("explain", "GAL-1", "-v").stdout
    summary = (project.run_folder() / "summary.md").read_text()
    for told in (explained, summary):
        assert part in told
        assert "While code of the project ran" in told
        assert "redfirst run GAL-1" in told
    assert project.git("rev-parse", "HEAD") == start


@pytest.mark.parametrize(("part", "plant"), [("hooks", HOOK), ("refs of the run", REF)], ids=["hooks", "refs"])
@pytest.mark.broad
def test_tests_of_an_agent_that_change_the_repository_end_the_run(part: str, plant: str, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script(written(project, plant), LOOSE)
    start = project.git("rev-parse", "HEAD")
    assert_escaped(project, project.run(), part=part, step="write-tests", start=start)


@pytest.mark.broad
def test_the_tests_of_the_start_may_not_do_it_either(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.write({"tests/test_greet.py": planting(project, HOOK) + TEST_GREET})
    project.commit()
    project.use_script(HONEST, LOOSE)
    start = project.git("rev-parse", "HEAD")
    assert_escaped(project, project.run(), part="hooks", step="sanity", start=start)


@pytest.mark.broad
def test_a_check_that_changes_the_repository_ends_the_run(tmp_path: Path) -> None:
    project = make_project(tmp_path, {**FILES, "check.py": ""})
    project.write({"check.py": planting(project, HOOK)})
    project.commit()
    project.use_script(HONEST, f'{LOOSE}[checks]\ncommands = [["python", "check.py"]]\n')
    start = project.git("rev-parse", "HEAD")
    assert_escaped(project, project.run(), part="hooks", step="sanity", start=start)


@pytest.mark.broad
def test_in_a_box_the_same_tests_reach_nothing(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    shielded = f"try:\n    exec({planting(project, HOOK)!r})\nexcept OSError:\n    pass\n"
    project.use_script(
        [
            {**entry, "files": {"tests/test_greet.py": shielded + TEST_GREET_NEW}} if entry is TESTS else entry
            for entry in HONEST
        ]
    )
    document = project.run()
    assert (document["_code"], document["sandbox"]["backend"]) == (0, "bubblewrap"), document
    assert not is_planted(project)


# --- without a run ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("argv", [("tdd", "check-green"), ("tdd", "check-red")], ids=["green", "red"])
@pytest.mark.broad
def test_asked_without_a_run_it_is_an_error_of_its_own(argv: tuple[str, ...], tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.configure(LOOSE)
    project.write({"tests/test_greet.py": planting(project, HOOK) + TEST_GREET_NEW})
    document = project.document(*argv)
    assert (document["_code"], document["ok"]) == (6, False)
    error = document["error"]
    assert error["kind"] == "escape"
    assert "hooks" in error["message"]
    assert [part["part"] for part in error["details"]["parts"]] == ["hooks"]
    assert error["safe_next_actions"]


@pytest.mark.broad
def test_verify_does_not_pass_over_it(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    marker = tmp_path / "now"
    project.write(
        {"conftest.py": f"import os\nif os.path.exists({str(marker)!r}):\n    exec({planting(project, HOOK)!r})\n"}
    )
    project.commit()
    project.use_script(HONEST)
    assert project.run()["_code"] == 0
    project.configure(LOOSE)
    assert project.document("verify", "GAL-1")["_code"] == 0
    marker.touch()
    document = project.document("verify", "GAL-1")
    assert (document["_code"], document["error"]["kind"]) == (6, "escape"), document
    assert is_planted(project)
