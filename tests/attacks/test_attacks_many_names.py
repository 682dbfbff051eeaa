"""A Rust test executable that lists more tests than a driver can hold, and one whose own harness prints a lot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from languages.crates import MANIFEST, measure, needs_cargo
from languages.direct import write

from pipeline.judge.evidence.observation import Ended, RunState

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.judge.evidence.observation import Observation

pytestmark = [pytest.mark.slow, needs_cargo]

LISTS: Final = """
#[used]
#[link_section = ".init_array"]
static FIRST: extern "C" fn() = first;
extern "C" fn first() {
    if !std::env::args().any(|word| word == "--list") { return; }
    let all: Vec<String> = (COUNTED).map(|n| format!("{}{n:x}: test\\n", "x".repeat(WIDTH))).collect();
    print!("{}", all.concat());
    std::process::exit(0);
}
"""
HARNESS: Final = 'fn main() { print!("{}", "a line\\n".repeat(2_000_000)); }\n'


def listed(folder: Path, counted: str, width: int) -> Observation:
    """Return what is measured of a library that lists so many tests, with names so long."""
    lib = LISTS.replace("COUNTED", counted).replace("WIDTH", str(width))
    return measure(write(folder, {"Cargo.toml": MANIFEST, "src/lib.rs": lib}))


@pytest.mark.parametrize(("count", "width"), [(50_001, 0), (1_000, 10_000), (90, 90_000)])
@pytest.mark.broad
def test_more_names_than_are_taken_are_told(tmp_path: Path, count: int, width: int) -> None:
    seen = listed(tmp_path, f"0..{count}u32", width)
    assert (seen.state, len(seen.records)) == (RunState.UNUSABLE, 0)
    assert "lists more tests than are taken: at most 50,000 names and 8,000,000 bytes of them" in seen.detail


def test_a_name_that_is_listed_again_and_again_is_one(tmp_path: Path) -> None:
    seen = listed(tmp_path, "(0..60_000u32).map(|n| n % 2)", 0)
    assert set(seen.records) == {"greet::lib::0", "greet::lib::1"}


@pytest.mark.broad
def test_a_harness_that_prints_a_lot_is_no_listing(tmp_path: Path) -> None:
    manifest = f'{MANIFEST}[[test]]\nname = "own"\nharness = false\n'
    seen = measure(write(tmp_path, {"Cargo.toml": manifest, "src/lib.rs": "", "tests/own.rs": HARNESS}))
    assert {entry: one.outcome for entry, one in seen.records.items()} == {"greet::test/own::main": Ended.PASSED}
