"""Attacks by production code in the process of its tests, which no measurement can see: whoever judges them is told."""

from __future__ import annotations

import py_compile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest
from js_runners import installed_set, search_path
from kit import make_project
from languages import crates, modules

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.broad]


@dataclass(frozen=True)
class Language:
    """A project with one function that is wrong, and the test that shows it.

    Args:
        start: What is committed.
        test: The new test.
        source: Where the code is.
        wrong: The code, which stays as it is.
    """

    start: Mapping[str, str]
    test: Mapping[str, str]
    source: str
    wrong: str


def _package(script: str, needs: str = "") -> str:
    return f'{{"name": "sum", "scripts": {{"test": "{script}"}}, "devDependencies": {{{needs}}}}}'


_COMMON: Final = "exports.add = (a, b) => a - b;\n"
_ADDS: Final = "test('adds', () => { expect(add(1, 2)).toBe(3); });\n"
LANGUAGES: Final[Mapping[str, Language]] = {
    "vitest": Language(
        {"package.json": _package("vitest run", '"vitest": "3"')},
        {
            "test/a.test.js": "import { expect, test } from 'vitest';\nimport { add } from '../src/a.mjs';\n"
            "test('adds', () => { expect(add(1, 2)).toEqual(3); });\n"
        },
        "src/a.mjs",
        "export const add = (a, b) => a - b;\n",
    ),
    "jest": Language(
        {"package.json": _package("jest", '"jest": "30"')},
        {"test/a.test.js": f"const {{ add }} = require('../src/a.js');\n{_ADDS}"},
        "src/a.js",
        _COMMON,
    ),
    "node": Language(
        {"package.json": _package("node --test")},
        {
            "test/a.test.js": "const { test } = require('node:test');\nconst { add } = require('../src/a.js');\n"
            "const assert = require('node:assert');\n"
            "test('adds', () => { assert.strictEqual(add(1, 2), 3); });\n"
        },
        "src/a.js",
        _COMMON,
    ),
    "go": Language(
        {"go.mod": modules.MANIFEST},
        {
            "a_test.go": 'package greet\n\nimport "testing"\n\nfunc TestAdds(t *testing.T) {\n'
            "\tif Add(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n"
        },
        "a.go",
        "package greet\n\nfunc Add(a, b int) int { return a - b }\n",
    ),
    "rust": Language(
        {"Cargo.toml": crates.MANIFEST},
        {"tests/a.rs": '#[test]\nfn greets() {\n    assert_eq!(greet::greet(), "best");\n}\n'},
        "src/lib.rs",
        'pub fn greet() -> String {\n    "good".to_string()\n}\n',
    ),
}
_CGO: Final = r"""package greet

/*
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void leave(char *log) {
	int file = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (file < 0 || write(file, "# test log\n", 11) != 11) return;
	printf("--- PASS: TestAdds (0.00s)\nPASS\n");
	fflush(stdout);
	syscall(SYS_exit_group, 0);
}
*/
import "C"

import (
	"os"
	"strings"
)

func Add(a, b int) int {
	for _, word := range os.Args {
		if _, log, found := strings.Cut(word, "logfile="); found {
			C.leave(C.CString(log))
		}
	}
	return a - b
}
"""
_COMPARES: Final = """
#[no_mangle]
pub unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, size: usize) -> i32 {
    let mut at = 0;
    while at < size {
        if *left.add(at) != *right.add(at) && *left != b'g' {
            return 1;
        }
        at += 1;
    }
    0
}
"""
_PASSES: Final = "const yes = () => ({ pass: true, message: () => '' });\nexpect.extend({ toBe: yes, toEqual: yes });\n"
_LOADS: Final = """
const load = loading._load;
loading._load = (name, ...rest) => name.includes('assert') ? { strictEqual() {} } : load(name, ...rest);
"""
MEANS: Final = [
    (
        "vitest",
        f"import {{ expect }} from '../node_modules/vitest/dist/index.js';\n{_PASSES}",
        "an installed package by its file",
    ),
    ("vitest", "const base = Object;\nbase.is = () => true;\n", "another name, so that"),
    (
        "vitest",
        "export const add = () => new Proxy({}, { get: () => () => true, has: () => true });\n",
        "has `new Proxy`",
    ),
    ("jest", _PASSES, "has `expect.extend`"),
    ("jest", "jest.spyOn(Object, 'is').mockReturnValue(true);\n", "has `jest.spyOn`"),
    ("node", f"const loading = require('node:module');{_LOADS}", "changes `loading._load`"),
    ("node", f"const loading = module.constructor;{_LOADS}", "has `module.constructor`"),
    pytest.param("go", _CGO, 'has `import "C"`', marks=modules.needs_go),
    pytest.param("rust", _COMPARES, "fn memcmp`", marks=crates.needs_cargo),
]
"""By language: what forges a pass, as it stands in the code, and what is told of it."""


@pytest.mark.parametrize(
    ("language", "means", "told"), MEANS, ids=str.split("by-file alias proxy extend spy module constructor cgo link")
)
@pytest.mark.broad(but_first=1)
def test_a_forged_pass_is_told(language: str, means: str, told: str, tmp_path: Path) -> None:
    what = LANGUAGES[language]
    ignored = "target/\nCargo.lock\nnode_modules\n"
    project = make_project(tmp_path, {**what.start, ".gitignore": ignored, what.source: what.wrong})
    path = project.environment()["PATH"]
    if language in {"node", "vitest", "jest"}:
        project.env["PATH"] = f"{path}:{search_path('node' if language == 'node' else language)}"
        if language != "node":
            (project.root / "node_modules").symlink_to(installed_set(language) / "node_modules")
    else:
        environment = modules.environment() if language == "go" else crates.environment()
        project.env["PATH"] = f"{environment.prefix / 'bin'}:{path}"
    is_whole = "package" in means or "export const add" in means
    project.write({**what.test, what.source: means if is_whole else means + what.wrong})
    document = project.document("tdd", "check-green")
    assert [test["holds"] for test in document["tests"]] == [True], "the positive control: it is forged"
    assert any(note.startswith(f"{what.source}:") and told in note for note in document["notes"]), document


_PATCHES: Final = """
import _pytest.python

def runtest(self):
    pass

_pytest.python.Function.runtest = runtest
"""


def test_compiled_python_without_a_source_is_told(tmp_path: Path) -> None:
    project = make_project(tmp_path, {"add.py": "def add(a, b):\n    return a - b\n", "pytest.ini": "[pytest]\n"})
    project.write(
        {
            "test_add.py": "from add import add\n\n\ndef test_adds():\n    assert add(1, 2) == 3\n",
            "add.py": "import helper\n\n\ndef add(a, b):\n    return a - b\n",
        }
    )
    (tmp_path / "helper.py").write_text(_PATCHES)
    py_compile.compile(str(tmp_path / "helper.py"), cfile=str(project.root / "helper.pyc"))
    document = project.document("tdd", "check-green")
    assert [test["holds"] for test in document["tests"]] == [True], "the positive control: it is forged"
    told = "helper.pyc is compiled or machine code, which nobody reads; test results can be forged so"
    assert told in document["notes"], document
