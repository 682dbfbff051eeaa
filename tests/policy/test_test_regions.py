from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy.region_cases import BASE, EDITS_INSIDE, NEW, NEW_REGIONS, PLAIN, with_line

from pipeline.testing.languages.rust.regions import MAX_BYTES, MAX_DEPTH
from pipeline.testing.languages.rust.test_regions import interesting, only_test_regions, region_fault


def judged(old: str, new: str, path: str = "src/lib.rs") -> str | None:
    fault = region_fault(path, old.encode(), new.encode())
    assert only_test_regions(path, old.encode(), new.encode()) is (fault is None)
    return fault


@pytest.mark.parametrize("new", EDITS_INSIDE)
def test_an_edit_inside_regions_is_accepted(new: str) -> None:
    assert judged(BASE, new) is None
    assert judged(BASE.replace("\n", "\r\n"), new.replace("\n", "\r\n")) is None


@pytest.mark.parametrize(
    "head",
    [
        "#[ cfg ( test ) ]\nmod tests",
        "#[cfg/* why */(test)] // when testing\nmod tests",
        '#[cfg(test)]\n#[allow(clippy::unwrap_used, reason = "tests")]\nmod tests',
        "#[expect(dead_code)]\n#[cfg(test)]\nmod tests",
        "/// Our tests.\n#[cfg(test)]\npub(crate) mod tests",
    ],
)
def test_a_region_may_be_written_in_several_ways(head: str) -> None:
    assert judged(f"{PLAIN}{head} {{}}\n", f"{PLAIN}{head} {{ fn x() {{}} }}\n") is None


@pytest.mark.parametrize(("old", "new"), NEW_REGIONS)
def test_one_whole_new_region_may_be_put_between_items(old: str, new: str) -> None:
    assert judged(old, new) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(PLAIN, f"/// Doc.\n{NEW}\n", id="instead-of-an-item"),
        pytest.param("/// Adds.\nfn a() {}\n", f"/// Adds.\n{NEW}\nfn a() {{}}\n", id="takes-the-documentation"),
        pytest.param("#[inline]\nfn a() {}\n", f"#[inline]\n{NEW}\nfn a() {{}}\n", id="takes-an-attribute"),
        pytest.param("#[allow(x)]\nfn a() {}\n", f"#[allow(x)]\n{NEW}\nfn a() {{}}\n", id="takes-a-lint"),
        pytest.param("#[cfg(any())]\nfn a() {}\n", f"#[cfg(any())]\n{NEW}\nfn a() {{}}\n", id="takes-a-condition"),
        pytest.param("// fn evil() {}\n", f"// \n{NEW}\nfn evil() {{}}\n", id="ends-a-comment"),
        pytest.param("//     fn evil() {}\n", f"//\n{NEW}\n   fn evil() {{}}\n", id="ends-a-comment-at-blanks"),
        pytest.param("/* fn evil() {} */\n", f"/* {NEW} fn evil() {{}} */\n", id="in-a-comment"),
        pytest.param(PLAIN, f"{PLAIN}{NEW}\n{NEW.replace('tests', 'more')}\n", id="two-at-once"),
        pytest.param(PLAIN, f"{PLAIN}{NEW}\nfn evil() {{}}\n", id="with-more-behind-it"),
        pytest.param(PLAIN, f"{PLAIN}// now\n{NEW}\n", id="with-a-comment"),
        pytest.param(PLAIN, f"{PLAIN}{NEW.replace('mod', 'pub mod')}\n", id="public"),
        pytest.param(PLAIN, f"{PLAIN}/// Doc.\n{NEW}\n", id="documented"),
        pytest.param(PLAIN, f"{PLAIN}#[allow(unused)]\n{NEW}\n", id="with-a-lint"),
        pytest.param(f"fn a() {{}}\n\n{PLAIN}", f"fn a() {{}}{NEW}{PLAIN}", id="blanks-lost"),
        pytest.param("fn a() {\n}\n", f"fn a() {{\n{NEW}\n}}\n", id="in-a-function"),
        pytest.param("impl A {\n}\n", f"impl A {{\n{NEW}\n}}\n", id="in-an-impl"),
        pytest.param("m! {\n}\n", f"m! {{\n{NEW}\n}}\n", id="in-a-macro"),
        pytest.param("#[mine]\nmod p {\n}\n", f"#[mine]\nmod p {{\n{NEW}\n}}\n", id="in-a-module-that-a-macro-gets"),
        pytest.param("#[a::doc]\nmod p {\n}\n", f"#[a::doc]\nmod p {{\n{NEW}\n}}\n", id="a-macro-with-a-known-name"),
        pytest.param("#![no_std]\nfn a() {}\n", f"{NEW}\n#![no_std]\nfn a() {{}}\n", id="before-an-inner-attribute"),
        pytest.param("mod p {\n//! Doc.\n}\n", f"mod p {{\n{NEW}\n//! Doc.\n}}\n", id="before-inner-documentation"),
        pytest.param("static A: B = B {};\n", f"static A: B = B {{}} {NEW} ;\n", id="within-an-item"),
    ],
)  # fmt: skip
def test_a_new_region_elsewhere_or_with_more_is_refused(old: str, new: str) -> None:
    assert judged(old, new) is not None


@pytest.mark.parametrize(
    "head",
    [
        pytest.param("#[cfg(any(test, not(test)))]\nmod tests", id="RS-11"),
        pytest.param("#[cfg(not(test))]\nmod tests", id="RS-12"),
        pytest.param("#[cfg(all(test, unix))]\nmod tests", id="RS-13"),
        pytest.param("#[cfg_attr(all(), cfg(test))]\nmod tests", id="RS-23"),
        pytest.param('#[cfg(test)]\n#[cfg(feature = "x")]\nmod tests', id="RS-24"),
        pytest.param("#[cfg(test)]\n#[cfg(test)]\nmod tests", id="twice"),
        pytest.param("#[cfg(test)]\n#[mine]\nmod tests", id="a-macro-behind"),
        pytest.param("#[mine]\n#[cfg(test)]\nmod tests", id="a-macro-before"),
        pytest.param('#[cfg(test)]\n#[path = "e"]\nmod tests', id="path"),
        pytest.param("#[cfg(test)]\n#[macro_use]\nmod tests", id="macro-use"),
        pytest.param("#[cfg(test,)]\nmod tests", id="comma"),
        pytest.param("#[r#cfg(test)]\nmod tests", id="raw-name"),
        pytest.param("#[test]\nmod tests", id="not-a-condition"),
        pytest.param("#![cfg(test)]\nmod tests", id="inner-of-the-file"),
        pytest.param("mod tests", id="plain-module"),
        pytest.param("#[cfg(test)]\nimpl A", id="impl"),
        pytest.param("#[cfg(test)]\nfn tests()", id="function"),
        pytest.param("macro_rules! x { () => { #[cfg(test)] mod t {} } }\nmod tests", id="RS-20"),
        pytest.param("fn f() {} // #[cfg(test)]\nmod tests", id="in-a-comment"),
        pytest.param('const A: &str = "#[cfg(test)]";\nmod tests', id="in-a-string"),
    ],
)
def test_an_edit_in_what_is_no_region_is_refused(head: str) -> None:
    old = f"struct A;\n{head} {{ }}\n"
    assert "outside of test modules" in (judged(old, f"struct A;\n{head} {{ const X: u8 = 1; }}\n") or "")


def test_a_module_with_a_word_before_it_is_no_region() -> None:
    assert judged(f"{PLAIN}#[cfg(test)]\nunsafe mod t {{}}\n", f"{PLAIN}#[cfg(test)]\nunsafe mod t {{ }}\n") is not None


def test_a_region_in_another_file_is_refused() -> None:
    assert judged(PLAIN, f"{PLAIN}#[cfg(test)]\nmod tests;\n") is not None


def test_a_file_that_is_all_test_is_no_region() -> None:
    assert judged("#![cfg(test)]\nfn a() {}\n", "#![cfg(test)]\nfn b() {}\n") is not None


@pytest.mark.parametrize(
    ("new", "line"),
    [
        pytest.param(BASE.replace("fmt;", "fmt; // ok"), 1, id="RS-25-comment"),
        pytest.param(BASE.replace("{ a + b }", "{  a + b  }"), 2, id="RS-26-blanks"),
        pytest.param(BASE.replace("a + b", "a - b"), 2, id="code"),
        pytest.param(BASE.replace("#[cfg(test)]\nmod", "#[cfg(test)]\npub mod"), 9, id="RS-29-visibility"),
        pytest.param(BASE.replace("mod tests {\n", "mod renamed {\n"), 9, id="name"),
        pytest.param(BASE.replace("#[cfg(test)]\nmod", "mod"), 8, id="condition-gone"),
        pytest.param(BASE[: BASE.rindex("#[cfg(test)]\n")], 7, id="RS-28-gone"),
        pytest.param(f"{BASE}fn evil() {{}}\n", 14, id="appended"),
        pytest.param(BASE.replace("3); }\n}", "3); } }\nfn evil() {}"), 13, id="closed-early"),
    ],
)
def test_a_difference_outside_is_refused_with_its_line(new: str, line: int) -> None:
    fault = judged(BASE, new)
    assert fault is not None
    assert fault.startswith(f"line {line} ")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        pytest.param("#![cfg_attr(all(), macro_use)]", "#![cfg_attr(", id="RS-15"),
        pytest.param("# ! [allow(dead_code)]", "#![allow(dead_code)]", id="inner-attribute"),
        pytest.param("#[macro_export] macro_rules! m { () => {} }", "#[macro_export]", id="macro-export"),
        pytest.param('#[path = "../evil.rs"] mod e;', "#[path", id="RS-17"),
        pytest.param('include!("/etc/passwd");', "include!", id="RS-18"),
        pytest.param('r#include! { "x" }', "include!", id="raw-include"),
        pytest.param('use std::include as i; std :: include ! ("x");', "include!", id="include-by-path"),
        pytest.param("mod elsewhere;", "mod elsewhere ;", id="module-in-a-file"),
        pytest.param('#[no_mangle] pub extern "C" fn malloc(n: usize) {}', "#[no_mangle]", id="RS-33"),
        pytest.param('#[unsafe(no_mangle)] pub extern "C" fn malloc(n: usize) {}', "no_mangle", id="unsafe-no-mangle"),
        pytest.param("#[cfg_attr(all(), no_mangle)] pub fn malloc() {}", "no_mangle", id="conditional-no-mangle"),
        pytest.param("#[r#no_mangle] pub fn malloc() {}", "no_mangle", id="raw-no-mangle"),
        pytest.param('#[export_name = "malloc"] pub fn m() {}', "export_name", id="export-name"),
        pytest.param('#[link_section = ".init_array"] static S: fn() = m;', "link_section", id="link-section"),
        pytest.param('#[link(name = "evil")] extern "C" {}', "#[link(", id="link"),
        pytest.param("#[global_allocator] static A: B = B;", "global_allocator", id="global-allocator"),
        pytest.param('core::arch::global_asm!("x");', "global_asm!", id="global-asm"),
        pytest.param('fn f() { asm!["nop"] }', "asm!", id="asm"),
        pytest.param("quote! { #[no_mangle] fn f() {} }", "#[no_mangle]", id="in-a-macro"),
        pytest.param("mod deep { #![allow(x)] }", "#![allow(x)]", id="deeper"),
    ],
)
def test_what_reaches_beyond_a_region_is_refused_unless_it_was_there(line: str, word: str) -> None:
    new = BASE.replace("mod tests {\n", f"mod tests {{\n    {line}\n")
    fault = judged(BASE, new)
    assert fault is not None
    assert word in fault
    assert fault.startswith("line 10 ")
    assert judged(new, new.replace("3); }", "3); add(0, 0); }")) is None
    assert judged(new, BASE) is None
    assert judged(new, new.replace(line, f"{line}\n    {line}")) is not None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param("fn q() {} }", "closes nothing", id="RS-31-unbalanced"),
        pytest.param("fn q() {", "nothing closes", id="unbalanced-open"),
        pytest.param("fn q() { ( } )", "closes nothing", id="crossed"),
        pytest.param("/* never", "does not end", id="unterminated-comment"),
        pytest.param('fn q() { " }', "unfinished", id="unterminated-string"),
        pytest.param('fn q() { r#" }', "raw string", id="unterminated-raw-string"),
        pytest.param('fn q() { m!(cr"a") }', "raw C string", id="raw-c-string"),
        pytest.param('fn q() { m!("a"r"b") }', "suffix", id="suffix"),
        pytest.param("fn q() { 'ab' }", "unfinished", id="two-letters"),
        pytest.param("fn q() { 1 + }", "not understood", id="no-rust"),
        pytest.param("fn é() {}", "character", id="name-that-is-not-ascii"),
        pytest.param("// \u202e gnp", "\\u202e", id="bidi"),
        pytest.param("// a\u200bb", "\\u200b", id="zero-width"),
        pytest.param("// a\ufeffb", "\\ufeff", id="byte-order-mark"),
        pytest.param("// a\u3164b", "\\u3164", id="invisible-letter"),
        pytest.param("// a\U000e0101b", "\\U000e0101", id="hidden-selector"),
        pytest.param("// a\x00b", "\\x00", id="nul"),
        pytest.param("// a\x1b[2Jb", "\\x1b", id="terminal-escape"),
        pytest.param("// a\rfn evil() {}", "carriage return", id="bare-carriage-return"),
        pytest.param("// a\u2028b", "\\u2028", id="line-separator"),
    ],
)  # fmt: skip
def test_what_could_be_read_in_two_ways_is_refused_on_either_side(line: str, why: str) -> None:
    doubtful = with_line(line)
    assert why in (judged(BASE, doubtful) or "")
    fault = judged(doubtful, BASE)
    assert fault is not None
    assert "of the file as it was" in fault
    assert judged(doubtful, doubtful) is not None


def test_bytes_that_are_no_text_and_lines_for_the_shell_are_refused() -> None:
    assert "not UTF-8" in (region_fault("a.rs", BASE.encode(), BASE.encode() + b"// \xff\n") or "")
    assert "the shell" in (judged(f"#!/bin/x\n{BASE}", f"#!/bin/x\n{BASE}") or "")
    assert "not understood" in (judged(f"---\n---\n{BASE}", f"---\n---\n{BASE}") or "")


@pytest.mark.parametrize("path", ["src/app.py", "src/lib.rs.txt", "lib.go", "a.RS", ""])
def test_no_other_language_has_regions(path: str) -> None:
    assert "not Rust" in (judged(BASE, BASE, path) or "")


def test_sources_beyond_the_limits_are_refused_without_being_parsed() -> None:
    assert "more than" in (judged(BASE, BASE + "//" + "x" * MAX_BYTES) or "")
    deep = with_line(f"fn q() {{ m!{'(' * MAX_DEPTH}{')' * MAX_DEPTH}; }}")
    assert "deeper" in (judged(BASE, deep) or "")


@pytest.mark.broad
@pytest.mark.slow
def test_a_large_file_of_tiny_regions_is_judged_in_good_time() -> None:
    many = "#[cfg(test)]mod a{}" * 4_000
    assert judged(many, f"{many}#[cfg(test)]mod b{{}}") is None


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_are_judged_without_an_exception(old: bytes, new: bytes) -> None:
    region_fault("a.rs", old, new)
    interesting(old, new)


def test_a_test_that_is_gone_or_silenced_is_noted() -> None:
    old = with_line(
        'mod deep { #[tokio::test(flavor = "x")] async fn slow() {} } #[test] /* c */ fn kept() {} fn no() {}'
    )
    new = old.replace("async fn slow", "async fn renamed").replace("#[test] /* c */", '#[test] #[ignore = "later"]')
    assert judged(old, new) is None
    assert interesting(old.encode(), new.encode()) == (
        "the test tests::deep::slow is gone",
        "the test tests::kept is ignored from now on",
    )
    assert interesting(old.encode(), old.encode()) == ()


def test_an_impl_for_a_type_of_the_production_code_is_noted() -> None:
    new = with_line(
        "struct Own<T>(T); trait Mine {} impl Clone for Own<u8> {} impl Mine for super::Real {} "
        "impl Drop for super::Real { } fn f() { impl<T> PartialEq for inner::Other<T> { } } impl super::Real {}"
    )
    assert judged(BASE, new) is None
    notes = interesting(BASE.encode(), new.encode())
    assert [note.split("`")[1] for note in notes] == [
        "impl Drop for super::Real",
        "impl PartialEq for inner::Other<T>",
        "impl super::Real",
    ]
    assert interesting(new.encode(), new.encode()) == ()


def test_the_parser_is_not_loaded_before_a_rust_file_is_judged() -> None:
    code = (
        "import sys, pipeline.agents.dispatch.gate; assert not [name for name in sys.modules if 'tree_sitter' in name]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
