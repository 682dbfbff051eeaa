from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.judge.policy.control_files import is_control
from pipeline.judge.policy.paths import collision_key, malformed, protected, scratch_pattern
from pipeline.judge.policy.rights import Action, Change, ChangeKind, Grant, TestScope, judge
from pipeline.judge.policy.roles import Writes
from pipeline.judge.reports.fields import path_problem
from pipeline.matrix.scheduling.patterns import parsed

if TYPE_CHECKING:
    from pipeline.judge.policy.rights import Ruling

ADDED, MODIFIED, DELETED = ChangeKind.ADDED, ChangeKind.MODIFIED, ChangeKind.DELETED
APP = Grant("src/app.py", Action.MODIFY)
TESTS = TestScope(files=(Grant("tests/test_app.py", Action.CREATE),), folders=("tests",))


def by_make(change: Change, *grants: Grant, scope: TestScope = TESTS) -> Ruling:
    return judge(Writes.TASK, change, grants or (APP,), scope)


def by_test(change: Change, scope: TestScope = TESTS) -> Ruling:
    return judge(Writes.TESTS, change, (APP,), scope)


def test_make_may_modify_a_file_that_the_task_names() -> None:
    ruling = by_make(Change("src/app.py", MODIFIED))
    assert (ruling.allowed, ruling.rule, ruling.note) == (True, "task-file", None)


def test_make_may_not_touch_a_file_that_the_task_does_not_name() -> None:
    ruling = by_make(Change("src/other.py", MODIFIED))
    assert (ruling.allowed, ruling.rule) == (False, "outside-task")
    assert ruling.why.endswith(
        "src/app.py (modify); to ask for it, answer INCOMPLETE or CANNOT_PROCEED with it in `needs`"
    )
    assert by_test(Change("src/other.py", MODIFIED)).why.endswith("; to ask for it, answer BLOCKED with it in `needs`")


@pytest.mark.parametrize(
    ("action", "kind", "allowed"),
    [
        (Action.CREATE, ADDED, True),
        (Action.CREATE, MODIFIED, True),
        (Action.CREATE, DELETED, False),
        (Action.MODIFY, ADDED, False),
        (Action.MODIFY, MODIFIED, True),
        (Action.MODIFY, DELETED, False),
        (Action.DELETE, DELETED, True),
        (Action.DELETE, MODIFIED, False),
        (Action.DELETE, ADDED, False),
    ],
)
def test_a_grant_covers_its_action_only(action: Action, kind: ChangeKind, allowed: bool) -> None:
    assert by_make(Change("src/x.py", kind), Grant("src/x.py", action)).allowed is allowed


def test_a_rename_is_a_deletion_there_and_a_new_file_here() -> None:
    grant = Grant("src/new.py", Action.RENAME, "src/old.py")
    assert by_make(Change("src/old.py", DELETED), grant).allowed
    assert by_make(Change("src/new.py", ADDED), grant).allowed
    assert not by_make(Change("src/old.py", MODIFIED), grant).allowed
    assert not by_make(Change("src/new.py", DELETED), grant).allowed


def test_an_unnamed_deletion_says_to_put_the_file_back() -> None:
    ruling = by_make(Change("src/other.py", DELETED))
    assert ruling.rule == "deletion-not-named"
    assert "put it back" in ruling.why


@pytest.mark.parametrize("path", ["tests/test_app.py", "tests/data/x.json", "tests/conftest.py"])
def test_make_never_changes_a_test_even_when_the_task_lists_it(path: str) -> None:
    ruling = by_make(Change(path, MODIFIED), Grant(path, Action.MODIFY))
    assert (ruling.allowed, ruling.rule) == (False, "test-file")


def test_where_the_toolchain_names_no_folder_names_decide_what_a_test_is() -> None:
    scope = TestScope()
    assert scope.covers("test_app.py")
    assert scope.covers("src/tests/helper.py")
    assert not scope.covers("src/app.py")
    assert not TESTS.covers("src/test_client.py"), "a production file may be called so"
    assert TestScope(folders=("./",)).covers("pkg/x_test.py")


def test_a_file_that_tests_were_collected_from_is_a_test() -> None:
    assert by_make(
        Change("src/app.py", MODIFIED), scope=TestScope(folders=("tests",), known=frozenset({"src/app.py"}))
    ).rule == ("test-file")


def test_test_may_write_its_file_and_new_ones_beside_it() -> None:
    assert by_test(Change("tests/test_app.py", ADDED)).rule == "test-file"
    beside = by_test(Change("tests/helpers.py", ADDED))
    assert beside.rule == "beside-tests"
    assert beside.note == "tests/helpers.py is new beside the tests, and the task does not name it"
    assert by_test(Change("tests/data/case.json", ADDED)).rule == "beside-tests"


@pytest.mark.parametrize(
    ("path", "kind", "rule"),
    [
        ("src/app.py", MODIFIED, "outside-task"),
        ("src/tests/helper.py", ADDED, "outside-task"),
        ("src/test_backdoor.py", ADDED, "outside-task"),
        ("tests/test_other.py", MODIFIED, "outside-task"),
        ("tests/test_other.py", DELETED, "deletion-not-named"),
        ("tests/conftest.py", ADDED, "control-file"),
        ("tests/sitecustomize.py", ADDED, "control-file"),
        ("tests/evil.pth", ADDED, "control-file"),
        ("tests/.github/x.yml", ADDED, "control-file"),
    ],
)
def test_test_may_not_write(path: str, kind: ChangeKind, rule: str) -> None:
    ruling = by_test(Change(path, kind))
    assert (ruling.allowed, ruling.rule) == (False, rule)


def test_a_test_file_at_the_top_does_not_open_the_whole_tree() -> None:
    scope = TestScope(files=(Grant("test_app.py", Action.MODIFY),))
    assert by_test(Change("test_more.py", ADDED), scope).allowed
    assert not by_test(Change("app/new.py", ADDED), scope).allowed


def test_a_change_inside_test_regions_is_tests_to_make() -> None:
    change = Change("src/lib.rs", MODIFIED, test_regions_only=True)
    assert by_test(change).rule == "test-region"
    assert not by_make(change).allowed


@pytest.mark.parametrize("kind", list(ChangeKind))
def test_a_role_that_writes_nothing_may_change_nothing(kind: ChangeKind) -> None:
    grants = (Grant("src/app.py", Action.MODIFY), Grant("src/app.py", Action.CREATE))
    assert judge(Writes.NOTHING, Change("src/app.py", kind), grants).rule == "read-only-role"


def test_the_tracker_never_goes_through_the_gate() -> None:
    assert by_make(Change("TODO/GAL-1.md", MODIFIED), Grant("TODO/GAL-1.md", Action.MODIFY)).rule == "tracker-file"
    elsewhere = judge(Writes.TESTS, Change("issues/test_a.py", ChangeKind.ADDED), tracker="issues")
    assert elsewhere.rule == "tracker-file"


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (ChangeKind.SYMLINK, "symlink"),
        (ChangeKind.HARDLINK, "hard-link"),
        (ChangeKind.SPECIAL, "special-file"),
        (ChangeKind.TYPE, "type-change"),
        (ChangeKind.MODE, "mode-change"),
        (ChangeKind.REPOSITORY, "nested-repository"),
        (ChangeKind.UNREADABLE, "unreadable"),
    ],
)
def test_what_is_no_content_is_refused_even_for_a_named_file(kind: ChangeKind, rule: str) -> None:
    assert by_make(Change("src/app.py", kind)).rule == rule


def test_an_odd_name_is_none_for_a_new_file_and_may_be_modified_where_the_project_has_it() -> None:
    assert by_test(Change("tests/a.py ", ADDED)).rule == "path-characters"
    assert by_make(Change("src/a b .py ", MODIFIED), Grant("src/a b .py ", Action.MODIFY)).allowed


@pytest.mark.parametrize("kind", [ADDED, MODIFIED, DELETED])
@pytest.mark.parametrize("path", ["src/caf\udce9.py", "src/a\u200bb.py", "src/a\\b.py"])
def test_a_file_that_no_report_can_name_is_left_alone(path: str, kind: ChangeKind) -> None:
    assert path_problem(path) is not None
    ruling = judge(Writes.AREA, Change(path, kind), area=(parsed("**"),))
    assert "leave a file that has this one as it is" in ruling.why


def test_a_file_that_collides_with_another_is_refused() -> None:
    ruling = by_test(Change("tests/Helpers.py", ADDED, collides_with="tests/helpers.py"))
    assert ruling.rule == "path-collision"
    assert "tests/helpers.py" in ruling.why


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("src/__pycache__/app.cpython-311.pyc", "__pycache__"),
        ("app.pyc", "*.pyc"),
        ("x.egg-info/PKG-INFO", "*.egg-info"),
        (".coverage.host.1", ".coverage.*"),
        ("src/app.py", None),
        ("coverage", None),
    ],
)
def test_scratch_is_a_closed_list_of_names(path: str, pattern: str | None) -> None:
    assert scratch_pattern(path) == pattern


ANY_TEXT = st.text(alphabet=st.characters(exclude_characters="/"), min_size=1)


@given(st.lists(ANY_TEXT, min_size=1, max_size=4), st.sampled_from(Writes), st.sampled_from(ChangeKind))
def test_every_change_has_a_ruling_with_a_rule_and_a_reason(parts: list[str], writes: Writes, kind: ChangeKind) -> None:
    ruling = judge(writes, Change("/".join(parts), kind))
    assert not ruling.allowed, "nothing was granted"
    assert ruling.rule
    assert ruling.why


@given(st.text(min_size=1))
def test_collision_keys_ignore_case_and_unicode_form(path: str) -> None:
    assert collision_key(unicodedata.normalize("NFD", path)) == collision_key(path)
    assert collision_key(collision_key(path)) == collision_key(path)


@given(st.text())
def test_a_path_that_is_well_formed_stays_inside(path: str) -> None:
    if malformed(path) is None and protected(path) is None:
        parts = path.split("/")
        assert not {"", ".", "..", ".git"}.intersection(parts)
        assert isinstance(is_control(path), bool)
