"""A signature that changes: the stub pass gives it, and old tests that have to change wait for @test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from e2e.shapes import answers, done, evidence
from e2e.test_rust_issue import BASE, GREET, OLD, make
from languages.crates import needs_cargo

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = [pytest.mark.slow, pytest.mark.broad]

EXAMPLE = '///\n/// ```\n/// assert!(greet::greet("Ada").is_ok());\n/// ```\n'
PLAIN = GREET.replace(EXAMPLE, "")
LOUD = PLAIN.replace("(name: &str)", "(name: &str, loud: bool)")
LOUD_STUB = LOUD.replace('Ok(format!("Hello, {name}!"))', "todo!()")
LOUD_DONE = LOUD.replace('"Hello, {name}!"', '"Hello, {name}{}", if loud { "!!" } else { "!" }')
BEFORE = f"use greet::greet;\n{OLD}"
AFTER = BEFORE.replace('"Ada")', '"Ada", false)')
IS_LOUD = '\n#[test]\nfn is_loud() {\n    assert_eq!(greet("Ada", true).unwrap(), "Hello, Ada!!");\n}\n'
OTHER = 'use greet::greet;\n\n#[test]\nfn is_never_empty() {\n    assert!(!greet("Ada").unwrap().is_empty());\n}\n'
GREETS = "greet::test/greet::greets_by_name"


def script(files: dict[str, str], tests: dict[str, str], stub: str, code: dict[str, str], change: str) -> list[Entry]:
    """Return the answers of a run whose task gives a function another signature, and may change one old test."""
    path = next(iter(code))
    name = "greet" if path.endswith(".rs") else "Parse"
    entries = answers(files, tests, code, symbols=[{"path": path, "name": name, "new": True}])
    entries[3]["report"]["tasks"][0]["tests_to_change"] = [{"id": change, "reason": "another signature"}]
    made = {"result": "COMPLETE", "summary": "it is there"}
    return [*entries[:5], {"when": {"kind": "stub"}, "files": {path: stub}, "report": made}, *entries[5:]]


def is_verified(project: Project) -> None:
    checked = project.document("verify", "run-GAL-1")
    assert {commit["status"] for commit in checked["commits"]} == {"verified", "nothing_claimed"}, checked


def red_of(project: Project) -> dict[str, str]:
    return {entry: found["cls"] for entry, found in evidence(project, "task-1.json")["ledger"]["red"].items()}


@needs_cargo
@pytest.mark.broad
def test_in_rust(tmp_path: Path) -> None:
    files = {**BASE, "src/lib.rs": PLAIN, "tests/greet.rs": BEFORE}
    project = make(tmp_path, files)
    tests, code = {"tests/greet.rs": AFTER + IS_LOUD}, {"src/lib.rs": LOUD_DONE}
    project.use_script(script(files, tests, LOUD_STUB, code, GREETS))

    done(project)

    assert red_of(project) == {GREETS: "MISSING_BEHAVIOR", "greet::test/greet::is_loud": "MISSING_BEHAVIOR"}
    assert json.loads((project.run_folder() / "evidence/stubs-1.json").read_text()) == [GREETS]
    subjects = project.git("log", "--format=%s").splitlines()
    assert not any("scaffold" in subject for subject in subjects), "such stubs are no sound commit"
    is_verified(project)


@needs_cargo
def test_an_old_test_that_may_not_change_keeps_the_signature(tmp_path: Path) -> None:
    files = {**BASE, "src/lib.rs": PLAIN, "tests/greet.rs": BEFORE, "tests/other.rs": OTHER}
    project = make(tmp_path, files)
    tests, code = {"tests/greet.rs": AFTER + IS_LOUD}, {"src/lib.rs": LOUD_DONE}
    project.use_script(script(files, tests, LOUD_STUB, code, GREETS))

    assert project.run().get("outcome") != "completed"

    said = next(project.run_folder().glob("evidence/stub-*.md")).read_text()
    assert "does not compile: tests/other.rs" in said
