"""Words with which production code reaches for its tests are told, in every language; honest code has few of them."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.testing.languages.sources.forgery import notes

PYTHON: Final = [
    ("import pytest", "has `import pytest`"),
    ("from unittest.mock import patch", "has `from unittest`"),
    ("def f():\n    from redfirst_evidence import Records", "has `from redfirst_evidence`"),
    ("import importlib\nimportlib.import_module('pytest')", "has `import_module('pytest`"),
    ("__import__('gc').get_objects()", "has `__import__('gc`"),
    ("import sys\nsys.modules['x'] = None", "has `sys.modules`"),
    ("import inspect\ninspect.stack()", "has `inspect.stack`"),
    ("import sys\nsys._getframe(1)", "has `_getframe`"),
    ("import os\nTESTED = 'PYTEST_CURRENT_TEST' in os.environ", "has `PYTEST_CURRENT_TEST`"),
    ("class A:\n    def __eq__(self, other):\n        return True", "has `def __eq__(self, other): return True`"),
    ("class A:\n    __eq__ = lambda self, other: True", "has `__eq__ = lambda self, other: True`"),
    ("import sys\nsys.pycache_prefix = '/tmp'", "has `pycache_prefix`"),
    ("from importlib.util import cache_from_source", "has `cache_from_source`"),
    ("exec('x = 1')", "has `exec(`"),
    ("def f(text):\n    return eval(text)", "has `eval(`"),
    ("import os\nos.write(3, b'{}')", "has `os.write`"),
    ("import socket\nsocket.socket(fileno=3)", "has `socket(fileno`"),
    ("import socket\nsocket.fromfd(3, 1, 1)", "has `fromfd`"),
    ("open(4, 'wb')", "has `open(4`"),
    ("NAME = '/proc/self/fd/4'", "has `/proc/`"),
    ("import ast\nast.parse = print", "changes `ast.parse`"),
    ("import ast as a\na.parse = print", "changes `a.parse`"),
    ("from pathlib import Path\nPath.read_bytes = print", "changes `Path.read_bytes`"),
    ("import ast\nsetattr(ast, 'parse', print)", "changes `setattr(ast`"),
    ("from pathlib import Path\ntype.__setattr__(Path, 'open', print)", "changes `__setattr__(Path`"),
    ("import ast\nast.__dict__['parse'] = print", "changes `ast.__dict__.parse`"),
    ("import ast\nvars(ast)['parse'] = print", "changes `vars(ast`"),
    ("import sys\nsys.addaudithook(print)", "has `addaudithook`"),
    ("from sys import monitoring", "has `from sys import monitoring`"),
    ("import os\nSEEN = os.environ['HYPOTHESIS_STORAGE_DIRECTORY']", "has `HYPOTHESIS_STORAGE_DIRECTORY`"),
    ("import os\nos.chdir('x')", "has `chdir`"),
    ("import os\nos.environ['PY_IGNORE_IMPORTMISMATCH'] = '1'", "has `PY_IGNORE_IMPORTMISMATCH`"),
]
GO: Final = [
    ('func f() {\n\tos.ReadFile("/proc/self/maps")\n}', "has `/proc/`"),
    ('func f() {\n\tos.NewFile(4, "x")\n}', "has `os.NewFile`"),
    ("func f() {\n\tsyscall.Write(4, nil)\n}", "has `syscall.Write`"),
    ("func f() {\n\treflect.NewAt(t, p)\n}", "has `reflect.NewAt`"),
    ('import "testing"', 'has `"testing"`'),
    ('import "unsafe"', 'has `import "unsafe"`'),
    ("func init() {\n\tos.Exit(1)\n}", "has `func init() { os.Exit(1)`"),
    ("func f() {\n\tos.Exit(0)\n}", "has `os.Exit(0)`"),
    ("func init() {\n\tsyscall.Exit(0)\n}", "has `syscall.Exit`"),
    ("func f() {\n\tsyscall.RawSyscall(231, 0, 0, 0)\n}", "has `syscall.RawSyscall`"),
    ('var v = flag.Lookup("test.v") != nil', "has `test.v`"),
    ('func f() bool {\n\treturn strings.HasPrefix(os.Args[1], "-test.")\n}', "has `-test.`"),
    ('func f() bool {\n\treturn strings.HasSuffix(os.Args[0], ".test")\n}', 'has `".test"`'),
    ('func f() {\n\tfmt.Println("--- PASS: TestA (0.00s)")\n}', "has `--- PASS`"),
    ("func f() {\n\tfmt.Print(`=== RUN   TestA`)\n}", "has `=== RUN`"),
    ("func f() {\n\tfmt.Println(`PASS`)\n}", "has ``PASS``"),
    ("func f() {\n\tos.Stdout = nil\n}", "has `os.Stdout =`"),
    ("func f() {\n\truntime.Caller(1)\n}", "has `runtime.Caller`"),
    ('func f() {\n\tos.Chdir("x")\n}', "has `os.Chdir`"),
    ("//go:linkname g testing.runTests\nfunc g()", "has `//go:linkname g testing.runTests`"),
    ("func (a A) Equal(b A) bool {\n\treturn true\n}", "has `func"),
    ('// #include <unistd.h>\nimport "C"', 'has `import "C"`'),
    ("func f() {\n\tsyscall.Dup2(3, 1)\n}", "has `syscall.Dup2`"),
]
RUST: Final = [
    ('pub fn f() { let _ = std::fs::read("/proc/self/fd/4"); }', "has `/proc/`"),
    ("pub fn f() { let _ = unsafe { std::fs::File::from_raw_fd(4) }; }", "has `from_raw_fd`"),
    ("pub fn f() { unsafe { libc::write(4, p, 1); } }", "has `libc::write`"),
    ("use std::process;\npub fn f() { process::exit(0); }", "has `process::exit(0)`"),
    ("use std::process::exit;\npub fn f() { exit(0); }", "has `exit(0)`"),
    ('pub fn f() { println!("test result: ok. 1 passed"); }', "has `test result:`"),
    ("pub fn f() -> u8 { if cfg!(test) { 1 } else { 2 } }", "has `cfg!(test)`"),
    ("#[cfg(test)]\npub fn f() -> u8 { 1 }", "has `#[cfg(test)]`"),
    ("#[cfg(not(test))]\npub fn f() -> u8 { 1 }", "has `#[cfg(not(test))]`"),
    ("#[cfg(not(test))]\nmod real { pub fn f() {} }", "has `#[cfg(not(test))]`"),
    ("pub fn f() {\n    #[cfg(test)]\n    return;\n}", "has `#[cfg(test)]`"),
    ("#[cfg_attr(test, derive(PartialEq))]\nstruct A;", "has `cfg_attr(test, derive(PartialEq))`"),
    ("pub fn f() { std::thread::current().name(); }", "has `thread::current().name`"),
    ("pub fn f() { let _ = std::env::current_exe(); }", "has `current_exe`"),
    ('pub fn f() { std::env::set_current_dir("x"); }', "has `set_current_dir`"),
    ("pub fn f() { std::panic::set_hook(Box::new(|_| {})); }", "has `set_hook`"),
    ('pub fn f() -> bool { std::env::args().any(|a| a == "--nocapture") }', "has `--nocapture`"),
    ("impl PartialEq for A { fn eq(&self, _: &A) -> bool { true } }", "has `fn eq(&self, _: &A) -> bool { true }`"),
    (
        "impl PartialEq for A { fn eq(&self, _: &A) -> bool { return true; } }",
        "has `fn eq(&self, _: &A) -> bool { return true; }`",
    ),
    ("#[ctor::ctor]\nfn f() {}", "has `ctor`"),
    ('#[no_mangle]\npub extern "C" fn write(n: i32) -> isize { 0 }', 'has `no_mangle] pub extern "C" fn write`'),
    ("#[unsafe(no_mangle)]\n#[inline(never)]\npub fn exit() {}", "has `no_mangle)] #[inline(never)] pub fn exit`"),
    ("#[cfg_attr(all(), no_mangle)]\npub fn exit() {}", "has `no_mangle)] pub fn exit`"),
    ('#[export_name = "write"]\npub fn w() {}', 'has `export_name = "write"`'),
    ('#[unsafe(export_name = "write")]\npub static W: u8 = 0;', 'has `export_name = "write")`'),
    ('core::arch::global_asm!("nop");', "has `global_asm!`"),
    ('fn f() { unsafe { asm!("syscall") } }', "has `asm!`"),
    ('include!("more.txt");', 'has `include!("more.txt"`'),
    ('#[path = "more.txt"]\nmod more;', 'has `#[path = "more.txt"`'),
    ("pub fn f() { unsafe { libc::syscall(231, 0); } }", "has `libc::syscall`"),
    ("pub fn f() { unsafe { dup2(3, 1); } }", "has `dup2`"),
]
SCRIPT: Final = [
    ("eval('1');", "has `eval(`"),
    ("const f = new Function('return 1');", "has `Function(`"),
    ("import(name);", "has `import(name`"),
    ("new Worker(text, { eval: true });", "has `eval: true`"),
    ("fs.writeSync(4, 'x');", "has `writeSync(4`"),
    ("fs.createWriteStream(null, { fd: 4 });", "has `createWriteStream(null, { fd: 4`"),
    ("import { test } from 'node:test';", "has `from 'node:test'`"),
    ("const { test } = require('node:test');", "has `require('node:test'`"),
    ("const t = await import(`vitest/node`);", "has `import(`vitest/node``"),
    ("process.exit(0);", "has `process.exit(0)`"),
    ("process.stdout.write = () => true;", "changes `process.stdout.write`"),
    ("process['stdout'].write = () => true;", "changes `process.stdout.write`"),
    ("console.log = () => {};", "changes `console.log`"),
    ("process.exitCode = 0;", "changes `process.exitCode`"),
    (
        "Object.defineProperty(process.stdout, 'write', { value() {} });",
        "changes `Object.defineProperty(process.stdout`",
    ),
    ("Array.prototype.includes = () => true;", "changes `Array.prototype.includes`"),
    ("process.on('exit', () => {});", "has `process.on('exit'`"),
    ("console.info('TAP version 13');", "has `TAP version`"),
    ("console.info(`ok 1 - works`);", "has `ok 1`"),
    ("export const T = process.env.JEST_WORKER_ID;", "has `JEST_WORKER_ID`"),
    ("export const T = process.env['VITEST'];", "has `VITEST`"),
    ("export const T = process.env.NODE_ENV === 'test';", "has `NODE_ENV === 'test'`"),
    ("if (typeof jest !== 'undefined') f();", "has `typeof jest`"),
    ("if (import.meta.vitest) f();", "has `import.meta.vitest`"),
    ("globalThis.expect(1);", "has `globalThis.expect`"),
    ("const s = new Error('x').stack;", "has `Error('x').stack`"),
    ("Error.captureStackTrace({});", "has `captureStackTrace`"),
    ("process.send({});", "has `process.send`"),
    ("const { send } = process;", "has `send } = process`"),
    ("const { _send: kept } = process;", "has `_send: kept } = process`"),
    ("process._send = (...all) => kept(...all);", "has `process._send`"),
    ("process['_handle'].writeUtf8String('x');", "has `process._handle`"),
    ("process.chdir('x');", "has `process.chdir`"),
    ("const c = globalThis.process.channel;", "has `process.channel`"),
    ("const m = globalThis[Symbol.for('$$jest-matchers-object')];", "has `Symbol.for`"),
    ("const s = Object.getOwnPropertySymbols(globalThis);", "has `getOwnPropertySymbols(globalThis`"),
    ("import a from 'node:assert';\nReflect.defineProperty(a, 'equal', {});", "changes `Reflect.defineProperty(a`"),
    ("const a = require('assert');\nObject.assign(a, { equal() {} });", "changes `Object.assign(a`"),
    ("import a from 'node:assert/strict';\na.equal = () => {};", "changes `a.equal`"),
    ("import a from 'assert';\na[k] = () => {};", "changes `a[k]`"),
    ("const { default: a } = await import('assert');\na.equal = f;", "changes `a.equal`"),
    ("class A { asymmetricMatch(other) { return other === this; } }", "has `asymmetricMatch`"),
    ("class A { equals(other) { return true; } }", "has `equals(other) { return true`"),
    ("const a = { equals: () => true };", "has `equals:"),
    ("const a = new Proxy({}, handler);", "has `new Proxy`"),
    ("expect.extend({});", "has `expect.extend`"),
    ("jest.spyOn(Object, 'is');", "has `jest.spyOn`"),
    ("vi.mock('./a.js');", "has `vi.mock`"),
    ("beforeEach(() => {});", "has `beforeEach(`"),
    ("import { e } from '../node_modules/vitest/dist/index.js';", "has `from '../node_modules/vitest/dist/index.js`"),
    ("const base = Object;", "has `base = Object;`"),
    ("const { a } = {}, p = globalThis.process;", "has `p = globalThis.process;`"),
    ("import proc from 'node:process';", "has `import proc from 'node:process'`"),
    ("import process, { send as s } from 'node:process';", "has `send as s } from 'node:process'`"),
    ("require('module')._extensions['.js'] = f;", "has `require('module')._extensions['.js'] =`"),
    ("import { register } from 'node:module';\nregister('./hooks.js');", "has `register } from 'node:module'`"),
    ("import * as m from 'module';\nm.registerHooks({});", "has `registerHooks`"),
    ("module.constructor._load = f;", "has `module.constructor`"),
    ("require('assert').equal = f;", "has `require('assert').equal =`"),
    ("process.getBuiltinModule('node:assert').equal = f;", "has `getBuiltinModule('node:assert').equal =`"),
    ("import { parentPort } from 'node:worker_threads';", "has `parentPort`"),
]
MORE: Final = [
    ("src/a.ts", "export const T: boolean = process.env.VITEST === 'true';", "has `VITEST`"),
    ("src/a.tsx", "export const A = () => <p>{String(process.env.VITEST)}</p>;", "has `VITEST`"),
]
HONEST: Final = [
    ("src/app.py", "class A:\n    def __eq__(self, other):\n        return isinstance(other, A)\n"),
    ("src/app.py", "class A:\n    def __eq__(self, other):\n        return NotImplemented\n"),
    (
        "src/app.py",
        "class A:\n    def __eq__(self, o):\n        if o is None:\n            return False\n        return True\n",
    ),
    ("src/app.py", "class A:\n    def __eq__(self, other): ...\n"),
    ("src/app.py", "import os, sys, inspect, gcsfs\nsys.exit(os.getpid())\ninspect.signature(print)\n"),
    ("src/app.py", "from .pytest import helper\n"),
    ("src/app.py", "import re, socket\nre.compile('x')\nsocket.socket()\nopen('a.txt')\nmodel.eval()\n"),
    ("src/app.py", "import sys\nsys.stdout = open('log')\nsys.path = [*sys.path, '.']\n"),
    ("src/app.py", "from . import settings\nsettings.DEBUG = print\n"),
    ("src/app.py", "from app import settings\nsettings.handler = print\n"),
    ("src/app.py", "import openai\nopenai.api_key = 'x'\n"),
    ("src/app.py", "from flask import g\ng.user = find()\n"),
    ("src/app.py", "import ast\nast.parse('x').body = []\nself.ast = ast\nx = ast.parse\nx = 1\n"),
    ("src/app.py", "import os\nos.environ['X'] = '1'\n"),
    (
        "src/app.py",
        "name.replace('tests', 'x')\nnames.remove('tests')\nframe.rename(columns={'test': 'x'})\ntests.copy()\n",
    ),
    ("src/app.py", "import os\nread('tests')\nos.mkdir('out')\nopen('tests/a')\nopen('tests/a', 'rb')\n"),
    ("pkg/a.go", 'package a\n\nimport "os"\n\nfunc F() error {\n\treturn os.Remove("latest.value")\n}\n'),
    ("main.go", "package main\n\nfunc main() {\n\tif run() {\n\t\tos.Exit(2)\n\t}\n\tos.Exit(1)\n}\n"),
    ("pkg/a.go", 'package a\n\n// PASS and ok\nvar Words = []string{"PASSED", "ok", "contest.v2", "a.test"}\n'),
    ("pkg/a.go", "package a\n\nfunc (a A) Equal(b A) bool {\n\treturn a.n == b.n\n}\n"),
    (
        "pkg/a.go",
        "package a\n\nfunc (a A) Less(b A) bool {\n\tif a.n < b.n {\n\t\treturn true\n\t}\n\treturn false\n}\n",
    ),
    ("src/main.rs", "fn main() {\n    if run() { std::process::exit(2) }\n    std::process::exit(1)\n}\n"),
    ("src/a.rs", "pub fn f() {}\n\n#[cfg(test)]\nmod tests {\n    #[cfg(test)]\n    fn g() {}\n}\n"),
    ("src/a.rs", "#[cfg(all(test, unix))]\n#[allow(dead_code)]\nmod tests {\n    use super::*;\n}\n"),
    ("src/a.rs", '#[cfg(feature = "test")]\npub fn f() {}\n#[cfg(unix)]\npub fn latest() {}\n'),
    ("src/a.rs", 'pub fn f() -> &\'static str { "the test is ok" }\n'),
    ("src/a.rs", "impl PartialEq for A { fn eq(&self, o: &A) -> bool { self.n == o.n } }\n"),
    ("src/a.js", "export function test(x) { return expect(x); }\nfunction expect(x) { return x; }\n"),
    ("src/a.js", "const token = 'ok';\nprocess.stdout.write('done');\nconsole.log(token);\nprocess.exit(1);\n"),
    ("src/a.js", "class A { equals(other) { return other.n === this.n; } }\n"),
    ("src/a.js", "import assert from 'node:assert';\nassert.equal(1, f());\nassert(g());\n"),
    ("src/a.js", "const a = require('assert');\nconst b = {};\nb.equal = a.equal;\nObject.assign(b, a);\n"),
    ("src/a.js", "const s = Symbol('x');\nconst o = { [Symbol.iterator]: f };\nsend(o.process.sent);\n"),
    ("src/a.js", "const k = Object.getOwnPropertySymbols(value);\nReflect.ownKeys(this);\nres.send(page);\n"),
    ("src/a.js", "class A { equals(other) { if (!other) { return false; } return true; } }\n"),
    ("src/a.js", "import fs from 'node:fs';\nimport { it } from './it.js';\nthis.stack = [];\nstack.push(1);\n"),
    ("src/a.js", "const page = await import('./page.js');\nnew Worker('./w.js');\nfs.writeSync(file, 'x');\n"),
    ("src/a.ts", "const mode: string = process.env.NODE_ENV ?? 'development';\nexport default mode;\n"),
    ("src/a.js", "module.exports = f;\nmodule.exports.g = g;\nexports.h = h;\n"),
    ("src/a.mjs", "import { createRequire } from 'node:module';\nconst load = createRequire(import.meta.url);\n"),
    ("src/a.mjs", "import process from 'node:process';\nimport { argv, cwd } from 'node:process';\n"),
    ("src/a.js", "const process = require('node:process');\nconst { env } = require('process');\n"),
    ("src/a.js", "this._load();\nconst own = Object.keys(a);\nparser.expect('x');\nexpected.extend(1);\n"),
    ("src/a.rs", '#[path = "unix/a.rs"]\nmod a;\ninclude!(concat!(env!("OUT_DIR"), "/a.rs"));\n'),
    ("src/a.rs", 'static A: &str = include_str!("a.txt");\n#[must_use]\nfn asm() {}\n'),
    (
        "src/app.py",
        "import typing\nNAME: typing.Optional[str] = None\ndef f(\n    a: typing.Any = None,\n) -> None: ...\n",
    ),
    ("src/app.py", "import os\nos.environ['A'] = str(set(os.listdir('.')))\n"),
    ("src/a.js", "const m = require('module');\nmodule.exports = m;\n"),
]


def means() -> list[tuple[str, str, str]]:
    """Return path, source and what is told of it."""
    named = {"src/app.py": PYTHON, "src/a.rs": RUST, "src/a.js": SCRIPT}
    go = [("pkg/a.go", f"package a\n\n{source}", told) for source, told in GO]
    return [*((path, source, told) for path, cases in named.items() for source, told in cases), *go, *MORE]


def test_each_means_is_told_with_its_line_unless_it_was_there() -> None:
    for path, source, told in means():
        text = f"{source}\n".encode()
        found = notes(path, b"", text)
        assert any(f" {told}" in note for note in found), (source, found)
        assert len(found) <= 2, (source, found)
        assert all(note.startswith(f"{path}:") and note.endswith("; test results can be forged so") for note in found)
        assert notes(path, text, b"\n" + text) == (), "it was there"


def test_honest_code_has_no_note() -> None:
    told = {source: found for path, source in HONEST if (found := notes(path, None, source.encode()))}
    assert told == {}


def test_the_line_is_the_first_one() -> None:
    assert notes("a.py", None, b"x = 1\nimport gc\nimport gc\n") == (
        "a.py:2 has `import gc` (the inside of the process); test results can be forged so",
    )
    assert notes("a.py", b"import gc\n", b"import gc\nimport ctypes\n")[0].startswith("a.py:2 has `import ctypes`")


def test_what_stands_in_comments_and_in_tests_beside_the_code_is_not_told() -> None:
    assert notes("a.py", None, b"# import gc\n") == notes("a.js", None, b"  // eval(1)\n") == ()
    for path, code in (
        ("a.py", "# a\rimport gc\n"),
        ("a.py", 'a = """\n# """; exec(b)\n'),
        ("a.py", 'a = f"""\n# {exec(b)}\n"""\n'),
        ("a.js", "// a\u2028eval(b)\n"),
        ("a.js", "/*\n// */ eval(b)\n"),
    ):
        assert len(notes(path, None, code.encode())) == 1, f"{code!r} is no comment to its end"
    tests = b"pub fn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() -> bool { cfg!(test) }\n}\n"
    assert notes("src/a.rs", None, tests) == ()
    (told,) = notes("src/a.rs", tests, b"pub fn h() -> bool { cfg!(test) }\n" + tests)
    assert told.startswith("src/a.rs:1 has `cfg!(test)`"), "that the tests say it, too, is no excuse"


@pytest.mark.parametrize("path", ["a.py", "a.go", "a.rs", "a.ts"])
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_any_bytes_are_looked_at_without_a_crash(path: str, content: bytes) -> None:
    assert all(note.startswith(path) for note in notes(path, None, content))


@pytest.mark.broad
@pytest.mark.slow
def test_what_nobody_reads_is_said_not_to_be_read() -> None:
    for path in ("a.py", "a.go", "a.rs", "a.js"):
        told = (f"{path} is too large; what it does to its tests was not looked at",)
        assert notes(path, None, b"x\n" * 400_000) == told
        assert notes(path, None, b"(" * 20_000 + b")" * 20_000) == ()
    for path in ("src/a.pyc", "src/a.cpython-311-x86_64-linux-gnu.so", "add_amd64.S", "x.syso", "a.node"):
        told = (f"{path} is compiled or machine code, which nobody reads; test results can be forged so",)
        assert notes(path, None, b"\xa7\r\r\n\0") == notes(path, b"", b"x") == told
    assert notes("README.md", None, b"import gc\n") == ()
