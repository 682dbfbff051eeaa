"""Stub-first: what is new is scaffolded, every new test reaches a stub, and the commits are two (ADR-7).

A fix of tests alone is RED over the start; where that lacks what they are compiled with, over stubs of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.lanes import Played, missing_tests, play
from e2e.shapes import TRACKER, answers, changed, done, red_of
from e2e.test_go_issue import MODULE, MONEY
from e2e.test_go_issue import make as make_module
from e2e.test_rust_issue import BASE, GREET, REGION, make
from kit import BARE_PYTEST, make_project
from languages.crates import needs_cargo
from languages.modules import needs_go

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kit import Entry, Project


pytestmark = [pytest.mark.slow, pytest.mark.broad]

STUB = "\n/// Says good bye.\npub fn bye(name: &str) -> String {\n    todo!()\n}\n"
BYE = STUB.replace("todo!()", 'format!("Bye, {name}!")')
TEST = '\n    #[test]\n    fn says_good_bye() {\n        assert_eq!(bye("Ada"), "Bye, Ada!");\n    }\n'
RUST = {**BASE, "src/lib.rs": f"{GREET}{REGION}}}\n"}
SYMBOL = {"path": "src/lib.rs", "name": "bye", "new": True}
STUBBED = {"result": "COMPLETE", "summary": "bye is there, as a stub"}

CART = '"""A cart."""\n\n\nclass Cart:\n    def __init__(self):\n        self.lines = []\n'
OLD = "from cart import Cart\n\n\ndef test_empty():\n    assert Cart().lines == []\n"
TOTAL = CART + "\n    def total(self):\n        return sum(self.lines)\n"
TOTAL_STUB = CART + "\n    def total(self):\n        raise NotImplementedError\n"
TOTAL_TEST = "\n\ndef test_total():\n    cart = Cart()\n    cart.lines = [1, 2]\n    assert cart.total() == 3\n"
PYTHON = {"cart.py": CART, "test_cart.py": OLD, "pyproject.toml": BARE_PYTEST, **TRACKER}
ON = "[stub_first]\npytest = true\n"


def rust(code: str, *tests: str) -> dict[str, str]:
    return {"src/lib.rs": f"{code}{REGION}{''.join(tests)}}}\n"}


def script_of(
    tests: dict[str, str], code: dict[str, str], *stubs: dict[str, str], symbol: Mapping[str, object]
) -> list[Entry]:
    """Return the answers of a run with these stub passes before the tests."""
    entries = answers(RUST | PYTHON, tests, code, symbols=[dict(symbol)])
    passes: list[Entry] = [{"when": {"kind": "stub"}, "files": files, "report": STUBBED} for files in stubs]
    return [*entries[:5], *passes, *entries[5:]]


def test_a_stub_that_is_left_in_other_words_is_not_green(tmp_path: Path) -> None:
    project = make_project(tmp_path, PYTHON)
    tests, symbol = {"test_cart.py": OLD + TOTAL_TEST}, {"path": "cart.py", "name": "Cart.total", "new": True}
    stubs = {"cart.py": TOTAL_STUB + "\n    def tax(self):\n        raise NotImplementedError\n"}
    half = {"cart.py": TOTAL + "\n    def tax(self):\n        raise  NotImplementedError('later')\n"}
    script = script_of(tests, half, stubs, symbol=symbol)
    script[3]["report"]["tasks"][0]["symbols"].append({**symbol, "name": "Cart.tax"})
    project.use_script(script, ON)

    assert project.run().get("outcome") != "completed"

    assert "a stub is left: cart.py:12" in next(project.run_folder().glob("evidence/green-*.md")).read_text()


@needs_cargo
def test_a_source_of_no_project_is_left_to_the_implementation(tmp_path: Path) -> None:
    stray = {"tools/gen.rs": "fn main() {}\n"}
    project = make(tmp_path, {**PYTHON, **stray, "rs/Cargo.toml": BASE["Cargo.toml"], "rs/src/lib.rs": GREET})
    tests, symbol = {"test_cart.py": OLD + TOTAL_TEST}, {"path": "cart.py", "name": "Cart.total", "new": True}
    changed = {"cart.py": TOTAL_STUB, "tools/gen.rs": "fn main() { todo!() }\n"}
    code = {"cart.py": TOTAL, "tools/gen.rs": "fn main() { println!(); }\n"}
    script = script_of(tests, code, changed, {**changed, **stray}, symbol=symbol)
    for files in (script[0]["report"]["files"], script[3]["report"]["tasks"][0]["files"]):
        files[-1]["action"] = "modify"
    project.use_script(script, ON)

    done(project)

    said = next(project.run_folder().glob("evidence/stub-*.md")).read_text()
    assert "tools/gen.rs is no source: leave it to the implementation" in said


def test_stubs_that_break_what_passed_come_back(tmp_path: Path) -> None:
    project = make_project(tmp_path, PYTHON)
    symbol = {"path": "cart.py", "name": "Cart.total", "new": True}
    broken = TOTAL_STUB.replace("class Cart:", "class Cart(missing):")
    script = script_of(
        {"test_cart.py": OLD + TOTAL_TEST},
        {"cart.py": TOTAL},
        {"cart.py": broken},
        {"cart.py": TOTAL_STUB},
        symbol=symbol,
    )
    script[3]["report"]["tasks"][0]["symbols"].append({"path": "cart.py", "name": "Cart", "new": False})
    project.use_script(script, ON)

    done(project)

    assert "stub/STUB_DIRTY" in project.rows()
    assert "does not compile: " in next(project.run_folder().glob("evidence/stub-*.md")).read_text()


# --- a fix of tests alone ---------------------------------------------------------------------------------------------

MORE = '\n    #[test]\n    fn says_it_to_all() {\n        assert_eq!(bye("all"), "Bye, all!");\n    }\n'
SAYS_NOTHING = "\n    #[test]\n    fn says_nothing() {\n        assert!(true);\n    }\n"


def fixed(project: Project, entries: list[Entry], extra: str = "") -> Played:
    """Return the run, which ends well, and whose commits all stand up to verification."""
    played = play(project, entries, extra=extra)
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    checked = project.document("verify", "run-GAL-1")
    assert {commit["status"] for commit in checked["commits"]} <= {"verified", "nothing_claimed"}, checked
    over = [commit["red_over"] for commit in checked["commits"] if commit.get("task") == "fix-1"]
    assert over == ["stubs"]
    return played


@needs_cargo
def test_a_new_function_in_rust_is_scaffolded_first_and_a_fix_of_tests_is_red_over_its_stubs(tmp_path: Path) -> None:
    first = script_of(rust(GREET + STUB, TEST), rust(GREET + BYE, TEST), rust(GREET + STUB), symbol=SYMBOL)
    empty, more = (rust(GREET + BYE, TEST, one)["src/lib.rs"] for one in (SAYS_NOTHING, MORE))
    played = fixed(make(tmp_path, RUST), [*first[:-2], *missing_tests("src/lib.rs", empty, more)])
    project = played.project
    assert red_of(project) == {"greet::lib::tests::says_good_bye": "MISSING_BEHAVIOR"}
    assert played.subjects()[:2] == ["feat: scaffold bye with todo!() stubs", "fix: reject empty names"]
    assert project.git("show", "HEAD~3:src/lib.rs").rstrip() == rust(GREET + STUB)["src/lib.rs"].rstrip()
    assert changed(project, "HEAD~2") == ["src/lib.rs"]
    assert project.rows().count("stub/STUBBED") == 1
    assert played.rows_of("fix-1") == ["write-tests/STRUCTURAL_ONLY", "write-tests/RED", "implement/GREEN"]
    assert red_of(project, "fix-1") == {"greet::lib::tests::says_it_to_all": "MISSING_BEHAVIOR"}


def test_in_python_with_a_name_that_the_start_lacks_at_the_top_of_an_old_file(tmp_path: Path) -> None:
    stub = CART + "\n\ndef total(lines):\n    raise NotImplementedError\n"
    done = stub.replace("raise NotImplementedError", "return sum(lines)")
    written = (
        OLD.replace("import Cart", "import Cart, total") + "\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
    )
    symbol = {"path": "cart.py", "name": "total", "new": True}
    script = script_of({"test_cart.py": written}, {"cart.py": done}, {"cart.py": stub}, symbol=symbol)
    more = written + "\n\ndef test_total_of_none():\n    assert total([]) == 0\n"
    entries = [*script[:-2], *missing_tests("test_cart.py", more)]
    played = fixed(make_project(tmp_path, PYTHON), entries, ON)
    assert red_of(played.project, "fix-1") == {"test_cart.py::test_total_of_none": "MISSING_BEHAVIOR"}


# --- a symbol that the task forgot: an import error is no RED where symbols are scaffolded first ----------------------

GO_BYE = '\n// Bye says good bye.\nfunc Bye(name string) string {\n\treturn "Bye, " + name + "!"\n}\n'
GO_TEST = """package money

import "testing"

func TestBye(t *testing.T) {
	if Bye("Ada") != "Bye, Ada!" {
		t.Fatal("no")
	}
}
"""


@needs_go
def test_a_test_of_a_name_that_the_task_forgot_is_told_what_to_do(tmp_path: Path) -> None:
    script = answers(MODULE, {"money/bye_test.go": GO_TEST}, {"money/money.go": MONEY + GO_BYE})
    gives_up: Entry = {
        "when": {"kind": "write-tests"},
        "report": {"verdict": "BLOCKED", "problem": "no Bye"},
    }
    split: Entry = {"when": {"kind": "judge", "question": "diagnose"}, "report": {"diagnosis": "spec", "notes": "Bye"}}
    again = answers(
        MODULE,
        {"money/bye_test.go": GO_TEST},
        {"money/money.go": MONEY + GO_BYE},
        symbols=[{"path": "money/money.go", "name": "Bye", "new": True}],
    )
    stub: Entry = {
        "when": {"kind": "stub"},
        "files": {"money/money.go": MONEY + GO_BYE.replace('return "Bye, " + name + "!"', 'panic("not implemented")')},
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
