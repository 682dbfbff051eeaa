"""Code with the signatures that it has now and the bodies that it had: what is new is a stub, in each language."""

from __future__ import annotations

from functools import partial

import pytest

from pipeline.judge.evidence.red_classes import Symbol
from pipeline.testing.languages.sources.stubs import with_old_bodies

go = partial(with_old_bodies, "pipeline.testing.languages.go")
script = partial(with_old_bodies, "pipeline.testing.languages.javascript")
rust = partial(with_old_bodies, "pipeline.testing.languages.rust")

RUST = """
struct A;
impl A { fn one(&self) -> i32 { 1 } }
pub fn greet(n: &str) -> String { n.into() }
"""
RUST_NOW = """
struct A { more: i32 }
impl A { fn one(&self) -> i32 { 1 } fn two(&self) -> i32 { 2 } }
pub fn greet(n: &str) -> String { if n.is_empty() { n.into() } else { shout(n) } }
#[cfg(test)] mod tests { #[test] fn t() { assert!(true) } }
"""
GO = 'package a\nimport "fmt"\nfunc Greet(n string) string { return fmt.Sprint(n) }\n'
GO_NOW = (
    'package a\nimport ("fmt"; "strings")\nfunc Greet(n string) string { return fmt.Sprint(strings.ToUpper(n)) }\n'
    "func (p *T) New() int { return 1 }\n"
)
SCRIPT = "export function greet(n: string) { return n; }\nexport class A { one() { return 1; } }\n"
SCRIPT_NOW = (
    "export function greet(n: string, m = 1) { return shout(n); }\nexport const shout = (n: string) => { return n; };\n"
    "export class A { one() { return 1; } two() { return 2; } }\n"
)


def test_rust_has_old_bodies_and_todo_and_its_tests_as_they_are() -> None:
    found = rust({"a.rs": RUST}, {"a.rs": RUST_NOW}, kept=True)
    assert found.changed == (Symbol("a.rs", "greet", new=False),)
    text = found.files["a.rs"]
    assert "fn greet(n: &str) -> String { n.into() }" in text
    assert "struct A { more: i32 }" in text
    assert "fn two(&self) -> i32 { #![allow(unused)] todo!() }" in text
    assert "assert!(true)" in text
    bare = rust({"a.rs": RUST}, {"a.rs": RUST_NOW}, kept=False).files["a.rs"]
    assert "fn greet(n: &str) -> String { #![allow(unused)] todo!() }" in bare
    assert "fn one(&self) -> i32 { 1 }" in bare


@pytest.mark.parametrize("kept", [True, False])
def test_a_value_is_what_it_was_where_the_old_one_needs_no_name(kept: bool) -> None:
    was = 'impl A { const MAX: u32 = 5; }\npub static NAME: &str = "a b";\nconst OF: u32 = five();\nconst N: u8 = 1;\n'
    now = 'impl A { const MAX: u32 = 10; }\npub static NAME: &str = "c";\nconst OF: u32 = 6;\nconst N: u16 = 1_000;\n'
    wanted = (
        'impl A { const MAX: u32 = 5; }\npub static NAME: &str = "a b";\nconst OF: u32 = 6;\nconst N: u16 = 1_000;\n'
    )
    assert rust({"a.rs": was}, {"a.rs": now}, kept).files["a.rs"] == (wanted if kept else now)
    was, now = (f"package a\nconst Max = {each}\nvar (\n\tA, b = 1, 2\n\tC = {each}\n)\n" for each in ("5", "0x0a"))
    assert go({"a.go": was}, {"a.go": now}, kept).files["a.go"] == (was if kept else now)
    was, now = (f"export const MAX = {each};\nlet made = {{ a: {each} }};\n" for each in ("'it\\'s'", "`b`"))
    assert script({"a.ts": was}, {"a.ts": now}, kept).files["a.ts"].startswith((was if kept else now).split(";")[0])


def test_go_keeps_what_a_file_imports_in_use() -> None:
    found = go({"a.go": GO}, {"a.go": GO_NOW}, kept=True)
    assert found.changed == (Symbol("a.go", "Greet", new=False),)
    assert "{ if true { return fmt.Sprint(n) }; return fmt.Sprint(strings.ToUpper(n)) }" in found.files["a.go"]
    assert '(p *T) New() int { panic("not implemented"); return 1 }' in found.files["a.go"]
    assert (
        'Greet(n string) string { panic("not implemented"); ' in go({"a.go": GO}, {"a.go": GO_NOW}, False).files["a.go"]
    )


@pytest.mark.parametrize("kept", [True, False])
def test_script_has_stubs_for_functions_that_are_new_or_do_not_fit(kept: bool) -> None:
    text = script({"a.ts": SCRIPT}, {"a.ts": SCRIPT_NOW}, kept).files["a.ts"]
    assert ("greet(n: string, m = 1) { return n; }" in text) is kept
    assert 'shout = (n: string) => { throw new Error("not implemented"); }' in text
    assert 'one() { return 1; } two() { throw new Error("not implemented"); }' in text
