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


BESIDE, OUTSIDE, CONTROL = "beside-tests", "outside-task", "control-file"
PROJECTS = {
    "with testpaths nothing outside of them is a test": (
        {"pyproject.toml": IN_TESTS, "src/app.py": CODE, "tests/test_app.py": TEST, "tests/helpers.py": CODE},
        "src/app.py",
        "tests/test_app.py",
        {
            "tests/test_more.py": BESIDE,
            "tests/more_helpers.py": BESIDE,
            "tests/data/case.json": BESIDE,
            "src/test_backdoor.py": OUTSIDE,
            "src/tests/helper.py": OUTSIDE,
            "test_top.py": OUTSIDE,
            "tests/sitecustomize.py": CONTROL,
            "tests/evil.pth": CONTROL,
            "tests/conftest.py": CONTROL,
        },
    ),
    # a helper of a package that `testpaths` names is a module of it, whatever code the task is about
    "tests beside the code go by their names": (
        {
            "pyproject.toml": IN_TESTS.replace('tests"', 'pkg"'),
            "pkg/mod.py": CODE,
            "pkg/test_mod.py": TEST,
            "lib/x.py": CODE,
        },
        "lib/x.py",
        "pkg/test_mod.py",
        {"pkg/test_new.py": BESIDE, "pkg/evil.py": OUTSIDE, "pkg/deep/evil.py": OUTSIDE},
    ),
    "the runner's own patterns decide what a test is called": (
        {"pytest.ini": "[pytest]\npython_files = *_spec.py\n", "spec/app_spec.py": TEST, "app.py": CODE},
        "app.py",
        "spec/app_spec.py",
        {"spec/new_spec.py": BESIDE, "spec/test_new.py": OUTSIDE},
    ),
    # tests right at the top: "beside" is then the whole tree
    "without testpaths a name alone makes no test": (
        {"app.py": CODE, "src/pkg/mod.py": CODE, "test_app.py": TEST, "tests/unit/test_mod.py": TEST},
        "app.py",
        "test_app.py",
        {
            "test_more.py": BESIDE,
            "tests/unit/test_new.py": BESIDE,
            "tests/unit/helper.py": BESIDE,
            "src/test_backdoor.py": OUTSIDE,
            "src/pkg/test_backdoor.py": OUTSIDE,
            "src/tests/helper.py": OUTSIDE,
            "helper.py": OUTSIDE,
        },
    ),
    "the first test of a project may have helpers": (
        {"app.py": CODE},
        "app.py",
        "tests/test_app.py",
        {"tests/helper.py": BESIDE, "src/test_x.py": OUTSIDE},
    ),
}
"""The files, the code and the test of a task, and by which rule a test writer may add what (or may not)."""


@pytest.mark.broad(but_first=3)
@pytest.mark.parametrize("name", PROJECTS)
def test_what_a_test_writer_may_add(tmp_path: Path, name: str) -> None:
    files, code, test, expected = PROJECTS[name]
    root = write(tmp_path, files)
    observed = measure(root, Selection.nothing())
    assert observed.state is RunState.COMPLETE
    task = Task(
        id="1",
        title="t",
        files=(FileChange(path=code, action=Action.MODIFY),),
        test_files=(FileChange(path=test, action=Action.MODIFY if test in files else Action.CREATE),),
    )
    scope = scope_of(observed, task, sorted(files_of(root)), TOOLCHAIN.sources)
    found = {path: judge(Writes.TESTS, Change(path, ChangeKind.ADDED), (), scope).rule for path in expected}
    assert found == expected


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
