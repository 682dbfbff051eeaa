"""What engines, runners and compilers say, read: names that are missing, places, regions, records that are not ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from languages.direct import write

from pipeline.judge.evidence.observation import Missing
from pipeline.testing.languages.javascript import faults as node_faults
from pipeline.testing.languages.javascript.records import Thrown
from pipeline.testing.languages.javascript.sources import Sources
from pipeline.testing.languages.javascript.syntax import Binding
from pipeline.testing.languages.names import is_module, is_part_of

if TYPE_CHECKING:
    from pathlib import Path

TEST = """import plain, { bye as leave, Greeter } from '../src/greet.js';
import * as all from '../src/greet.js';
import other from 'other';
const { hush } = require('../src/deep');
const own = require('@it/own');
test('a', () => {
  plain();
  leave('a');
  new Greeter().polite();
  all.shout('a');
  other.nothing();
  hush();
  own.thing();
  'a'.polite();
  const greeter = make();
  greeter.rude();
  all.config.port;
});
"""
FROM = "imported from /root/test/a.test.js"
FILES = {"test/a.test.js": TEST, "src/greet.ts": "export const x = 1;\n", "src/deep/index.js": "exports.y = 1;\n"}


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    return Sources.read(write(tmp_path, FILES), frozenset({"@it/own"}))


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(TEST.splitlines(), 1) if text in line)


@pytest.mark.broad(but_first=6)
@pytest.mark.parametrize(
    ("kind", "message", "at", "found"),
    [
        ("TypeError", "leave is not a function", "leave(", Missing(name="bye", owner="src/greet")),
        ("TypeError", "(0 , greet_1.leave) is not a function", "leave(", Missing(name="bye", owner="src/greet")),
        ("TypeError", "plain is not a function", "plain(", Missing(name="plain", owner="src/greet")),
        ("TypeError", "all.shout is not a function", "all.shout", Missing(name="shout", owner="src/greet")),
        ("TypeError", "Greeter is not a constructor", "new Greeter", Missing(name="Greeter", owner="src/greet")),
        ("TypeError", "(intermediate value).polite is not a function", "new Greeter", Missing(name="polite")),
        ("TypeError", "hush is not a function", "hush(", Missing(name="hush", owner="src/deep")),
        ("TypeError", "own.thing is not a function", "own.thing", Missing(name="thing", owner="@it/own")),
        (
            "TypeError",
            "other.nothing is not a function",
            "other.nothing",
            Missing(name="nothing", owner="other", first_party=False),
        ),
        (
            "TypeError",
            '"a".polite is not a function',
            "'a'.pol",
            Missing(name="polite", owner="string", first_party=False),
        ),
        ("TypeError", "greeter.rude is not a function", "greeter.rude", Missing(name="rude")),
        (
            "TypeError",
            "Cannot read properties of undefined (reading 'port')",
            "all.config",
            Missing(name="config", owner="src/greet"),
        ),
        ("TypeError", "a bad thing", "plain(", None),
        ("ReferenceError", "nobody is not defined", "plain(", Missing(name="nobody", first_party=False)),
        ("RangeError", "plain is not a function", "plain(", None),
        (
            "SyntaxError",
            "The requested module '../src/greet.js' does not provide an export named 'bye'",
            "import plain",
            Missing(name="bye", owner="src/greet"),
        ),
        (
            "SyntaxError",
            "Named export 'x' not found. The requested module 'other' is a CommonJS module, which may not",
            "import plain",
            Missing(name="x", owner="other", first_party=False),
        ),
        (
            "Error",
            f"Cannot find module '/root/src/bye.js' {FROM}",
            "import plain",
            Missing(name="src/bye"),
        ),
        (
            "Error",
            "Cannot find module '../src/bye'\nRequire stack:\n- /root/test/a.test.js",
            "p",
            Missing(name="src/bye"),
        ),
        ("Error", "Cannot find module '../src/bye' from 'test/a.test.js'", "plain(", Missing(name="src/bye")),
        (
            "Error",
            "Cannot find package 'lodash' {FROM}",
            "p",
            Missing(name="lodash", first_party=False),
        ),
        ("Error", f"Cannot find package '@it/own' {FROM}", "p", Missing(name="@it/own")),
        (
            "Error",
            'Failed to resolve import "./bye" from "test/a.test.js". Does the file exist?',
            "p",
            Missing(name="test/bye"),
        ),
        (
            "Error",
            "Failed to load url ../src/bye (resolved id: ../src/bye) in /root/test/a.test.js. Does",
            "p",
            Missing(name="src/bye"),
        ),
        ("Error", f"Cannot find module '/src/bye' {FROM}", "p", Missing(name="src/bye")),
        ("Error", f"Cannot find module '@/bye' {FROM}", "p", Missing(name="@/bye")),
        ("Error", "Cannot find module 'node:nothing'", "plain(", Missing(name="node:nothing", first_party=False)),
    ],
)
def test_what_is_missing(sources: Sources, kind: str, message: str, at: str, found: Missing | None) -> None:
    thrown = Thrown(kind=kind, message=message)
    assert node_faults.missing_of(thrown, sources, "test/a.test.js", line_of(at), "/root") == found


@given(st.text(max_size=200), st.sampled_from(["TypeError", "Error", "SyntaxError", "ReferenceError"]))
def test_no_message_trips_the_reader(message: str, kind: str) -> None:
    known = Sources(frozenset(FILES), {"test/a.test.js": TEST.encode()})
    thrown = Thrown(kind=kind, message=message, stack=message)
    node_faults.of_thrown(thrown, known, "/root", test="test/a.test.js", loading=True)


STACK = """TypeError: no
    at greet (file:///root/src/gr%20eet.js:3:9)
    at async Promise.all (index 0)
    at new Greeter (/root/src/greet.ts:1:7)
    at async TestContext.<anonymous> (/root/test/a.test.js:8:3)
    at /root/test/a.test.js:7:1
    at Object.<anonymous> (/root/node_modules/@scope/pack/index.js:1:1)
    at Module._compile (node:internal/modules/cjs/loader:1469:14)
    at eval (eval at <anonymous> (/root/x.js:1:1), <anonymous>:1:1)"""


def test_a_stack_is_read_from_the_inside() -> None:
    found = [(site.path, site.module, site.line, site.function) for site in node_faults.sites_of(STACK, "/root")]
    assert found[:6] == [
        ("src/gr eet.js", "", 3, "greet"),
        ("src/greet.ts", "", 1, "new Greeter"),
        ("test/a.test.js", "", 8, "TestContext.<anonymous>"),
        ("test/a.test.js", "", 7, ""),
        ("", "@scope/pack", 1, "Object.<anonymous>"),
        ("", "?", 1469, "Module._compile"),
    ]


def test_imports_and_what_they_stand_for(sources: Sources) -> None:
    assert sources.bindings("test/a.test.js") == {
        "plain": Binding("../src/greet.js", "default"),
        "leave": Binding("../src/greet.js", "bye"),
        "Greeter": Binding("../src/greet.js", "Greeter"),
        "all": Binding("../src/greet.js", "*"),
        "other": Binding("other", "default"),
        "hush": Binding("../src/deep", "hush"),
        "own": Binding("@it/own", "*"),
    }


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        ("assert.ok(false);", True), ("assert(0);", True), ("assert.fail('x');", True),
        ("expect(true).toBe(false);", True),
        ("expect.fail();", True), ("throw new Error('x');", True), ("t.assert.equal(1, 2);", True), ("fail();", True),
        ("expect(1).toEqual({ a: [1] });", True), ("assert.equal(x, 1);", False), ("expect(f()).toBe(1);", False),
        ("throw new Error(x);", False), ("assert.equal(greet(), 1);", False), ("greet();", False), ("t.done();", True),
    ],
)  # fmt: skip
def test_lines_that_only_state_failure(tmp_path: Path, line: str, *, bare: bool) -> None:
    known = Sources.read(write(tmp_path, {"a.js": f"test('a', (t) => {{\n  {line}\n}});\n"}))
    assert known.is_bare("a.js", 2, 4) is bare


def test_places_in_a_file_that_begins_with_blank_lines(tmp_path: Path) -> None:
    text = "\n\n\n  test('a', (t) => {\n    assert(0); f();\n  });\n"
    (tmp_path / "a.js").write_text(text, encoding="utf-8")
    known = Sources.read(tmp_path)
    assert known.is_bare("a.js", 5, 5)
    assert not known.is_bare("a.js", 5, 16)
    region = known.region_of("a.js", 4, 3)
    assert region is not None
    assert region.function == "a.js::a"
    assert known.region_of("a.js", 6, 3) == region


def test_regions_of_tests_behind_wrappers_and_in_typescript(tmp_path: Path) -> None:
    text = (
        "const each = (name: string, body: () => void) => test(name, body);\n"
        "describe('suite “quoted”', function () {\n  each('by a wrapper', () => {});\n"
        "  it.skip.each<number>([1])(`of %i`, (a) => {});\n});\nconst nothing = 1;\n"
    )
    known = Sources.read(write(tmp_path, {"a.test.ts": text}))
    wrapped, table = known.region_of("a.test.ts", 3, 3), known.region_of("a.test.ts", 4, 11)
    assert wrapped is not None
    assert wrapped.function == "a.test.ts::suite “quoted” > by a wrapper"
    assert table is not None
    assert table.function == "a.test.ts::suite “quoted” > of %i"
    assert known.region_of("a.test.ts", 6, 1) is None
    assert known.region_of("a.test.ts", 99, 1) is None
    assert known.region_of("gone.ts", 1, 1) is None


def test_a_script_goes_by_its_path_without_the_ending() -> None:
    assert is_module("src/bye.ts", "src/bye")
    assert is_part_of("web/src/bye/index.js", "src/bye")
    assert not is_module("src/goodbye.js", "bye")
    assert not is_module("src/bye.js", "")


# --- records that are not ours
