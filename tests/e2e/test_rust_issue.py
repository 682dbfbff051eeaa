"""Rust projects go from issue to commits, crate-free and offline: RED, GREEN and stubs measured with real cargo."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import Played, finding, missing_tests, play, review
from e2e.shapes import TRACKER, answers, changed, done, evidence, red_of
from kit import AFTER_MAKE, make_project
from languages.crates import MANIFEST, environment, needs_cargo

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project


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
    proof = {"test": {"path": "tests/blank.rs", "content": blank}}
    proved = finding("A blank name is greeted", "MEDIUM", concern="production", proof=proof)
    stripped = GREET_DONE.replace("name.is_empty()", "name.trim().is_empty()")
    entries = answers(files, beside(GREET, REFUSED), beside(GREET_DONE, REFUSED))
    at = next(number for number, entry in enumerate(entries) if entry["when"].get("kind") == "review-result")
    first = review("review-result", "NEEDS WORK", proved)
    fixed = {
        "when": {"kind": "implement", "task": "fix-1"},
        "files": beside(stripped, REFUSED),
        "report": {"result": "COMPLETE", "summary": "blank names, too"},
    }
    project.use_script([*entries[:at], first, entries[at + 1], fixed, *entries[at:]], NO_STUBS)
    done(project)
    assert "final-review/PROVED" in project.rows()


# --- tests beside the code that are written again: what was made meanwhile is kept, no RED borrows of it --------------

BESIDE = {**BASE, **beside(GREET)}
WRONG = REFUSED.replace("is_err()", 'unwrap_err() == "who?"')
NAMED = """
    #[test]
    fn a_name_is_asked_for() {
        assert_eq!(greet("").unwrap_err(), "a name is needed");
    }
"""
PART = GREET_DONE.replace("a name is needed", "no")
READY = {"verdict": "TESTS_READY"}
DOUBTS = {"result": "INCOMPLETE", "blocking_issue": "nobody asked for these words", "escalate": "test_design"}
REDESIGN: Entry = {
    "when": {"kind": "judge", "question": "diagnose"},
    "report": {"diagnosis": "test_design", "notes": "the words are not asked for"},
}


def writes(text: str) -> Entry:
    return {"when": {"kind": "write-tests"}, "files": beside(GREET, text), "report": READY}


def made(code: str, text: str, report: dict[str, Any] | None = None) -> Entry:
    said = report or {"result": "COMPLETE", "summary": "refuses"}
    return {"when": {"kind": "implement"}, "files": beside(code, text), "report": said}


def text_in(played: Played, tree: str) -> str:
    return played.project.git("show", f"{tree}:src/lib.rs") + "\n"


def worked(tmp_path: Path, *entries: Entry) -> Played:
    """Return a run that ends well; the answers are those behind the split."""
    until = answers(BESIDE, beside(GREET, REFUSED), beside(GREET_DONE, REFUSED))[:5]
    played = play(make(tmp_path, BESIDE), [*until, *entries])
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    return played


@pytest.mark.broad
def test_who_implements_again_starts_from_the_own_work_with_the_new_tests_in_it(tmp_path: Path) -> None:
    redesigned = [writes(WRONG), made(PART, WRONG, DOUBTS), REDESIGN, writes(NAMED), made(GREET_DONE, NAMED)]
    played = worked(tmp_path, *redesigned, *AFTER_MAKE)
    again = played.asked("implement", 2)
    assert text_in(played, again.result["base_tree"]) == beside(PART, NAMED)["src/lib.rs"]
    assert text_in(played, "HEAD") == beside(GREET_DONE, NAMED)["src/lib.rs"]


@pytest.mark.broad
def test_a_fix_of_the_tests_alone_is_red_over_the_start(tmp_path: Path) -> None:
    both = REFUSED + NAMED
    fix = missing_tests("src/lib.rs", beside(GREET_DONE, both)["src/lib.rs"])
    played = worked(tmp_path, writes(REFUSED), made(GREET_DONE, REFUSED), *fix)
    assert played.rows_of("fix-1") == ["write-tests/RED", "implement/GREEN"]
    assert played.dispatches("implement", task="fix-1") == [], "GREEN over head needs no dispatch"
    found = json.loads(played.artifact("evidence/task-fix-1.json"))
    assert list(found["ledger"]["red"]) == ["greet::lib::tests::a_name_is_asked_for"]
    assert found["production"] == json.loads(played.artifact("run.json"))["start_tree"]
    assert text_in(played, "HEAD") == beside(GREET_DONE, both)["src/lib.rs"]
    checked = played.project.document("verify", "run-GAL-1")
    assert checked["_code"] == 0, checked
    assert [commit["status"] for commit in checked["commits"]][:2] == ["verified", "verified"]
    assert [commit["red_over"] for commit in checked["commits"]][:2] == ["parent", "start"]


# --- tests beside code in a file that the start does not have: RED on credit there, and each fails on stubs -----------

LACKING = {**BASE, "src/lib.rs": GREET, "redfirst.toml": NO_STUBS}
FILE = "src/polite.rs"
POLITE = '/// Says good bye.\npub fn bye(name: &str) -> String {\n    format!("Bye, {name}!")\n}\n'
WITH_MODULE = {"src/lib.rs": GREET + "\npub mod polite;\n"}
MORE = '    #[test]\n    fn says_it_to_nobody() {\n        assert_eq!(bye(""), "Bye, !");\n    }\n'


def region(*tests: str) -> str:
    return "#[cfg(test)]\nmod tests {\n    use super::*;\n" + "".join(tests) + "}\n"


FIRST = "tests/polite.rs"
USES = 'use greet::polite::bye;\n\n#[test]\nfn says_good_bye() {\n    assert_eq!(bye("Ada"), "Bye, Ada!");\n}\n'


@pytest.mark.broad
def test_a_fix_of_tests_in_a_file_that_the_start_lacks_is_red_over_the_start(tmp_path: Path) -> None:
    script = answers(LACKING, {FIRST: USES}, {FILE: POLITE, **WITH_MODULE})
    played = play(make(tmp_path, LACKING), [*script[:7], *missing_tests(FILE, POLITE + region(MORE))])
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert played.rows_of("fix-1") == ["write-tests/RED", "implement/GREEN"]
    evidence = json.loads(played.artifact("evidence/task-fix-1.json"))
    red = {entry: [found["cls"], found["granularity"]] for entry, found in evidence["ledger"]["red"].items()}
    assert red == {FILE: ["MISSING_BEHAVIOR", "file"], FIRST: ["MISSING_BEHAVIOR", "file"]}
    assert evidence["green"]["stub_failures"] == ["greet::lib::polite::tests::says_it_to_nobody"]
    checked = played.project.document("verify", "run-GAL-1")
    assert [commit["status"] for commit in checked["commits"]][:2] == ["verified", "verified"], checked


@pytest.mark.broad
def test_a_split_whose_tests_would_stand_in_a_file_that_nobody_scaffolds_comes_back(tmp_path: Path) -> None:
    beside = answers(LACKING, {FILE: region(MORE)}, {FILE: POLITE, **WITH_MODULE})[3]
    script = answers(LACKING, {FIRST: USES}, {FILE: POLITE, **WITH_MODULE})
    played = play(make(tmp_path, LACKING), [*script[:3], beside, *script[3:]])
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert "split/HYGIENE" in played.rows
    said = next((played.project.run_folder() / "reviews").glob("hygiene-split-*.md")).read_text()
    assert f"H016, line 1: task 1: {FILE} is not there when its tests are written" in said


# --- a signature that changes: the stub pass gives it, and old tests that have to change wait for @test ---------------

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


def louder(tmp_path: Path, more: dict[str, str]) -> Project:
    """Return a project whose task gives a function another signature, and may change one old test."""
    files = {**BASE, "src/lib.rs": PLAIN, "tests/greet.rs": BEFORE, **more}
    symbol = {"path": "src/lib.rs", "name": "greet", "new": True}
    entries = answers(files, {"tests/greet.rs": AFTER + IS_LOUD}, {"src/lib.rs": LOUD_DONE}, symbols=[symbol])
    entries[3]["report"]["tasks"][0]["tests_to_change"] = [{"id": GREETS, "reason": "another signature"}]
    made = {"result": "COMPLETE", "summary": "it is there"}
    stub: Entry = {"when": {"kind": "stub"}, "files": {"src/lib.rs": LOUD_STUB}, "report": made}
    project = make(tmp_path, files)
    project.use_script([*entries[:5], stub, *entries[5:]])
    return project


@pytest.mark.broad
def test_a_signature_may_change_with_the_old_tests_that_the_task_lists(tmp_path: Path) -> None:
    project = louder(tmp_path, {})
    done(project)
    assert red_of(project) == {GREETS: "MISSING_BEHAVIOR", "greet::test/greet::is_loud": "MISSING_BEHAVIOR"}
    assert json.loads((project.run_folder() / "evidence/stubs-1.json").read_text()) == [GREETS]
    subjects = project.git("log", "--format=%s").splitlines()
    assert not any("scaffold" in subject for subject in subjects), "such stubs are no sound commit"
    checked = project.document("verify", "run-GAL-1")
    assert {commit["status"] for commit in checked["commits"]} == {"verified", "nothing_claimed"}, checked


@pytest.mark.broad
def test_an_old_test_that_may_not_change_keeps_the_signature(tmp_path: Path) -> None:
    project = louder(tmp_path, {"tests/other.rs": OTHER})
    assert project.run().get("outcome") != "completed"

    said = next(project.run_folder().glob("evidence/stub-*.md")).read_text()
    assert "does not compile: tests/other.rs" in said
