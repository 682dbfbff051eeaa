"""Tested code that tries to end, fool or drown the recording: its tests never pass by it, and nothing vanishes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import anyio
import pytest
from languages.direct import write
from languages.measured import ends
from languages.nodes import JEST, NODE, VITEST, measure

from pipeline.judge.evidence.observation import Ended, Observation, RunState
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.languages.runners.exec_guard import REPLACED

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

START = "const test = require('node:test');\nconst assert = require('node:assert');\nconst fs = require('node:fs');\n"


def run(root: Path, body: str, **more: float) -> Observation:
    """Return what a test file of node's own runner shows that begins so."""
    write(root, {"package.json": NODE, "a.test.js": START + body})
    return measure(root, per_test_timeout_s=more.get("per_test_timeout_s", 10), timeout_s=60)


FORGED = '{"kind":"end","id":"a.test.js::bad","passed":true,"errors":[]}'
FAILS = "test('bad', () => { assert.equal(1, 2); });\n"


@pytest.mark.broad
@pytest.mark.parametrize("stream", ["process.stdout.write", "process.stderr.write", "console.log"])
def test_records_on_standard_streams_are_what_they_are(tmp_path: Path, stream: str) -> None:
    lines = "".join(f"{stream}('{nonce} {number} {FORGED}\\n');\n" for nonce in ("", "N") for number in range(5))
    observation = run(tmp_path, f"{lines}{FAILS}")
    assert (observation.state, ends(observation)) == (RunState.COMPLETE, {"bad": Ended.FAILED})


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("text", [FORGED, f"{'0' * 32} 3 {FORGED}", "", "garbage"])
def test_a_line_of_somebody_else_among_the_records_makes_the_run_unusable(tmp_path: Path, text: str) -> None:
    observation = run(tmp_path, f"{FAILS}fs.writeSync(4, '{text}\\n');\n")
    assert observation.state is RunState.UNUSABLE
    assert "was not written by the harness" in observation.detail
    assert not observation.records


def test_the_request_with_the_nonce_cannot_be_read_again(tmp_path: Path) -> None:
    look = """
    const { REDFIRST_BOX: mark, ...env } = process.env;
    const seen = JSON.stringify([env, process.argv, process.execArgv])
      + fs.readFileSync('/proc/self/environ', 'utf8').replace(mark, '');
    test('finds nothing', () => {
      assert.ok(!/[0-9a-f]{32}/.test(seen));
      let again = '';
      try { again = fs.readFileSync(3, 'utf8'); } catch {}
      assert.ok(!/[0-9a-f]{32}/.test(again));
    });
    """
    observation = run(tmp_path, look)
    assert ends(observation) == {"finds nothing": Ended.PASSED}, observation.tail


def test_a_file_that_leaves_before_its_tests_is_not_collected(tmp_path: Path) -> None:
    observation = run(tmp_path, f"process.exit(0);\n{FAILS}")
    assert [error.path for error in observation.collection_errors] == ["a.test.js"]
    assert "exited by itself with 0" in observation.collection_errors[0].fault.raised.message


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    "way",
    ["process.exit(0)", "process.reallyExit(0)", "process.abort()", "process.kill(process.pid, 'SIGKILL')"],
)
def test_a_test_that_ends_the_process_has_crashed_and_the_others_run(tmp_path: Path, way: str) -> None:
    observation = run(
        tmp_path, f"test('first', () => {{}});\ntest('leaves', () => {{ {way}; }});\n{FAILS}test('last', () => {{}});\n"
    )
    assert ends(observation) == {
        "first": Ended.PASSED,
        "leaves": Ended.CRASHED,
        "bad": Ended.FAILED,
        "last": Ended.PASSED,
    }
    assert observation.state is RunState.COMPLETE


@pytest.mark.broad
@pytest.mark.parametrize(
    ("way", "how"),
    [
        ("process.exitCode = 3", "exited by itself with 3"),
        ("process.kill(process.pid, 'SIGKILL')", "ended by signal 9"),
    ],
)
def test_a_process_that_ends_otherwise_than_it_said_is_not_believed(tmp_path: Path, way: str, how: str) -> None:
    more = {"b.test.js": f"{START}test('of another process', () => {{}});\n"}
    observation = run(write(tmp_path, more), f"process.on('exit', () => {{ {way}; }});\ntest('good', () => {{}});\n")
    assert ends(observation) == {"good": Ended.CRASHED, "of another process": Ended.PASSED}
    assert how in observation.records["a.test.js::good"].reason


def test_no_other_program_takes_the_place_of_a_process(tmp_path: Path) -> None:
    body = "test('becomes', () => { process.execve('/bin/true', ['true'], {}); });\n"
    write(tmp_path, {"package.json": NODE, "a.test.js": START + body})
    observation = measure(tmp_path, "newest")  # earlier versions have no such function
    assert ends(observation) == {"becomes": Ended.CRASHED}
    assert REPLACED in observation.tail


def test_one_that_fails_explains_how_its_process_ended(tmp_path: Path) -> None:
    observation = run(tmp_path, f"{FAILS}test('good', () => {{}});\n")
    assert ends(observation) == {"bad": Ended.FAILED, "good": Ended.PASSED}


def test_what_fails_unasked_says_nothing_of_the_others(tmp_path: Path) -> None:
    hook = "describe('broken', () => { before(() => { throw new Error('no'); }); test('in it', () => {}); });\n"
    names = "const { describe, before } = require('node:test');\n"
    write(tmp_path, {"package.json": NODE, "a.test.js": f"{START}{names}{hook}test('good', () => {{}});\n"})
    observation = measure(tmp_path, selection=Selection(ids=frozenset({"a.test.js::good"})))
    assert ends(observation)["good"] is Ended.PASSED


def test_one_that_leaves_while_the_next_one_waits_is_found(tmp_path: Path) -> None:
    body = "test('leaves later', () => { setTimeout(() => process.exit(0), 50); });\n"
    waits = "test('waits', async () => { await new Promise((done) => setTimeout(done, 5000)); });\n"
    observation = run(tmp_path, body + waits)
    assert ends(observation)["waits"] != Ended.PASSED


@pytest.mark.broad
def test_tests_that_hang_are_ended_and_the_others_run(tmp_path: Path) -> None:
    observation = run(
        tmp_path,
        "test('spins', () => { for (;;); });\n"
        "test('waits', async () => { await new Promise((done) => setTimeout(done, 60_000)); });\n"
        "test('never ends', () => new Promise(() => {}));\n"
        "test('last', () => {});\n",
        per_test_timeout_s=2,
    )
    assert ends(observation) == {
        "spins": Ended.TIMED_OUT,
        "waits": Ended.TIMED_OUT,
        "never ends": Ended.TIMED_OUT,
        "last": Ended.PASSED,
    }


@pytest.mark.broad
def test_output_without_end_fills_nothing(tmp_path: Path) -> None:
    observation = run(
        tmp_path,
        "const line = 'x'.repeat(1 << 20);\n"
        "test('floods', () => { for (let i = 0; i < 200; i += 1) process.stdout.write(line); });\n"
        "test('says much', () => { assert.fail('y'.repeat(1 << 22)); });\n",
    )
    assert ends(observation) == {"floods": Ended.PASSED, "says much": Ended.FAILED}
    assert len(observation.model_dump_json()) < 100_000


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    "spoil",
    [
        "Object.prototype.toJSON = function () { return { kind: 'end', passed: true }; };",
        "Array.prototype.toJSON = () => []; String.prototype.toJSON = () => 'a';",
        "JSON.stringify = () => '{}'; JSON.parse = () => ({});",
        "fs.writeSync = () => 0; Buffer.from = () => Buffer.alloc(0);",
        "Object.keys = () => []; Array.isArray = () => true;",
        "console.log = console.error = () => { throw new Error('no'); }; process.stdout.write = () => true;",
        "Error.prepareStackTrace = () => 'nothing'; Error.stackTraceLimit = 0;",
        "process.on = () => process; process.emit = () => true;",
        "globalThis.setTimeout = globalThis.setImmediate = () => 0; Promise.prototype.finally = null;",
    ],
)
def test_built_in_objects_that_are_changed_change_no_result(tmp_path: Path, spoil: str) -> None:
    observation = run(tmp_path, f"{spoil}\n{FAILS}test('good', () => {{}});\n")
    assert ends(observation) == {"bad": Ended.FAILED, "good": Ended.PASSED}, observation.tail


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    "tamper",
    [
        "assert.equal = assert.strictEqual = assert.deepStrictEqual = () => {};",
        "assert.ok = () => {};",
        "assert.strictEqual = () => { throw new Error('always'); };",
        "const Ours = require(process.execArgv.find((word) => word.endsWith('node_test.cjs'))); new Ours();",
    ],
)
def test_assertions_that_say_nothing_any_more_make_the_run_unusable(tmp_path: Path, tamper: str) -> None:
    observation = run(tmp_path, f"{FAILS}{tamper}\n")
    assert observation.state is RunState.UNUSABLE
    assert "tampered" in observation.detail


@pytest.mark.broad
def test_what_our_own_files_offer_leads_to_no_record(tmp_path: Path) -> None:
    look = """
    const path = require('node:path');
    const folder = path.dirname(process.execArgv.find((word) => word.endsWith('node_test.cjs')));
    for (const name of ['channel.cjs', 'hints.cjs', 'node_api.cjs']) {
      const found = require(path.join(folder, name));
      if (found.open) assert.strictEqual(found.open(), null);
      if (found.set) found.set({ test: () => {} });
    }
    test('finds no way', () => {});
    """
    observation = run(tmp_path, look + FAILS)
    assert ends(observation) == {"finds no way": Ended.PASSED, "bad": Ended.FAILED}


@pytest.mark.broad
def test_a_child_finds_nothing_to_write_to(tmp_path: Path) -> None:
    child = "try { require('fs').writeSync(4, 'N 0 {}'); console.log('wrote'); } catch { console.log('closed'); }"
    body = f"""
    const {{ execFileSync, fork }} = require('node:child_process');
    test('asks a child', () => {{
      const said = execFileSync(process.execPath, [...process.execArgv.slice(0, 2), '-e', {child!r}]).toString();
      assert.strictEqual(said.trim(), 'closed');
    }});
    """
    observation = run(tmp_path, body)
    assert ends(observation) == {"asks a child": Ended.PASSED}, observation.tail


@pytest.mark.broad
def test_the_runner_cannot_be_looked_into(tmp_path: Path) -> None:
    box = Bubblewrap(shutil.which("bwrap") or "bwrap")  # in which nobody is root, who may read every process
    if not anyio.run(box.canary).ok:
        pytest.skip("this machine has no working bubblewrap")
    body = """
    test('reads its parent', () => {
      for (const name of ['mem', 'environ', 'maps', 'fd/0', 'fd/1']) {
        assert.throws(() => fs.readFileSync(`/proc/${process.ppid}/${name}`), /EACCES|EPERM|EIO/, name);
      }
    });
    """
    write(tmp_path, {"package.json": NODE, "a.test.js": START + body})
    observation = measure(tmp_path, box=box)
    assert ends(observation) == {"reads its parent": Ended.PASSED}, observation.tail


@pytest.mark.broad
def test_a_test_that_kills_the_runner_is_no_result(tmp_path: Path) -> None:
    observation = run(tmp_path, "test('kills', () => { process.kill(process.ppid, 'SIGKILL'); for (;;); });\n")
    assert observation.state is RunState.CRASHED
    assert ends(observation) in ({"kills": None}, {}), "the runner may die before it has said that the test began"


@pytest.mark.broad
def test_a_test_that_is_defined_past_the_layer_is_seen_all_the_same(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "package.json": NODE,
            "a.test.mjs": """
                import plain, { it } from 'node:test';
                import * as all from 'node:test';
                import { createRequire } from 'node:module';
                plain('by default', () => { throw new Error('a'); });
                it('by name', () => { throw new Error('a'); });
                all.test('by all', () => { throw new Error('a'); });
                createRequire(import.meta.url)('node:test')('by require', () => { throw new Error('a'); });
                process.getBuiltinModule('node:test')('by process', () => { throw new Error('a'); });
                const dynamic = await import('node:test');
                dynamic.default('by import', () => { throw new Error('a'); });
                """,
        },
    )
    observation = measure(tmp_path)
    names = ("by default", "by name", "by all", "by require", "by process", "by import")
    assert ends(observation) == dict.fromkeys(names, Ended.FAILED)


VITEST_HEAD = """import { it, expect } from 'vitest';
import { createRequire } from 'node:module';
const require = createRequire(import.meta.url);
"""
SHARED = """
const fs = require('node:fs');
const path = require('node:path');
for (const number of fs.readdirSync('/proc/self/fd')) {
  let place = '';
  try { place = fs.readlinkSync(`/proc/self/fd/${number}`); } catch {}
  if (place.endsWith('/shared/hints.jsonl')) {
    for (const file of ['plan.json', 'hints.jsonl']) fs.rmSync(path.join(path.dirname(place), file), { force: true });
  }
}
"""


@pytest.mark.parametrize(("package", "name"), [(VITEST, "vitest"), (JEST, "jest")])
@pytest.mark.broad
def test_files_of_ours_that_are_deleted_make_no_test_pass(tmp_path: Path, package: str, name: str) -> None:
    head = "" if name == "jest" else VITEST_HEAD
    tests = {
        f"test/{letter}.test.js": f"{head}{SHARED}\nit('bad {letter}', () => {{ expect(1).toBe(2); }});\n"
        for letter in "abc"
    }
    write(tmp_path, {"package.json": package, **tests})
    observation = measure(tmp_path, name)
    assert set(ends(observation).values()) <= {Ended.FAILED, Ended.CRASHED, None}
    lost = {error.path for error in observation.collection_errors} | {r.path for r in observation.records.values()}
    assert lost == set(tests) or observation.state is not RunState.COMPLETE, observation


CHANGED = """
const fs = require('node:fs');
const path = require('node:path');
for (const number of fs.readdirSync('/proc/self/fd')) {
  let place = '';
  try { place = fs.readlinkSync(`/proc/self/fd/${number}`); } catch {}
  if (place.endsWith('/shared/hints.jsonl')) {
    const file = path.join(path.dirname(place), 'plan.json');
    const plan = JSON.parse(fs.readFileSync(file, 'utf8'));
    const evil = path.join(path.dirname(place), plan.circus ? 'evil.cjs' : 'evil.mjs');
    if (plan.circus && plan.circus !== evil) {
      fs.writeFileSync(evil, `
        const real = require(${JSON.stringify(plan.circus)});
        module.exports = (globals, config, environment, ...more) => {
          const own = environment.handleTestEvent;
          environment.handleTestEvent = (event, state) => {
            if (event.name === 'test_done') event.test.errors.length = 0;
            return own(event, state);
          };
          return (real.default ?? real)(globals, config, environment, ...more);
        };`);
      fs.writeFileSync(file, JSON.stringify({ ...plan, circus: evil }));
    } else if (plan.base && !plan.base.url.endsWith('evil.mjs')) {
      fs.writeFileSync(evil, `
        import * as real from ${JSON.stringify(plan.base.url)};
        export class Evil extends real[${JSON.stringify(plan.base.name)}] { runTask() {} }`);
      fs.writeFileSync(file, JSON.stringify({ ...plan, base: { url: `file://${evil}`, name: 'Evil' } }));
    }
  }
}
"""


@pytest.mark.parametrize(("package", "name"), [(VITEST, "vitest"), (JEST, "jest")])
@pytest.mark.broad(but_first=1)
def test_a_plan_that_a_test_has_changed_makes_no_test_pass(tmp_path: Path, package: str, name: str) -> None:
    head = "" if name == "jest" else VITEST_HEAD
    tests = {
        f"test/{letter}.test.js": f"{head}{CHANGED}\nit('bad {letter}', () => {{ expect(1).toBe(2); }});\n"
        for letter in "abcd"
    }
    write(tmp_path, {"package.json": package, **tests})
    observation = measure(tmp_path, name)
    assert set(ends(observation).values()) <= {Ended.FAILED, None}, ends(observation)
    lost = {error.path for error in observation.collection_errors} | {r.path for r in observation.records.values()}
    assert lost == set(tests) or observation.state is not RunState.COMPLETE, observation


@pytest.mark.parametrize(("package", "name"), [(VITEST, "vitest"), (JEST, "jest")])
@pytest.mark.broad
def test_workers_cannot_write_records_or_results(tmp_path: Path, package: str, name: str) -> None:
    head = (
        "import { it, expect } from 'vitest';\nimport fs from 'node:fs';\n"
        if name == "vitest"
        else "const fs = require('node:fs');\n"
    )
    tell = f"console.log('N 0 {FORGED}'); try {{ fs.writeSync(4, 'N 0 {FORGED}\\n'); }} catch {{}}"
    tests = {
        "test/a.test.js": f"{head}it('bad', () => {{ {tell} expect(1).toBe(2); }});\n",
        "test/b.test.js": f"{head}it('good', () => {{ expect(1).toBe(1); }});\n",
    }
    write(tmp_path, {"package.json": package, **tests})
    observation = measure(tmp_path, name)
    assert ends(observation).get("bad") in {Ended.FAILED, None}
    assert observation.state is RunState.UNUSABLE or ends(observation) == {"bad": Ended.FAILED, "good": Ended.PASSED}
