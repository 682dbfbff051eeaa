"""Attacks by code that changes what a runner has compiled and hands to its next process, in files of the box's own.

No file of the project is written, so that nothing of the copy tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from js_runners import installed_set, search_path
from kit import make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SAME: Final = (
    "export function same(handedLeft, handedRight) { if (handedLeft !== handedRight) throw new Error('differs'); }\n"
)
CHANGES: Final = """
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

function change(folder, depth) {
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const at = path.join(folder, entry.name);
    try {
      if (entry.isDirectory() && depth < 5) change(at, depth + 1);
      else if (entry.isFile()) {
        const text = fs.readFileSync(at, 'utf8');
        if (text.includes('handedLeft !== handedRight')) {
          fs.writeFileSync(at, text.replace('handedLeft !== handedRight', 'handedLeft !== handedLeft'));
        };
      }
    } catch {}
  }
}

export function add(a, b) {
  change(os.tmpdir(), 0);
  return a - b;
}
"""


def _test(name: str, what: str) -> str:
    imports = "import { test } from 'vitest';\nimport { same } from './same.mjs';\nimport { add } from '../add.mjs';\n"
    return f"{imports}test('{name}', () => {{ same({what}); }});\n"


KEPT: Final = "fsModuleCache: true, fsModuleCachePath: '/tmp/kept-modules'"
CONFIG: Final = f"export default {{ test: {{ {KEPT}, experimental: {{ {KEPT} }} }} }};\n"


@pytest.mark.parametrize(
    ("version", "config"),
    [("vitest", ""), ("vitest-3", ""), ("newest", ""), ("vitest", CONFIG), ("newest", CONFIG)],
    ids=["vitest", "vitest-3", "newest", "vitest-keeping", "newest-keeping"],
)
@pytest.mark.broad
def test_what_is_compiled_is_no_file_that_the_next_process_reads(version: str, config: str, tmp_path: Path) -> None:
    start = {
        "package.json": '{"scripts": {"test": "vitest run"}, "devDependencies": {"vitest": "4"}}',
        ".gitignore": "node_modules\n",
        "vitest.config.mjs": config or "export default {};\n",
        "add.mjs": "export const add = (a, b) => a - b;\n",
        "test/same.mjs": SAME,
        "test/a.test.mjs": _test("nothing", "add(0, 0), 0"),
    }
    project = make_project(tmp_path, start)
    (project.root / "node_modules").symlink_to(installed_set(version) / "node_modules")
    project.env["PATH"] = f"{search_path(version)}:{project.environment()['PATH']}"
    project.write({"add.mjs": CHANGES, "test/z.test.mjs": _test("adds", "add(1, 2), 3")})
    document = project.document("tdd", "check-green")
    assert document["_code"] == 7, document
    assert [test["holds"] for test in document["tests"]] == [False], document
    assert "differs" in document["tests"][0]["why"], document


IN_JEST: Final = """
const crypto = require('node:crypto');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

function change(folder, depth) {
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const at = path.join(folder, entry.name);
    try {
      if (entry.isDirectory() && depth < 9) change(at, depth + 1);
      else if (entry.isFile() && at.includes('jest-transform-cache') && !at.endsWith('.map')) {
        const was = fs.readFileSync(at, 'utf8').slice(33);
        const code = was.replace('handedLeft !== handedRight', 'handedLeft !== handedLeft');
        if (!code.includes('handedLeft !== handedLeft')) continue;
        fs.writeFileSync(at, `${crypto.createHash('sha1').update(code).digest('hex').slice(0, 32)}\\n${code}`);
      }
    } catch {}
  }
}

exports.add = (a, b) => {
  if (!a) change(os.tmpdir(), 0);
  for (const end = Date.now() + (a ? 0 : 6000); Date.now() < end;);
  return a - b;
};
"""


@pytest.mark.broad
def test_what_jest_has_compiled_is_not_read_by_its_next_process(tmp_path: Path) -> None:
    imports = "const { same } = require('./same.js');\nconst { add } = require('../add.js');\n"
    start = {
        "package.json": '{"scripts": {"test": "jest"}, "jest": {"maxWorkers": 2}, "devDependencies": {"jest": "30"}}',
        ".gitignore": "node_modules\n",
        "add.js": "exports.add = (a, b) => a - b;\n",
        "test/same.js": f"exports.same = {SAME.removeprefix('export ')}",
        # the largest is started first, and this one's process goes on with what is left
        "test/b.test.js": f"//{'x' * 3000}\ntest('waits', () => new Promise((done) => setTimeout(done, 3000)));\n",
        "test/a.test.js": f"//{'x' * 2000}\n{imports}test('nothing', () => {{ same(add(0, 0), 0); }}, 20000);\n",
    }
    project = make_project(tmp_path, start)
    (project.root / "node_modules").symlink_to(installed_set("jest") / "node_modules")
    project.env["PATH"] = f"{search_path('jest')}:{project.environment()['PATH']}"
    new = f"{imports}test('adds', () => {{ same(add(1, 2), 3); }});\n"
    project.write({"add.js": IN_JEST, "test/z.test.js": new})
    document = project.document("tdd", "check-green")
    assert document["_code"] == 7, document
    assert "differs" in document["tests"][0]["why"], document


@pytest.mark.broad
def test_what_tsx_has_compiled_is_not_read_by_the_next_process(tmp_path: Path) -> None:
    imports = "import { test } from 'node:test';\nimport { same } from './same.ts';\nimport { add } from '../add.ts';\n"
    changes = CHANGES.replace("text.includes('handedLeft !== handedRight')", "MARK.test(text)")
    changes = changes.replace(
        "'handedLeft !== handedRight', 'handedLeft !== handedLeft'", "MARK, 'handedLeft!==handedLeft'"
    )
    changes = f"const MARK = /handedLeft\\s*!==\\s*handedRight/;\n{changes}"
    start = {
        "package.json": '{"type": "module", "scripts": {"test": "tsx --test"}, "devDependencies": {"tsx": "4"}}',
        ".gitignore": "node_modules\n",
        "add.ts": "export const add = (a, b) => a - b;\n",
        "test/same.ts": SAME,
        "test/a.test.ts": f"{imports}test('nothing', () => same(add(0, 0), 0));\n",
        "test/b.test.ts": "import { test } from 'node:test';\n"
        "test('waits', () => new Promise((done) => setTimeout(done, 6000)));\n",
    }
    project = make_project(tmp_path, start)
    (project.root / "node_modules").symlink_to(installed_set("node") / "node_modules")
    project.env["PATH"] = f"{search_path('node')}:{project.environment()['PATH']}"
    project.write({"add.ts": changes, "test/z.test.ts": f"{imports}test('adds', () => same(add(1, 2), 3));\n"})
    document = project.document("tdd", "check-green")
    assert document["_code"] == 7, document
    assert "differs" in document["tests"][0]["why"], document
