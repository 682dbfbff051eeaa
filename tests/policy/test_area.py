"""What patterns let a writer change: never a test, and what controls tests or builds only by its own name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.agents.dispatch.gate import Policy
from pipeline.judge.policy.control_files import is_control
from pipeline.judge.policy.paths import is_tracker, protected
from pipeline.judge.policy.rights import (
    Action,
    Change,
    ChangeKind,
    Grant,
    TestScope,
    effective_writes,
    judge,
)
from pipeline.judge.policy.roles import Writes
from pipeline.matrix.scheduling.patterns import parsed

if TYPE_CHECKING:
    from pipeline.judge.policy.rights import Ruling

TESTS = TestScope(folders=("tests",), code=frozenset({"src/app.py"}))


def ruled(path: str, *patterns: str, kind: ChangeKind = ChangeKind.MODIFIED) -> Ruling:
    return judge(Writes.AREA, Change(path, kind), tests=TESTS, area=tuple(map(parsed, patterns)))


@pytest.mark.parametrize(
    ("path", "patterns", "rule"),
    [
        ("src/app.py", ("src/**",), "in-area"),
        ("src/app.py", ("src",), "in-area"),
        ("SRC/App.py", ("src",), "in-area"),
        ("src/app.py", ("docs/**", "src/a*.py"), "in-area"),
        ("lib/app.py", ("src/**",), "outside-area"),
        ("src/app.py", (), "outside-area"),
        ("tests/test_app.py", ("**/*",), "test-file"),
        ("tests/test_app.py", ("tests/test_app.py",), "test-file"),
        ("tests/data.json", ("**/*",), "test-file"),
        ("src/conftest.py", ("**/*",), "control-file"),
        ("src/conftest.py", ("src",), "control-file"),
        (".github/workflows/ci.yml", ("**/*",), "control-file"),
        (".github/workflows/ci.yml", (".github",), "control-file"),
        ("pyproject.toml", ("*.toml",), "control-file"),
        ("pyproject.toml", ("pyproject.toml",), "control-file-named"),
        ("CLAUDE.md", ("**/*",), "control-file"),
        ("TODO/GAL-1.md", ("**/*",), "tracker-file"),
        (".git/config", ("**/*",), "git-alias"),
    ],
)
def test_what_an_area_lets_be_changed(path: str, patterns: tuple[str, ...], rule: str) -> None:
    """Acceptance checks 13 and 14."""
    for kind in (ChangeKind.ADDED, ChangeKind.MODIFIED, ChangeKind.DELETED):
        ruling = ruled(path, *patterns, kind=kind)
        assert (ruling.rule, ruling.allowed) == (rule, rule in {"in-area", "control-file-named"}), ruling.why
        assert (ruling.note is not None) == (rule == "control-file-named")


@pytest.mark.parametrize("kind", [ChangeKind.SYMLINK, ChangeKind.MODE, ChangeKind.REPOSITORY, ChangeKind.SPECIAL])
def test_an_area_lets_nothing_be_made_but_files(kind: ChangeKind) -> None:
    assert not ruled("src/app.py", "**/*", kind=kind).allowed


@given(st.lists(st.sampled_from([*"ab*?/", "**", "src", "tests", "test_x.py", "conftest.py", ".github"]), min_size=1))
def test_no_pattern_opens_a_test_or_a_control_file(parts: list[str]) -> None:
    try:
        pattern = parsed("".join(parts))
    except ValueError:
        return
    for path in ("tests/test_x.py", "src/conftest.py", ".github/workflows/ci.yml", "a/package.json", "TODO/A-1.md"):
        ruling = judge(Writes.AREA, Change(path, ChangeKind.MODIFIED), tests=TESTS, area=(pattern,))
        assert not ruling.allowed or pattern.text == path
        assert is_control(path) or is_tracker(path, "TODO") or TESTS.covers(path) or protected(path)


def test_only_who_may_write_a_task_is_held_to_an_area() -> None:
    area = (parsed("**/*"),)
    assert effective_writes(Writes.TASK, area) is Writes.AREA
    assert [effective_writes(writes, area) for writes in (Writes.NOTHING, Writes.TESTS)] == [
        Writes.NOTHING,
        Writes.TESTS,
    ]
    assert effective_writes(Writes.TASK, None) is Writes.TASK
    assert effective_writes(Writes.TASK, ()) is Writes.AREA, "an empty area is one: nothing may change"


def test_the_tools_of_a_model_are_held_to_it_too() -> None:
    area = (parsed("src/**"),)
    make, check = (Policy(writes, (), TESTS, area=area) for writes in (Writes.TASK, Writes.NOTHING))
    assert make.judged_word(Change("src/new.py", ChangeKind.ADDED)).allowed
    assert make.judged_word(Change("src/app.py", ChangeKind.DELETED)).allowed
    assert make.judged_word(Change("lib/new.py", ChangeKind.ADDED)).rule == "outside-area"
    assert make.judged_word(Change("tests/test_app.py", ChangeKind.DELETED)).rule == "test-file"
    assert check.judged_word(Change("src/new.py", ChangeKind.ADDED)).rule == "read-only-role"
    named = Policy(Writes.TASK, (Grant("lib/new.py", Action.CREATE),), TESTS, area=area)
    ruling = named.judged_word(Change("lib/new.py", ChangeKind.ADDED))
    assert ruling.rule == "outside-area", "a step of a recipe has no task"
