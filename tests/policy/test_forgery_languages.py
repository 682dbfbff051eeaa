"""Means of forging test results in Go, Rust, JavaScript and TypeScript are told; honest code has no note."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.languages.sources.forgery import notes

GO = [
    ('func f() {\n\tos.ReadFile("/proc/self/maps")\n}', "mentions /proc/"),
    ('func f() {\n\tos.NewFile(4, "x")\n}', "uses os.NewFile"),
    ("func f() {\n\tsyscall.Write(4, nil)\n}", "uses syscall.Write"),
    ("func f() {\n\treflect.NewAt(t, p)\n}", "uses reflect.NewAt"),
    ('import "testing"', "imports testing (the test framework)"),
    ('import (\n\t"os"\n\tq "testing/quick"\n)', "imports testing/quick"),
    ('import "unsafe"', "imports unsafe"),
    ("func init() {\n\tos.Exit(0)\n}", "calls os.Exit while its package is loaded"),
    ("func init() {\n\tsyscall.Exit(0)\n}", "calls syscall.Exit while its package is loaded"),
    ("var _ = func() int {\n\tos.Exit(1)\n\treturn 0\n}()", "calls os.Exit while its package is loaded"),
    ("func f() {\n\tos.Exit(0)\n}", "calls os.Exit(0)"),
    ("func f() {\n\tsyscall.Exit(3)\n}", "uses syscall.Exit"),
    ("func f() {\n\tsyscall.RawSyscall(231, 0, 0, 0)\n}", "uses syscall.RawSyscall"),
    ("func f() {\n\tunix.Exit(0)\n}", "uses unix.Exit"),
    ('var v = flag.Lookup("test.v") != nil', "mentions test.v"),
    ('func f() bool {\n\treturn strings.HasPrefix(os.Args[1], "-test.")\n}', "mentions -test."),
    ('func f() bool {\n\treturn strings.HasSuffix(os.Args[0], ".test")\n}', "mentions .test"),
    ('func f() {\n\tfmt.Println("--- PASS: TestA (0.00s)")\n}', "mentions --- PASS"),
    ("func f() {\n\tfmt.Print(`=== RUN   TestA`)\n}", "mentions === RUN"),
    ("func f() {\n\tfmt.Println(`PASS`)\n}", "mentions PASS"),
    ("func f() {\n\tos.Stdout = nil\n}", "replaces os.Stdout"),
    ("func f() {\n\truntime.Caller(1)\n}", "uses runtime.Caller (its callers)"),
    ('func f() {\n\tos.Chdir("x")\n}', "uses os.Chdir (where relative names of files lead)"),
    ("//go:linkname g testing.runTests\nfunc g()", "reaches into another package (testing.runTests)"),
    ("func (a A) Equal(b A) bool {\n\treturn true\n}", "defines Equal with the same answer"),
    ('// #include <unistd.h>\nimport "C"', "imports C (code that nobody reads)"),
    ("func f() {\n\tsyscall.Dup2(3, 1)\n}", "uses syscall.Dup2 (what others have opened)"),
    ("func f() {\n\tunix.Dup3(3, 1, 0)\n}", "uses unix.Dup3 (what others have opened)"),
]
RUST = [
    ('pub fn f() { let _ = std::fs::read("/proc/self/fd/4"); }', "mentions /proc/"),
    ("pub fn f() { let _ = unsafe { std::fs::File::from_raw_fd(4) }; }", "uses from_raw_fd"),
    ("pub fn f() { unsafe { libc::write(4, p, 1); } }", "uses libc::write"),
    ("pub fn f() { std::process::exit(0) }", "calls exit(0)"),
    ("use std::process;\npub fn f() { process::exit(0); }", "calls exit(0)"),
    ("use std::process::exit;\npub fn f() { exit(0); }", "calls exit(0)"),
    ('pub fn f() { println!("test result: ok. 1 passed"); }', "mentions test result:"),
    ("pub fn f() -> u8 { if cfg!(test) { 1 } else { 2 } }", "asks whether tests are built"),
    ("#[cfg(test)]\npub fn f() -> u8 { 1 }", "is built otherwise for tests (#[cfg(test)])"),
    ("#[cfg(not(test))]\npub fn f() -> u8 { 1 }", "is built otherwise for tests (#[cfg(not(test))])"),
    ("#[cfg(not(test))]\nmod real { pub fn f() {} }", "is built otherwise for tests"),
    ("pub fn f() {\n    #[cfg(test)]\n    return;\n}", "is built otherwise for tests"),
    ("#[cfg_attr(test, derive(PartialEq))]\nstruct A;", "is built otherwise for tests"),
    ("pub fn f() { std::thread::current().name(); }", "asks for the name of its thread"),
    ("pub fn f() { let _ = std::env::current_exe(); }", "uses current_exe"),
    ('pub fn f() { std::env::set_current_dir("x"); }', "uses set_current_dir"),
    ("pub fn f() { std::panic::set_hook(Box::new(|_| {})); }", "uses set_hook"),
    ('pub fn f() -> bool { std::env::args().any(|a| a == "--nocapture") }', "mentions --nocapture"),
    ("impl PartialEq for A { fn eq(&self, _: &A) -> bool { true } }", "defines eq with the same answer"),
    ("impl PartialEq for A { fn eq(&self, _: &A) -> bool { return true; } }", "defines eq with the same answer"),
    ("#[ctor::ctor]\nfn f() {}", "runs before the tests do"),
    ('#[no_mangle]\npub extern "C" fn write(n: i32) -> isize { 0 }', "links as write (what others call by this name)"),
    ("#[unsafe(no_mangle)]\n#[inline(never)]\npub fn exit() {}", "links as exit"),
    ("#[cfg_attr(all(), no_mangle)]\npub fn exit() {}", "links as exit"),
    ('#[export_name = "write"]\npub fn w() {}', "links as write"),
    ('#[unsafe(export_name = "write")]\npub static W: u8 = 0;', "links as write"),
    ('core::arch::global_asm!("nop");', "writes machine code (global_asm!)"),
    ('fn f() { unsafe { asm!("syscall") } }', "writes machine code (asm!)"),
    ('include!("more.txt");', "includes more.txt (code that nobody reads)"),
    ('#[path = "more.txt"]\nmod more;', "includes more.txt (code that nobody reads)"),
    ("pub fn f() { unsafe { libc::syscall(231, 0); } }", "uses syscall (calls of the kernel by their number)"),
    ("pub fn f() { unsafe { dup2(3, 1); } }", "uses dup2 (what others have opened)"),
]
SCRIPT = [
    ("eval('1');", "calls eval"),
    ("globalThis.eval('1');", "calls globalThis.eval"),
    ("const f = new Function('return 1');", "calls Function"),
    ("const f = Function('return 1');", "calls Function"),
    ("import(name);", "imports what is computed"),
    ("new Worker(text, { eval: true });", "runs text in a worker"),
    ("fs.writeSync(4, 'x');", "writes to descriptor 4"),
    ("fs.createWriteStream(null, { fd: 4 });", "writes to descriptor 4"),
    ("fs.readFileSync('/proc/self/maps');", "mentions /proc/"),
    ("import { test } from 'node:test';", "imports node:test"),
    ("import 'vitest';", "imports vitest"),
    ("export * from '@jest/globals';", "imports @jest/globals"),
    ("const { test } = require('node:test');", "imports node:test"),
    ("const t = await import(`vitest/node`);", "imports vitest/node"),
    ("process.exit(0);", "calls process.exit(0)"),
    ("function f() { process.exit(); }", "calls process.exit(0)"),
    ("process.stdout.write = () => true;", "replaces process.stdout.write"),
    ("process['stdout'].write = () => true;", "replaces process.stdout.write"),
    ("console.log = () => {};", "replaces console.log"),
    ("process.exitCode = 0;", "replaces process.exitCode"),
    ("Object.defineProperty(process.stdout, 'write', { value() {} });", "replaces what is in process.stdout"),
    ("Array.prototype.includes = () => true;", "replaces Array.prototype.includes"),
    ("process.on('exit', () => {});", "waits for the end of the process"),
    ("console.info('TAP version 13');", "mentions TAP version"),
    ("console.info(`ok 1 - works`);", "mentions ok 1"),
    ("export const T = process.env.JEST_WORKER_ID;", "mentions JEST_WORKER_ID"),
    ("export const T = process.env['VITEST'];", "mentions VITEST"),
    ("export const T = process.env.NODE_ENV === 'test';", "asks whether NODE_ENV is test"),
    ("if (typeof jest !== 'undefined') f();", "asks whether there is jest"),
    ("if (import.meta.vitest) f();", "uses import.meta.vitest"),
    ("globalThis.expect(1);", "uses globalThis.expect"),
    ("const s = new Error('x').stack;", "reads the trace of an error"),
    ("Error.captureStackTrace({});", "uses Error.captureStackTrace"),
    ("process.send({});", "uses process.send"),
    ("const { send } = process;", "uses process.send"),
    ("const { _send: kept } = process;", "uses process._send"),
    ("process._send = (...all) => kept(...all);", "uses process._send"),
    ("process['_handle'].writeUtf8String('x');", "uses process._handle"),
    ("const c = process.channel;", "uses process.channel"),
    ("process.chdir('x');", "uses process.chdir"),
    ("const c = globalThis.process.channel;", "uses process.channel"),
    ("const m = globalThis[Symbol.for('$$jest-matchers-object')];", "calls Symbol.for"),
    ("const s = Object.getOwnPropertySymbols(globalThis);", "looks through what is global"),
    ("const s = Object.getOwnPropertySymbols(global);", "looks through what is global"),
    ("const s = Reflect.ownKeys(globalThis);", "looks through what is global"),
    ("const s = Object.getOwnPropertyDescriptors(globalThis);", "looks through what is global"),
    ("import a from 'node:assert';\nReflect.defineProperty(a, 'equal', {});", "replaces what is in a"),
    ("import * as a from 'assert';\nconst b = a.default;\nReflect.set(b, k, f);", "replaces what is in b"),
    ("const a = require('assert');\nObject.assign(a, { equal() {} });", "replaces what is in a"),
    ("import a from 'node:assert/strict';\na.equal = () => {};", "replaces a.equal"),
    ("import a from 'assert';\na[k] = () => {};", "replaces a."),
    ("import { strict } from 'assert';\nstrict.equal = () => {};", "replaces strict.equal"),
    ("const { default: a } = await import('assert');\na.equal = f;", "replaces a.equal"),
    ("class A { asymmetricMatch(other) { return other === this; } }", "defines asymmetricMatch"),
    ("class A { equals(other) { return true; } }", "defines equals with the same answer"),
    ("const a = { equals: () => true };", "defines equals with the same answer"),
    ("const a = new Proxy({}, handler);", "makes a Proxy (which answers whatever it is asked)"),
    ("const a = Proxy.revocable({}, handler);", "makes a Proxy"),
    ("expect.extend({});", "uses expect.extend (the test runner)"),
    ("jest.spyOn(Object, 'is');", "uses jest.spyOn (the test runner)"),
    ("vi.mock('./a.js');", "uses vi.mock (the test runner)"),
    ("beforeEach(() => {});", "calls beforeEach (the test runner)"),
    ("import { e } from '../node_modules/vitest/dist/index.js';", "imports ../node_modules/vitest/dist/index.js"),
    ("const base = Object;", "gives Object another name"),
    ("const { a } = {}, p = globalThis.process;", "gives globalThis.process another name"),
    ("import proc from 'node:process';", "gives process another name"),
    ("import * as proc from 'process';", "gives process another name"),
    ("const proc = require('node:process');", "gives process another name"),
    ("import { send } from 'node:process';", "uses process.send"),
    ("import process, { send as s } from 'node:process';", "uses process.send"),
    ("import { _linkedBinding as b } from 'process';", "uses process._linkedBinding"),
    ("import M from 'node:module';\nM._load = f;", "replaces M._load"),
    ("const M = require('module');\nM.prototype._compile = f;", "replaces M.prototype._compile"),
    ("require('module')._extensions['.js'] = f;", "replaces require()._extensions..js"),
    ("import { register } from 'node:module';\nregister('./hooks.js');", "calls register (how modules are loaded)"),
    ("import * as m from 'module';\nm.registerHooks({});", "calls m.registerHooks (how modules are loaded)"),
    ("module.constructor._load = f;", "uses module.constructor (how modules are loaded)"),
    ("require('assert').equal = f;", "replaces require().equal"),
    ("process.getBuiltinModule('node:assert').equal = f;", "replaces process.getBuiltinModule().equal"),
    ("import { parentPort } from 'node:worker_threads';", "uses parentPort (what the test runner hears)"),
]
MEANS = [
    *(("pkg/a.go", f"package a\n\n{source}\n", told) for source, told in GO),
    *(("src/a.rs", f"{source}\n", told) for source, told in RUST),
    *(("src/a.js", f"{source}\n", told) for source, told in SCRIPT),
    ("src/a.ts", "export const T: boolean = process.env.VITEST === 'true';\n", "mentions VITEST"),
    ("src/a.tsx", "export const A = () => <p>{String(process.env.VITEST)}</p>;\n", "mentions VITEST"),
]


@pytest.mark.parametrize(("path", "source", "told"), MEANS)
def test_a_means_is_told_with_its_line_and_once(path: str, source: str, told: str) -> None:
    found = notes(path, b"", source.encode())
    assert [note for note in found if told in note] == list(found)
    assert len(found) == 1
    assert found[0].startswith(f"{path}:")
    assert notes(path, source.encode(), b"\n" + source.encode()) == (), "it was there"


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("pkg/a.go", 'package a\n\nimport "os"\n\nfunc F() error {\n\treturn os.Remove("latest.value")\n}\n'),
        ("main.go", "package main\n\nfunc main() {\n\tif run() {\n\t\tos.Exit(0)\n\t}\n\tos.Exit(1)\n}\n"),
        ("pkg/a.go", 'package a\n\n// PASS and ok\nvar Words = []string{"PASSED", "ok", "contest.v2", "a.test"}\n'),
        ("pkg/a.go", "package a\n\nfunc (a A) Equal(b A) bool {\n\treturn a.n == b.n\n}\n"),
        (
            "pkg/a.go",
            "package a\n\nfunc (a A) Less(b A) bool {\n\tif a.n < b.n {\n\t\treturn true\n\t}\n\treturn false\n}\n",
        ),
        ("pkg/a_test.go", 'package a\n\nimport "testing"\n'),
        ("src/main.rs", "fn main() {\n    if run() { std::process::exit(0) }\n    std::process::exit(1)\n}\n"),
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
        ("README.md", "process.exit(0) test result: ok\n"),
    ],
)
def test_honest_code_has_no_note(path: str, source: str) -> None:
    assert notes(path, None, source.encode()) == ()


@pytest.mark.parametrize("path", ["a.go", "a.rs", "a.js", "a.mjs", "a.ts", "a.tsx"])
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_any_bytes_are_looked_at_without_a_crash(path: str, content: bytes) -> None:
    assert all(isinstance(note, str) for note in notes(path, None, content))


@pytest.mark.parametrize("path", ["a.go", "a.rs", "a.js"])
def test_what_nobody_reads_is_said_not_to_be_read(path: str) -> None:
    assert notes(path, None, b"x\n" * 400_000) == (f"{path} is too large; what it does to its tests was not looked at",)
    assert notes(path, None, b"(" * 20_000 + b")" * 20_000) == ()


@pytest.mark.parametrize(
    "path", ["src/a.pyc", "src/a.cpython-311-x86_64-linux-gnu.so", "add_amd64.S", "x.syso", "a.node"]
)
def test_compiled_code_is_said_to_be_read_by_nobody(path: str) -> None:
    told = f"{path} is compiled or machine code, which nobody reads; test results can be forged so"
    assert notes(path, None, b"\xa7\r\r\n\0") == notes(path, b"", b"x") == (told,)
