"""`redfirst tdd check-green` and the tests of the base: what became of those that changed, and which are protected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from kit import BARE_PYTEST, GREET, GREET_DONE, TEST_GREET, TEST_GREET_NEW, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

OLD_ID = "tests/test_greet.py::test_greets_by_name"
ASSERTION = '    assert greet("Ada") == "Hello, Ada!"\n'
EMPTIED = TEST_GREET_NEW.replace(ASSERTION, '    greet("Ada")\n')
BROKEN = GREET_DONE.replace("!", ".")
CHECKS = 'import pytest\n\n\n@pytest.fixture\ndef ada():\n    yield "Ada"\n'
USES = 'from greet import greet\n\n\ndef test_ada(ada):\n    assert greet(ada).endswith("!")\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def green(project: Project, *argv: str) -> tuple[int, dict[str, Any]]:
    document = project.document("tdd", "check-green", *argv)
    assert document["_code"] == document.get("exit_code", 2), document["_stderr"]
    return document["_code"], document


def notes_of(document: dict[str, Any], entry: str) -> list[str]:
    return [note for note in document["notes"] if entry in note]


@pytest.mark.broad
def test_an_old_test_that_was_changed_to_fit_is_refused_unless_it_may_change(project: Project) -> None:
    project.write({"greet.py": BROKEN, "tests/test_greet.py": EMPTIED})
    code, document = green(project)
    (problem,) = document["problems"]
    assert (code, problem["id"]) == (7, OLD_ID)
    assert "changed to fit: fails: " in problem["why"]
    assert f"--may-change {OLD_ID}" in project.redfirst("tdd", "check-green").stdout
    for leave in (OLD_ID, "tests/test_greet.py"):
        code, document = green(project, "--may-change", leave)
        assert (code, document["problems"]) == (0, [])
        assert notes_of(document, OLD_ID) == [f"{OLD_ID} fails in its old form, as planned: --may-change"]


@pytest.mark.broad
def test_an_old_test_that_checks_less_over_code_that_is_right_is_no_lie(project: Project) -> None:
    project.write({"greet.py": GREET_DONE, "tests/test_greet.py": EMPTIED})
    code, document = green(project)
    assert (code, document["problems"], notes_of(document, OLD_ID)) == (0, [], [])


@pytest.mark.broad
def test_a_fixture_that_was_changed_to_fit_is_part_of_the_old_tests(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.write({"tests/conftest.py": CHECKS, "tests/test_ada.py": USES})
    project.commit("a fixture")
    project.git("branch", "--force", "main", "HEAD")
    shouts = GREET_DONE.replace('{name}!"', """{name}{'.' if name == 'Ada' else '!'}\"""")
    eve = {"tests/conftest.py": CHECKS.replace('"Ada"', '"Eve"'), "tests/test_greet.py": EMPTIED}
    project.write({"greet.py": shouts, **eve})
    code, document = green(project)
    assert code == 7
    assert {problem["id"] for problem in document["problems"]} == {OLD_ID, "tests/test_ada.py::test_ada"}
    assert green(project, "--may-change", OLD_ID, "--may-change", "tests/conftest.py")[0] == 0


@pytest.mark.broad
def test_what_failed_at_the_base_is_not_said_to_be_kept(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    known = "".join(f"\n\ndef test_red_{number}():\n    assert greet(1) == {number}\n" for number in range(5))
    skipped = '\n\ndef test_later():\n    import pytest\n    pytest.skip("later")\n'
    project.write({"tests/test_known.py": f"from greet import greet\n{known}{skipped}"})
    project.commit("red tests")
    project.git("branch", "--force", "main", "HEAD")
    project.write({"greet.py": GREET_DONE, "tests/test_greet.py": TEST_GREET_NEW})
    code, document = green(project)
    assert (code, document["kept"]) == (0, 1)
    (note,) = [note for note in document["notes"] if "failed before" in note]
    assert note.startswith("5 tests failed before already and are not counted: tests/test_known.py::test_red_0, ")
    assert note.endswith("and 2 more")


@pytest.mark.broad
def test_a_test_that_did_not_end_at_the_base_is_named_with_its_limit(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.configure("[toolchains.pytest]\ntest_timeout_s = 2\n")
    project.write({"tests/test_hangs.py": "import threading\n\n\ndef test_hangs():\n    threading.Event().wait()\n"})
    project.commit("a test that hangs")
    project.git("branch", "--force", "main", "HEAD")
    code, document = green(project)
    assert (code, document["kept"]) == (0, 1)
    said = "1 test did not end within 2 s before already and is not counted: tests/test_hangs.py::test_hangs"
    assert said in document["notes"]


@pytest.mark.broad
def test_paths_that_are_nowhere_are_an_error_before_anything_is_measured(project: Project) -> None:
    for argv, path in (
        (("--ids", "tests/test_nowhere.py::test_x"), "tests/test_nowhere.py"),
        (("--ids", "/etc/passwd"), "/etc/passwd"),
        (("--tests", "../elsewhere"), "../elsewhere"),
        (("--may-change", "tests/test_nowhere.py"), "tests/test_nowhere.py"),
    ):
        code, document = green(project, *argv)
        assert (code, document["error"]["kind"], document["error"]["path"]) == (2, "usage", path)
        assert argv[0] in document["error"]["message"]
        assert "tests:" not in document["_stderr"]
    inside = str(project.root / "tests/test_greet.py")
    assert green(project, "--ids", inside)[0] == 0


@pytest.mark.broad
def test_a_test_that_may_change_and_that_nobody_knows_is_told(project: Project) -> None:
    code, document = green(project, "--may-change", "tests/test_greet.py::test_misspelt")
    assert code == 0
    (note,) = notes_of(document, "test_misspelt")
    assert "there is no such test" in note


@pytest.mark.broad
def test_an_edit_of_the_configuration_that_is_not_committed_is_said_not_to_count(project: Project) -> None:
    project.write({"redfirst.toml": "[limits]\nseam = 2\n"})
    project.commit("configured")
    assert not notes_of(green(project)[1], "redfirst.toml")
    project.write({"redfirst.toml": "[limits]\nseam = 3\n"})
    _, document = green(project)
    (note,) = notes_of(document, "redfirst.toml")
    assert note == "uncommitted changes of redfirst.toml do not count: it is read as HEAD has it"
    config = project.redfirst("config", "show")
    assert note in config.stdout
    checks = {check["id"]: check for check in project.document("doctor")["checks"]}
    assert (checks["config"]["status"], note in checks["config"]["message"]) == ("warn", True)


@pytest.mark.broad
def test_only_our_own_table_of_a_shared_file_counts(tmp_path: Path) -> None:
    shared = BARE_PYTEST + 'pythonpath = ["."]\ntestpaths = ["tests"]\n'
    files = {"greet.py": GREET, "tests/test_greet.py": TEST_GREET, "pyproject.toml": shared}
    files["pyproject.toml"] += "[tool.redfirst.limits]\nseam = 2\n"
    project = make_project(tmp_path, files)
    project.write({"pyproject.toml": files["pyproject.toml"] + "\n# a comment\n"})
    assert "do not count" not in project.redfirst("config", "show").stdout
    project.write({"pyproject.toml": files["pyproject.toml"].replace("seam = 2", "seam = 3")})
    assert "uncommitted changes of pyproject.toml do not count" in project.redfirst("config", "show").stdout
