"""Which files a name means: modules of Python by their dots, packages of Go by their folder."""

from __future__ import annotations

import pytest

from pipeline.judge.evidence.observation import Layout
from pipeline.judge.evidence.red_classes import Context, Symbol
from pipeline.testing.languages import names
from pipeline.testing.languages.names import is_module, is_part_of


@pytest.mark.parametrize(
    ("path", "name", "module", "part"),
    [
        ("src/pkg/core.py", "pkg.core", True, True),
        ("src/pkg/core.py", "pkg", False, True),
        ("src/pkg/__init__.py", "pkg", True, True),
        ("pkg/core.rs", "pkg.core", False, False),
        ("src/polite.rs", "polite", False, True),
        ("greet/src/polite/mod.rs", "greet::polite", False, True),
        ("src/polite/inner.rs", "crate::polite", False, True),
        ("src/polite/inner.rs", "polite.inner", False, True),
        ("src/polite/inner.rs", "inner", False, False),
        ("src/lib.rs", "greet", False, False),
        ("tests/polite.rs", "polite", False, False),
        ("src/polite.rs", "", False, False),
        ("polite/bye.go", "polite", True, True),
        ("internal/polite/bye.go", "internal/polite", True, True),
        ("services/api/polite/bye.go", "polite", True, True),
        ("impolite/bye.go", "polite", False, False),
        ("polite/inner/bye.go", "polite", False, False),
        ("polite/bye_test.go", "polite", False, False),
        ("greet.go", ".", True, True),
        ("polite/bye.go", ".", False, False),
    ],
)
def test_which_file_a_name_means(path: str, name: str, *, module: bool, part: bool) -> None:
    assert (is_module(path, name), is_part_of(path, name)) == (module, part)


@pytest.mark.parametrize(("existing", "is_new"), [("src/lib.rs", True), ("src/polite/mod.rs", False)])
def test_a_module_of_a_crate_that_the_task_creates_is_introduced_by_it(existing: str, *, is_new: bool) -> None:
    context = Context(
        symbols=(Symbol("src/polite.rs", "bye"),),
        existing=frozenset({existing}),
        layout=Layout(),
        names=names,
        task_files=frozenset({"src/polite.rs", "src/lib.rs"}),
    )
    assert context.introduces("polite", "greet") is is_new


def test_a_package_that_the_task_creates_is_introduced_by_it() -> None:
    context = Context(
        symbols=(Symbol("polite/bye.go", "Bye"),),
        existing=frozenset({"go.mod", "greet.go", "old/old.go"}),
        layout=Layout(),
        names=names,
        task_files=frozenset({"polite/bye.go", "greet.go"}),
    )
    assert context.introduces("polite")
    assert not context.introduces("old")
    assert context.introduces("Anything", "."), "the task names no symbol of greet.go"
    assert not context.introduces("Anything", "polite")
    assert context.introduces("Bye", "polite")


def test_data_of_tests_is_on_their_side() -> None:
    assert Layout().is_test_side("polite/testdata/golden.json")
    assert not Layout().is_test_side("polite/data/golden.json")
