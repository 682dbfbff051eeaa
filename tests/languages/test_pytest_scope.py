"""What a test writer may add: what the real runner would collect, and helpers among tests; no module of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from languages.direct import TOOLCHAIN, files_of, measure, write

from pipeline.judge.evidence.observation import RunState
from pipeline.judge.evidence.red import derive_new_ids
from pipeline.judge.policy.rights import Change, ChangeKind, judge
from pipeline.judge.policy.roles import Writes
from pipeline.judge.reports.fields import Action, FileChange
from pipeline.judge.reports.tasks import Task
from pipeline.steps.asking.grants import production_grants, scope_of
from pipeline.testing.languages.protocol import Selection

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow

TEST = "def test_it():\n    assert True\n"
CODE = "def f():\n    return 1\n"
IN_TESTS = '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'


def rulings(root: Path, code: str, test: str, *new: str) -> dict[str, str]:
    """Return the rule by which a test writer may (or may not) add each file, in the project as pytest sees it."""
    observed = measure(root, Selection.nothing())
    assert observed.state is RunState.COMPLETE
    task = Task(
        id="1",
        title="t",
        files=(FileChange(path=code, action=Action.MODIFY),),
        test_files=(FileChange(path=test, action=Action.MODIFY if (root / test).exists() else Action.CREATE),),
    )
    scope = scope_of(observed, task, sorted(files_of(root)), TOOLCHAIN.sources)
    return {path: judge(Writes.TESTS, Change(path, ChangeKind.ADDED), (), scope).rule for path in new}


def test_with_testpaths_nothing_outside_of_them_is_a_test(tmp_path: Path) -> None:
    files = {"pyproject.toml": IN_TESTS, "src/app.py": CODE, "tests/test_app.py": TEST, "tests/helpers.py": CODE}
    found = rulings(
        write(tmp_path, files),
        "src/app.py",
        "tests/test_app.py",
        "tests/test_more.py",
        "tests/more_helpers.py",
        "tests/data/case.json",
        "src/test_backdoor.py",
        "src/tests/helper.py",
        "test_top.py",
        "tests/sitecustomize.py",
        "tests/evil.pth",
        "tests/conftest.py",
    )
    assert found == {
        "tests/test_more.py": "beside-tests",
        "tests/more_helpers.py": "beside-tests",
        "tests/data/case.json": "beside-tests",
        "src/test_backdoor.py": "outside-task",
        "src/tests/helper.py": "outside-task",
        "test_top.py": "outside-task",
        "tests/sitecustomize.py": "control-file",
        "tests/evil.pth": "control-file",
        "tests/conftest.py": "control-file",
    }


@pytest.mark.broad
def test_without_testpaths_a_name_alone_makes_no_test(tmp_path: Path) -> None:
    """Tests right at the top: "beside" is then the whole tree."""
    files = {"app.py": CODE, "src/pkg/mod.py": CODE, "test_app.py": TEST, "tests/unit/test_mod.py": TEST}
    found = rulings(
        write(tmp_path, files),
        "app.py",
        "test_app.py",
        "test_more.py",
        "tests/unit/test_new.py",
        "tests/unit/helper.py",
        "src/test_backdoor.py",
        "src/pkg/test_backdoor.py",
        "src/tests/helper.py",
        "helper.py",
    )
    assert found == {
        "test_more.py": "beside-tests",
        "tests/unit/test_new.py": "beside-tests",
        "tests/unit/helper.py": "beside-tests",
        "src/test_backdoor.py": "outside-task",
        "src/pkg/test_backdoor.py": "outside-task",
        "src/tests/helper.py": "outside-task",
        "helper.py": "outside-task",
    }


@pytest.mark.broad
def test_tests_beside_the_code_go_by_their_names(tmp_path: Path) -> None:
    """`testpaths` names the package: a helper there is a module of it, whatever code this task is about."""
    files = {
        "pyproject.toml": '[tool.pytest.ini_options]\ntestpaths = ["pkg"]\n',
        "pkg/mod.py": CODE,
        "pkg/test_mod.py": TEST,
        "lib/x.py": CODE,
    }
    found = rulings(
        write(tmp_path, files), "lib/x.py", "pkg/test_mod.py", "pkg/test_new.py", "pkg/evil.py", "pkg/deep/evil.py"
    )
    assert found == {
        "pkg/test_new.py": "beside-tests",
        "pkg/evil.py": "outside-task",
        "pkg/deep/evil.py": "outside-task",
    }


def test_the_runners_own_patterns_decide_what_a_test_is_called(tmp_path: Path) -> None:
    files = {
        "pytest.ini": "[pytest]\npython_files = *_spec.py\n",
        "spec/app_spec.py": TEST,
        "app.py": CODE,
    }
    found = rulings(write(tmp_path, files), "app.py", "spec/app_spec.py", "spec/new_spec.py", "spec/test_new.py")
    assert found == {"spec/new_spec.py": "beside-tests", "spec/test_new.py": "outside-task"}


@pytest.mark.broad
def test_the_first_test_of_a_project_may_have_helpers(tmp_path: Path) -> None:
    found = rulings(
        write(tmp_path, {"app.py": CODE}), "app.py", "tests/test_app.py", "tests/helper.py", "src/test_x.py"
    )
    assert found == {"tests/helper.py": "beside-tests", "src/test_x.py": "outside-task"}


@pytest.mark.parametrize("path", ["tests/test_app.py", "tests/helpers.py", "tests/data/x.json"])
@pytest.mark.broad(but_first=1)
def test_the_maker_changes_none_of_them_even_when_the_task_names_it(tmp_path: Path, path: str) -> None:
    root = write(tmp_path, {"pyproject.toml": IN_TESTS, "app.py": CODE, "tests/test_app.py": TEST})
    observed = measure(root, Selection.nothing())
    task = Task(id="1", title="t", files=(FileChange(path=path, action=Action.MODIFY),), test_files=())
    scope = scope_of(observed, task, sorted(files_of(root)), TOOLCHAIN.sources)
    assert judge(Writes.TASK, Change(path, ChangeKind.MODIFIED), production_grants(task), scope).rule == "test-file"


CHECKS = """
import pytest


class Item(pytest.Item):
    def runtest(self):
        assert "\\t" not in self.path.read_text()


class File(pytest.File):
    def collect(self):
        yield Item.from_parent(self, name="STYLE")


def pytest_collect_file(file_path, parent):
    return File.from_parent(parent, path=file_path) if file_path.suffix == ".py" else None
"""


def test_what_a_tool_says_of_each_source_makes_no_test_files_and_no_new_tests(tmp_path: Path) -> None:
    files = {"conftest.py": CHECKS, "pkg/app.py": CODE, "tests/test_app.py": TEST}
    before = measure(write(tmp_path, files))
    assert {entry for entry in before.records if entry.endswith("::STYLE")} >= {"pkg/app.py::STYLE"}
    assert not before.layout.is_test_side("pkg/app.py")
    assert before.layout.is_test("tests/test_app.py")
    after = measure(write(tmp_path, {**files, "pkg/app.py": f"{CODE}\n", "tests/test_more.py": TEST}))
    assert "tests/test_more.py::STYLE" in after.records
    assert derive_new_ids(before, after) == ("tests/test_more.py::test_it",)
