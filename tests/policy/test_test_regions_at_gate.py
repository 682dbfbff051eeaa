"""The region rule where it is used: the gate says why an edit was refused, and tells @check what deserves a look."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dispatch.one_view import open_view
from policy.region_cases import BASE, NEW, with_line

from pipeline.agents.dispatch.gate import GateResult, Policy, inspect
from pipeline.judge.policy.rights import Action, Change, ChangeKind, Grant, TestScope, judge
from pipeline.judge.policy.roles import Writes
from pipeline.matrix.scheduling.patterns import parsed

if TYPE_CHECKING:
    from pipeline.sandbox.views.view import ShadowView

TESTS = TestScope(files=(Grant("tests/it.rs", Action.CREATE),), folders=("tests",))
POLICY = Policy(Writes.TESTS, (), TESTS, test_regions=True)


def fill(folder: Path) -> None:
    for name in ("src/lib.rs", "src/app.py", "build.rs"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(BASE)


@pytest.fixture
def view(tmp_path: Path) -> ShadowView:
    return open_view(fill, tmp_path / "view", workspace=Path("/view"), writable=True)


def written(view: ShadowView, name: str, text: str, policy: Policy = POLICY) -> GateResult:
    (view.host / name).write_text(text)
    return inspect(view, policy)


def test_an_edit_inside_a_region_is_admitted(view: ShadowView) -> None:
    result = written(view, "src/lib.rs", with_line("#[test] fn more() {}"))
    assert (result.admitted, [change.path for change in result.changes]) == (True, ["src/lib.rs"])
    assert result.notes == ()


def test_a_refused_edit_is_told_where_it_left_the_region(view: ShadowView) -> None:
    (violation,) = written(view, "src/lib.rs", BASE.replace("a + b", "a - b")).violations
    assert violation.rule == "outside-task"
    assert "In its test modules you may change it, but line 2 differs outside of test modules" in violation.why


def test_what_deserves_a_look_is_noted_with_the_path(view: ShadowView) -> None:
    edited = BASE.replace("fn it()", "fn renamed()").replace("use super::*;\n", "use super::*;\n impl Drop for S {}\n")
    result = written(view, "src/lib.rs", edited)
    assert result.admitted
    assert [note.partition(": ")[0] for note in result.notes] == ["src/lib.rs", "src/lib.rs"]
    assert "tests::it is gone" in result.notes[0]
    assert "impl Drop for S" in result.notes[1]


def test_another_language_has_no_regions(view: ShadowView) -> None:
    (violation,) = written(view, "src/app.py", f"{BASE}\n{NEW}\n").violations
    assert violation.rule == "outside-task"
    assert "test modules" not in violation.why


def test_a_role_without_regions_may_not_change_them(view: ShadowView) -> None:
    make = Policy(Writes.TASK, (), TESTS)
    assert written(view, "src/lib.rs", with_line("fn more() {}"), make).violations


def test_the_regions_of_a_file_that_controls_the_build_are_not_for_tests(view: ShadowView) -> None:
    (violation,) = written(view, "build.rs", with_line("fn more() {}")).violations
    assert violation.rule == "control-file"
    change = Change("build.rs", ChangeKind.MODIFIED, test_regions_only=True)
    assert judge(Writes.TESTS, change, (), TESTS).rule == "control-file"


def test_check_14_no_pattern_opens_the_tests_beside_the_code(view: ShadowView) -> None:
    held = Policy(Writes.TASK, (), TESTS, area=(parsed("**/*"),))
    assert written(view, "src/lib.rs", BASE.replace("a + b", "a - b"), held).admitted
    (violation,) = written(view, "src/lib.rs", with_line("#[test] fn more() {}"), held).violations
    assert violation.rule == "test-region"
    (view.host / "src/lib.rs").unlink()
    (violation,) = inspect(view, held).violations
    assert violation.rule == "test-region", "its tests would be gone"
