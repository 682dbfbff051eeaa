"""The type of a task's commit follows from what it changes and how it is proven."""

from __future__ import annotations

import pytest

from pipeline.judge.evidence.observation import Layout
from pipeline.judge.reports.fields import Evidence
from pipeline.steps.publication.commits import commit_type, first_line, lower_first, subject_of

LAYOUT = Layout(python_files=("test_*.py",), testpaths=("tests",))


@pytest.mark.parametrize(
    ("paths", "evidence", "is_fix", "kind"),
    [
        (["shop/cart.py", "tests/test_cart.py"], "red", False, "feat"),
        (["shop/cart.py", "tests/test_cart.py"], "red", True, "fix"),
        (["shop/cart.py", "README.md"], "regression", False, "refactor"),
        (["pyproject.toml", "README.md"], "regression", False, "chore"),
        (["pyproject.toml"], "regression", True, "fix"),
        (["README.md", "docs/use.rst"], "regression", True, "docs"),
        (["tests/test_cart.py"], "red", True, "test"),
    ],
)
def test_the_type_says_what_the_commit_is(paths: list[str], evidence: str, is_fix: bool, kind: str) -> None:
    assert commit_type(paths, LAYOUT, Evidence(evidence), is_fix=is_fix, sources=(".py",)) == kind


@pytest.mark.parametrize(
    ("title", "line"),
    [
        ("Greet the world", "feat: greet the world"),
        ("fix: Greet the world", "fix: greet the world"),
        ("perf:  greet", "perf: greet"),
        ("fix:", "feat: fix:"),
        ("Cart: it is emptied", "feat: Cart: it is emptied"),
    ],
)
def test_a_type_that_the_title_begins_with_is_the_type(title: str, line: str) -> None:
    assert first_line("feat", title, {"Cart"}) == line


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("feat: greet\n the world", "feat: greet the world"),
        (
            "feat: end the deprecations of collate and grouper; windowed of nothing yields nothing",
            "feat: end the deprecations of collate and grouper; windowed of...",
        ),
        ("feat: " + "greet, " * 12, "feat: " + "greet, " * 8 + "greet..."),
        ("feat: " + "x" * 70, "feat: " + "x" * 63 + "..."),
        ("feat: " + "x" * 66, "feat: " + "x" * 66),
    ],
)
def test_a_subject_that_is_too_long_ends_behind_a_word(text: str, subject: str) -> None:
    assert subject_of(text) == subject
    assert len(subject) <= 72


@pytest.mark.parametrize(
    ("title", "begins"),
    [
        ("Greet the world", "greet the world"),
        ("Greet, then leave", "greet, then leave"),
        ("Re-export what's there", "re-export what's there"),
        ("A word", "A word"),
        ("JSON is read", "JSON is read"),
        ("Arg::is_option says whether", "Arg::is_option says whether"),
        ("Arg.option says whether", "Arg.option says whether"),
        ("Arg_option says whether", "Arg_option says whether"),
        ("Arg() says whether", "Arg() says whether"),
        ("`Arg` says whether", "`Arg` says whether"),
        ("Utf8 is read", "Utf8 is read"),
        ("ArgList is read", "ArgList is read"),
        ("Cart: it is emptied", "Cart: it is emptied"),
        ("Makefile has a target", "Makefile has a target"),
        ("", ""),
    ],
)
def test_a_subject_begins_small_unless_its_first_word_is_code(title: str, begins: str) -> None:
    assert lower_first(title, {"Cart", "Makefile"}) == begins
