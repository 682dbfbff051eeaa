"""A test's file is what its record says; an id alone tells it only where the runner writes paths into ids."""

from __future__ import annotations

import pytest

from pipeline.judge.evidence.named_tests import path_of
from pipeline.judge.evidence.observation import Layout, Observation, RunState, TestRecord
from pipeline.judge.policy.rights import Action, Grant
from pipeline.judge.reports.fields import FileChange, OldTest
from pipeline.judge.reports.tasks import Task
from pipeline.steps.asking.grants import scope_of, suite_grants
from pipeline.testing.measure.composed_trees import own_files

CARGO = Layout(testpaths=("tests",), python_files=("*.rs",), collected=frozenset({"src/lib.rs#tests", "tests/a.rs"}))


def seen(layout: Layout, **tests: str) -> Observation:
    """Return a run with these tests: id -> path."""
    records = {
        entry: TestRecord(id=entry, function=entry.partition("[")[0], path=path, region_sha256="")
        for entry, path in tests.items()
    }
    return Observation(state=RunState.COMPLETE, records=records, layout=layout)


def task(*ids: str, files: tuple[str, ...] = ()) -> Task:
    return Task(
        id="1",
        title="t",
        files=(),
        test_files=tuple(FileChange(path=path, action=Action.MODIFY) for path in files),
        tests_to_change=tuple(OldTest(id=entry, reason="r") for entry in ids),
    )


@pytest.mark.parametrize(
    ("entry", "known", "sources", "path"),
    [
        ("tests/test_a.py::test_b[1]", {}, (".py",), "tests/test_a.py"),
        ("tests/test_a.py", {}, (".py",), "tests/test_a.py"),
        ("greet::lib::tests::it", {}, (".rs",), None),
        ("greet::lib::tests::it", {"greet::lib::tests::it": "src/lib.rs"}, (".rs",), "src/lib.rs"),
        ("greet::doc::src/lib.rs::greet", {}, (".rs",), None),
        ("example.com/greet::TestGreet", {}, (".go",), None),
        (
            "example.com/greet::TestGreet/a",
            {"example.com/greet::TestGreet/a": "greet_test.go"},
            (".go",),
            "greet_test.go",
        ),
        ("test/greet.test.mjs::greets > by name", {}, (".js", ".mjs"), "test/greet.test.mjs"),
        ("t.py::f", {"t.py::f[1]": "t.py"}, (".py",), "t.py"),
        ("docs/a.md", {"docs/a.md::a.md": "docs/a.md"}, (".py",), "docs/a.md"),
    ],
)
def test_where_a_test_stands(entry: str, known: dict[str, str], sources: tuple[str, ...], path: str | None) -> None:
    assert path_of(entry, seen(Layout(), **known).records, sources) == path


def test_a_package_is_no_file_to_write() -> None:
    run = seen(CARGO, **{"greet::lib::tests::it": "src/lib.rs", "greet::test/a::it": "tests/a.rs"})
    asked = task("greet::lib::tests::it", "greet::test/a::it", "greet::test/a::gone", files=("src/lib.rs",))
    assert suite_grants(asked, run, (".rs",)) == (Grant("tests/a.rs", Action.MODIFY),)


def test_tests_beside_the_code_need_no_leave() -> None:
    assert own_files(["src/lib.rs", None, "tests/a.rs", "tests/a.rs"], CARGO) == ("tests/a.rs",)


@pytest.mark.parametrize(("code", "ending"), [("app.go", ".go"), ("app.mjs", ".mjs"), ("app.py", ".py")])
def test_code_among_tests_is_seen_in_every_language(code: str, ending: str) -> None:
    run = seen(
        Layout(testpaths=("pkg",), python_files=(f"*_test{ending}",), collected=frozenset({f"pkg/a_test{ending}"}))
    )
    scope = scope_of(run, task(files=(f"pkg/a_test{ending}",)), [f"pkg/{code}", f"pkg/a_test{ending}"], (ending,))
    assert scope.code == {f"pkg/{code}"}
    assert not scope.covers(f"pkg/{code}")
    assert not scope.takes(f"pkg/other{ending}")
    assert scope.takes(f"pkg/b_test{ending}")
