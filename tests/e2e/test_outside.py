"""Tests that fail in the box alone: named with the first error where the user lets them run outside, too many park."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from kit import FILES, HONEST, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")]

NEEDS = """import os
import pathlib

import pytest


@pytest.mark.parametrize("number", range({number}))
def test_needs_the_users_shell(number):
    mark = pathlib.Path({mark!r})
    mark.touch() if os.environ.get("SHOP_ENV") and mark.parent.is_dir() else None
    assert os.environ["SHOP_ENV"] == "test"


def test_fails_everywhere():
    assert 1 == 2
"""


def project_with(tmp_path: Path, number: int, extra: str) -> tuple[Project, Path]:
    mark = tmp_path / "ran-outside"
    project = make_project(tmp_path, {**FILES, "tests/test_needs.py": NEEDS.format(number=number, mark=str(mark))})
    project.env["SHOP_ENV"] = "test"
    project.use_script(HONEST, extra)
    return project, mark


@pytest.mark.broad
def test_a_few_that_differ_are_named_with_the_first_error(tmp_path: Path) -> None:
    project, mark = project_with(tmp_path, 2, "[toolchains]\noutside = true\n")
    done = project.run()
    assert done["outcome"] == "completed", done["_stderr"]
    assert mark.exists()
    said = next(line for line in done["_stderr"].splitlines() if "sanity: OK" in line)
    first = "tests/test_needs.py::test_needs_the_users_shell[0]"
    assert f"2 tests fail in the box alone: {first}, " in said
    assert "KeyError" in said
    assert "SHOP_ENV" in said
    assert project.git("status", "--porcelain") == ""


@pytest.mark.broad
def test_more_than_a_few_park_the_run_before_anybody_is_paid_and_resume_measures_again(tmp_path: Path) -> None:
    outside = "[toolchains]\noutside = true\n"
    project, _ = project_with(tmp_path, 4, outside)
    said = {check["id"]: check for check in project.document("doctor")["checks"]}["box"]
    assert (said["status"], said["message"][:36]) == ("fail", "4 tests fail in the box alone: tests")
    done = project.run()
    assert (done["outcome"], done["reason"]) == ("parked", "environment"), done["_stderr"]
    assert "4 tests fail in the box alone: " in done["note"]
    assert "[toolchains.NAME] env" in done["note"]
    assert "may_differ" in done["note"]
    assert not [line for line in project.journal() if line["kind"] == "dispatch"]
    again = project.document("resume", "run-GAL-1")
    assert (again["outcome"], again["reason"]) == ("parked", "environment"), "nothing was mended"
    mended = '[toolchains.pytest]\nenv = { SHOP_ENV = "test" }\nsetup = ["touch", "mended"]\n'
    project.use_script(HONEST, outside + mended)
    done = project.document("resume", "run-GAL-1")
    assert done["outcome"] == "completed", done["_stderr"]
    assert project.rows()[:2] == ["any/ENV_BROKEN", "any/ENV_BROKEN"]
    assert "setup of pytest: done" in done["_stderr"], "another setup is run, too"
    baseline = json.loads((project.run_folder() / "evidence" / "baseline.json").read_text())
    assert baseline["failing"] == ["tests/test_needs.py::test_fails_everywhere"]
    assert baseline["flaky"] == []


def test_doctor_tests_runs_all_of_them_and_what_fails_outside_of_the_box(tmp_path: Path) -> None:
    project, mark = project_with(tmp_path, 2, '[toolchains.pytest]\nsetup = ["touch", "made-by-setup"]\n')
    plain = {check["id"]: check for check in project.document("doctor")["checks"]}["collection"]
    assert "redfirst doctor --tests" in plain["advice"]
    assert not mark.exists()
    seen = project.document("doctor", "--tests")
    said = {check["id"]: check for check in seen["checks"]}
    assert "4 tests of HEAD in the box: 1 pass, 3 fail (" in said["collection"]["message"]
    assert (said["box"]["status"], seen["_code"]) == ("warn", 0)
    told = said["box"]["message"]
    assert told.startswith("2 tests fail in the box alone: tests/test_needs.py::test_needs_the_users_shell[0], ")
    assert "the first with builtins.KeyError: 'SHOP_ENV'" in told
    assert "; outside of it fails, too: tests/test_needs.py::test_fails_everywhere" in told
    assert mark.exists()
    assert "setup of pytest" in seen["_stderr"], "what is done is said while it lasts"
    assert project.git("status", "--porcelain") == ""


def test_doctor_tests_names_what_is_skipped_in_the_box_alone(tmp_path: Path) -> None:
    project, _ = project_with(tmp_path, 0, "")
    skips = "def test_shop():\n    if 'SHOP_ENV' not in os.environ:\n        pytest.skip('no shop')\n"
    project.write({"tests/test_needs.py": f"import os\n\nimport pytest\n\n\n{skips}"})
    project.commit()
    said = {check["id"]: check["message"] for check in project.document("doctor", "--tests")["checks"]}
    assert "2 tests of HEAD in the box: 1 pass, 0 fail, 1 skipped (" in said["collection"]
    assert said["box"] == (
        "1 test is skipped in the box alone: tests/test_needs.py::test_shop; the first with Skipped: no shop"
    )


@pytest.mark.parametrize(("outside", "status"), [("", "warn"), ("[toolchains]\noutside = true\n", "fail")])
def test_doctor_tests_says_that_no_run_can_be_started_only_where_one_parks(
    tmp_path: Path, outside: str, status: str
) -> None:
    project, _ = project_with(tmp_path, 4, outside)
    said = {check["id"]: check for check in project.document("doctor", "--tests")["checks"]}
    assert said["box"]["status"] == status, said["box"]


def test_doctor_tests_runs_nothing_for_a_repository_that_is_not_trusted(tmp_path: Path) -> None:
    project, mark = project_with(tmp_path, 1, "")
    project.write({"redfirst.toml": "[toolchains]\noutside = true\n"})
    project.commit()
    said = {check["id"]: check for check in project.document("doctor", "--tests")["checks"]}
    assert said["trust"]["status"] == "fail"
    assert said["tests"]["same_as"] == "trust"
    assert "box" not in said
    assert not mark.exists()
    project.write({"redfirst.toml": '[agents]\nnetwork = "open"\n'})
    project.commit()
    said = {check["id"]: check for check in project.document("doctor", "--tests")["checks"]}
    assert said["box"]["message"] == "the tests of HEAD were not run: mend first what is said above"
    assert not mark.exists()


def test_nothing_runs_outside_unless_the_user_says_so(tmp_path: Path) -> None:
    project, mark = project_with(tmp_path, 4, "")
    assert "box" not in {check["id"] for check in project.document("doctor")["checks"]}
    assert project.run("--approve", "plan")["reason"] == "approval"
    assert not mark.exists()
    told = " ".join(project.redfirst("explain", "GAL-1", "-v").stdout.split())
    assert "fail in the box before any change" in told, "that they fail is said all the same, and how to know more"
    assert "[toolchains] outside = true" in told
    assert "redfirst doctor --tests" in told
