"""The same story in each language with its real tool: a baseline, RED, stubs, GREEN, and what is told of the files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from languages import crates, direct, modules, nodes, sums
from languages.direct import context_of, write

from pipeline.judge.evidence.classify import classify
from pipeline.judge.evidence.observation import Ended, RunState
from pipeline.judge.evidence.red import derive_new_ids
from pipeline.judge.evidence.red_classes import RedClass, Symbol
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.languages.table import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeline.judge.evidence.observation import Observation

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


@pytest.mark.parametrize(
    "language",
    [PYTHON, pytest.param(RUST, marks=crates.needs_cargo), NODE, pytest.param(GO, marks=modules.needs_go), SUMS],
    ids=lambda language: language.name,
)
def test_from_a_baseline_over_red_and_stubs_to_green(language: Language, tmp_path: Path) -> None:
    toolchain = {**LANGUAGES, "sums": sums.SUMS}[language.name].toolchain
    symbol = Symbol(language.code, "Double" if language.name == "go" else "double")
    run = language.measure

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

    chosen = {"selection": Selection(ids=frozenset({new}))}
    alone = run(tmp_path / "red", **chosen)
    assert {entry for entry, record in alone.records.items() if record.ran} == {new}
    assert set(alone.records) == set(red.records)

    stubbed = toolchain.stub_symbols({language.code: language.done}, [symbol])
    assert stubbed.unknown == ()
    stub = stubbed.files[language.code]
    assert toolchain.stub_like.search(stub)
    over = run(write(tmp_path / "stub", language.with_code(stub)), trace=True)
    found = classify(over.records[new], context_of(over, existing, symbols=(symbol,), stubbed=True))
    assert (found.cls, found.legal) == (RedClass.MISSING_BEHAVIOR, True), found.message

    work = {language.code: language.done}
    assert toolchain.stub_faults({}, work, [symbol]), "a body that works is no stub"

    green = run(write(tmp_path / "green", language.with_code(language.done)))
    assert {record.outcome for record in green.records.values()} == {Ended.PASSED}
    assert set(green.records) == set(red.records)
    assert green.records[new].region_sha256 == red.records[new].region_sha256
