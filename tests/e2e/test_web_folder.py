"""A Python package with a JavaScript project in `web/`, with packages that `npm ci` installs: an issue to a commit."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from typing import TYPE_CHECKING

import pytest
from e2e.shapes import TRACKER, answers, changed, dispatches, done, evidence, stdout_of
from kit import FILES, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.broad,
    pytest.mark.skipif(not (shutil.which("node") and shutil.which("npm")), reason="this machine has no node with npm"),
]

GREET = """const { hello } = require('localdep');

function greet(name) {
  return `${hello}, ${name}!`;
}

module.exports = { greet };
"""
GREET_DONE = GREET.replace("  return", "  if (!name) throw new Error('a name is needed');\n  return")
TEST = """const test = require('node:test');
const assert = require('node:assert');
const { greet } = require('../greet.js');

test('greets by name', () => {
  assert.strictEqual(greet('Ada'), 'Hello, Ada!');
});
"""
NEW = f"{TEST}\ntest('refuses an empty name', () => {{\n  assert.throws(() => greet(''), /name is needed/);\n}});\n"


def packed(path: Path) -> None:
    """Make a package as a registry would hold it."""
    files = {
        "package/package.json": '{"name": "localdep", "version": "1.0.0", "main": "index.js"}',
        "package/index.js": "module.exports = { hello: 'Hello' };\n",
    }
    with tarfile.open(path, "w:gz") as made:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            made.addfile(entry, io.BytesIO(text.encode()))


def test_an_issue_in_a_folder_of_another_language_goes_to_a_commit(tmp_path: Path) -> None:
    package = tmp_path / "localdep-1.0.0.tgz"
    packed(package)
    needs = {"localdep": f"file:{package}"}
    about = {"name": "web", "version": "1.0.0", "dependencies": needs}
    lock = {
        "name": "web",
        "version": "1.0.0",
        "lockfileVersion": 3,
        "requires": True,
        "packages": {"": about, "node_modules/localdep": {"version": "1.0.0", "resolved": f"file:{package}"}},
    }
    files = {
        **FILES,
        **TRACKER,
        ".gitignore": "node_modules/\n",
        "web/package.json": json.dumps({**about, "scripts": {"test": "node --test"}}),
        "web/package-lock.json": json.dumps(lock),
        "web/greet.js": GREET,
        "web/test/greet.test.js": TEST,
    }
    project = make_project(tmp_path, files)
    script = answers(
        files,
        {"web/test/greet.test.js": NEW},
        {"web/greet.js": GREET_DONE},
        run=["sh", "-c", "python -m pytest -q && cd web && node --test && npm test --silent"],
    )
    setup = '[toolchains.node]\nsetup = ["npm", "ci", "--offline", "--no-audit", "--no-fund"]\n'
    project.use_script(script, setup)
    result = done(project)
    assert "setup of node: done (" in result["_stderr"]
    red = evidence(project, "task-1.json")["ledger"]["red"]
    assert list(red) == ["web/test/greet.test.js::refuses an empty name"]
    assert changed(project, "HEAD~1") == ["web/greet.js", "web/test/greet.test.js"]
    outcomes = evidence(project, "baseline.json")["outcomes"]
    assert outcomes == {
        "tests/test_greet.py::test_greets_by_name": "passed",
        "web/test/greet.test.js::greets by name": "passed",
    }
    said = stdout_of(dispatches(project, "make")[-1])
    assert "1 passed" in said, "pytest"
    assert said.count("pass 2") == 2, said
