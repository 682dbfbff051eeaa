"""What one run shows: every way in which a JavaScript test can end, with each runner, and what it is for the judges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from languages.direct import by_name, context_of, expected, files_of, judged, write
from languages.nodes import NODE, VITEST, manifest, measure

from pipeline.judge.evidence.classify import classify, classify_collection
from pipeline.judge.evidence.observation import Ended, Observation, RunState
from pipeline.judge.evidence.red_classes import Context, RedClass, Symbol

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

GREET = """
class NotFound extends Error {}

{export} function greet(name) {
  return `Hello, ${name}!`;
}
{export} function later() {
  throw new Error("not implemented");
}
{export} function lost() {
  throw new NotFound('gone');
}
{export} class Greeter {
  polite() {
    throw new Error('not implemented');
  }
}
"""

TESTS = """
import { assert, describe, it, before, beforeEach } from './runner.mjs';
import * as greet from '../src/greet.mjs';
import { execFileSync } from 'node:child_process';

it('passes', () => {
  assert.strictEqual(greet.greet('a'), 'Hello, a!');
});
it('asserts', () => {
  assert.strictEqual(greet.greet('a'), 'b');
});
it('asserts through a helper', () => {
  check('a');
});
it('compares deeply', () => {
  assert.deepStrictEqual({ said: greet.greet('a') }, { said: 'b' });
});
it('wants an error', () => {
  assert.throws(() => greet.greet('a'), RangeError);
});
it('reaches a stub', () => {
  assert.strictEqual(greet.later(), 3);
});
it('reaches a stub in a method', () => {
  assert.ok(new greet.Greeter().polite());
});
it('fails in production', () => {
  greet.lost();
});
it('calls what is missing', () => {
  assert.strictEqual(greet.bye('a'), 'Bye, a!');
});
it('calls a method that is missing', () => {
  assert.ok(new greet.Greeter().rude());
});
it('builds what is missing', () => {
  assert.ok(new greet.Farewell('a'));
});
it('loads a module that is missing', async () => {
  const { bye } = await import('../src/bye.mjs');
  assert.strictEqual(bye('a'), 'Bye, a!');
});
it('calls a method of a string', () => {
  assert.ok('a'.polite());
});
it('says nothing', () => {
  assert.ok(false);
});
it('gives up', () => {
  assert.fail('not yet');
});
it('says nothing after a look', () => {
  greet.greet('a');
  assert.ok(false);
});
it('looks at nothing of the project', () => {
  const two = 1 + 1;
  assert.strictEqual(two, 3);
});
it('uses a free name', () => {
  assert.ok(nobody());
});
it('is broken itself', () => {
  greet.greet('a').parts.first();
});
it('throws', () => {
  throw new RangeError('not yet');
});
it('rejects', async () => {
  await Promise.resolve();
  assert.strictEqual(greet.greet('b'), 'c');
});
it('runs a program', () => {
  const said = execFileSync(process.execPath, ['src/program.mjs']).toString();
  assert.strictEqual(said, 'bye');
});
it.skip('is skipped', () => {});
it('leaves early', () => {
  process.exit(0);
});
it('dies', () => {
  process.kill(process.pid, 'SIGKILL');
});
it('spins', () => {
  for (;;);
});
describe('a suite', () => {
  beforeEach(() => {});
  it('is inside', () => {
    assert.strictEqual(greet.greet('a'), 'Hello, a!');
  });
  describe('within', () => {
    it('is deep', () => {});
  });
});
describe('a suite that cannot begin', () => {
  before(() => {
    greet.lost();
  });
  it('is not run', () => {});
});
for (const name of ['x', 'y']) {
  it(`is made for ${name}`, () => {
    assert.strictEqual(greet.greet(name), 'Hello, x!');
  });
}
it('is twice', () => {});
it('is twice', () => {});

function check(name) {
  assert.ok(greet.greet(name).includes('Bye'));
}
"""

RUNNERS = {
    "node": "export { default as assert } from 'node:assert';\n"
    "export { describe, it, before, beforeEach } from 'node:test';\n",
    "vitest": "export { assert, describe, it, beforeAll as before, beforeEach } from 'vitest';\n",
    "jest": "export { default as assert } from 'node:assert';\n"
    "export const { describe, it, beforeAll: before, beforeEach } = globalThis;\n",
}
PROGRAM = "process.stdout.write('hello');\n"
EXPECTED = by_name(
    {
        (Ended.PASSED, RedClass.PASSED_UNMARKED): "passes",
        (Ended.FAILED, RedClass.ASSERTION_MISMATCH): (
            "asserts, asserts through a helper, compares deeply, wants an error, fails in production, "
            "says nothing after a look, rejects, runs a program, a suite that cannot begin > is not run"
        ),
        (Ended.FAILED, RedClass.MISSING_BEHAVIOR): (
            "reaches a stub, reaches a stub in a method, calls what is missing, "
            "calls a method that is missing, builds what is missing, loads a module that is missing"
        ),
        (Ended.FAILED, RedClass.TEST_BROKEN): "calls a method of a string, uses a free name, is broken itself, throws",
        (Ended.FAILED, RedClass.STRUCTURAL): "says nothing, gives up, looks at nothing of the project",
        (Ended.SKIPPED, RedClass.SKIPPED): "is skipped",
        (Ended.CRASHED, RedClass.CRASHED): "leaves early",
        (Ended.CRASHED, None): "dies",
        (Ended.TIMED_OUT, RedClass.TEST_TIMEOUT): "spins",
        (Ended.PASSED, None): "a suite > is inside, a suite > within > is deep, is made for x, is twice, is twice #2",
        (Ended.FAILED, None): "is made for y",
    }
)
"""How each test ends, and what a failure is for the judges."""
SYMBOLS = (
    Symbol("src/greet.mjs", "later"),
    Symbol("src/greet.mjs", "Greeter.polite"),
    Symbol("src/greet.mjs", "Greeter.rude"),
    Symbol("src/greet.mjs", "bye"),
    Symbol("src/greet.mjs", "Farewell"),
)


@dataclass(frozen=True)
class Lane:
    """One runner in one version."""

    runners: str
    name: str
    package: str

    @property
    def path(self) -> str:
        return "test/greet.test.mjs"


JEST_MODULES = manifest(
    scripts={"test": "NODE_OPTIONS=--experimental-vm-modules jest"},
    devDependencies={"jest": "*"},
    jest={"testMatch": ["**/*.test.mjs"], "transform": {}},
)
LANES = {
    "node": Lane("node", "node", NODE),
    "node-newest": Lane("newest", "node", NODE),
    "vitest": Lane("vitest", "vitest", VITEST),
    "vitest-3": Lane("vitest-3", "vitest", VITEST),
    "vitest-newest": Lane("newest", "vitest", VITEST),
    "jest": Lane("jest", "jest", JEST_MODULES),
    "jest-29": Lane("jest-29", "jest", JEST_MODULES),
    "jest-28": Lane("jest-28", "jest", JEST_MODULES),
}


LANES_AT_FIRST = ("node", "vitest")
"""Of which runners `make test` looks; `test_node_runs` and `test_node_promises` run jest."""


EACH_LANE = [
    pytest.param(lane, id=name, marks=() if name in LANES_AT_FIRST else pytest.mark.broad)
    for name, lane in LANES.items()
]


@pytest.fixture(scope="module", params=EACH_LANE)
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lane, Path, Observation]:
    lane: Lane = request.param
    root = write(
        tmp_path_factory.mktemp(lane.runners),
        {
            "package.json": lane.package,
            "src/greet.mjs": GREET.replace("{export}", "export"),
            "src/program.mjs": PROGRAM,
            "test/runner.mjs": RUNNERS[lane.name],
            lane.path: TESTS,
        },
    )
    return lane, root, measure(root, lane.runners, trace=True, per_test_timeout_s=3)


def context_for(seen: tuple[Lane, Path, Observation]) -> Context:
    lane, root, observation = seen
    existing = files_of(root) - {lane.path}
    return context_of(observation, existing, symbols=SYMBOLS, task_files=frozenset({"src/greet.mjs", "src/bye.mjs"}))


@pytest.mark.broad(but_first=1)
def test_every_test_has_an_id_a_file_and_an_end(seen: tuple[Lane, Path, Observation]) -> None:
    lane, _, observation = seen
    assert observation.state is RunState.COMPLETE, (observation.detail, observation.tail)
    assert {entry: record.outcome for entry, record in observation.records.items()} == {
        f"{lane.path}::{name}": outcome for name, (outcome, _) in EXPECTED.items()
    }
    assert {record.path for record in observation.records.values()} == {lane.path}
    assert not observation.collection_errors


def test_what_a_failure_is_for_the_judges(seen: tuple[Lane, Path, Observation]) -> None:
    lane, _, observation = seen
    found = judged(observation, context_for(seen), f"{lane.path}::", EXPECTED)
    assert found == expected(EXPECTED)
    asserts = classify(observation.records[f"{lane.path}::asserts"], context_for(seen))
    assert "Hello, a!" in asserts.message, "a failed comparison is told with its values"


def test_a_stub_counts_only_in_a_symbol_of_the_task(seen: tuple[Lane, Path, Observation]) -> None:
    lane, _, observation = seen
    record = observation.records[f"{lane.path}::reaches a stub in a method"]
    assert record.fault is not None
    assert record.fault.last_own_frame is not None
    assert record.fault.last_own_frame.function == "Greeter.polite"
    elsewhere = replace(context_for(seen), symbols=(Symbol("src/greet.mjs", "Other"),))
    assert classify(record, elsewhere).cls is RedClass.ASSERTION_MISMATCH


def test_regions_reach_and_layout(seen: tuple[Lane, Path, Observation]) -> None:
    lane, root, observation = seen
    x, y = (observation.records[f"{lane.path}::is made for {name}"] for name in "xy")
    assert x.function == y.function == f"{lane.path}::is made for ${{name}}"
    assert x.region_sha256 == y.region_sha256
    others = {record.region_sha256 for record in observation.records.values()} - {x.region_sha256}
    assert len(others) == len(EXPECTED) - 3  # two tests are the same
    reach = observation.records[f"{lane.path}::asserts"].reach
    assert reach is not None
    assert reach.functions == ("src/greet.mjs::greet",)
    assert [entry for entry in reach.references if entry.startswith("src/")] == ["src/greet.mjs::greet"]
    program = observation.records[f"{lane.path}::runs a program"].reach
    assert program is not None
    assert program.doors == ("process",)
    assert observation.layout.is_test(lane.path)
    assert observation.layout.is_test("test/other.test.mjs")
    assert not observation.layout.is_test_side("src/greet.mjs")
    assert set(observation.files) >= {lane.path}
    assert str(root) not in observation.model_dump_json(), "nothing says a place of this machine"
    assert "redfirst-node-" not in observation.model_dump_json()


BROKEN = {
    "missing export": ("import { bye } from '../src/greet.mjs';", RedClass.MISSING_BEHAVIOR, True),
    "missing module": ("import { bye } from '../src/bye.mjs';", RedClass.MISSING_BEHAVIOR, True),
    "missing export of nobody": ("import { nobody } from '../src/greet.mjs';", RedClass.TEST_BROKEN, False),
    "missing module of nobody": ("import { nobody } from '../src/nobody.mjs';", RedClass.TEST_BROKEN, False),
    "missing package": ("import _ from 'no-such-package';", RedClass.ENV_BROKEN, False),
    "syntax": ("const = 1;", RedClass.TEST_BROKEN, False),
    "throws": ("throw new Error('at the top');", RedClass.TEST_BROKEN, False),
    "free name": ("nobody();", RedClass.TEST_BROKEN, False),
    "exits": ("process.exit(0);", RedClass.TEST_BROKEN, False),
}
LENIENT = {"missing export", "missing export of nobody"}
"""What vitest does not notice before the name is used."""
ENDING = {"jest-28": {"syntax"}, "jest-29": {"syntax"}}
"""What ends an older jest, where tests are ES modules, with all that it had begun: what passed is not known then."""


@pytest.fixture(scope="module", params=EACH_LANE)
def uncollected(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Lane, Path, Observation]:
    lane: Lane = request.param
    body = "\nimport { it } from './runner.mjs';\nit('is there', () => {});\n"
    names = BROKEN.keys() - ENDING.get(lane.runners, set())
    files = {f"test/{name.replace(' ', '-')}.test.mjs": dedent(BROKEN[name][0]) + body for name in names}
    root = write(
        tmp_path_factory.mktemp(lane.runners),
        {
            "package.json": lane.package,
            "src/greet.mjs": GREET.replace("{export}", "export"),
            "test/runner.mjs": RUNNERS[lane.name],
            "test/fine.test.mjs": body,
            **files,
        },
    )
    return lane, root, measure(root, lane.runners)


@pytest.mark.broad(but_first=1)
def test_files_that_cannot_be_loaded(uncollected: tuple[Lane, Path, Observation]) -> None:
    lane, _, observation = uncollected
    context = replace(context_for(uncollected), existing=frozenset({"src/greet.mjs"}))
    assert observation.state is RunState.COMPLETE, (observation.detail, observation.tail)
    found = {error.path: classify_collection(error, context) for error in observation.collection_errors}
    expected = {
        f"test/{name.replace(' ', '-')}.test.mjs": (cls, legal)
        for name, (_, cls, legal) in BROKEN.items()
        if not (lane.name == "vitest" and name in LENIENT) and name not in ENDING.get(lane.runners, ())
    }
    assert {path: (one.cls, one.legal) for path, one in found.items()} == expected, found
    assert observation.records["test/fine.test.mjs::is there"].outcome is Ended.PASSED


@pytest.mark.broad(but_first=1)
def test_an_old_file_that_imports_what_is_missing_hides_its_tests(uncollected: tuple[Lane, Path, Observation]) -> None:
    lane, root, observation = uncollected
    path = "test/missing-module.test.mjs"
    context = replace(context_for(uncollected), existing=files_of(root) - {"src/bye.mjs"})
    errors = {error.path: error for error in observation.collection_errors}
    assert classify_collection(errors[path], context).cls is RedClass.IMPORT_HIDES_TESTS, lane
