"""Rust sources and edits of them, spelt by bytes: whatever makes bytes (hypothesis, atheris) makes edits.

The soup is cooked from pieces on which lexers differ. It holds no macro that reads a file, so rustc may be given it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fuzz.rustc import EDITIONS

PIECES: Final = (
    " ", "\n", "\r\n", "\t", "{", "}", "(", ")", "[", "]", '"', "'", "#", "\\", "r", "b", "c", "cr", "br", "1e", "0x",
    "1.", "a", "!", "$", ";", ",", "=", "::", "<", ">", "&", "|", "-", ".", "é", "/*", "*/", "//", "///", "//!", "/**/",
    'r#"', '"#', 'cr#"', '"a"', '""', "'}'", "'{'", r"'\''", "'a", "b'}'", '"}"', r'"\"', r'r"\"', "'r#a", "k#",
    "m!{", "stringify!(", "stringify!{", "macro_rules! m { () => {} }", "/* /* */ */", "// }\n", '// "\n', "/* } */",
    "fn a() {}", "pub fn evil() {}", "pub mod z {", "mod z;", "pub struct S;", "impl S {}", "fn f<'a>(x: &'a u8) {}",
    "#[cfg(test)]", "#[cfg(test)] mod t {", "#[cfg(test)]\nmod n {}", "#[inline]", "#[cfg(any())]", "#[doc(hidden)]",
    "#![allow(x)]", "const X: u8 = {", "0};", "use super::*;", "#[test] fn t() { assert_eq!(f(), 1); }",
)  # fmt: skip

OPENINGS: Final = (
    'cr#""', r'cr"\"', '"a"r#""', "'a'r#\"\"", 'b"a"br#""', 'r"a"br#""', '1r#""', '0x1r#""', '1.0r#""', 'k#""', "'r#a",
    "'a", "b'", 'br#""', r'r"\"', r'c"\"', "/*", "/**/", "//", '"', 'r##""#', "x'", r'1.r"\"', '1e+r#""', 'a\u0301r#""',
)  # fmt: skip
CLOSINGS: Final = ('"#/*"*/', '"/*"*/', '"', "'", "*/", "\n", '"#', "'*/", r"\"", '"//"\n', "", '"##/*"*/', '/*"*/')
"""What one lexer takes for the ends of something long, and another one for two short things."""

MACRO: Final = "macro_rules! m { ($($x:tt)*) => {} }\n"
BASES: Final = (
    ("pub fn f() -> u8 { 1 }\n#[cfg(test)]\nmod tests {", "}\n"),
    ("#![allow(dead_code)]\n//! Doc.\npub mod p {\n    // pub fn g() {}\n    #[cfg(test)]\n    mod t {", "}\n}\n"),
    ("/* pub fn h() {} */ // pub fn i() {}\n#[cfg(test)] mod a {", '} pub const C: &str = "}"; // pub fn j() {}\n'),
    (MACRO + "m! { '}' r#\"}\"# }\n#[cfg(test)] mod a {", "}\nm! { }\npub struct S {}\n"),
    ("/// Doc.\n#[inline]\npub fn k() {}\n#[allow(unused)] #[cfg(test)] mod a {", "}\n#[cfg(any())]\npub fn l() {}\n"),
    ("macro_rules! x { ($($t:tt)*) => { $($t)* } }\nx! { mod t {", "} }\n"),
)


@dataclass(frozen=True)
class Edit:
    """A file before and after, and the edition to read both in."""

    old: bytes
    new: bytes
    edition: str


def soup(spelling: bytes) -> str:
    """Return the pieces that some bytes spell."""
    return "".join(PIECES[byte % len(PIECES)] for byte in spelling)


def edit(data: bytes) -> Edit:
    """Return the edit that some bytes spell: three for its kind, the rest for what goes before and what goes in."""
    kind, place, size = data[:3].ljust(3, b"\0")
    edition = EDITIONS[kind % len(EDITIONS)]
    start, end = BASES[kind // len(EDITIONS) % len(BASES)]
    before, after = soup(data[3 : 3 + size % 8]), soup(data[3 + size % 8 :])
    old = start + end
    at = place * len(old) // 256
    match place % 8:
        case 0:
            new = start + after + end
        case 1:
            new = f"{start} stringify!{{ {after} }} {end}"
        case 2:
            old, new = start + before + end, start + after + end
        case 3:
            outside = f"m!{{ {before} }}\n"
            old, new = outside + old, outside + start + after + end
        case 4:
            new = old[:at] + after + old[at:]
        case 5 | 6:
            opening, closing = OPENINGS[at % len(OPENINGS)], CLOSINGS[size % len(CLOSINGS)]
            trap = f"m!{{ {opening} }} }} pub fn evil() {{}} mod z {{ m!{{ {closing} }}"
            old, new = MACRO + old, MACRO + start + trap + end
        case _:
            new = f"{old[:at]}{before}\n#[cfg(test)]\nmod n {{{after}}}\n{old[at:]}"
    return Edit(old.encode(), new.encode(), edition)
