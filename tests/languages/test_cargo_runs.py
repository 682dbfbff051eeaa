"""Chosen tests, limits, the box, compiled dependencies, and a whole task from RED to GREEN with real cargo."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest
from languages.crates import MANIFEST, TOOLCHAIN, check_types, environment, measure, needs_cargo
from languages.direct import context_of, files_of, write

from pipeline.judge.evidence.compare import expectations, judge_green, judge_stubs
from pipeline.judge.evidence.observation import Ended, RunState
from pipeline.judge.evidence.red import judge_red
from pipeline.judge.evidence.red_classes import RedClass, Symbol
from pipeline.process import Mount
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.testing.languages.protocol import Cache, Selection

if TYPE_CHECKING:
    from pathlib import Path

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
DONE = GREET.replace("{\n", "{\n    if name.is_empty() {\n        return String::new();\n    }\n", 1)
PART = 'pub fn part(name: &str) -> String {\n    name.replace("hi", "bye")\n}\n'
PART_TESTS = (
    'use greet::part;\n\n#[test]\nfn parts() {\n    assert_eq!(part("hi x"), "bye x");\n}\n\n'
    "#[test]\nfn says_nothing() {\n    let _ = part;\n}\n"
)  # fmt: skip


@pytest.mark.broad
def test_a_task_from_red_to_green_beside_the_code_and_in_a_new_file(tmp_path: Path) -> None:
    start = write(tmp_path / "start", {name: text for name, text in START.items() if name != "tests/slow.rs"})
    tests = {"src/lib.rs": GREET + REGION + NEW + "}\n", "tests/part.rs": PART_TESTS}
    red = write(shutil.copytree(start, tmp_path / "red"), tests)
    baseline, after = measure(start), measure(red, trace=True)
    symbols = (Symbol("src/lib.rs", "part"),)
    verdict = judge_red(
        baseline, after, None, context_of(after, files_of(start), symbols=symbols), task="1", tree="red"
    )
    assert verdict.legal, verdict
    assert {entry: (one.cls, one.granularity) for entry, one in verdict.ledger.red.items()} == {
        "greet::lib::tests::nobody": (RedClass.ASSERTION_MISMATCH, "id"),
        "tests/part.rs": (RedClass.MISSING_BEHAVIOR, "file"),
    }

    candidate = write(shutil.copytree(red, tmp_path / "done"), {"src/lib.rs": DONE + PART + REGION + NEW + "}\n"})
    green = judge_green(verdict.ledger, measure(candidate), expectations(baseline))
    assert green.green, green
    loosened = REGION.replace('"Hello, a!"', 'greet("a")') + NEW
    write(candidate, {"src/lib.rs": DONE + PART + loosened + "}\n"})
    assert judge_green(verdict.ledger, measure(candidate), expectations(baseline)).changed_files == ("src/lib.rs",)

    stubs = TOOLCHAIN.stub_symbols({"src/lib.rs": DONE + PART + REGION + NEW + "}\n"}, symbols)
    on_stubs = measure(write(candidate, stubs.files), Selection(ids=frozenset(green.whole_file_ids)))
    assert judge_stubs(green.whole_file_ids, on_stubs) == ("greet::test/part::says_nothing",)


@pytest.mark.broad
def test_only_chosen_tests_run_and_all_are_listed(tmp_path: Path) -> None:
    write(tmp_path, START)
    listed = measure(tmp_path, Selection.nothing())
    assert {entry: record.outcome for entry, record in listed.records.items()} == dict.fromkeys(
        ("greet::lib::tests::old", "greet::test/slow::hangs", "greet::test/slow::ends")
    )
    by_file = measure(tmp_path, Selection(files=frozenset({"src/lib.rs"})))
    assert [record.id for record in by_file.records.values() if record.ran] == ["greet::lib::tests::old"]
    by_id = measure(tmp_path, Selection(ids=frozenset({"greet::test/slow::ends"})))
    assert [record.id for record in by_id.records.values() if record.ran] == ["greet::test/slow::ends"]
    assert by_id.command == ("cargo", "test", "--workspace", "--", "--exact", "ends")


@pytest.mark.broad
def test_the_time_for_all_tests_ends_the_run_and_says_so(tmp_path: Path) -> None:
    write(tmp_path, START)
    seen = measure(tmp_path, Selection(ids=frozenset({"greet::test/slow::hangs"})), timeout_s=8)
    assert seen.state is RunState.TIMED_OUT
    hung = seen.records.get("greet::test/slow::hangs")  # there is none where compiling took all of it
    assert hung is None or hung.outcome is Ended.TIMED_OUT


@pytest.fixture
def box() -> Bubblewrap:
    bwrap = shutil.which("bwrap") or ""
    made = Bubblewrap(bwrap)
    if not bwrap or not anyio.run(made.canary).ok:
        pytest.skip("this machine has no working bubblewrap")
    return made


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
