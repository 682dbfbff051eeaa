"""`redfirst doctor` collects the tests of HEAD as a run does: it says no where the run would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from kit import FILES, HONEST, make_project

from pipeline.app.doctor_tests import check_collection
from pipeline.config.model import Config
from pipeline.repo import Repository

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

COVERED = '[tool.pytest.ini_options]\naddopts = "--disable-plugin-autoload --cov=greet"\n'


def collection(project: Project, *, code: int) -> dict[str, Any]:
    document = project.document("doctor")
    checks = {check["id"]: check for check in document["checks"]}
    assert document["_code"] == code, checks
    return checks.get("collection", {})


def ready(tmp_path: Path, files: dict[str, str]) -> Project:
    project = make_project(tmp_path, {**FILES, **files})
    project.use_script(HONEST)
    return project


@pytest.mark.broad
def test_an_option_that_no_plugin_knows_blocks_in_the_words_of_the_run(tmp_path: Path) -> None:
    project = ready(tmp_path, {"pyproject.toml": COVERED})
    said = collection(project, code=2)
    assert said["status"] == "fail"
    assert "unrecognized arguments: --cov=greet" in said["message"]
    assert "Install pytest-cov where the project's tests run" in said["message"]
    run = project.run()
    assert run["reason"] == "baseline_impossible"
    assert run["note"] == said["message"]


@pytest.mark.broad
def test_what_is_committed_counts_and_not_what_lies_beside_it(tmp_path: Path) -> None:
    project = ready(tmp_path, {"greet.py": "import shop_settings\n" + FILES["greet.py"], ".gitignore": "shop*\n"})
    project.write({"shop_settings.py": ""})
    said = collection(project, code=2)
    assert said["message"].startswith("no test passes, and 1 file cannot be collected; the first, tests/test_greet")
    assert "write that path into .worktreeinclude" in said["message"]
    project.write({"tests/test_more.py": "def test_more(): pass\n"})
    project.commit()
    said = collection(project, code=0)
    assert said["status"] == "warn", "only a run finds out whether one of them passes"
    assert said["message"].startswith("1 file cannot be collected")
    assert project.git("status", "--porcelain") == ""


@pytest.mark.broad
def test_a_project_in_which_no_test_is_found_is_told_so_and_may_begin(tmp_path: Path) -> None:
    project = make_project(tmp_path, {**FILES, "tests/test_greet.py": ""})
    project.use_script(HONEST)
    said = collection(project, code=0)
    assert (said["status"], said["message"].split(";")[0]) == ("warn", "no test of HEAD is found")


@pytest.mark.broad
def test_what_takes_long_is_stopped_and_said(tmp_path: Path) -> None:
    project = ready(tmp_path, {"tests/conftest.py": "import time\ntime.sleep(600)\n"})
    repository, config = Repository.find(project.root), Config()
    environ = project.environment()
    (said,) = anyio.run(check_collection, repository, config, environ, 2.0)
    assert (said.status, said.message.split(";")[0]) == (
        "warn",
        "not known: collecting the tests took longer than 2 s",
    )
    table = config.toolchains.settings_of("pytest").model_copy(update={"timeout_s": 2})
    short = config.model_copy(update={"toolchains": config.toolchains.model_copy(update={"pytest": table})})
    (said,) = anyio.run(check_collection, repository, short, environ)
    assert (said.status, "did not come to its end (timed_out)" in said.message) == ("fail", True)


@pytest.mark.broad
def test_nothing_is_collected_of_a_repository_that_wants_trust_or_a_setup(tmp_path: Path) -> None:
    project = ready(tmp_path, {"redfirst.toml": '[agents]\nnetwork = "open"\n'})
    assert collection(project, code=2) == {}
    project.write({"redfirst.toml": ""})
    project.commit()
    project.env["REDFIRST_TOOLCHAINS__PYTEST__SETUP"] = '["touch", "made"]'
    said = collection(project, code=0)
    assert (said["status"], "after its setup: touch made" in said["message"]) == ("warn", True)
    del project.env["REDFIRST_TOOLCHAINS__PYTEST__SETUP"]
    assert collection(project, code=0)["status"] == "ok"


def test_nothing_is_collected_where_no_box_would_hold_it(tmp_path: Path) -> None:
    project = ready(tmp_path, {"conftest.py": f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"})
    project.env["REDFIRST_SANDBOX"] = "none"
    assert collection(project, code=0) == {}
    assert not (tmp_path / "ran").exists()
