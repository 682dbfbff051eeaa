"""Where new symbols are scaffolded first, one that the task forgot comes back: an import error is no RED there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.lanes import play
from e2e.shapes import answers, done
from e2e.test_go_issue import MODULE, MONEY
from e2e.test_go_issue import make as make_module
from e2e.test_rust_issue import BASE, GREET, make
from languages.crates import needs_cargo
from languages.modules import needs_go

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = [pytest.mark.slow, pytest.mark.broad]

BYE = '\n// Bye says good bye.\nfunc Bye(name string) string {\n\treturn "Bye, " + name + "!"\n}\n'
TEST = """package money

import "testing"

func TestBye(t *testing.T) {
	if Bye("Ada") != "Bye, Ada!" {
		t.Fatal("no")
	}
}
"""


@needs_go
def test_a_test_of_a_name_that_the_task_forgot_is_told_what_to_do(tmp_path: Path) -> None:
    script = answers(MODULE, {"money/bye_test.go": TEST}, {"money/money.go": MONEY + BYE})
    gives_up: Entry = {
        "when": {"kind": "write-tests"},
        "report": {"verdict": "BLOCKED", "problem": "no Bye"},
    }
    split: Entry = {"when": {"kind": "judge", "question": "diagnose"}, "report": {"diagnosis": "spec", "notes": "Bye"}}
    again = answers(
        MODULE,
        {"money/bye_test.go": TEST},
        {"money/money.go": MONEY + BYE},
        symbols=[{"path": "money/money.go", "name": "Bye", "new": True}],
    )
    stub: Entry = {
        "when": {"kind": "stub"},
        "files": {"money/money.go": MONEY + BYE.replace('return "Bye, " + name + "!"', 'panic("not implemented")')},
        "report": {"result": "COMPLETE", "summary": "Bye is there"},
    }
    entries = [*script[:6], gives_up, split, *again[3:5], stub, *again[5:]]
    played = play(make_module(tmp_path), entries)
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert played.rows.index("write-tests/ILLEGAL_RED") < played.rows.index("stub/STUBBED")
    said = next((played.project.run_folder() / "evidence").glob("red-*.md")).read_text()
    assert "If the task has to list it, answer BLOCKED" in said
    asked = next(played.project.run_folder().glob("dispatches/*diagnose*/prompt.md")).read_text()
    assert "red-0" in asked, "who diagnoses sees what was measured before @test gave up"


@needs_cargo
def test_a_task_that_creates_a_source_without_a_symbol_comes_back_from_the_split(tmp_path: Path) -> None:
    files = {**BASE, "src/lib.rs": GREET}
    code = '/// Says good bye.\npub fn bye(name: &str) -> String {\n    format!("Bye, {name}!")\n}\n'
    test = 'use greet::polite::bye;\n\n#[test]\nfn says_good_bye() {\n    assert_eq!(bye("Ada"), "Bye, Ada!");\n}\n'
    lib = {"src/lib.rs": GREET + "\npub mod polite;\n"}
    symbol = {"path": "src/polite.rs", "name": "bye", "new": True}
    written = {"tests/polite.rs": test}
    silent = answers(files, written, {"src/polite.rs": code, **lib})[3]
    script = answers(files, written, {"src/polite.rs": code, **lib}, symbols=[symbol])
    stub: Entry = {
        "when": {"kind": "stub"},
        "files": {"src/polite.rs": code.replace('format!("Bye, {name}!")', "todo!()"), **lib},
        "report": {"result": "COMPLETE", "summary": "bye is there"},
    }
    project = make(tmp_path, files)
    project.use_script([*script[:3], silent, *script[3:5], stub, *script[5:]])
    done(project)
    assert "split/HYGIENE" in project.rows()
    said = next((project.run_folder() / "reviews").glob("hygiene-split-*.md")).read_text()
    assert "src/polite.rs is new: list its new symbols" in said
