"""Examples in documentation that do not end: the limit for one test holds for each, whatever edition runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from languages.crates import MANIFEST, measure, needs_cargo
from languages.direct import write

from pipeline.judge.evidence.observation import Ended, RunState
from pipeline.testing.languages.protocol import Selection

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.judge.evidence.observation import Observation

pytestmark = [pytest.mark.slow, needs_cargo]

HANGS = "/// ```\n/// loop { std::thread::park(); }\n/// ```\n"
ENDS = "/// ```\n/// assert_eq!(1, 1);\n/// ```\n"
FAILS = "/// ```\n/// assert_eq!(1, 2);\n/// ```\n"


def library(**examples: str) -> str:
    return "".join(f"{text}pub fn {name}() {{}}\n" for name, text in examples.items())


def project(folder: Path, lib: str, edition: str = "2021") -> Path:
    return write(folder, {"Cargo.toml": MANIFEST.replace("2021", edition), "src/lib.rs": lib})


def ends(seen: Observation) -> dict[str, Ended | None]:
    return {entry.rpartition("::")[2]: record.outcome for entry, record in seen.records.items()}


@pytest.mark.parametrize("edition", ["2021", "2024"])
@pytest.mark.broad
def test_each_example_has_the_limit_of_a_test(tmp_path: Path, edition: str) -> None:
    lib = library(a=HANGS, b=ENDS, c=HANGS, d=FAILS, e=ENDS)
    seen = measure(project(tmp_path, lib, edition), per_test_timeout_s=6)
    assert seen.state is RunState.COMPLETE, seen.detail
    failed = seen.records["greet::doc::src/lib.rs::d"].fault
    assert failed is not None
    assert "rustdoctest" not in failed.raised.message  # a folder that has another name each time
    assert ends(seen) == {
        "a": Ended.TIMED_OUT,
        "b": Ended.PASSED,
        "c": Ended.TIMED_OUT,
        "d": Ended.FAILED,
        "e": Ended.PASSED,
    }


@pytest.mark.broad
def test_the_only_one_that_hangs_is_known_at_once(tmp_path: Path) -> None:
    seen = measure(project(tmp_path, library(a=HANGS, b=ENDS)), per_test_timeout_s=6)
    assert ends(seen) == {"a": Ended.TIMED_OUT, "b": Ended.PASSED}
    assert seen.tail.count("test src/lib.rs - b") == 1


@pytest.mark.broad
def test_an_example_that_was_not_asked_for_takes_no_other_along(tmp_path: Path) -> None:
    place = project(tmp_path, library(a=HANGS, b=ENDS, c=HANGS))
    chosen = Selection(ids=frozenset({"greet::doc::src/lib.rs::b", "greet::doc::src/lib.rs::c"}))
    seen = measure(place, chosen, per_test_timeout_s=6)
    assert seen.state is RunState.COMPLETE
    assert ends(seen) == {"a": None, "b": Ended.PASSED, "c": Ended.TIMED_OUT}


@pytest.mark.broad
def test_without_a_limit_an_example_that_hangs_ends_the_run_and_is_told(tmp_path: Path) -> None:
    seen = measure(project(tmp_path, library(a=HANGS, b=ENDS, c=HANGS)), timeout_s=15)
    assert seen.state is RunState.TIMED_OUT
    found = ends(seen)
    assert (found["a"], found["c"]) == (None, None)
    told = {record.reason for record in seen.records.values() if not record.ran}
    assert told == {"it did not come to an end: the examples were ended first"}


@pytest.mark.broad
def test_without_a_limit_the_only_example_that_hangs_has_timed_out(tmp_path: Path) -> None:
    seen = measure(project(tmp_path, library(a=ENDS, b=HANGS)), timeout_s=15)
    assert (seen.state, ends(seen)) == (RunState.TIMED_OUT, {"a": Ended.PASSED, "b": Ended.TIMED_OUT})


def test_examples_that_are_compiled_together_are_listed(tmp_path: Path) -> None:
    seen = measure(project(tmp_path, library(a=ENDS, b=FAILS), "2024"), per_test_timeout_s=60)
    assert ends(seen) == {"a": Ended.PASSED, "b": Ended.FAILED}
