"""Expectations about promises that a test returns without awaiting them: then no frame of the project is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from languages.direct import context_of, files_of, write
from languages.nodes import JEST, NODE, manifest, measure

from pipeline.judge.evidence.classify import classify
from pipeline.judge.evidence.red_classes import RedClass, Symbol

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.judge.evidence.observation import Observation
    from pipeline.judge.evidence.red_classes import Classified

pytestmark = pytest.mark.slow

CODE = """
exports.later = async function later() { throw new Error("not implemented"); };
exports.same = async function same(value) { return value; };
"""
PACKAGE = """
const assert = require("node:assert");
exports.check = async (value) => { await assert.rejects(Promise.resolve(value)); };
"""
HEAD = """
const assert = require("node:assert");
const { later, same } = require("../greet.js");
"""
TESTS = """
test("stub", async () => assert.rejects(later(), /negative/));
test("stub awaited", async () => { await assert.rejects(later(), /negative/); });
test("stub that must not reject", () => assert.doesNotReject(later()));
test("stub by class", () => assert.rejects(later, RangeError));
test("stub by object", () => assert.rejects(later(), { message: "negative" }));
test("no stub", () => assert.rejects(same(1), /negative/));
test("nothing", () => assert.rejects(Promise.resolve(1), /negative/));
test("not about a promise", () => same(0).then(assert.strictEqual.bind(null, 1)));
"""
LANES = {
    "node": (NODE, 'const { test } = require("node:test");\n'),
    "jest": (JEST, ""),
    "newest": (manifest(scripts={"test": "node --test"}), 'const { test } = require("node:test");\n'),
}


@pytest.fixture(scope="module", params=LANES)
def lane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Observation]:
    package, head = LANES[request.param]
    files = {"package.json": package, "greet.js": CODE, "test/greet.test.js": head + HEAD + TESTS}
    place = write(tmp_path_factory.mktemp("promises"), files)
    return place, measure(place, request.param, trace=True)


def judged(lane: tuple[Path, Observation], name: str, *, stubbed: bool) -> Classified:
    place, seen = lane
    context = context_of(
        seen,
        files_of(place) - {"test/greet.test.js"},
        symbols=(Symbol("greet.js", "later"),),
        task_files=frozenset({"greet.js"}),
        stubbed=stubbed,
    )
    return classify(seen.records[f"test/greet.test.js::{name}"], context)


@pytest.mark.broad(but_first=2)
@pytest.mark.parametrize(
    "name", ["stub", "stub awaited", "stub that must not reject", "stub by class", "stub by object"]
)
def test_a_stub_whose_promise_is_returned_is_reached(lane: tuple[Path, Observation], name: str) -> None:
    found = judged(lane, name, stubbed=True)
    assert (found.cls, found.legal) == (RedClass.ASSERTION_MISMATCH, True), found.message


def test_its_place_is_that_of_the_test(lane: tuple[Path, Observation]) -> None:
    folder, seen = lane
    fault = seen.records["test/greet.test.js::stub"].fault
    assert fault is not None
    place = fault.last_own_frame
    lines = (folder / "test" / "greet.test.js").read_text(encoding="utf-8").splitlines()
    assert place is not None
    assert (place.path, fault.expectation, fault.bare) == ("test/greet.test.js", True, False)
    assert lines[place.line - 1].startswith('test("stub", ')


@pytest.mark.parametrize(
    ("name", "stubbed", "cls"),
    [
        ("no stub", False, RedClass.ASSERTION_MISMATCH),
        ("no stub", True, RedClass.STRUCTURAL),
        ("nothing", False, RedClass.STRUCTURAL),
    ],
)
def test_production_or_a_stub_must_be_reached_as_ever(
    lane: tuple[Path, Observation], name: str, *, stubbed: bool, cls: RedClass
) -> None:
    assert judged(lane, name, stubbed=stubbed).cls is cls


def test_another_assertion_without_a_place_is_refused_with_advice(lane: tuple[Path, Observation]) -> None:
    found = judged(lane, "not about a promise", stubbed=False)
    assert found.cls is RedClass.TEST_BROKEN
    assert "`await` what the test returns" in found.message
    assert "\n" not in found.message


@pytest.mark.broad
def test_an_expectation_of_a_package_is_not_the_tests_own(tmp_path: Path) -> None:
    tests = f"{LANES['node'][1]}const {{ check }} = require('../vendor/node_modules/helper/index.js');\n"
    files = {
        "package.json": NODE,
        "vendor/node_modules/helper/index.js": PACKAGE,
        "test/greet.test.js": f"{tests}test('theirs', () => check(1));\n",
    }
    place = write(tmp_path, files)
    fault = measure(place, trace=True).records["test/greet.test.js::theirs"].fault
    assert fault is not None
    assert fault.last_own_frame is None
