"""Limits, the box, compiled dependencies, types, and examples in documentation, with real cargo."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from languages.crates import MANIFEST, check_types, environment, measure, needs_cargo
from languages.direct import write
from languages.measured import ends

from pipeline.judge.evidence.observation import Ended, RunState
from pipeline.process import Mount
from pipeline.testing.languages.protocol import Cache, Selection

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.sandbox.boxes.bubblewrap import Bubblewrap

pytestmark = [pytest.mark.slow, needs_cargo]

GREET = 'pub fn greet(name: &str) -> String {\n    format!("Hello, {name}!")\n}\n'
REGION = """
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old() { assert_eq!(greet("a"), "Hello, a!"); }
"""
NEW = '\n    #[test]\n    fn nobody() { assert_eq!(greet(""), ""); }\n'
START = {
    "Cargo.toml": MANIFEST,
    "src/lib.rs": GREET + REGION + "}\n",
    "tests/slow.rs": "#[test]\nfn hangs() {\n    loop { std::thread::park(); }\n}\n\n#[test]\nfn ends() {}\n",
}


@pytest.mark.broad
def test_the_time_for_all_tests_ends_the_run_and_says_so(tmp_path: Path) -> None:
    write(tmp_path, START)
    seen = measure(tmp_path, Selection(ids=frozenset({"greet::test/slow::hangs"})), timeout_s=8)
    assert seen.state is RunState.TIMED_OUT
    assert seen.command == ("cargo", "test", "--workspace", "--", "--exact", "hangs")
    hung = seen.records.get("greet::test/slow::hangs")  # there is none where compiling took all of it
    assert hung is None or hung.outcome is Ended.TIMED_OUT


@pytest.mark.broad
def test_a_measurement_in_the_box_equals_one_outside(tmp_path: Path, box: Bubblewrap) -> None:
    beside = 'std::env::current_exe().unwrap().with_extension("new")'
    spoil = f'#[test]\nfn spoils() {{\n    std::fs::write({beside}, "x").unwrap();\n}}\n'
    write(tmp_path, {**START, "src/lib.rs": GREET + REGION + NEW + "}\n", "tests/spoil.rs": spoil})
    chosen = Selection(files=frozenset({"src/lib.rs"}))
    spoilt = measure(tmp_path, Selection(files=frozenset({"tests/spoil.rs"})), box=box)
    assert spoilt.records["greet::test/spoil::spoils"].outcome is Ended.FAILED  # nothing changes what was compiled
    inside, outside = measure(tmp_path, chosen, trace=True, box=box), measure(tmp_path, chosen, trace=True)
    assert inside.records == outside.records
    assert inside.files == outside.files
    assert inside.records["greet::lib::tests::nobody"].outcome is Ended.FAILED
    assert not (tmp_path / "target").exists()


def test_dependencies_are_compiled_once_and_the_project_each_time(tmp_path: Path, box: Bubblewrap) -> None:
    vendored = {
        ".cargo/config.toml": '[source.crates-io]\nreplace-with = "near"\n[source.near]\ndirectory = "vendor"\n',
        "vendor/helper/Cargo.toml": '[package]\nname = "helper"\nversion = "1.0.0"\nedition = "2021"\n',
        "vendor/helper/.cargo-checksum.json": '{"files": {}}',
        "vendor/helper/src/lib.rs": 'pub fn hello() -> &\'static str {\n    "Hello"\n}\n',
    }
    manifest = MANIFEST + '\n[dependencies]\nhelper = "1"\n'
    code = 'pub fn greet(name: &str) -> String {\n    format!("{}, {name}!", helper::hello())\n}\n'
    project = write(tmp_path / "project", {**vendored, "Cargo.toml": manifest, "src/lib.rs": code + REGION + "}\n"})
    kept = tmp_path / "kept"
    kept.mkdir()
    first = measure(project, cache=Cache(kept, warm=True))
    assert [record.outcome for record in first.records.values()] == [Ended.PASSED], first.tail
    compiled = sorted(path.name.partition("-")[0] for path in kept.glob("target/debug/deps/*.rlib"))
    assert compiled == ["libhelper"]
    assert not list(kept.glob("target/debug/deps/*greet*"))

    # older than what was compiled: a file time says nothing where trees are moved about
    changed = write(project, {"src/lib.rs": code.replace("{}, ", "{} - ") + REGION + "}\n"})
    home = tmp_path / "home"
    (home / "registry").mkdir(parents=True)
    os.utime(changed / "src" / "lib.rs", (1, 1))
    # as a user has it who fetched packages before: the box shows the registry, and cannot write its locks
    env = environment()
    mounts = (*env.mounts, Mount(home / "registry", home / "registry"))
    fetched = replace(env, mounts=mounts, variables={**env.variables, "CARGO_HOME": str(home)})
    second = measure(changed, cache=Cache(kept), env=fetched, box=box)
    assert [record.outcome for record in second.records.values()] == [Ended.FAILED]


def test_types_are_checked_without_running_anything(tmp_path: Path) -> None:
    write(tmp_path, START)
    assert check_types(tmp_path).collection_errors == ()
    write(tmp_path, {"tests/slow.rs": "#[test]\nfn it() {\n    let _: u32 = greet::greet(3);\n}\n"})
    seen = check_types(tmp_path)
    assert [(error.path, error.fault.raised.kind) for error in seen.collection_errors] == [("tests/slow.rs", "E0308")]
    assert not any(record.ran for record in seen.records.values())


# --- examples in documentation that do not end


HANGS = "/// ```\n/// loop { std::thread::park(); }\n/// ```\n"
ENDS = "/// ```\n/// assert_eq!(1, 1);\n/// ```\n"
FAILS = "/// ```\n/// assert_eq!(1, 2);\n/// ```\n"


def library(**examples: str) -> str:
    return "".join(f"{text}pub fn {name}() {{}}\n" for name, text in examples.items())


def project(folder: Path, lib: str, edition: str = "2021") -> Path:
    return write(folder, {"Cargo.toml": MANIFEST.replace("2021", edition), "src/lib.rs": lib})


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
