"""Rust projects go from issue to commits, crate-free and offline: RED, GREEN and stubs measured with real cargo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.shapes import TRACKER, answers, changed, done, evidence
from kit import make_project
from languages.crates import MANIFEST, environment, needs_cargo

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = [pytest.mark.slow, needs_cargo]

GREET = """//! Greetings.

/// Greets.
///
/// ```
/// assert!(greet::greet("Ada").is_ok());
/// ```
pub fn greet(name: &str) -> Result<String, String> {
    Ok(format!("Hello, {name}!"))
}
"""
GREET_DONE = GREET.replace(
    "    Ok(",
    """    if name.is_empty() {
        return Err("a name is needed".into());
    }
    Ok(""",
)
OLD = """
#[test]
fn greets_by_name() {
    assert_eq!(greet("Ada").unwrap(), "Hello, Ada!");
}
"""
NEW = """
#[test]
fn an_empty_name_is_refused() {
    assert!(greet("").is_err());
}
"""
NO_STUBS = "[stub_first]\ncargo = false\n"
BASE = {"Cargo.toml": MANIFEST, ".gitignore": "target/\nCargo.lock\n", **TRACKER}


def make(tmp_path: Path, files: dict[str, str]) -> Project:
    """Return a project whose user has the toolchain itself on PATH: rustup would look for it in the user's home."""
    project = make_project(tmp_path, files)
    project.env["PATH"] = f"{environment().prefix / 'bin'}:{project.environment()['PATH']}"
    return project


def red_of(project: Project) -> dict[str, str]:
    return {entry: found["cls"] for entry, found in evidence(project, "task-1.json")["ledger"]["red"].items()}


@pytest.mark.broad
def test_tests_in_a_folder_of_their_own(tmp_path: Path) -> None:
    old = f"use greet::greet;\n{OLD}"
    files = {**BASE, "src/lib.rs": GREET, "tests/greet.rs": old}
    project = make(tmp_path, files)
    project.use_script(answers(files, {"tests/greet.rs": old + NEW}, {"src/lib.rs": GREET_DONE}))
    done(project)
    assert red_of(project) == {"greet::test/greet::an_empty_name_is_refused": "ASSERTION_MISMATCH"}
    assert changed(project, "HEAD~1") == ["src/lib.rs", "tests/greet.rs"]
    assert "greet::doc::src/lib.rs::greet" in evidence(project, "green-1.json")["records"]


@pytest.mark.broad
def test_a_new_function_in_a_workspace_of_two_crates(tmp_path: Path) -> None:
    files = {
        **BASE,
        "Cargo.toml": '[workspace]\nresolver = "2"\nmembers = ["greet", "polite"]\n',
        "greet/Cargo.toml": MANIFEST,
        "greet/src/lib.rs": GREET,
        "polite/Cargo.toml": MANIFEST.replace("greet", "polite") + '\n[dependencies]\ngreet = { path = "../greet" }\n',
        "polite/src/lib.rs": "//! Politeness.\n\npub use greet::greet;\n",
        "polite/tests/old.rs": f"use polite::greet;\n{OLD}",
    }
    bye = '\n/// Says good bye.\npub fn bye(name: &str) -> String {\n    format!("Bye, {name}!")\n}\n'
    test = 'use polite::bye;\n\n#[test]\nfn says_good_bye() {\n    assert_eq!(bye("Ada"), "Bye, Ada!");\n}\n'
    symbols = [{"path": "polite/src/lib.rs", "name": "bye", "new": True}]
    project = make(tmp_path, files)
    code = {"polite/src/lib.rs": files["polite/src/lib.rs"] + bye}
    project.use_script(answers(files, {"polite/tests/bye.rs": test}, code, symbols=symbols), NO_STUBS)
    done(project)
    assert red_of(project) == {"polite/tests/bye.rs": "MISSING_BEHAVIOR"}
    assert evidence(project, "task-1.json")["green"]["stub_failures"] == ["polite::test/bye::says_good_bye"]
    assert changed(project, "HEAD~1") == ["polite/src/lib.rs", "polite/tests/bye.rs"]


REGION = """
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greets_by_name() {
        assert_eq!(greet("Ada").unwrap(), "Hello, Ada!");
    }
"""
SAYS_NOTHING = "\n    #[test]\n    fn an_empty_name_is_refused() {\n        assert!(false);\n    }\n"
REFUSED = SAYS_NOTHING.replace("false", 'greet("").is_err()')


def beside(code: str, test: str = "") -> dict[str, str]:
    return {"src/lib.rs": f"{code}{REGION}{test}}}\n"}


@pytest.mark.broad
def test_tests_beside_the_code(tmp_path: Path) -> None:
    files = {**BASE, **beside(GREET)}
    project = make(tmp_path, files)
    project.use_script(answers(files, beside(GREET, REFUSED), beside(GREET_DONE, REFUSED)))
    done(project)
    assert red_of(project) == {"greet::lib::tests::an_empty_name_is_refused": "ASSERTION_MISMATCH"}
    assert changed(project, "HEAD~1") == ["src/lib.rs"]


@pytest.mark.broad
def test_a_proof_of_code_beside_its_tests_goes_straight_to_make(tmp_path: Path) -> None:
    files = {**BASE, **beside(GREET)}
    project = make(tmp_path, files)
    blank = 'use greet::greet;\n\n#[test]\nfn a_blank_name_is_refused() {\n    assert!(greet("  ").is_err());\n}\n'
    proved = {
        "severity": "MEDIUM",
        "title": "A blank name is greeted",
        "location": "src/lib.rs:9",
        "problem": "Blank names pass.",
        "concern": "production",
        "proof": {"test": {"path": "tests/blank.rs", "content": blank}},
    }
    stripped = GREET_DONE.replace("name.is_empty()", "name.trim().is_empty()")
    entries = answers(files, beside(GREET, REFUSED), beside(GREET_DONE, REFUSED))
    at = next(number for number, entry in enumerate(entries) if entry["when"].get("kind") == "review-result")
    first = {
        "when": {"kind": "review-result", "role": "check"},
        "report": {"verdict": "NEEDS WORK", "findings": [proved]},
    }
    fixed = {
        "when": {"kind": "implement", "task": "fix-1"},
        "files": beside(stripped, REFUSED),
        "report": {"result": "COMPLETE", "summary": "blank names, too"},
    }
    project.use_script([*entries[:at], first, entries[at + 1], fixed, *entries[at:]], NO_STUBS)
    done(project)
    assert "final-review/PROVED" in project.rows()
