"""`redfirst tdd`: RED and GREEN of a worktree, with no agent, no run, and nothing written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from kit import GREET, GREET_DONE, NEW_ID, TEST_GREET, TEST_GREET_NEW, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

OLD_ID = "tests/test_greet.py::test_greets_by_name"
PART = GREET + '\n\ndef part(name):\n    return f"Goodbye, {name}!"\n'
TEST_PART = 'from greet import part\n\n\ndef test_parts():\n    assert part("Ada") == "Goodbye, Ada!"\n'
GUARD = '\n\ndef test_greets_bob():\n    assert greet("Bob") == "Hello, Bob!"\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def check(project: Project, which: str, *argv: str) -> tuple[int, dict[str, Any]]:
    document = project.document("tdd", f"check-{which}", *argv)
    assert document["_code"] == document.get("exit_code", 2), document["_stderr"]
    return document["_code"], document


def failures(document: dict[str, Any]) -> str:
    bad = [f"{test['id']} {test['measured']}" for test in document["tests"] if not test["holds"]]
    return "; ".join([*bad, *(f"{problem['id']} {problem['why']}" for problem in document["problems"])])


def written(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_red_then_green_of_what_nobody_committed(project: Project) -> None:
    project.write({"tests/test_greet.py": TEST_GREET_NEW})
    before = written(project.root)
    code, red = check(project, "red")
    (test,) = red["tests"]
    assert (code, test["id"], test["measured"]) == (0, NEW_ID, "ASSERTION_MISMATCH")
    code, green = check(project, "green")
    assert code == 7
    assert NEW_ID in failures(green)
    assert written(project.root) == before
    project.write({"greet.py": GREET_DONE})
    project.commit("done")
    code, red = check(project, "red", "--base", "main")
    assert (code, red["tests"][0]["measured"]) == (0, "ASSERTION_MISMATCH")
    code, green = check(project, "green", "--base", "main")
    assert (code, green["kept"], green["problems"]) == (0, 1, [])


@pytest.mark.broad
def test_a_missing_name_is_legal_when_somebody_speaks_for_it(project: Project) -> None:
    project.write({"tests/test_part.py": TEST_PART})
    code, red = check(project, "red")
    assert (code, failures(red)) == (7, "tests/test_part.py TEST_BROKEN")
    code, red = check(project, "red", "--new", "part")
    assert (code, red["tests"][0]["measured"]) == (0, "MISSING_BEHAVIOR")
    project.write({"greet.py": PART})
    assert check(project, "red")[0] == 0
    assert check(project, "green")[0] == 0


@pytest.mark.broad
def test_a_test_that_passes_already_is_not_red_unless_others_are_meant(project: Project) -> None:
    project.write({"tests/test_greet.py": TEST_GREET_NEW + GUARD})
    code, red = check(project, "red")
    assert (code, failures(red)) == (7, "tests/test_greet.py::test_greets_bob PASSED_UNMARKED")
    assert check(project, "red", "--ids", NEW_ID)[0] == 0
    code, red = check(project, "red", "--ids", NEW_ID, "--ids", "tests/test_greet.py::test_nothing")
    assert code == 7
    assert "test_nothing there is no such test" in failures(red)


@pytest.mark.broad
def test_any_end_of_an_id_names_a_test_and_a_wrong_one_is_told_with_those_near_it(project: Project) -> None:
    name = NEW_ID.rpartition("::")[2]
    project.write({"tests/test_greet.py": TEST_GREET_NEW, "tests/test_more.py": TEST_GREET})
    code, red = check(project, "red", "--ids", name)
    assert (code, [test["id"] for test in red["tests"]]) == (0, [NEW_ID])
    several = OLD_ID.rpartition("::")[2]
    code, green = check(project, "green", "--ids", f"test_greet.py::{name}", "--ids", f"{name}s", "--ids", several)
    assert [test["id"] for test in green["tests"]] == [NEW_ID]
    assert f"{name}s there is no such test (near it: {NEW_ID}" in failures(green)
    assert f"{several} 2 tests end in it: " in failures(green)


@pytest.mark.broad
def test_green_keeps_what_passed(project: Project) -> None:
    project.write({"greet.py": GREET.replace("Hello", "Hi")})
    code, green = check(project, "green")
    assert (code, failures(green)) == (7, f"{OLD_ID} passed before and fails now, twice each")
    project.write({"greet.py": GREET, "tests/test_greet.py": "", "tests/test_new.py": TEST_GREET})
    code, green = check(project, "green")
    assert (code, failures(green)) == (7, f"{OLD_ID} is gone")
    assert check(project, "green", "--may-change", "tests/test_greet.py")[0] == 0


@pytest.mark.broad
def test_nothing_to_judge_a_wrong_base_and_a_wrong_path(project: Project) -> None:
    code, red = check(project, "red")
    assert (code, failures(red)) == (7, " no test was added or changed")
    code, error = check(project, "red", "--base", "nowhere")
    assert (code, error["error"]["kind"]) == (2, "usage")
    code, error = check(project, "red", "--tests", "nowhere.py")
    assert (code, error["error"]["path"]) == (2, "nowhere.py")


def test_where_nothing_changed_nothing_is_measured(project: Project) -> None:
    project.write({"tests/test_greet.py": "import nobody_has_this\n"})
    project.git("commit", "-qam", "tests that cannot be run")
    code, red = check(project, "red", "--base", "HEAD")
    assert (code, failures(red)) == (7, " no test was added or changed")


@pytest.mark.broad
def test_tests_that_cannot_be_run_are_not_judged(project: Project) -> None:
    project.write({"tests/test_greet.py": "import nobody_has_this\n" + TEST_GREET_NEW})
    code, error = check(project, "red")
    assert (code, error["error"]["kind"]) == (2, "environment")
    assert "nobody_has_this is not installed" in error["error"]["message"]
