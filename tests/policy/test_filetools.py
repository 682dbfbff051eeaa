"""What a file tool may write, by role: the corpus, the forms of a path, and never more than the gate allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.agents.dispatch.gate import Policy, with_regions
from pipeline.agents.dispatch.roles import load_roles
from pipeline.judge.policy.rights import Action, Change, ChangeKind, Grant, TestScope, judge
from pipeline.judge.policy.roles import Writes
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from pipeline.judge.policy.rights import Ruling

ROLES = load_roles()
APP = Grant("src/app.py", Action.MODIFY)
NEW = Grant("src/new.py", Action.CREATE)
GRANTS = (APP, NEW, Grant("src/gone.py", Action.DELETE), Grant("src/to.py", Action.RENAME, "src/from.py"))
TESTS = TestScope(
    files=(Grant("tests/test_app.py", Action.MODIFY),), folders=("tests",), code=frozenset({"src/app.py"})
)
POLICY = {role: Policy(spec.writes, GRANTS, TESTS, test_regions=spec.test_regions) for role, spec in ROLES.items()}
THERE = {"src/app.py", "src/other.py", "src/lib.rs", "src/gone.py", "src/from.py", "tests/test_app.py", "TODO/GAL-1.md"}


def ruling_on(role: Role, path: str, contents: tuple[bytes, bytes] | None = None) -> Ruling:
    change = Change(path, ChangeKind.MODIFIED if path in THERE else ChangeKind.ADDED)
    if contents is not None and ROLES[role].test_regions:
        change = with_regions(change, *contents)
    return POLICY[role].judged_word(change)


@pytest.mark.parametrize(
    ("name", "role", "path", "rule"),
    [  # the cases PT-* of the attack corpus
        ("PT-06", Role.MAKE, "src/app.py\0.md", "path-characters"),
        ("PT-08", Role.MAKE, "SRC/APP.PY", "path-collision"),
        ("PT-11", Role.MAKE, "git~1/config", "git-alias"),
        ("PT-12", Role.MAKE, ".g\u200cit/config", "git-alias"),
        ("PT-13", Role.MAKE, "\uff0egit/config", "git-alias"),
        ("PT-15", Role.PM, "todo/x.md", "read-only-role"),
        ("PT-16", Role.PM, "TODO", "read-only-role"),
        ("PT-18", Role.TEST, "tests/../src/app.py", "path-form"),
        ("PT-19", Role.CHECK, "src/app.py", "read-only-role"),
        ("PT-20", Role.MAKE, ".workflow/run-1/task-1.md", "workflow-folder"),
    ],
)
def test_a_case_of_the_corpus_is_refused_by_its_rule(name: str, role: Role, path: str, rule: str) -> None:
    ruling = ruling_on(role, path)
    assert (ruling.allowed, ruling.rule) == (False, rule), ruling.why


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("", "path-form"),
        ("/etc/passwd", "path-form"),
        ("src//app.py", "path-form"),
        ("./src/app.py", "path-form"),
        ("src/../src/app.py", "path-form"),
        ("sub/.git/hooks/pre-commit", "git-alias"),
        (".GIT/config", "git-alias"),
        (".git ", "git-alias"),
        (".git::$INDEX_ALLOCATION/config", "git-alias"),
        (".WorkFlow/x", "workflow-folder"),
        ("src/a\nb.py", "path-characters"),
        ("src/\u202eapp.py", "path-characters"),
        ("src/\udcff.py", "path-encoding"),
        ("src/cafe\u0301.py", "path-unicode"),
        ("src\\app.py", "path-characters"),
        ("src/app.py:stream", "path-characters"),
        ("src/app.py ", "path-characters"),
        ("src/app.py.", "path-characters"),
        ("src/App.py", "path-collision"),
        ("src/FROM.py", "path-collision"),
        ("tests/Test_App.py", "path-collision"),
        ("src/other.py", "outside-task"),
        ("src/gone.py", "action-not-named"),
        ("src/from.py", "action-not-named"),
        ("tests/test_app.py", "test-file"),
        ("tests/test_new.py", "test-file"),
        ("conftest.py", "control-file"),
        ("pyproject.toml", "control-file"),
        ("TODO/GAL-1.md", "tracker-file"),
    ],
)
def test_make_is_refused_what_its_task_does_not_name(path: str, rule: str) -> None:
    ruling = ruling_on(Role.MAKE, path)
    assert (ruling.allowed, ruling.rule) == (False, rule), ruling.why


@pytest.mark.parametrize("path", ["src/../src/app.py", "src/app.py ", "src/app.py\0", "src/caf\u0065\u0301.py"])
def test_a_form_is_refused_though_it_exists_and_the_task_names_it(path: str) -> None:
    policy = Policy(Writes.TASK, (Grant(path, Action.MODIFY),))
    ruling = policy.judged_word(Change(path, ChangeKind.MODIFIED))
    assert not ruling.allowed
    assert ruling.rule.startswith("path-")


@pytest.mark.parametrize("path", ["src/app.py", "src/new.py", "src/to.py"])
def test_make_may_write_what_its_task_names(path: str) -> None:
    assert ruling_on(Role.MAKE, path).rule == "task-file"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("tests/test_app.py", True),
        ("tests/test_more.py", True),
        ("tests/data/case.json", True),
        ("tests/conftest.py", False),
        ("tests/test_other/../test_app.py", False),
        ("src/app.py", False),
        ("src/test_backdoor.py", False),
        ("src/lib.rs", False),
    ],
)
def test_test_may_write_its_tests_and_new_files_beside_them(path: str, allowed: bool) -> None:
    assert ruling_on(Role.TEST, path).allowed is allowed


def test_test_may_write_inside_test_regions_and_learns_where_else_it_wrote() -> None:
    before = b"fn one() -> u8 { 1 }\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn old() {}\n}\n"
    inside = before.replace(b"fn old() {}", b"fn old() { assert_eq!(super::one(), 1); }")
    outside = before.replace(b"{ 1 }", b"{ 2 }")
    assert ruling_on(Role.TEST, "src/lib.rs", (before, inside)).rule == "test-region"
    refused = ruling_on(Role.TEST, "src/lib.rs", (before, outside))
    assert (refused.allowed, refused.rule) == (False, "outside-task")
    assert "line 1" in refused.why
    assert not ruling_on(Role.MAKE, "src/lib.rs", (before, inside)).allowed, "regions are for @test"


@pytest.mark.parametrize("role", [Role.CHECK, Role.SIMPLIFY, Role.ORCHESTRATOR, Role.PM])
@pytest.mark.parametrize("path", ["src/app.py", "src/new.py", "tests/test_app.py", "TODO/GAL-2.md", "notes.md"])
def test_a_role_that_only_answers_writes_and_deletes_nothing(role: Role, path: str) -> None:
    assert not ruling_on(role, path).allowed
    assert not POLICY[role].judged_word(Change(path, ChangeKind.DELETED)).allowed


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("src/gone.py", True), ("src/from.py", True), ("src/app.py", False), ("src/Gone.py", False), (".git", False)],
)
def test_a_file_is_deleted_when_the_task_says_so(path: str, allowed: bool) -> None:
    assert POLICY[Role.MAKE].judged_word(Change(path, ChangeKind.DELETED)).allowed is allowed


PATHS = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(["src", "app.py", "APP.py", "..", ".", "", ".git", "tests", "\0", "new.py"]), max_size=5
    ).map("/".join),
    st.sampled_from(sorted(THERE)),
)


@given(st.sampled_from(Role), PATHS, st.booleans())
def test_every_path_has_a_ruling_and_none_is_wider_than_the_gates(role: Role, path: str, exists: bool) -> None:
    kind = ChangeKind.MODIFIED if exists else ChangeKind.ADDED
    ruling = POLICY[role].judged_word(Change(path, kind))
    assert ruling.rule
    assert ruling.why.isprintable()
    if ruling.allowed:
        assert judge(ROLES[role].writes, Change(path, kind), GRANTS, TESTS).allowed
        assert {"", ".", ".."}.isdisjoint(path.split("/"))
