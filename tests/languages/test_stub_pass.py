"""What a stub pass may change: the named symbols as stubs, and what it takes to reach them (ADR-7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.judge.evidence.red_classes import Symbol
from pipeline.testing.languages.python.toolchain import PytestToolchain
from pipeline.testing.languages.rust.toolchain import CargoToolchain

if TYPE_CHECKING:
    from collections.abc import Sequence

PYTHON = '''"""Prices."""

import decimal

RATE = 3


class Cart:
    """What is bought."""

    def __init__(self):
        self.lines = []

    def add(self, name):
        self.lines.append(name)


def total(cart):
    return len(cart.lines)
'''
STUB = "    raise NotImplementedError\n"
RUST = """//! Prices.

use std::fmt;

pub const RATE: u32 = 3;

pub struct Cart { pub lines: Vec<String> }

impl Cart {
    pub fn add(&mut self, name: &str) { self.lines.push(name.into()); }
}

pub fn total(cart: &Cart) -> usize { cart.lines.len() }

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn empty() { assert_eq!(total(&Cart { lines: vec![] }), 0); }
}
"""


def _python(after: str, *names: str, before: str = PYTHON) -> list[str]:
    symbols = [Symbol("cart.py", name) for name in names]
    return [str(f) for f in PytestToolchain().stub_faults({"cart.py": before}, {"cart.py": after}, symbols)]


def _rust(after: str, *names: str, before: str = RUST) -> list[str]:
    symbols = [Symbol("src/lib.rs", name) for name in names]
    return [str(f) for f in CargoToolchain().stub_faults({"src/lib.rs": before}, {"src/lib.rs": after}, symbols)]


@pytest.mark.parametrize(
    ("added", "names"),
    [
        (f"\n\ndef price(cart, rate=None):\n{STUB}", ["price"]),
        (f'\n\ndef price(cart):\n    """Return it."""\n{STUB}', ["price"]),
        (f"\n\nasync def price(cart):\n{STUB}", ["price"]),
        ("\n\ndef price(cart):\n    raise NotImplementedError()\n", ["price"]),
        (f"    def drop(self, name):\n    {STUB}".replace("    def", "\n\nclass Basket(Cart):\n    def"), ["Basket"]),
        (f"\n\nclass Basket:\n    size: int = 0\n\n    def drop(self):\n    {STUB}", ["Basket.drop"]),
        ("\n\nclass Colour(enum.Enum):\n    RED = 1\n    BLUE = enum.auto()\n", ["Colour"]),
        ("\n\nLIMIT = 30\n", ["LIMIT"]),
        ("\n\nName = str | None\n", ["Name"]),
        (f"\n\nimport enum\n\n\ndef price():\n{STUB}\n\n__all__ = ['price']\n", ["price"]),
    ],
)
def test_python_stubs_are_accepted(added: str, names: Sequence[str]) -> None:
    assert _python(PYTHON + added, *names) == []


@pytest.mark.parametrize(
    ("after", "names", "said"),
    [
        (PYTHON + "\n\ndef price(cart):\n    return 3\n", ["price"], "body that is more"),
        (PYTHON + f"\n\ndef price(cart):\n    print(1)\n{STUB}", ["price"], "body that is more"),
        (PYTHON + "\n\ndef price(cart):\n    raise NotImplementedError(cart)\n", ["price"], "body that is more"),
        (PYTHON + f"\n\ndef price(cart):\n{STUB}\n\ndef help():\n{STUB}", ["price"], "help, which the task does not"),
        (PYTHON, ["price"], "does not define price"),
        (PYTHON.replace("len(cart.lines)", "3"), [], "changes total"),
        (PYTHON.replace("def total(cart)", "def total(cart, rate)"), [], "changes total"),
        (PYTHON.replace("def total(cart):\n    return len(cart.lines)\n", ""), [], "total is gone"),
        (PYTHON + "\n\nprint(total)\n", [], "adds a statement"),
        (PYTHON + "\n\nLIMIT = total(Cart())\n", ["LIMIT"], "value that is computed"),
        (PYTHON.replace("RATE = 3", "RATE = 4"), [], "changes RATE"),
        (PYTHON.replace("class Cart:", "class Cart(dict):"), [], "changes Cart"),
        (PYTHON + "\n\ndef price(:\n", ["price"], "cannot be parsed"),
    ],
)
def test_what_is_more_than_a_python_stub_is_told(after: str, names: Sequence[str], said: str) -> None:
    assert any(said in fault for fault in _python(after, *names)), _python(after, *names)


def test_a_named_function_may_get_another_signature_and_keeps_its_body() -> None:
    other = PYTHON.replace("def total(cart)", "def total(cart, rate=1)")

    assert _python(other, "total") == []
    assert _python(other.replace("len(cart.lines)", "rate"), "total") == ["cart.py:18 changes the body of total"]


def test_a_file_that_a_stub_pass_deletes_is_told() -> None:
    faults = PytestToolchain().stub_faults({"a.py": "x = 1\n"}, {}, [])

    assert [str(fault) for fault in faults] == ["a.py is gone"]


@pytest.mark.parametrize(
    ("added", "names"),
    [
        ("\npub fn price(cart: &Cart) -> u32 { todo!() }\n", ["price"]),
        ("\npub fn price(cart: &Cart) -> u32 {\n    // soon\n    todo!();\n}\n", ["crate::price"]),
        ("\nimpl Cart {\n    pub fn drop(&mut self) { todo!() }\n}\n", ["Cart::drop"]),
        ("\n#[derive(Debug)]\npub struct Coin { pub cents: u32 }\n", ["Coin"]),
        ("\npub struct Coin;\nimpl Clone for Coin { fn clone(&self) -> Coin { todo!() } }\n", ["Coin"]),
        ("\npub enum Kind { A, B(u32) }\n", ["Kind"]),
        ("\npub trait Priced { const UNIT: u32; fn price(&self); fn twice(&self) { todo!() } }\n", ["Priced"]),
        ("\npub const LIMIT: u32 = 30;\n", ["LIMIT"]),
        ("\npub mod coins;\nuse coins::Coin;\n", []),
        ("\npub mod coins { pub fn mint() { todo!() } }\n", ["coins::mint"]),
    ],
)  # fmt: skip
def test_rust_stubs_are_accepted(added: str, names: Sequence[str]) -> None:
    assert _rust(RUST + added, *names) == []


@pytest.mark.parametrize(
    ("after", "names", "said"),
    [
        (RUST + "\npub fn price() -> u32 { 3 }\n", ["price"], "body that is more"),
        (RUST + "\npub fn price() -> u32 { if true { todo!() } 3 }\n", ["price"], "body that is more"),
        (RUST + '\npub fn price() -> u32 { todo!("later") }\n', ["price"], "body that is more"),
        (RUST + "\npub fn price() { todo!() }\nfn help() { todo!() }\n", ["price"], "help, which the task does not"),
        (RUST, ["price"], "does not define price"),
        (RUST.replace("cart.lines.len()", "3"), [], "changes total"),
        (RUST.replace("self.lines.push(name.into());", ""), ["Cart::add"], "changes the body of Cart::add"),
        (RUST.replace("pub fn total(cart: &Cart) -> usize { cart.lines.len() }", ""), [], "total is gone"),
        (RUST + "\nthread_local! { static X: u32 = 1; }\n", [], "adds a statement"),
        (RUST + "\npub const LIMIT: u32 = limit();\n", ["LIMIT"], "value that is computed"),
        (RUST.replace("RATE: u32 = 3", "RATE: u32 = 4"), [], "changes RATE"),
        (RUST + "\nmacro_rules! m { () => { 1 } }\n", [], "adds m, which the task does not name"),
        (RUST + "\npub fn price( { todo!() }\n", ["price"], "cannot be parsed"),
    ],
)
def test_what_is_more_than_a_rust_stub_is_told(after: str, names: Sequence[str], said: str) -> None:
    assert any(said in fault for fault in _rust(after, *names)), _rust(after, *names)


def test_tests_beside_the_code_are_no_matter_of_the_stub_pass() -> None:
    assert _rust(RUST.replace("mod tests {", "mod tests {\n    fn help() -> u32 { 3 }")) == []


TWINS = """
pub enum Error { Io(std::io::Error), Text(std::fmt::Error) }

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self { Self::Io(error) }
}

impl From<std::fmt::Error> for Error {
    fn from(error: std::fmt::Error) -> Self { Self::Text(error) }
}

#[cfg(unix)]
pub fn home() -> u32 { 1 }

#[cfg(windows)]
pub fn home() -> u32 { 2 }
"""


def test_items_of_one_name_are_told_apart() -> None:
    """Two conversions into one type, and one function for each system."""
    before = RUST + TWINS
    price = "\npub fn price(cart: &Cart) -> u32 { todo!() }\n"
    other = "\nimpl From<u8> for Error {\n    fn from(code: u8) -> Self { todo!() }\n}\n"

    assert _rust(before + price, "price", before=before) == []
    assert _rust(before + other, "Error::From::from", before=before) == []
    assert _rust(before + other.replace("todo!()", "Self::Io(code)"), "Error::From::from", before=before) == [
        "src/lib.rs:39 gives Error::From::from a body that is more than `todo!()`"
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{ 1 }", "{ 3 }", ["src/lib.rs:33 changes home, which the task does not name"]),
        ("{ 2 }", "{ 3 }", ["src/lib.rs:36 changes home, which the task does not name"]),
        ("Self::Io(error)", "todo!()", ["src/lib.rs:25 changes Error::From::from, which the task does not name"]),
        ("#[cfg(windows)]\npub fn home() -> u32 { 2 }\n", "", ["src/lib.rs home is gone"]),
    ],
)
def test_a_change_of_one_of_them_is_told_with_its_own_line(old: str, new: str, said: list[str]) -> None:
    assert _rust((RUST + TWINS).replace(old, new), before=RUST + TWINS) == said
