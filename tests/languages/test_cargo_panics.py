"""Stubs that panic where the test's own thread does not say so: caught, expected, or in another thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from languages.crates import MANIFEST, measure, needs_cargo
from languages.direct import context_of, files_of, write

from pipeline.judge.evidence.classify import classify
from pipeline.judge.evidence.observation import Ended, Observation, RunState
from pipeline.judge.evidence.red_classes import RedClass, Symbol
from pipeline.testing.languages.rust.output import Panic, read_panics

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.judge.evidence.red_classes import Classified

STUBS = """
    pub mod other;

    pub fn parse(_n: i64) -> i64 {
        todo!()
    }

    pub fn safely(n: i64) -> Option<i64> {
        std::panic::catch_unwind(|| parse(n)).ok()
    }

    pub fn done(n: i64) -> i64 {
        n + 1
    }
    """
OTHER = 'pub fn refuse() {\n    panic!("never");\n}\n'
TESTS = """
    use greet::{done, other, parse, safely};
    use std::panic::catch_unwind;
    use std::thread;

    const SITE: &str = "src/lib.rs:5:5:\\nnot yet implemented\\nstack backtrace:\\n";
    const FRAME: &str = "   3: greet::parse\\n             at ./src/lib.rs:5:5\\n";
    const RUNTIME: &str = "   0: __rustc::rust_begin_unwind\\n             at /rustc/0/library/std/src/x.rs:1:5\\n";

    #[test]
    fn plain() {
        assert_eq!(parse(1), 2);
    }

    #[test]
    #[should_panic(expected = "negative")]
    fn says_the_reason() {
        parse(-1);
    }

    #[test]
    fn in_a_thread() {
        assert_eq!(thread::spawn(|| parse(1)).join().unwrap(), 2);
    }

    #[test]
    fn in_a_thread_with_a_name() {
        let worker = thread::Builder::new().name("worker".into()).spawn(|| parse(1)).unwrap();
        assert_eq!(worker.join().ok(), Some(2));
    }

    #[test]
    fn caught() {
        assert_eq!(catch_unwind(|| parse(1)).ok(), Some(2));
    }

    #[test]
    fn caught_by_production() {
        assert_eq!(safely(1), Some(2));
    }

    #[test]
    fn in_a_scope() {
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(parse(1), 2));
        });
    }

    #[test]
    fn in_a_scope_in_a_scope() {
        thread::scope(|outer| {
            outer.spawn(|| thread::scope(|inner| {
                inner.spawn(|| assert_eq!(parse(1), 2));
            }));
        });
    }

    #[test]
    fn asserts_in_a_scope() {
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(done(1), 3));
        });
    }

    #[test]
    fn is_broken_in_a_scope() {
        let none: Vec<i64> = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| none[done(0) as usize]);
        });
    }

    #[test]
    #[should_panic(expected = "negative")]
    fn another_function_panics() {
        other::refuse();
    }

    #[test]
    fn another_function_is_caught() {
        assert_eq!(catch_unwind(other::refuse).ok(), Some(()));
    }

    #[test]
    fn prints_what_looks_like_a_panic() {
        eprint!("\\nthread 'worker' (7) panicked at {SITE}{FRAME}note: Some details are omitted\\n");
        assert_eq!(done(1), 3);
    }

    #[test]
    fn prints_a_panic_of_its_own_thread() {
        let own = "prints_a_panic_of_its_own_thread";
        eprint!("\\nthread '{own}' (7) panicked at {SITE}{RUNTIME}{FRAME}note: Some details are omitted\\n");
        assert_eq!(done(1), 3);
    }

    #[test]
    fn prints_a_panic_without_a_number() {
        eprint!("\\nthread 'worker' panicked at {SITE}{RUNTIME}{FRAME}note: Some details are omitted\\n");
        assert_eq!(done(1), 3);
    }

    #[test]
    fn passes() {
        assert_eq!(done(1), 2);
    }

    #[test]
    #[should_panic]
    fn passes_by_a_panic() {
        parse(1);
    }
    """
UNIT = "greet::test/stubs::"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {"Cargo.toml": MANIFEST, "src/lib.rs": STUBS, "src/other.rs": OTHER, "tests/stubs.rs": TESTS}
    return write(tmp_path_factory.mktemp("panics"), files)


@pytest.fixture(scope="module")
def seen(place: Path) -> Observation:
    observation = measure(place, trace=True)
    assert observation.state is RunState.COMPLETE, observation.tail
    assert not observation.collection_errors
    return observation


def judged(place: Path, seen: Observation, name: str) -> Classified:
    context = context_of(
        seen,
        files_of(place) - {"tests/stubs.rs"},
        symbols=(Symbol("src/lib.rs", "parse"),),
        task_files=frozenset({"src/lib.rs"}),
        stubbed=True,
    )
    return classify(seen.records[UNIT + name], context)


@pytest.mark.slow
@needs_cargo
@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("plain", RedClass.MISSING_BEHAVIOR),
        ("says_the_reason", RedClass.ASSERTION_MISMATCH),
        ("in_a_thread", RedClass.ASSERTION_MISMATCH),
        ("in_a_thread_with_a_name", RedClass.ASSERTION_MISMATCH),
        ("caught", RedClass.ASSERTION_MISMATCH),
        ("caught_by_production", RedClass.ASSERTION_MISMATCH),
        ("in_a_scope", RedClass.MISSING_BEHAVIOR),
        ("in_a_scope_in_a_scope", RedClass.MISSING_BEHAVIOR),
        # what panics elsewhere, or is only printed
        ("asserts_in_a_scope", RedClass.STRUCTURAL),
        ("is_broken_in_a_scope", RedClass.TEST_BROKEN),
        ("another_function_panics", RedClass.STRUCTURAL),
        ("another_function_is_caught", RedClass.STRUCTURAL),
        ("prints_what_looks_like_a_panic", RedClass.STRUCTURAL),
        ("prints_a_panic_of_its_own_thread", RedClass.STRUCTURAL),
        ("prints_a_panic_without_a_number", RedClass.STRUCTURAL),
    ],
)
def test_only_a_stub_that_panics_itself_is_reached(place: Path, seen: Observation, name: str, cls: RedClass) -> None:
    found = judged(place, seen, name)
    legal = cls in {RedClass.MISSING_BEHAVIOR, RedClass.ASSERTION_MISMATCH}
    assert (found.cls, found.legal) == (cls, legal), found.message


@pytest.mark.slow
@needs_cargo
def test_what_a_scoped_thread_failed_at_is_why_the_test_failed(seen: Observation) -> None:
    fault = seen.records[UNIT + "asserts_in_a_scope"].fault
    assert fault is not None
    assert (fault.raised.kind, fault.raised.message.splitlines()[0]) == (
        "assert_eq!",
        "assertion `left == right` failed",
    )
    assert fault.last_own_frame is not None
    assert fault.last_own_frame.path == "tests/stubs.rs"


@pytest.mark.slow
@needs_cargo
def test_nothing_is_known_of_what_a_passing_test_reached(seen: Observation) -> None:
    for name in ("passes", "passes_by_a_panic"):
        record = seen.records[UNIT + name]
        assert (record.outcome, record.reach) == (Ended.PASSED, None)


def block(thread: str, message: str, *, number: str = " (7)", runtime: str = "__rustc::rust_begin_unwind") -> str:
    return (
        f"\nthread '{thread}'{number} panicked at src/lib.rs:1:5:\n{message}\nstack backtrace:\n"
        f"   0: {runtime}\n             at /rustc/0/library/std/src/panicking.rs:1:5\n"
        "   1: greet::parse\n             at ./src/lib.rs:1:5\n"
        "note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.\n"
    )


def test_panics_are_read_one_by_one() -> None:
    printed = "said" + block("a b", "first") + "said too\n" + block("t", "two\nlines", number="") + "Error: no\n"
    first, second = read_panics(printed).all
    assert (first.thread, first.number, first.message, first.place) == ("a b", "7", "first", ("src/lib.rs", 1))
    assert (second.thread, second.number, second.message) == ("t", "", "two\nlines")


SAID = st.text(st.characters(codec="utf-8"), max_size=30).filter(lambda text: "panicked at" not in text)


@pytest.mark.broad
@given(st.lists(st.tuples(SAID, st.sampled_from(["t", "worker", "<unnamed>"]), st.booleans())), SAID)
@pytest.mark.slow
def test_panics_are_found_among_whatever_else_is_printed(parts: list[tuple[str, str, bool]], rest: str) -> None:
    numbers = {"t": " (7)", "worker": " (8)", "<unnamed>": " (9)"}
    printed = "".join(
        said + (block(thread, "m", number=numbers[thread]) if panics else "") for said, thread, panics in parts
    )
    found = read_panics(printed + rest)
    expected = [thread for _, thread, panics in parts if panics]
    assert [panic.thread for panic in found.all] == expected
    assert [panic.thread for panic in found.raised("t")] == expected
    decisive = found.decisive("t")
    assert (decisive.thread if decisive is not None else None) == ("t" if "t" in expected else (expected or [None])[-1])


@pytest.mark.parametrize(
    ("text", "is_raised"),
    [
        (block("t", "x"), True),
        (block("t", "x", runtime="rust_begin_unwind"), True),
        (block("t", "x", runtime="std::panicking::begin_panic"), True),
        (block("t", "x", runtime="std::panicking::begin_panic_handler::h0123456789abcdef"), True),
        (block("t", "x", runtime="greet::rust_begin_unwinding"), False),
        (block("t", "x").replace("stack backtrace:\n", ""), False),
    ],
)
def test_a_panic_begins_in_the_runtime(text: str, *, is_raised: bool) -> None:
    (found,) = read_panics(text).all
    assert found.is_raised is is_raised


def test_a_thread_has_one_number() -> None:
    printed = block("t", "printed", number=" (3)") + block("w", "other", number=" (9)") + block("t", "real")
    panics = read_panics(printed)
    decisive = panics.decisive("t")
    assert isinstance(decisive, Panic)
    assert decisive.message == "real"
    assert [panic.message for panic in panics.raised("t")] == ["other", "real"]
    same = read_panics(block("w", "printed", number=" (7)") + block("t", "real"))
    assert [panic.message for panic in same.raised("t")] == ["real"]
