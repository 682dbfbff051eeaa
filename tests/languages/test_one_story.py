"""The same story in each language with its real tool: a baseline, RED, stubs, GREEN, and what is told of the files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from languages import crates, direct, modules, nodes, sums
from languages.direct import context_of, write
from languages.measured import outcomes

from pipeline.judge.evidence.classify import classify
from pipeline.judge.evidence.compare import expectations, judge_green, judge_stubs
from pipeline.judge.evidence.observation import Ended, RunState
from pipeline.judge.evidence.red import derive_new_ids, judge_red
from pipeline.judge.evidence.red_classes import RedClass, Symbol
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.languages.table import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeline.judge.evidence.observation import Observation
    from pipeline.testing.languages.toolchain import Toolchain

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Language:
    """A project in which `double` returns what it is given; `code` and `test` are its two files."""

    name: str
    files: Mapping[str, str]
    code: str
    test: str
    more: str
    wrong: str
    right: str
    measure: Callable[..., Observation]
    loosened: tuple[str, str] = ("", "")

    def with_code(self, text: str) -> dict[str, str]:
        return {**self.files, self.code: text, self.test: self.files[self.test] + self.more}

    @property
    def done(self) -> str:
        return self.files[self.code].replace(self.wrong, self.right)


PYTHON = Language(
    "pytest",
    {
        "double.py": '"""Doubles."""\n\n\ndef double(n):\n    return n\n',
        "test_double.py": "import double\n\n\ndef test_nothing():\n    assert double.double(0) == 0\n",
    },
    "double.py",
    "test_double.py",
    "\n\ndef test_two():\n    assert double.double(2) == 4\n",
    "return n",
    "return n * 2",
    direct.measure,
    ("(0) == 0", "(0) == double.double(0)"),
)
RUST = Language(
    "cargo",
    {
        "Cargo.toml": crates.MANIFEST,
        "src/lib.rs": "/// Doubles.\npub fn double(n: i32) -> i32 {\n    n\n}\n",
        "tests/double.rs": "use greet::double;\n\n#[test]\nfn nothing() {\n    assert_eq!(double(0), 0);\n}\n",
    },
    "src/lib.rs",
    "tests/double.rs",
    "\n#[test]\nfn two() {\n    assert_eq!(double(2), 4);\n}\n",
    "    n\n",
    "    n * 2\n",
    crates.measure,
    ("double(0), 0", "double(0), double(0)"),
)
NODE = Language(
    "node",
    {
        "package.json": nodes.NODE,
        "double.js": "/** Doubles. */\nfunction double(n) {\n  return n;\n}\nmodule.exports = { double };\n",
        "double.test.js": (
            'const { test } = require("node:test");\nconst assert = require("node:assert");\n'
            'const { double } = require("./double.js");\n\ntest("nothing", () => assert.equal(double(0), 0));\n'
        ),
    },
    "double.js",
    "double.test.js",
    'test("two", () => assert.equal(double(2), 4));\n',
    "return n;",
    "return n * 2;",
    nodes.measure,
    ("double(0), 0", "double(0), double(0)"),
)
GO = Language(
    "go",
    {
        "go.mod": modules.MANIFEST,
        "double.go": "package greet\n\n// Double doubles.\nfunc Double(n int) int {\n\treturn n\n}\n",
        "double_test.go": (
            'package greet\n\nimport "testing"\n\n'
            "func TestNothing(t *testing.T) {\n\tif Double(0) != 0 {\n\t\tt.Fatal(0)\n\t}\n}\n"
        ),
    },
    "double.go",
    "double_test.go",
    "\nfunc TestTwo(t *testing.T) {\n\tif Double(2) != 4 {\n\t\tt.Fatal(2)\n\t}\n}\n",
    "return n",
    "return n * 2",
    modules.measure,
    ("Double(0) != 0", "Double(0) != Double(0)"),
)
SUMS = Language(
    "sums",
    {
        "sums.project": "",
        "double.sum": "# Doubles.\ndouble n = n\n",
        "double.check": "nothing: double 0 = 0\n",
    },
    "double.sum",
    "double.check",
    "two: double 2 = 4\n",
    "= n",
    "= n * 2",
    sums.measure,
)


REAL = [PYTHON, pytest.param(RUST, marks=crates.needs_cargo), NODE, pytest.param(GO, marks=modules.needs_go)]


def toolchain_of(language: Language) -> Toolchain:
    return {**LANGUAGES, "sums": sums.SUMS}[language.name].toolchain


@pytest.mark.parametrize("language", [*REAL, SUMS], ids=lambda language: language.name)
def test_from_a_baseline_over_red_and_stubs_to_green(language: Language, tmp_path: Path) -> None:
    toolchain, run = toolchain_of(language), language.measure
    symbol = Symbol(language.code, "Double" if language.name == "go" else "double")

    assert toolchain.detect(write(tmp_path / "start", language.files))
    before = run(tmp_path / "start")
    assert before.state is RunState.COMPLETE
    assert [record.outcome for record in before.records.values()] == [Ended.PASSED]
    assert toolchain.is_test_path(language.test, before)
    assert not toolchain.is_test_path("README.md", before)

    red = run(write(tmp_path / "red", language.with_code(language.files[language.code])))
    (new,) = derive_new_ids(before, red)
    existing = frozenset(language.files)
    found = classify(red.records[new], context_of(red, existing))
    assert (found.cls, found.legal) == (RedClass.ASSERTION_MISMATCH, True), found.message

    stubbed = toolchain.stub_symbols({language.code: language.done}, [symbol])
    assert stubbed.unknown == ()
    stub = stubbed.files[language.code]
    assert toolchain.stub_like.search(stub)
    chosen = Selection(ids=frozenset({new, f"{new}_gone"}))
    over = run(write(tmp_path / "stub", language.with_code(stub)), selection=chosen, trace=True)
    assert {entry for entry, record in over.records.items() if record.ran} == {new}
    assert set(over.records) == set(red.records)
    found = classify(over.records[new], context_of(over, existing, symbols=(symbol,), stubbed=True))
    assert (found.cls, found.legal) == (RedClass.MISSING_BEHAVIOR, True), found.message

    work = {language.code: language.done}
    assert toolchain.stub_faults({}, work, [symbol]), "a body that works is no stub"

    green = run(write(tmp_path / "green", language.with_code(language.done)))
    assert {record.outcome for record in green.records.values()} == {Ended.PASSED}
    assert set(green.records) == set(red.records)
    assert green.records[new].region_sha256 == red.records[new].region_sha256


NEW_FILES = {
    "pytest": (
        "test_more.py",
        (
            "from double import triple\n\n\ndef test_triples():\n    assert triple(2) == 6\n\n\n"
            "def test_says_nothing():\n    assert triple\n"
        ),
        "\n\ndef triple(n):\n    return n * 3\n",
    ),
    "cargo": (
        "tests/more.rs",
        (
            "use greet::triple;\n\n#[test]\nfn triples() {\n    assert_eq!(triple(2), 6);\n}\n\n"
            "#[test]\nfn says_nothing() {\n    let _ = triple;\n}\n"
        ),
        "\npub fn triple(n: i32) -> i32 {\n    n * 3\n}\n",
    ),
    "node": (
        "more.test.mjs",
        (
            'import assert from "node:assert";\nimport { test } from "node:test";\n'
            'import { triple } from "./double.js";\n\n'
            'test("triples", () => assert.equal(triple(2), 6));\ntest("says nothing", () => assert.ok(triple));\n'
        ),
        "function triple(n) {\n  return n * 3;\n}\nmodule.exports.triple = triple;\n",
    ),
    "go": (
        "more/more_test.go",
        (
            'package more_test\n\nimport (\n\t"testing"\n\n\t"example.com/greet"\n)\n\n'
            "func TestTriples(t *testing.T) {\n\tif greet.Triple(2) != 6 {\n\t\tt.Fatal(2)\n\t}\n}\n\n"
            "func TestSaysNothing(t *testing.T) { _ = greet.Triple }\n"
        ),
        "\nfunc Triple(n int) int {\n\treturn n * 3\n}\n",
    ),
}
"""A file of tests of what is not there yet, one of which looks at nothing, and the code for it."""


@pytest.mark.parametrize("language", REAL, ids=lambda language: language.name)
@pytest.mark.broad
def test_a_new_file_is_red_as_a_whole_and_green_with_each_of_its_tests(language: Language, tmp_path: Path) -> None:
    run, (path, tests, code) = language.measure, NEW_FILES[language.name]
    symbols = (Symbol(language.code, "Triple" if language.name == "go" else "triple"),)
    before = run(write(tmp_path / "start", language.files))
    place = write(tmp_path / "red", {**language.with_code(language.files[language.code]), path: tests})
    red = run(place)
    context = context_of(red, frozenset(language.files), symbols=symbols)
    verdict = judge_red(before, red, None, context, task="1", tree="red")
    assert verdict.legal, verdict
    (new,) = verdict.ledger.red.keys() - {path}
    assert {entry: (one.cls, one.granularity) for entry, one in verdict.ledger.red.items()} == {
        new: (RedClass.ASSERTION_MISMATCH, "id"),
        path: (RedClass.MISSING_BEHAVIOR, "file"),
    }

    seen = run(write(place, {language.code: language.done + code}))
    green = judge_green(verdict.ledger, seen, expectations(before))
    assert green.green, green
    assert len(green.whole_file_ids) == 2
    listed = run(place, selection=Selection.nothing())
    assert outcomes(listed) == dict.fromkeys(seen.records)
    by_file = run(place, selection=Selection(files=frozenset({path})))
    assert {entry for entry, record in by_file.records.items() if record.ran} == set(green.whole_file_ids)

    stubs = toolchain_of(language).stub_symbols({language.code: language.done + code}, symbols)
    over = run(write(place, stubs.files), selection=Selection(ids=frozenset(green.whole_file_ids)))
    (nothing,) = judge_stubs(green.whole_file_ids, over)
    assert nothing.endswith("othing")

    old, new = language.loosened
    loose = {language.test: (language.files[language.test] + language.more).replace(old, new)}
    assert loose[language.test] != language.with_code("")[language.test]
    loosened = run(write(place, {language.code: language.done + code, **loose}))
    assert judge_green(verdict.ledger, loosened, expectations(before)).changed_files == (language.test,)
