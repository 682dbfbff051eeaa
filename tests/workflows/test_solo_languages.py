"""One writer where tests do not compile over code that lacks a name: stubs come from its own signatures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from e2e.lanes import play
from e2e.shapes import TRACKER
from kit import RESULT_ACCEPTED, make_project
from languages import crates, modules
from languages.crates import MANIFEST as CRATE
from languages.crates import needs_cargo
from languages.modules import MANIFEST as MODULE
from languages.modules import needs_go

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Work:
    """A project in which `double` gives back what it got, and what one writer makes of it; `triple` is new."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    red: frozenset[str]


_RUST_TEST = (
    "\n#[cfg(test)]\nmod tests {\n    use super::*;\n"
    "    #[test]\n    fn zero() {\n        assert_eq!(double(0), 0);\n    }\n%s}\n"
)
_RUST_NEW = (
    "    #[test]\n    fn two() {\n        assert_eq!(double(2), 4);\n    }\n"
    "    #[test]\n    fn three() {\n        assert_eq!(triple(2), 6);\n    }\n"
)
RUST = Work(
    {"Cargo.toml": CRATE, "src/lib.rs": "pub fn double(n: i32) -> i32 {\n    n\n}\n" + _RUST_TEST % ""},
    {
        "src/lib.rs": (
            "pub fn double(n: i32) -> i32 {\n    triple(n) - n\n}\n\npub fn triple(n: i32) -> i32 {\n    n * 3\n}\n"
            + _RUST_TEST % _RUST_NEW
        )
    },
    frozenset({"two", "three"}),
)
_GO_TEST = (
    'package greet\n\nimport "testing"\n\n'
    "func TestZero(t *testing.T) {\n\tif Double(0) != 0 {\n\t\tt.Fatal(0)\n\t}\n}\n"
)
_GO_NEW = (
    '\nfunc TestTwo(t *testing.T) {\n\tif got := Double(2); got != 4 {\n\t\tt.Fatalf("got %d", got)\n\t}\n}\n'
    '\nfunc TestThree(t *testing.T) {\n\tif got := Triple(2); got != 6 {\n\t\tt.Fatalf("got %d", got)\n\t}\n}\n'
)
GO = Work(
    {
        "go.mod": MODULE,
        "double.go": "package greet\n\n// Double doubles.\nfunc Double(n int) int {\n\treturn n\n}\n",
        "double_test.go": _GO_TEST,
    },
    {
        "double.go": (
            'package greet\n\nimport "math"\n\n'
            "// Double doubles.\nfunc Double(n int) int {\n\treturn Triple(n) - n\n}\n\n"
            "// Triple triples.\nfunc Triple(n int) int {\n\treturn int(math.Round(float64(n) * 3))\n}\n"
        ),
        "double_test.go": _GO_TEST + _GO_NEW,
    },
    frozenset({"TestTwo", "TestThree"}),
)
_NODE_TEST = (
    'import { test } from "node:test";\nimport assert from "node:assert";\nimport { %s } from "./double.mjs";\n\n'
    'test("zero", () => assert.equal(double(0), 0));\n'
)
NODE = Work(
    {
        "package.json": '{"name": "greet", "version": "1.0.0", "type": "module", "scripts": {"test": "node --test"}}\n',
        "double.mjs": "export function double(n) {\n  return n;\n}\n",
        "double.test.mjs": _NODE_TEST % "double",
    },
    {
        "double.mjs": (
            "export function double(n) {\n  return triple(n) - n;\n}\n\n"
            "export function triple(n) {\n  return n * 3;\n}\n"
        ),
        "double.test.mjs": _NODE_TEST % "double, triple"
        + 'test("two", () => assert.equal(double(2), 4));\ntest("three", () => assert.equal(triple(2), 6));\n',
    },
    frozenset({"two", "three"}),
)


@pytest.mark.broad
@pytest.mark.parametrize(
    "work",
    [
        pytest.param(RUST, marks=needs_cargo, id="rust"),
        pytest.param(GO, marks=needs_go, id="go"),
        pytest.param(NODE, id="node"),
    ],
)
def test_tests_of_one_writer_are_red_over_its_own_signatures_and_no_dispatch_is_spent(
    work: Work, tmp_path: Path
) -> None:
    project = make_project(tmp_path, {**work.before, **TRACKER})
    if "Cargo.toml" in work.before or "go.mod" in work.before:
        of = crates if "Cargo.toml" in work.before else modules
        project.env["PATH"] = f"{of.environment().prefix / 'bin'}:{project.environment()['PATH']}"
    script = [
        {"when": {"kind": "build"}, "files": dict(work.after), "report": {"result": "COMPLETE", "summary": "doubles"}},
        RESULT_ACCEPTED,
    ]
    played = play(project, script, "--recipe", "solo")
    assert played.rows[2:] == ["build/GREEN", "final-review/ACCEPTABLE", "publish/PUBLISHED"], played.document
    red = json.loads(played.artifact("evidence/task-1.json"))["ledger"]["red"]
    assert {id_.replace("::", " ").split()[-1] for id_ in red} == work.red
    assert len(played.subjects()) == 2, "stubs are no commit of their own"
    verified = project.redfirst("verify", "run-GAL-1", "--json")
    commits = json.loads(verified.stdout)["commits"]
    assert (verified.returncode, commits[0]["red_over"]) == (0, "signatures"), verified.stdout
