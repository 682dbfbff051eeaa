"""A fix of tests alone is RED over the start; where that lacks what they are compiled with, over stubs of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from e2e.lanes import Played, finding, play
from e2e.test_rust_issue import GREET, make
from e2e.test_stub_first import BYE, CART, OLD, ON, PYTHON, RUST, STUB, SYMBOL, TEST, rust, script_of
from kit import RESULT_ACCEPTED, RESULT_SIMPLE, make_project
from languages.crates import needs_cargo

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = [pytest.mark.slow, pytest.mark.broad]

MORE = '\n    #[test]\n    fn says_it_to_all() {\n        assert_eq!(bye("all"), "Bye, all!");\n    }\n'
EMPTY = "\n    #[test]\n    fn says_nothing() {\n        assert!(true);\n    }\n"
READY = {"verdict": "TESTS_READY"}


def asking_for(path: str, *written: str) -> list[Entry]:
    """Return the answers from a final review that misses a test to its settling; @test writes these files in turn."""
    fix = {
        "title": "Test all",
        "acceptance_criteria": ["it is said to all"],
        "files": [],
        "test_files": [{"path": path, "action": "modify"}],
    }
    settled = {"verdict": "ACCEPTABLE", "prior": [{"id": "final-1-01", "status": "resolved"}]}
    missing = finding("All is untested", concern="test")
    return [
        {**RESULT_ACCEPTED, "report": {"verdict": "NEEDS WORK", "findings": [missing]}},
        RESULT_SIMPLE,
        {"when": {"kind": "split"}, "report": {"tasks": [fix]}},
        *({"when": {"kind": "write-tests"}, "files": {path: text}, "report": READY} for text in written),
        {**RESULT_ACCEPTED, "report": settled},
        RESULT_SIMPLE,
    ]


def fixed(project: Project, entries: list[Entry], extra: str = "") -> Played:
    """Return the run, which ends well, and whose commits all stand up to verification."""
    played = play(project, entries, extra=extra)
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    checked = project.document("verify", "run-GAL-1")
    assert {commit["status"] for commit in checked["commits"]} <= {"verified", "nothing_claimed"}, checked
    over = [commit["red_over"] for commit in checked["commits"] if commit.get("task") == "fix-1"]
    assert over == ["stubs"]
    return played


def red_of(played: Played) -> dict[str, str]:
    ledger = json.loads(played.artifact("evidence/task-fix-1.json"))["ledger"]
    return {entry: red["cls"] for entry, red in ledger["red"].items()}


@needs_cargo
def test_in_rust_beside_the_code(tmp_path: Path) -> None:
    first = script_of(rust(GREET + STUB, TEST), rust(GREET + BYE, TEST), rust(GREET + STUB), symbol=SYMBOL)
    more = rust(GREET + BYE, TEST, MORE)["src/lib.rs"]
    played = fixed(make(tmp_path, RUST), [*first[:-2], *asking_for("src/lib.rs", more)])
    assert played.rows_of("fix-1") == ["write-tests/RED", "implement/GREEN"]
    assert red_of(played) == {"greet::lib::tests::says_it_to_all": "MISSING_BEHAVIOR"}


@needs_cargo
def test_one_that_passes_on_the_stubs_comes_back(tmp_path: Path) -> None:
    first = script_of(rust(GREET + STUB, TEST), rust(GREET + BYE, TEST), rust(GREET + STUB), symbol=SYMBOL)
    empty, more = (rust(GREET + BYE, TEST, one)["src/lib.rs"] for one in (EMPTY, MORE))
    played = fixed(make(tmp_path, RUST), [*first[:-2], *asking_for("src/lib.rs", empty, more)])
    assert played.rows_of("fix-1") == ["write-tests/STRUCTURAL_ONLY", "write-tests/RED", "implement/GREEN"]


def test_in_python_with_a_name_that_the_start_lacks_at_the_top_of_an_old_file(tmp_path: Path) -> None:
    stub = CART + "\n\ndef total(lines):\n    raise NotImplementedError\n"
    done = stub.replace("raise NotImplementedError", "return sum(lines)")
    written = (
        OLD.replace("import Cart", "import Cart, total") + "\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
    )
    symbol = {"path": "cart.py", "name": "total", "new": True}
    script = script_of({"test_cart.py": written}, {"cart.py": done}, {"cart.py": stub}, symbol=symbol)
    more = written + "\n\ndef test_total_of_none():\n    assert total([]) == 0\n"
    entries = [*script[:-2], *asking_for("test_cart.py", more)]
    played = fixed(make_project(tmp_path, PYTHON), entries, ON)
    assert red_of(played) == {"test_cart.py::test_total_of_none": "MISSING_BEHAVIOR"}
