"""What one run of a workspace shows: every way in which a Rust test can end, and what it is for the judges."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from languages.crates import TOOLCHAIN, measure, needs_cargo
from languages.direct import by_name, context_of, expected, files_of, judged, write

from pipeline.judge.evidence.classify import classify
from pipeline.judge.evidence.observation import Ended, Observation, RunState
from pipeline.judge.evidence.red_classes import RedClass, Symbol

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_cargo]

WORKSPACE = {
    "Cargo.toml": '[workspace]\nresolver = "2"\nmembers = ["greet", "crates/*"]\n',
    "greet/Cargo.toml": '[package]\nname = "greet"\nversion = "0.1.0"\nedition = "2021"\n',
    "greet/src/lib.rs": """
        //! Greetings.

        pub mod deep;

        /// Greets.
        ///
        /// ```
        /// assert_eq!(greet::greet("Ada"), "Hello, Ada!");
        /// ```
        ///
        /// ```
        /// assert_eq!(greet::greet("Ada"), "Bye");
        /// ```
        pub fn greet(name: &str) -> String {
            format!("Hello, {name}!")
        }

        pub fn later() -> u32 {
            todo!()
        }

        pub fn part(name: &str) -> char {
            name.chars().next().expect("a name")
        }

        pub fn leave() {
            println!("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s");
            std::process::exit(0)
        }

        #[cfg(test)]
        mod tests {
            use super::*;

            fn check(name: &str) -> bool {
                greet(name).contains("Bye")
            }

            #[test]
            fn passes() {
                assert_eq!(greet("a"), "Hello, a!");
            }

            #[test]
            fn asserts() {
                assert_eq!(greet("a"), "b");
            }

            #[test]
            fn asserts_through_a_helper() {
                assert!(check("a"));
            }

            #[test]
            fn reaches_a_stub() {
                assert_eq!(later(), 3);
            }

            #[test]
            fn panics_in_production() {
                assert_eq!(part(""), 'x');
            }

            #[test]
            fn says_nothing() {
                assert!(false);
            }

            #[test]
            fn gives_up() {
                greet("a");
                panic!("not yet");
            }

            #[test]
            fn looks_first() {
                match greet("a").as_str() {
                    "" => {}
                    other => panic!("got {other}"),
                }
            }

            #[test]
            fn unwraps() {
                greet("a").parse::<u32>().unwrap();
            }

            #[test]
            fn is_broken_itself() {
                let empty: Vec<u32> = Vec::new();
                assert_eq!(empty[greet("").len()], 1);
            }

            #[test]
            #[should_panic]
            fn should_panic_and_does_not() {
                greet("");
            }

            #[test]
            #[should_panic(expected = "a name")]
            fn should_panic_and_does() {
                part("");
            }

            #[test]
            fn returns_an_error() -> Result<(), String> {
                Err(greet("a"))
            }

            #[test]
            #[ignore = "too slow"]
            fn is_ignored() {}

            #[test]
            fn leaves_early() {
                leave();
            }

            #[test]
            fn exits() {
                std::process::exit(7);
            }

            #[test]
            fn aborts() {
                std::process::abort();
            }

            #[test]
            fn hangs() {
                loop {
                    std::thread::park();
                }
            }

            macro_rules! made {
                ($($name:ident),*) => { $(#[test] fn $name() { assert_eq!(greet("a"), "made"); })* };
            }
            made!(one, two);
        }
        """,
    "greet/src/deep.rs": """
        pub struct Deep(pub u32);

        impl Deep {
            pub fn value(&self) -> u32 {
                unimplemented!()
            }
        }

        #[cfg(test)]
        mod tests;
        """,
    "greet/src/deep/tests.rs": """
        use super::Deep;

        #[test]
        fn reaches_a_method() {
            assert_eq!(Deep(1).value(), 1);
        }
        """,
    "crates/tool/Cargo.toml": """
        [package]
        name = "tool"
        version = "0.2.0"
        edition = "2021"

        [dependencies]
        greet = { path = "../../greet" }

        [[test]]
        name = "own"
        harness = false
        """,
    "crates/tool/src/main.rs": """
        fn main() {
            println!("{}", greet::greet("you"));
        }

        #[test]
        fn stands_alone() {
            assert_eq!(greet::greet("you"), "Hello, you!");
        }
        """,
    "crates/tool/tests/own.rs": """
        fn main() {
            std::process::exit(if std::env::args().any(|word| word == "--list") { 3 } else { 0 });
        }
        """,
    "crates/tool/tests/process.rs": """
        use std::process::Command;

        #[test]
        fn runs_the_program() {
            let out = Command::new(env!("CARGO_BIN_EXE_tool")).output().unwrap();
            assert_eq!(String::from_utf8(out.stdout).unwrap(), "Bye\\n");
        }

        #[test]
        fn has_its_places() {
            std::fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/note"), "x").unwrap();
            assert!(std::fs::read_to_string("Cargo.toml").unwrap().contains("tool"));
            assert_eq!(std::env::var("CARGO_PKG_NAME").unwrap(), "tool");
        }
        """,
}  # fmt: skip

UNIT = "greet::lib::tests::"
EXPECTED = by_name(
    {
        (Ended.PASSED, None): "passes, should_panic_and_does",
        (Ended.FAILED, RedClass.ASSERTION_MISMATCH): (
            "asserts, asserts_through_a_helper, panics_in_production, looks_first, unwraps, "
            "should_panic_and_does_not, returns_an_error"
        ),
        (Ended.FAILED, RedClass.MISSING_BEHAVIOR): "reaches_a_stub",
        (Ended.FAILED, RedClass.STRUCTURAL): "says_nothing, gives_up",
        (Ended.FAILED, RedClass.TEST_BROKEN): "is_broken_itself",
        (Ended.SKIPPED, None): "is_ignored",
        (Ended.CRASHED, RedClass.CRASHED): "leaves_early",
        (Ended.CRASHED, None): "exits, aborts",
        (Ended.TIMED_OUT, RedClass.TEST_TIMEOUT): "hangs",
        (Ended.FAILED, None): "one, two",
    }
)
"""How each test of the library ends, and what a failure is for the judges."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("workspace"), WORKSPACE)


@pytest.fixture(scope="module")
def seen(place: Path) -> Observation:
    return measure(place, trace=True, per_test_timeout_s=3)


def test_every_test_of_a_workspace_has_an_id_a_file_and_an_end(seen: Observation) -> None:
    assert seen.state is RunState.COMPLETE, seen.tail
    assert {entry: (record.outcome, record.path) for entry, record in seen.records.items()} == {
        **{UNIT + name: (outcome, "greet/src/lib.rs") for name, (outcome, _) in EXPECTED.items()},
        "greet::lib::deep::tests::reaches_a_method": (Ended.FAILED, "greet/src/deep/tests.rs"),
        "greet::doc::greet/src/lib.rs::greet": (Ended.PASSED, "greet/src/lib.rs"),
        "greet::doc::greet/src/lib.rs::greet#2": (Ended.FAILED, "greet/src/lib.rs"),
        "tool::bin/tool::stands_alone": (Ended.PASSED, "crates/tool/src/main.rs"),
        "tool::test/own::main": (Ended.PASSED, "crates/tool/tests/own.rs"),
        "tool::test/process::runs_the_program": (Ended.FAILED, "crates/tool/tests/process.rs"),
        "tool::test/process::has_its_places": (Ended.PASSED, "crates/tool/tests/process.rs"),
    }
    assert seen.records[UNIT + "is_ignored"].reason == "too slow"


def test_what_a_failure_is_for_the_judges(place: Path, seen: Observation) -> None:
    context = context_of(seen, files_of(place), symbols=(Symbol("greet/src/lib.rs", "later"),))
    assert judged(seen, context, UNIT, EXPECTED) == expected(EXPECTED)


def test_a_stub_in_a_method_and_a_program_run_by_a_test_are_recognised(place: Path, seen: Observation) -> None:
    context = context_of(seen, files_of(place), symbols=(Symbol("greet/src/deep.rs", "Deep.value"),))
    method = classify(seen.records["greet::lib::deep::tests::reaches_a_method"], context)
    assert (method.cls, method.message) == (RedClass.MISSING_BEHAVIOR, "greet.deep.Deep.value is not implemented yet")
    elsewhere = replace(context, symbols=(Symbol("greet/src/deep.rs", "Other"),))
    assert classify(seen.records[method_id()], elsewhere).cls is RedClass.ASSERTION_MISMATCH
    program = seen.records["tool::test/process::runs_the_program"]
    assert program.reach is not None
    assert program.reach.doors == ("process",)
    assert classify(program, context).legal


def method_id() -> str:
    return "greet::lib::deep::tests::reaches_a_method"


def test_which_files_are_tests(seen: Observation) -> None:
    layout = seen.layout
    assert layout.is_test("greet/tests/new.rs")
    assert layout.is_test("greet/src/deep/tests.rs")
    assert not layout.is_test_side("greet/src/lib.rs")
    assert layout.is_test_side("greet/src/lib.rs#tests")
    assert TOOLCHAIN.is_test_path("greet/src/lib.rs", seen)  # in its test regions
    assert not TOOLCHAIN.is_test_path("greet/build.rs", seen)
    assert [TOOLCHAIN.is_control_path(path) for path in ("a/Cargo.toml", ".cargo/config.toml", "a/src/cargo.rs")] == [
        True,
        True,
        False,
    ]


def test_what_people_read_has_no_stack_and_no_place_of_this_machine(place: Path, seen: Observation) -> None:
    assert "stack backtrace" not in seen.tail
    assert str(place) not in seen.model_dump_json()
