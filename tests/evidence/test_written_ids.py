"""A test is known by any end of its id that only one has, in the forms in which runners print it."""

from __future__ import annotations

import pytest

from pipeline.judge.evidence.observation import TestRecord
from pipeline.judge.evidence.written_ids import forms, meant, wrong

RUST = {
    "rustc-demangle::lib::v0::tests::x": "src/v0.rs",
    "rustc-demangle::lib::legacy::tests::x": "src/legacy.rs",
    "rustc-demangle::lib::legacy::tests::only": "src/legacy.rs",
    "rustc-demangle::bin/tool-box::tests::y": "src/bin/tool-box.rs",
    "rustc-demangle::test/all::round::trip": "tests/all.rs",
    "rustc-demangle::doc::src/lib.rs::demangle": "src/lib.rs",
}
PYTHON = {
    "tests/unit/test_a.py::test_both": "tests/unit/test_a.py",
    "tests/unit/test_b.py::test_both": "tests/unit/test_b.py",
    "tests/unit/test_b.py::TestMore::test_one[a.b/c-1]": "tests/unit/test_b.py",
    "tests/unit/test_b.py::TestMore::test_one[d]": "tests/unit/test_b.py",
}
JAVASCRIPT = {"src/a.test.js > adds > two numbers": "src/a.test.js", "src/b.test.js > adds > more": "src/b.test.js"}
SUITE = {
    entry: TestRecord(id=entry, function=entry.partition("[")[0], path=path, region_sha256="r")
    for entry, path in {**RUST, **PYTHON, **JAVASCRIPT}.items()
}


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("v0::tests::x", "rustc-demangle::lib::v0::tests::x"),
        ("rustc_demangle::v0::tests::x", "rustc-demangle::lib::v0::tests::x"),
        ("rustc-demangle v0::tests::x", "rustc-demangle::lib::v0::tests::x"),
        ("rustc_demangle::lib::v0::tests::x", "rustc-demangle::lib::v0::tests::x"),
        ("rustc-demangle::bin/tool-box tests::y", "rustc-demangle::bin/tool-box::tests::y"),
        ("rustc-demangle::bin$tool_box tests::y", "rustc-demangle::bin/tool-box::tests::y"),
        ("rustc-demangle::all round::trip", "rustc-demangle::test/all::round::trip"),
        ("only", "rustc-demangle::lib::legacy::tests::only"),
        ("test_a.py::test_both", "tests/unit/test_a.py::test_both"),
        ("tests.unit.test_a.test_both", "tests/unit/test_a.py::test_both"),
        ("TestMore::test_one", "tests/unit/test_b.py::TestMore::test_one"),
        ("test_one[d]", "tests/unit/test_b.py::TestMore::test_one[d]"),
        ("test_b.py::TestMore::test_one[a.b/c-1]", "tests/unit/test_b.py::TestMore::test_one[a.b/c-1]"),
        ("TestMore.test_one()", "tests/unit/test_b.py::TestMore::test_one"),
        ("adds > two numbers", "src/a.test.js > adds > two numbers"),
        ("two numbers", "src/a.test.js > adds > two numbers"),
        ("tests/unit/test_a.py", "tests/unit/test_a.py"),
    ],
)
def test_any_end_that_only_one_has_is_that_test(written: str, found: str) -> None:
    assert meant(written, SUITE) == (found,)


@pytest.mark.parametrize(
    "written", ["v1::tests::x", "s::x", "nly", "test_one[e]", "other::v0::tests::x", "", "::", "test_a.py::test_one"]
)
def test_what_no_test_is_called_is_none(written: str) -> None:
    assert meant(written, SUITE) == ()


def test_of_several_all_are_named() -> None:
    assert meant("tests::x", SUITE) == ("rustc-demangle::lib::v0::tests::x", "rustc-demangle::lib::legacy::tests::x")
    assert meant("test_both", SUITE) == tuple(PYTHON)[:2]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("v0::tests::x", None),
        ("v0::test::x", "there is no such test (near it: rustc-demangle::lib::v0::tests::x"),
        ("test_bath", "(near it: tests/unit/test_a.py::test_both, tests/unit/test_b.py::test_both)"),
        ("test_c.py::test_both", "(near it: tests/unit/test_b.py::test_both, tests/unit/test_a.py::test_both)"),
        ("qqq", "there is no such test"),
        ("tests::x", "2 tests end in it: rustc-demangle::lib::v0::tests::x, rustc-demangle::lib::legacy::tests::x"),
    ],
)
def test_a_wrong_id_is_told_with_those_near_it(written: str, said: str | None) -> None:
    found = wrong(written, SUITE)
    assert (found is None) if said is None else (found is not None and said in found)


def test_one_id_of_each_form_is_shown() -> None:
    assert forms(RUST) == [
        "rustc-demangle::bin/tool-box::tests::y",
        "rustc-demangle::doc::src/lib.rs::demangle",
        "rustc-demangle::lib::legacy::tests::only",
        "rustc-demangle::test/all::round::trip",
    ]
    assert forms(PYTHON) == [
        "tests/unit/test_a.py::test_both",
        "tests/unit/test_b.py::TestMore::test_one[a.b/c-1]",
    ]
    assert forms(JAVASCRIPT) == ["src/a.test.js > adds > two numbers"]


def test_each_project_of_a_workspace_has_its_own_forms() -> None:
    ids = [f"{folder}tests/test_it.py::test_{name}" for folder in ("a/", "a/b/", "") for name in ("one", "two")]
    assert forms(ids, ("a/", "a/b/")) == ["a/b/tests/test_it.py::test_one", "a/tests/test_it.py::test_one", ids[-2]]
