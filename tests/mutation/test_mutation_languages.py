"""The faults of Rust, Go, JavaScript and TypeScript, one by one."""

from __future__ import annotations

import pytest

from pipeline.testing.languages.sources.faults import mutants


def made(path: str, text: str) -> dict[str, str]:
    source = text.encode()
    return {m.what: m.apply(source).decode() for m in mutants(path, source, range(1, text.count("\n") + 2))}


CHANGED = [
    ("a.rs", "fn f() -> u8 { g(); 1 }", "`g();` is left out", "fn f() -> u8 { if false { g(); } 1 }"),
    ("a.rs", "fn f() -> u8 { a }", "returns `Default::default()`", "fn f() -> u8 { Default::default() }"),
    ("a.rs", "fn f() -> Option<u8> { Some(1) }", "returns `None`", "fn f() -> Option<u8> { None }"),
    ("a.rs", "fn f() -> bool { a < 1u8 }", "`<` becomes `<=`", "fn f() -> bool { a <= 1u8 }"),
    ("a.rs", "fn f() -> u8 { 1_0u8 }", "`1_0u8` becomes `11u8`", "fn f() -> u8 { 11u8 }"),
    ("a.rs", "fn f() { for i in a { b(i); } }", "the loop does nothing",
     "fn f() { for i in a { if false { b(i); } } }"),
    ("a.rs", 'fn f() { if a { panic!("x"); } }', '`panic!("x");` is left out',
     'fn f() { if a { if false { panic!("x"); } } }'),
    ("a.rs", "fn f() { match a { 1 if b => c(), _ => d(), } }", "the arm is never taken: `b` is false",
     "fn f() { match a { 1 if false => c(), _ => d(), } }"),
    ("a.go", "package a\nfunc f() error { return g() }", "returns `nil`",
     "package a\nfunc f() error { return nil }"),
    ("a.go", "package a\nfunc f() (T, int, error) { return t, n, err }", "returns `*new(T), 0, nil`",
     "package a\nfunc f() (T, int, error) { return *new(T), 0, nil }"),
    ("a.go", "package a\nfunc f() { x++ }", "`x++` is left out", "package a\nfunc f() { if false { x++ } }"),
    ("a.go", "package a\nfunc f() { x += y }", "`+=` becomes `-=`", "package a\nfunc f() { x -= y }"),
    ("a.go", "package a\nfunc f() { if !a { g() } }", "the branch is never taken: `!a` is false",
     "package a\nfunc f() { if false { g() } }"),
    ("a.js", "if (a) { throw new Error('x'); }", "`throw new Error('x');` is left out", "if (a) { ; }"),
    ("a.js", "const f = (a) => a;", "returns `undefined`", "const f = (a) => undefined;"),
    ("a.ts", "const f = (a: T) => a;", "returns `undefined as never`", "const f = (a: T) => undefined as never;"),
    ("a.js", "f(a, /* last */ b);", "the argument `b` is left out", "f(a);"),
    ("a.js", "try { a(); } catch (e) { b(); }", "what is caught is thrown again",
     "try { a(); } catch (e) { throw e; }"),
    ("a.js", "for (const a of b) { c(); }", "the loop is never entered", "for (const a of []) { c(); }"),
    ("a.js", "x = a !== b;", "`!==` becomes `===`", "x = a === b;"),
    ("a.js", "x = a || b;", "`b` is left out", "x = a || false;"),
    ("a.js", "x = {'k': 'v'};", "the text `'v'` is empty", "x = {'k': ''};"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "before", "what", "after"), CHANGED)
def test_what_is_changed(path: str, before: str, what: str, after: str) -> None:
    assert made(path, before)[what] == after


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.rs", "#[cfg(test)]\nmod tests { fn f() -> u8 { 1 + 1 } }"),
        ("a.rs", "#[cfg(all(test, unix))]\n// why\nfn f() -> u8 { 1 + 1 }"),
        ("a.rs", "#[cfg(all(unix, test))]\n#[allow(x)]\nmod tests { const A: u8 = 1; }"),
        ("a.rs", "#[tokio::test]\nasync fn f() { g(1 < 2); }"),
        ("a.rs", "#[derive(Debug)]\nstruct A { b: [u8; 4] }\ntype C = [u8; 3];"),
        ("a.rs", 'fn f() { println!("{}", 1 + 1); }'),
        ("a.rs", "fn f() { if let Some(x) = y {} }"),
        ("a.go", 'package a\n\nimport "fmt"\n\ntype A struct { B string `json:"b"` }'),
        ("a.go", 'package a\nfunc f() { log.Printf("x %d", 1); slog.Info("y") }'),
        ("a.js", "'use strict';\nimport a from 'b';\nexport * from 'c';\nconst { d } = require('e');"),
        ("a.js", "console.log('x', 1 < 2);"),
        ("a.js", "if (import.meta.vitest) { test('a', () => { expect(1 + 1).toBe(2); }); }"),
        ("a.ts", "type A = 'a' | 1;\ninterface B { c: true }\nlet d: 'x';"),
        ("a.ts", "@dec('x', 1)\nclass A {}"),
    ],
)
def test_what_is_left_alone(path: str, text: str) -> None:
    assert made(path, text) == {}


def test_faults_of_a_rust_file_are_told_by_function() -> None:
    text = b"impl Cart {\n    fn a(&self) -> u8 { 1 }\n}\nmod m {\n    fn b() -> u8 { 2 }\n}\n"
    assert {mutant.function for mutant in mutants("a.rs", text, range(1, 9))} == {"Cart.a", "m.b"}
