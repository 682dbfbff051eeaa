"""Stubs of Rust symbols and what a change introduces, from sources alone."""

from __future__ import annotations

from textwrap import dedent

from languages.crates import TOOLCHAIN

from pipeline.judge.evidence.red_classes import Symbol

BODY = "{ #![allow(unused)] todo!() }"
SOURCE = dedent(
    """\
    //! Greetings, “quoted”.
    pub const LIMIT: u32 = 3;

    /// Greets.
    #[must_use]
    pub fn greet(name: &str) -> String where {
        format!("Hello, {name}!")
    }

    pub struct Greeter<T> { loud: T }

    impl<T: Clone> Greeter<T> {
        pub const fn new(loud: T) -> Self { Self { loud } }
        pub fn polite(&self) -> bool { true }
    }

    impl<T> std::fmt::Display for Greeter<T> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { write!(f, "x") }
    }

    pub trait Speak { fn say(&self) -> u32 { 1 } fn hush(&self); }

    pub mod inner {
        pub fn deep() -> u32 { 7 }
    }

    #[cfg(test)]
    mod tests {
        fn greet() {}
        #[test]
        fn it() { assert!(true); }
    }
    """
)


def stubbed(*names: str, path: str = "src/lib.rs") -> tuple[str, tuple[str, ...]]:
    done = TOOLCHAIN.stub_symbols({"src/lib.rs": SOURCE}, [Symbol(path, name) for name in names])
    return done.files.get("src/lib.rs", SOURCE), tuple(symbol.name for symbol in done.unknown)


def test_a_function_loses_its_body_and_nothing_else_changes() -> None:
    assert stubbed("greet") == (SOURCE.replace('{\n    format!("Hello, {name}!")\n}', BODY), ())


def test_a_type_loses_the_bodies_of_all_its_functions() -> None:
    text, _ = stubbed("Greeter")
    assert text.count(BODY) == 3
    assert "struct Greeter<T> { loud: T }" in text


def test_a_method_is_named_with_its_type_in_either_way_of_writing() -> None:
    expected = SOURCE.replace("{ true }", BODY)
    assert (
        stubbed("Greeter.polite")[0]
        == stubbed("Greeter::polite")[0]
        == stubbed("crate::Greeter::polite")[0]
        == expected
    )


def test_traits_modules_and_items_in_modules() -> None:
    assert stubbed("Speak")[0] == SOURCE.replace("{ 1 }", BODY)
    expected = SOURCE.replace("{ 7 }", BODY)
    assert stubbed("deep")[0] == stubbed("inner::deep")[0] == stubbed("inner")[0] == expected


def test_a_value_is_replaced_where_there_is_no_function() -> None:
    assert stubbed("LIMIT")[0] == SOURCE.replace("= 3;", "= todo!();")
    assert "= 3;" in stubbed("LIMIT", "greet")[0]


def test_what_is_unknown_is_said_and_test_code_is_left_alone() -> None:
    assert stubbed("nobody", "it") == (SOURCE, ("nobody", "it"))
    assert stubbed("greet", path="src/other.rs") == (SOURCE, ("greet",))


def test_what_a_change_introduces() -> None:
    before = (
        SOURCE.replace("pub fn polite", "fn rude").replace("pub mod inner", "pub mod outer").replace("deep", "flat")
    )
    assert TOOLCHAIN.introduced({"src/lib.rs": before}, {"src/lib.rs": SOURCE}) == (
        Symbol("src/lib.rs", "Greeter.polite"),
        Symbol("src/lib.rs", "deep"),
    )
    everything = TOOLCHAIN.introduced({}, {"src/lib.rs": SOURCE})
    assert [symbol.name for symbol in everything] == [
        "LIMIT", "greet", "Greeter", "Greeter.new", "Greeter.polite", "Greeter.fmt", "Speak", "deep",
    ]  # fmt: skip
