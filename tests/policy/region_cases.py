"""Edits of Rust files that only change test regions: what the region rule accepts, and what rustc is asked about."""

from __future__ import annotations

from typing import Final

import pytest

PLAIN: Final = "pub fn add(a: i32, b: i32) -> i32 { a + b }\n"
BASE: Final = """use std::fmt;
pub fn add(a: i32, b: i32) -> i32 { a + b }
pub mod inner {
    pub fn f() {}
    #[cfg(test)]
    mod tests { use super::*; #[test] fn t() { f(); } }
}
#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn it() { assert_eq!(add(1, 2), 3); }
}
"""
NEW: Final = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() {}\n}"


def with_line(line: str) -> str:
    """Return the base with one more line at the end of its last region."""
    return BASE.removesuffix("}\n") + f"    {line}\n}}\n"


EDITS_INSIDE: Final = (
    pytest.param(BASE, id="nothing"),
    pytest.param(BASE.replace("add(1, 2), 3", "add(2, 2), 4"), id="other-numbers"),
    pytest.param(BASE.replace("f(); }", "f(); f(); }"), id="RS-02-in-a-production-module"),
    pytest.param(with_line("mod deep { #[test] fn z() {} }"), id="RS-03-nested-module"),
    pytest.param(with_line("#[test] fn q() { let s = \"}} mod x {\"; /* } */ let c = '}'; }"), id="RS-04-braces"),
    pytest.param(with_line('fn q() { let r = r#"} "}"#; let b = br##"}"#"##; let c = b\'}\'; }'), id="raw-strings"),
    pytest.param(with_line("/* /* } */ } */ fn q<'a>(x: &'a str) -> &'a str { x }"), id="nested-comment-lifetime"),
    pytest.param(with_line(r"fn q() { let c = ['\'', '\u{7d}', '\\', '\x7d', '\u{1F600}']; }"), id="escapes"),
    pytest.param(with_line("macro_rules! m { ($x:tt) => { { $x } } }"), id="macro"),
    pytest.param(with_line("#[cfg(test)] mod deep { #[cfg(not(test))] mod never {} }"), id="regions-in-a-region"),
    pytest.param(with_line('fn q() { let s = include_str!("data.json"); }'), id="data-of-a-file"),
    pytest.param(with_line('extern crate std; extern "C" { fn getpid() -> i32; }'), id="extern"),
    pytest.param(with_line("#[cfg_attr(miri, ignore)] #[test] fn slow() {}"), id="an-attribute-on-a-condition"),
    pytest.param(with_line("fn q() { let path = 1; let include = path != 2; }"), id="words-that-are-names"),
    pytest.param(BASE.replace("mod tests {\n", "mod tests {\n    //! Our tests.\n"), id="inner-documentation"),
    pytest.param(with_line("fn é() {}").replace("é", "e /* é 🦀 */"), id="letters-in-a-comment"),
    pytest.param(BASE.replace("{ use super::*; #[test] fn t() { f(); } }", "{}"), id="RS-27-emptied"),
)
"""What the base becomes."""

NEW_REGIONS: Final = (
    pytest.param(PLAIN, f"{PLAIN}\n{NEW}\n", id="at-the-end"),
    pytest.param(PLAIN.strip(), f"{PLAIN}\n{NEW}", id="no-final-newline"),
    pytest.param("", NEW, id="empty-file"),
    pytest.param("#![no_std]\nfn a() {}\n", f"#![no_std]\n{NEW}\nfn a() {{}}\n", id="behind-an-inner-attribute"),
    pytest.param("//! Doc.\nfn a() {}\n", f"//! Doc.\n{NEW}\nfn a() {{}}\n", id="behind-inner-documentation"),
    pytest.param("mod p { fn a() {} }\n", f"mod p {{ fn a() {{}} {NEW} }}\n", id="in-a-production-module"),
    pytest.param("mod p { fn a() {} }\n", f"mod p {{ {NEW} fn a() {{}} }}\n", id="first-in-a-module"),
    pytest.param("fn a() {}\n\n\nfn b() {}\n", f"fn a() {{}}\n\n{NEW}\n\nfn b() {{}}\n", id="between-items"),
    pytest.param("struct A; // why\n", f"struct A; // why\n{NEW}\n", id="behind-a-comment"),
    pytest.param(BASE, BASE + NEW.replace("tests", "more") + "\n", id="a-second-one"),
    pytest.param(BASE, f"{NEW}\n{BASE}".replace("3); }", "3); let x = 1; }"), id="and-an-edit-in-another"),
    pytest.param(f"{NEW}\n{NEW}\n", f"{NEW}\n{NEW}\n{NEW}\n", id="the-same-again"),
)  # fmt: skip
"""What is there before, and after."""
