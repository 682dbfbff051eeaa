"""Layouts of several runners as one: nothing that one counts is lost, and its names do not reach into another's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.judge.evidence.observation import Layout
from pipeline.testing.languages.projects.merging import below, one_layout

pytestmark = pytest.mark.slow

PART = st.sampled_from(["src", "tests", "pkg", "a", "test_x", "unit-tests", "web", "spec"])
NAME = st.sampled_from(["test_a.py", "a_test.py", "b.py", "lib.rs", "x.test.js", "a_test.go", "conftest.py"])
PATH = st.tuples(st.lists(PART, max_size=3), NAME).map(lambda parts: "/".join([*parts[0], parts[1]]))
LAYOUT = st.builds(
    Layout,
    testpaths=st.lists(st.sampled_from(["tests", "src", ".", "./tests/", "pkg/tests", "*/tests"]), max_size=2).map(
        tuple
    ),
    python_files=st.lists(
        st.sampled_from(["test_*.py", "*_test.py", "*.rs", "*.test.js", "*_test.go", "tests/*.py"]), max_size=3
    ).map(tuple),
    collected=st.frozensets(PATH, max_size=4),
)


@given(st.lists(LAYOUT, min_size=1, max_size=3), PATH)
def test_what_one_runner_takes_for_a_test_all_together_do(layouts: list[Layout], path: str) -> None:
    if any(layout.is_test(path) for layout in layouts):
        assert one_layout(layouts).is_test(path)
    if any(layout.is_test_side(path) for layout in layouts):
        assert one_layout(layouts).is_test_side(path)


@given(LAYOUT, PATH)
def test_a_layout_below_a_folder_says_the_same_of_paths_below_it(layout: Layout, path: str) -> None:
    moved = below(layout, "apps/web")
    if layout.is_test(path):
        assert moved.is_test(f"apps/web/{path}")
    assert not moved.is_test(path)


PYTHON = Layout(testpaths=("src",), python_files=("test_*.py",), collected=frozenset({"src/test_a.py"}))
RUST = Layout(
    testpaths=("tests", "benches"), python_files=("*.rs",), collected=frozenset({"tests/a.rs", "src/b.rs#tests"})
)
BESIDE = Layout(python_files=("test_*.py", "*_test.py"), collected=frozenset({"pkg/test_a.py", "tests/unit/test_b.py"}))
GO = Layout(testpaths=(".",), python_files=("*_test.go",), collected=frozenset({"svc/a_test.go"}))


@pytest.mark.parametrize(
    ("path", "is_test"),
    [
        ("src/lib.rs", False),  # Rust's names count in Rust's folders
        ("src/deep/test_new.py", True),
        ("tests/new.rs", True),
        ("tests/test_new.py", False),
        ("src/b.rs", False),  # a file with test regions is production
        ("src/b.rs#tests", True),
        ("any/where/x_test.go", True),
    ],
)
def test_names_count_in_the_folders_of_their_own_runner(path: str, is_test: bool) -> None:
    assert one_layout([PYTHON, RUST, GO]).is_test(path) is is_test


@pytest.mark.parametrize(
    ("path", "is_test"),
    [
        ("pkg/test_new.py", True),
        ("other/test_backdoor.py", False),  # the name alone adds a module to the package
        ("other/tests/test_new.py", True),
        ("tests/new/test_new.py", True),
        ("test_top.py", False),
        ("pkg/helper.py", False),
    ],
)
def test_without_folders_a_new_test_stands_beside_others_or_in_a_folder_of_tests(path: str, is_test: bool) -> None:
    assert BESIDE.is_test(path) is is_test
    assert one_layout([BESIDE, RUST]).is_test(path) is is_test
    assert below(BESIDE, "web").is_test(f"web/{path}") is is_test


def test_tests_at_the_top_make_no_test_of_modules_further_down() -> None:
    top = Layout(python_files=("test_*.py",), collected=frozenset({"test_a.py"}))
    both = one_layout([top, RUST])
    assert both.is_test("test_new.py")
    assert not both.is_test("pkg/test_new.py")


def test_with_tests_in_very_many_folders_the_patterns_stay_few() -> None:
    many = Layout(collected=frozenset(f"pkg{number % 5}/m{number}/test_a.py" for number in range(500)))
    both = one_layout([many, RUST])
    assert len(both.python_files) < 100
    assert both.is_test("pkg3/m8/test_new.py")
    assert not both.is_test("other/test_new.py")


def test_a_runner_without_any_test_yet_goes_by_its_names() -> None:
    assert one_layout([Layout(python_files=("*.test.js",)), PYTHON]).is_test("lib/first.test.js")
