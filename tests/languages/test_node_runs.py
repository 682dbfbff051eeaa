"""Chosen tests, limits, boxes, packages of a workspace, TypeScript, and a task from RED to GREEN with real runners."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from js_runners import installed_set, search_path
from languages.direct import files_of, write
from languages.measured import ends
from languages.nodes import JEST, NODE, VITEST, check_types, find, manifest, measure

from pipeline.judge.evidence.observation import Ended, Observation, RunState
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.testing.languages.protocol import Environment, Selection

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.process import Box

pytestmark = pytest.mark.slow

GREET = "exports.greet = function greet(name) {\n  return `Hello, ${name}!`;\n};\n"
HEAD = "const test = require('node:test');\nconst assert = require('node:assert');\n"


TWO = {
    "node": (NODE, HEAD),
    "vitest": (VITEST, "import { test } from 'vitest';\nimport assert from 'node:assert';\n"),
    "jest": (JEST, "const assert = require('node:assert');\n"),
}


@pytest.mark.parametrize("name", TWO)
@pytest.mark.broad
def test_only_chosen_tests_run_and_all_are_listed(tmp_path: Path, name: str) -> None:
    package, head = TWO[name]
    body = "test('one', () => {});\ntest('two', () => { assert.ok(0); });\n"
    write(tmp_path, {"package.json": package, "a.test.js": head + body, "b.test.js": head + body})
    listed = measure(tmp_path, name, Selection.nothing())
    every = [f"{file}.test.js::{test}" for file in "ab" for test in ("one", "two")]
    assert {entry: record.outcome for entry, record in listed.records.items()} == dict.fromkeys(every)
    assert listed.state is RunState.COMPLETE, listed.detail
    by_file = measure(tmp_path, name, Selection(files=frozenset({"b.test.js"})))
    assert sorted(r.id for r in by_file.records.values() if r.ran) == ["b.test.js::one", "b.test.js::two"]
    by_id = measure(tmp_path, name, Selection(ids=frozenset({"a.test.js::one", "a.test.js::gone"})))
    assert {entry: record.outcome for entry, record in by_id.records.items() if record.ran} == {
        "a.test.js::one": Ended.PASSED
    }
    assert set(by_id.records) == set(every)
    whole = measure(tmp_path, name)
    assert {entry: record.region_sha256 for entry, record in whole.records.items()} == {
        entry: record.region_sha256 for entry, record in listed.records.items()
    }


def test_listing_runs_nothing_of_the_tests_and_their_hooks(tmp_path: Path) -> None:
    body = (
        "const { before, describe, it } = test;\n"
        "const leave = (name) => require('node:fs').writeFileSync(name, '');\n"
        "describe('suite', () => { before(() => leave('hook')); it('inside', () => leave('test')); });\n"
        "test('plain', () => leave('plain'));\n"
    )
    write(tmp_path, {"package.json": NODE, "a.test.js": HEAD + body})
    listed = measure(tmp_path, selection=Selection.nothing())
    assert ends(listed) == {"suite > inside": None, "plain": None}
    assert sorted(files_of(tmp_path)) == ["a.test.js", "package.json"]


@pytest.mark.broad
def test_all_that_node_s_own_runner_has(tmp_path: Path) -> None:
    body = """
    const { describe, it, suite } = test;
    test('calls back', (t, done) => { setTimeout(done, 1); });
    test('calls back with an error', (t, done) => { setTimeout(() => done(new RangeError('x')), 1); });
    test('has parts', async (t) => {
      await t.test('good', () => {});
      await t.test('bad', () => { assert.equal(1, 2); });
    });
    test('is done later', { todo: true }, () => { assert.ok(0); });
    test('is done already', { todo: 'soon' }, () => {});
    test.todo('is to be written');
    test('is skipped while running', (t) => { t.skip('no'); });
    test('has a limit', { timeout: 20 }, () => new Promise((r) => setTimeout(r, 200)));
    test('plans', (t) => { t.plan(2); t.assert.ok(1); });
    describe.skip('left out', () => { it('is not there', () => {}); });
    suite('async', async () => { await null; it('comes late', () => {}); });
    test(function named() {});
    test({ name: 'by options' }, () => {});
    """
    write(tmp_path, {"package.json": NODE, "a.test.js": HEAD + body})
    observation = measure(tmp_path)
    assert ends(observation) == {
        "calls back": Ended.PASSED,
        "calls back with an error": Ended.FAILED,
        "has parts": Ended.FAILED,
        "is done later": Ended.XFAILED,
        "is done already": Ended.XPASSED,
        "is to be written": Ended.SKIPPED,
        "is skipped while running": Ended.SKIPPED,
        "has a limit": Ended.TIMED_OUT,
        "plans": Ended.FAILED,
        "left out": Ended.SKIPPED,
        "async > comes late": Ended.PASSED,
        "named": Ended.PASSED,
        "<anonymous>": Ended.PASSED,
    }
    parts = observation.records["a.test.js::has parts"].fault
    assert parts is not None
    assert parts.raised.is_a("AssertionError")


@pytest.mark.broad
@pytest.mark.parametrize("name", ["vitest", "jest"])
def test_tables_of_parameters_share_a_function(tmp_path: Path, name: str) -> None:
    package, _ = TWO[name]
    head = "import { describe, expect, it } from 'vitest';\n" if name == "vitest" else ""
    fails = "fails" if name == "vitest" else "failing"
    body = f"""
    describe.each(['x', 'y'])('of %s', (letter) => {{
      it.each([[1, 2], [2, 4]])('doubles %i', (a, b) => {{ expect(2 * a).toBe(b); }});
      it.each`
        a    | b
        ${{1}} | ${{3}}
      `('of a template $a', ({{ a }}) => {{ expect(a).toBe(2); }});
      it(`in ${{letter}}`, () => {{}});
    }});
    it.skip('left out', () => {{}});
    it.todo('later');
    it.{fails}('is known to fail', () => {{ expect(1).toBe(2); }});
    it.{fails}('fails no more', () => {{}});
    """
    write(tmp_path, {"package.json": package, "a.test.js": head + body})
    observation = measure(tmp_path, name)
    assert ends(observation) == {
        **{
            f"of {letter} > {test}": end
            for letter in "xy"
            for test, end in (
                ("doubles 1", Ended.PASSED),
                ("doubles 2", Ended.PASSED),
                ("of a template 1", Ended.FAILED),
                (f"in {letter}", Ended.PASSED),
            )
        },
        "left out": Ended.SKIPPED,
        "later": Ended.SKIPPED,
        "is known to fail": Ended.XFAILED,
        "fails no more": Ended.STRICT_XPASS,
    }
    functions = {record.function.removeprefix("a.test.js::") for record in observation.records.values()}
    assert functions >= {"of %s > doubles %i", "of %s > of a template $a", "of %s > in ${letter}"}
    assert len(functions) == 7


def test_what_belongs_to_a_test(tmp_path: Path) -> None:
    text = (
        "const { describe, it, beforeEach } = test;\nlet it_;\n"
        "describe('suite', () => {\n  beforeEach(() => { it_ = 1; });\n"
        "  it('one', () => {});\n  it('two', () => {});\n});\n"
        "for (const [a, b] of [[1, 2]]) {\n  test(`of ${a}`, () => { assert.equal(a, b); });\n}\n"
        "test('alone', () => {});\n"
    )

    def regions(source: str) -> dict[str, str]:
        write(tmp_path, {"package.json": NODE, "a.test.js": HEAD + source})
        seen = measure(tmp_path, selection=Selection.nothing())
        return {entry.rpartition("::")[2]: record.region_sha256 for entry, record in seen.records.items()}

    before = regions(text)

    def changed(old: str, new: str) -> set[str]:
        after = regions(text.replace(old, new))
        return {name for name in before if after[name] != before[name]}

    assert changed("it('one', () => {})", "it('one', () => { })") == {"suite > one"}
    assert changed("it_ = 1", "it_ = 2") == {"suite > one", "suite > two"}
    assert changed("[[1, 2]]", "[[1, 1]]") == {"of 1"}
    assert changed("let it_;", "let it_; // it") == set()
    assert changed("test('alone'", "\n\ntest('alone'") == set()


@pytest.mark.parametrize("name", TWO)
@pytest.mark.broad
def test_the_time_for_all_tests_ends_the_run_and_says_so(tmp_path: Path, name: str) -> None:
    package, head = TWO[name]
    write(tmp_path, {"package.json": package, "a.test.js": f"{head}test('spins', () => {{ for (;;); }});\n"})
    seen = measure(tmp_path, name, timeout_s=12)
    assert seen.state is RunState.TIMED_OUT
    assert ends(seen).get("spins", Ended.TIMED_OUT) is Ended.TIMED_OUT


@pytest.mark.broad
@pytest.mark.parametrize(
    ("package", "name", "files"),
    [
        (VITEST, "vitest", {"vitest.config.mjs": "throw new Error('no configuration');\n"}),
        (JEST, "jest", {"jest.config.js": "throw new Error('no configuration');\n"}),
    ],
)
def test_a_runner_that_does_not_start_says_why(tmp_path: Path, package: str, name: str, files: dict[str, str]) -> None:
    seen = measure(write(tmp_path, {"package.json": package, "a.test.js": "", **files}), name)
    assert seen.state is RunState.UNUSABLE
    assert "no configuration" in (seen.environment_problem or "")


def test_a_manifest_that_cannot_be_read_makes_the_measurement_unusable(tmp_path: Path) -> None:
    env = find(write(tmp_path / "fine", {"package.json": NODE}), path=search_path("node"))
    assert isinstance(env, Environment)
    seen = measure(write(tmp_path / "broken", {"package.json": "{"}), env=env)
    assert seen.state is RunState.UNUSABLE
    assert "package.json" in seen.detail


# --- boxes and packages


SPOILS = """
import fs from 'node:fs';
import path from 'node:path';
test('cannot change what is installed', () => {
  const place = fs.realpathSync(path.join(process.cwd(), 'node_modules', 'vitest'));
  assert.throws(() => fs.writeFileSync(path.join(place, 'package.json'), '{}'));
});
"""


@pytest.mark.broad
def test_a_measurement_in_the_box_equals_one_outside(tmp_path: Path, box: Box) -> None:
    head = TWO["vitest"][1]
    body = "import { greet } from './greet';\ntest('fails', () => { assert.equal(greet('a'), 'b'); });\n"
    files = {
        "package.json": VITEST,
        "vitest.config.ts": "export default { test: { include: ['*.test.ts'] } };\n",
        "greet.ts": "export function greet(name: string): string {\n  return name;\n}\n",
        "a.test.ts": head
        + body
        + "test('exits', () => { process.exit(0); });\ntest('dies', () => { process.abort(); });\n",
    }
    write(tmp_path, files)
    inside, outside = (measure(tmp_path, "vitest", trace=True, box=one, per_test_timeout_s=20) for one in (box, None))
    assert inside.state is RunState.COMPLETE, (inside.detail, inside.tail)
    assert ends(inside) == {"fails": Ended.FAILED, "exits": Ended.CRASHED, "dies": Ended.CRASHED}
    assert [record.model_copy(update={"reason": ""}) for record in inside.records.values()] == [
        record.model_copy(update={"reason": ""}) for record in outside.records.values()
    ]
    assert (inside.files, inside.layout) == (outside.files, outside.layout)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(files)


@pytest.mark.broad
def test_what_is_installed_cannot_be_changed_by_tests(tmp_path: Path, box: Box) -> None:
    before = sorted(entry.name for entry in (installed_set("vitest") / "node_modules").iterdir())
    write(
        tmp_path,
        {"package.json": VITEST, "a.test.js": TWO["vitest"][1] + SPOILS, "vitest.config.ts": "export default {};\n"},
    )
    assert ends(measure(tmp_path, "vitest", box=box)) == {"cannot change what is installed": Ended.PASSED}
    assert sorted(entry.name for entry in (installed_set("vitest") / "node_modules").iterdir()) == before


WORKSPACE = {
    "package.json": manifest(workspaces=["packages/*"], scripts={"test": "node --test"}),
    "packages/core/package.json": json.dumps({"name": "@greet/core", "main": "index.js"}),
    "packages/core/index.js": "exports.answer = () => 41;\n",
    "packages/app/package.json": json.dumps({"name": "app", "dependencies": {"@greet/core": "*", "other": "*"}}),
    "packages/app/app.test.js": f"{HEAD}const {{ answer }} = require('@greet/core');\nconst other = require('other');\n"
    "test('sums', () => { assert.equal(answer() + other, 43); });\n",
}


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("boxed", [True, False])
def test_packages_of_a_workspace_are_those_of_the_view(tmp_path: Path, boxed: bool) -> None:
    checkout = write(tmp_path / "checkout", WORKSPACE)
    write(
        checkout / "node_modules" / "other", {"package.json": '{"name": "other"}', "index.js": "module.exports = 1;\n"}
    )
    for name, target in (("@greet/core", "../../packages/core"), ("app", "../packages/app")):
        place = checkout / "node_modules" / name
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(target)
    env = find(checkout, path=search_path("node"))
    assert isinstance(env, Environment), env
    view = write(tmp_path / "view", {**WORKSPACE, "packages/core/index.js": "exports.answer = () => 42;\n"})
    bubblewrap = Bubblewrap(shutil.which("bwrap") or "bwrap")
    if boxed and not anyio.run(bubblewrap.canary).ok:
        pytest.skip("this machine has no working bubblewrap")
    seen = measure(view, env=env, box=bubblewrap if boxed else None)
    assert ends(seen) == {"sums": Ended.PASSED}, seen.tail
    assert files_of(view) == WORKSPACE.keys()
    assert not (view / "node_modules").exists()


# --- TypeScript

TYPED = """interface Person {
  name: string;
}


export function greet(person: Person): string {
  type Unused = string;


  throw new RangeError(`no ${person.name as Unused}`);
}
"""
TYPED_TEST = """interface Unused {
  name: string;
}

test('greets', () => {
  const person: Unused = { name: 'Ada' };
  assert.equal(greet(person), 'Hello');
});
"""
LANES = {
    "node": (
        manifest(scripts={"test": "node --import tsx --test 'test/**/*.test.ts'"}, devDependencies={"tsx": "*"}),
        "import test from 'node:test';\nimport assert from 'node:assert';\n",
    ),
    "vitest": (VITEST, "import { test, assert } from 'vitest';\n"),
    "jest": (
        manifest(scripts={"test": "jest"}, devDependencies={"jest": "*"}, jest={"preset": "ts-jest"}),
        "import assert from 'node:assert';\n",
    ),
    "newest": (
        manifest(scripts={"test": "node --test"}),
        "import test from 'node:test';\nimport assert from 'node:assert';\n",
    ),
}


@pytest.mark.broad
@pytest.mark.parametrize("name", LANES)
def test_places_in_typescript_are_those_of_the_source(tmp_path: Path, name: str) -> None:
    package, head = LANES[name]
    ending = ".ts" if name == "newest" else ""
    source = f"{head}import {{ greet }} from '../src/greet{ending}';\n\n{TYPED_TEST}"
    config = {
        "compilerOptions": {"esModuleInterop": True, "module": "commonjs", "target": "es2022", "isolatedModules": True}
    }
    files = {
        "package.json": package,
        "src/greet.ts": TYPED,
        "test/greet.test.ts": source,
        "tsconfig.json": json.dumps(config),
    }
    seen = measure(write(tmp_path, files), name, trace=True)
    record = seen.records["test/greet.test.ts::greets"]
    assert record.outcome is Ended.FAILED, seen.tail
    assert record.fault is not None
    own = [(frame.path, frame.line, frame.function) for frame in record.fault.frames if frame.path]
    line = source.splitlines().index("  assert.equal(greet(person), 'Hello');") + 1
    assert own == [("test/greet.test.ts", line, "<module>"), ("src/greet.ts", 10, "greet")]
    assert record.region_sha256 != seen.files["test/greet.test.ts"]
    assert record.reach is not None
    assert record.reach.functions == ("src/greet.ts::greet",)


# --- types and syntax; nothing is run


CONFIG = json.dumps(
    {"compilerOptions": {"strict": True, "module": "nodenext", "target": "es2022", "skipLibCheck": True}}
)


def wrong(seen: Observation) -> dict[str, str]:
    assert seen.state is RunState.COMPLETE, seen.detail
    return {error.path: error.fault.raised.kind for error in seen.collection_errors}


@pytest.mark.broad
def test_typescript_is_compiled_with_its_tests(tmp_path: Path) -> None:
    files = {
        "package.json": VITEST,
        "tsconfig.json": CONFIG,
        "src/greet.ts": "export function greet(name: string): string {\n  throw new Error('not implemented');\n}\n",
        "src/wrong.ts": "export const n: number = 'a';\n",
        "test/bye.test.ts": "import { bye } from '../src/greet.js';\nbye();\n",
        "test/module.test.ts": "import { x } from '../src/nowhere.js';\nx();\n",
        "test/method.test.ts": "class A {}\nnew A().polite();\n",
        "test/free.test.ts": "nobody();\n",
        "node_modules_not/x.ts": "export {};\n",
        "tools/broken.js": "const = 1;\n",
        "tools/fine.mjs": "export const x = await import('y');\n",
    }
    seen = check_types(write(tmp_path, files), "vitest")
    assert wrong(seen) == {
        "src/wrong.ts": "TS2322",
        "test/bye.test.ts": "TS2305",
        "test/module.test.ts": "TS2307",
        "test/method.test.ts": "TS2339",
        "test/free.test.ts": "TS2304",
        "tools/broken.js": "SyntaxError",
    }
    missing = {error.path: error.fault.missing for error in seen.collection_errors}
    told = {path: (one.name, one.owner, one.first_party) for path, one in missing.items() if one is not None}
    assert told == {
        "test/bye.test.ts": ("bye", "src/greet", True),
        "test/module.test.ts": ("src/nowhere", "", True),
        "test/method.test.ts": ("polite", "A", True),
        "test/free.test.ts": ("nobody", "", False),
    }
    by_path = {error.path: error.fault for error in seen.collection_errors}
    assert by_path["test/module.test.ts"].raised.is_a("ImportError")
    assert (by_path["test/method.test.ts"].frames[0].line, seen.command) == (2, ("npx", "tsc", "--noEmit"))


@pytest.mark.broad
def test_what_the_compiler_cannot_parse(tmp_path: Path) -> None:
    files = {"package.json": VITEST, "tsconfig.json": CONFIG, "src/a.ts": "const = 1;\n"}
    seen = check_types(write(tmp_path, files), "vitest")
    assert wrong(seen) == {"src/a.ts": "TS1134"}
    assert seen.collection_errors[0].fault.raised.is_a("SyntaxError")


def test_javascript_is_parsed_as_node_reads_it(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    files = {
        "package.json": manifest(),
        "common.js": f"require('node:fs').writeFileSync({json.dumps(str(ran))}, '');\nreturn;\n",
        "module.mjs": "export const x = await 1;\n",
        "either.js": "import './common.js';\n",
        "strict.cjs": "import './common.js';\n",
        "broken.mjs": "export const = 1;\n",
        "script": "#!/usr/bin/env node\n",
        "start.js": "#!/usr/bin/env node\nconsole.log(1);\n",
        "markup.jsx": "export const a = <b>c</b>;\n",
        "torn.jsx": "export const a = <b>c;\n",
        "package/package.json": '{"type": "module"}',
    }
    seen = check_types(write(tmp_path, files))
    assert wrong(seen) == dict.fromkeys(("broken.mjs", "strict.cjs", "torn.jsx"), "SyntaxError")
    assert seen.collection_errors[0].fault.frames[-1].path == "broken.mjs"
    assert not ran.exists()
