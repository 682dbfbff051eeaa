"""A tracked file whose name is no text: `tdd` and `verify` measure all the same, or say why they cannot."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from kit import GREET_DONE, HONEST, TEST_GREET_NEW, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

CODE = b"odd\xff.py"
HELPER = b"tests/d\xff/x.py"
CONTROL = b"requirements\xff.txt"
TESTS = b"tests/test_odd\xff.py"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def write(project: Project, content: bytes, *names: bytes) -> None:
    for name in names:
        path = os.fsencode(project.root) + b"/" + name
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120  (bytes)
        with open(path, "wb") as file:  # noqa: PTH123  (bytes)
            file.write(content)


@pytest.mark.broad
def test_files_whose_name_is_no_text_are_measured_around(project: Project) -> None:
    write(project, b"OLD = 1\n", CODE, HELPER, CONTROL)
    project.commit("odd names")
    project.git("branch", "--force", "main")
    write(project, b"NEW = 1\n", CODE, HELPER, CONTROL)
    project.write({"tests/test_greet.py": TEST_GREET_NEW})
    red = project.document("tdd", "check-red")
    assert (red["_code"], red.get("ok")) == (0, True), red
    project.write({"greet.py": GREET_DONE})
    said = project.redfirst("tdd", "check-red")
    assert (said.returncode, "requirements\\udcff.txt controls" in said.stdout) == (0, True), said
    green = project.document("tdd", "check-green")
    assert (green["_code"], green.get("ok")) == (0, True), green


@pytest.mark.broad
def test_a_file_of_tests_whose_name_is_no_text_is_refused_in_words(project: Project) -> None:
    write(project, b"def test_it():\n    assert 1\n", TESTS)
    for which in ("check-red", "check-green"):
        document = project.document("tdd", which)
        assert (document["_code"], document["error"]["kind"]) == (2, "environment"), document
        told = document["error"]["message"]
        assert told.endswith("tests/test_odd\\xff.py holds tests, and its name is not UTF-8; rename it")


@pytest.mark.broad
def test_a_file_of_tests_whose_name_ends_the_runner_is_named(project: Project) -> None:
    write(project, b"def test_it():\n    assert 1\n", TESTS)  # pytest cannot keep its name for the next time
    project.commit("an odd test")
    project.use_script(HONEST)
    result = project.run()
    assert result["reason"] == "baseline_impossible", result
    told = "tests/test_odd\\xff.py holds tests, and its name is not UTF-8; rename it"
    assert told in result["_stderr"]
    assert told in project.redfirst("doctor", "--tests").stdout


@pytest.mark.broad
def test_a_commit_after_one_with_such_names_is_verified(project: Project) -> None:
    write(project, b"OLD = 1\n", CODE, HELPER, CONTROL)
    project.commit("odd names")
    project.use_script(HONEST)
    assert project.run()["_code"] == 0
    assert project.document("verify", "GAL-1")["_code"] == 0
    write(project, b"NEW = 1\n", CODE, HELPER, CONTROL)
    project.git("add", "--all")
    project.git("commit", "--quiet", "--amend", "--no-edit")
    assert project.document("verify", "run-GAL-1")["_code"] in {0, 2, 7}
