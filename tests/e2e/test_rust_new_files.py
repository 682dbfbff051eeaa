"""Tests beside Rust code in a file that the start does not have: RED on credit there, and each fails on stubs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from e2e.lanes import Played, finding, play
from e2e.shapes import answers
from e2e.test_rust_issue import BASE, GREET, NO_STUBS, make
from kit import RESULT_ACCEPTED, RESULT_SIMPLE
from languages.crates import needs_cargo

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = [pytest.mark.slow, needs_cargo]

FILES = {**BASE, "src/lib.rs": GREET, "redfirst.toml": NO_STUBS}
FILE = "src/polite.rs"
CODE = '/// Says good bye.\npub fn bye(name: &str) -> String {\n    format!("Bye, {name}!")\n}\n'
DONE = {"src/lib.rs": GREET + "\npub mod polite;\n"}
MORE = '    #[test]\n    fn says_it_to_nobody() {\n        assert_eq!(bye(""), "Bye, !");\n    }\n'
READY = {"verdict": "TESTS_READY"}


def region(*tests: str) -> str:
    return "#[cfg(test)]\nmod tests {\n    use super::*;\n" + "".join(tests) + "}\n"


FIX = {
    "title": "Test the words",
    "acceptance_criteria": ["nobody is told good bye, too"],
    "files": [],
    "test_files": [{"path": FILE, "action": "modify"}],
}
UNTESTED = finding("Its words are untested", concern="test")
FIRST = "tests/polite.rs"
USES = 'use greet::polite::bye;\n\n#[test]\nfn says_good_bye() {\n    assert_eq!(bye("Ada"), "Bye, Ada!");\n}\n'


def until_fixed(tmp_path: Path, tests: str, *more: Entry) -> Played:
    """Return a run whose second task adds tests to the file that the first one brought."""
    script = answers(FILES, {FIRST: USES}, {FILE: CODE, **DONE})
    entries: list[Entry] = [
        *script[:7],
        {**RESULT_ACCEPTED, "report": {"verdict": "NEEDS WORK", "findings": [UNTESTED]}},
        RESULT_SIMPLE,
        {"when": {"kind": "split"}, "report": {"tasks": [FIX]}},
        {"when": {"kind": "write-tests"}, "files": {FILE: CODE + tests}, "report": READY},
    ]
    return play(make(tmp_path, FILES), [*entries, *more])


SETTLED: list[Entry] = [
    {**RESULT_ACCEPTED, "report": {"verdict": "ACCEPTABLE", "prior": [{"id": "final-1-01", "status": "resolved"}]}},
    RESULT_SIMPLE,
]


@pytest.mark.broad
def test_a_fix_of_tests_in_a_file_that_the_start_lacks_is_red_over_the_start(tmp_path: Path) -> None:
    played = until_fixed(tmp_path, region(MORE), *SETTLED)
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
    beside = answers(FILES, {FILE: region(MORE)}, {FILE: CODE, **DONE})[3]
    script = answers(FILES, {FIRST: USES}, {FILE: CODE, **DONE})
    played = play(make(tmp_path, FILES), [*script[:3], beside, *script[3:]])
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert "split/HYGIENE" in played.rows
    said = next((played.project.run_folder() / "reviews").glob("hygiene-split-*.md")).read_text()
    assert f"H016, line 1: task 1: {FILE} is not there when its tests are written" in said
