"""What does not compile: which tests it hides, and whether the task, the test or the machine is at fault."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from languages.crates import MANIFEST, measure, needs_cargo
from languages.direct import context_of, files_of, write

from pipeline.judge.evidence.classify import classify_collection
from pipeline.judge.evidence.compare import expectations, judge_green
from pipeline.judge.evidence.observation import Observation, RunState
from pipeline.judge.evidence.red import judge_red
from pipeline.judge.evidence.red_classes import RedClass, Symbol
from pipeline.testing.languages.protocol import Selection

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_cargo]

GREET = 'pub fn greet(name: &str) -> String {\n    format!("Hello, {name}!")\n}\n\npub struct Greeter;\n'
REGION = """
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old() {
        assert_eq!(greet("a"), "Hello, a!");
    }
}
"""
START = {
    "Cargo.toml": MANIFEST,
    "src/lib.rs": f"pub mod other;\n{GREET}{REGION}",
    "src/other.rs": REGION.replace("super::*", "crate::greet"),
    "tests/old.rs": '#[test]\nfn old() {\n    assert_eq!(greet::greet("a"), "Hello, a!");\n}\n',
}
SYMBOLS = (Symbol("src/lib.rs", "part"), Symbol("src/lib.rs", "Greeter.polite"))
PART = "\n#[test]\nfn parts() {\n    assert_eq!(greet::part(), 3);\n}\n"
BROKEN = {
    "tests/imported.rs": "use greet::part;\n\n#[test]\nfn it() {\n    assert_eq!(part(), 3);\n}\n",
    "tests/called.rs": PART,
    "tests/method.rs": "#[test]\nfn it() {\n    assert!(greet::Greeter.polite());\n}\n",
    "tests/field.rs": "#[test]\nfn it() {\n    assert!(greet::Greeter.loud);\n}\n",
    "tests/typo.rs": "#[test]\nfn it() {\n    assert_eq!(greet::graet(), 3);\n}\n",
    "tests/kinds.rs": "#[test]\nfn it() {\n    let _: u32 = greet::greet(3);\n}\n",
    "tests/syntax.rs": "#[test]\nfn it( {\n}\n",
    "tests/foreign.rs": "use serde::Serialize;\n\n#[test]\nfn it() {}\n",
    "tests/fine.rs": '#[test]\nfn it() {\n    assert_eq!(greet::greet("b"), "b");\n}\n',
}


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("crate") / "start", START)


@pytest.fixture(scope="module")
def before(start: Path) -> Observation:
    return measure(start)


@pytest.mark.broad
def test_each_broken_file_has_its_own_reason_and_the_others_run(
    start: Path, before: Observation, tmp_path: Path
) -> None:
    seen = measure(write(shutil.copytree(start, tmp_path / "red"), BROKEN))
    assert seen.state is RunState.COMPLETE
    context = context_of(seen, files_of(start), symbols=SYMBOLS)
    found = {error.path: classify_collection(error, context).cls for error in seen.collection_errors}
    assert found == {
        "tests/imported.rs": RedClass.MISSING_BEHAVIOR,
        "tests/called.rs": RedClass.MISSING_BEHAVIOR,
        "tests/method.rs": RedClass.MISSING_BEHAVIOR,
        "tests/field.rs": RedClass.TEST_BROKEN,
        "tests/typo.rs": RedClass.TEST_BROKEN,
        "tests/kinds.rs": RedClass.TEST_BROKEN,
        "tests/syntax.rs": RedClass.TEST_BROKEN,
        "tests/foreign.rs": RedClass.ENV_BROKEN,
    }, seen.tail
    assert {entry for entry, record in seen.records.items() if record.ran} == {*before.records, "greet::test/fine::it"}


def test_an_existing_file_that_does_not_compile_hides_its_tests_and_removes_none(
    start: Path, before: Observation, tmp_path: Path
) -> None:
    changed = {
        "tests/old.rs": START["tests/old.rs"] + PART,
        "src/lib.rs": START["src/lib.rs"].removesuffix("}\n") + "    #[test]\n    fn new() { part(); }\n}\n",
    }
    seen = measure(write(shutil.copytree(start, tmp_path / "red"), changed))
    context = context_of(seen, files_of(start), symbols=SYMBOLS)
    verdict = judge_red(before, seen, None, context, task="1", tree="red")
    assert {refusal.id: refusal.cls for refusal in verdict.illegal} == {
        "tests/old.rs": RedClass.IMPORT_HIDES_TESTS,
        "src/lib.rs": RedClass.IMPORT_HIDES_TESTS,
    }
    assert verdict.removed_old == ()
    assert not seen.records["greet::lib::other::tests::old"].ran  # the same executable


def test_production_that_does_not_compile_is_not_green_and_loses_no_test(
    start: Path, before: Observation, tmp_path: Path
) -> None:
    broken = {"src/lib.rs": START["src/lib.rs"].replace("format!", "fromat!")}
    seen = measure(write(shutil.copytree(start, tmp_path / "broken"), broken))
    assert seen.environment_problem is None
    assert [error.path for error in seen.collection_errors] == ["src/lib.rs"]
    assert "fromat" in seen.tail
    assert seen.records["greet::test/old::old"].outcome is None
    assert judge_green(None, seen, expectations(before)).regressions


def test_a_dependency_that_is_not_there_is_the_machines_fault(start: Path, tmp_path: Path) -> None:
    manifest = MANIFEST + '\n[dependencies]\nserde = "1"\n'
    seen = measure(write(shutil.copytree(start, tmp_path / "needy"), {"Cargo.toml": manifest}), Selection.nothing())
    assert "serde" in (seen.environment_problem or "")


def test_a_broken_manifest_is_the_projects_fault(start: Path, tmp_path: Path) -> None:
    seen = measure(write(shutil.copytree(start, tmp_path / "odd"), {"Cargo.toml": "[package\n"}))
    assert seen.state is RunState.UNUSABLE
    assert seen.environment_problem is None
    assert [error.path for error in seen.collection_errors] == ["Cargo.toml"]
