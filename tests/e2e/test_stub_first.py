"""Stub-first: what is new is scaffolded, every new test reaches a stub, and the commits are two (ADR-7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.shapes import TRACKER, answers, changed, done, evidence
from e2e.test_rust_issue import BASE, GREET, REGION, make
from kit import BARE_PYTEST, make_project
from languages.crates import needs_cargo

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


def red_of(project: Project) -> dict[str, str]:
    return {entry: found["cls"] for entry, found in evidence(project, "task-1.json")["ledger"]["red"].items()}


def subjects(project: Project) -> list[str]:
    return project.git("log", "--format=%s", "-3").splitlines()


@needs_cargo
def test_a_new_function_in_rust_is_scaffolded_first_and_makes_two_commits(tmp_path: Path) -> None:
    project = make(tmp_path, RUST)
    tests = rust(GREET + STUB, TEST)
    project.use_script(script_of(tests, rust(GREET + BYE, TEST), rust(GREET + STUB), symbol=SYMBOL))

    done(project)

    assert red_of(project) == {"greet::lib::tests::says_good_bye": "MISSING_BEHAVIOR"}
    assert subjects(project)[1:] == ["fix: reject empty names", "feat: scaffold bye with todo!() stubs"]
    assert project.git("show", "HEAD~2:src/lib.rs").rstrip() == rust(GREET + STUB)["src/lib.rs"].rstrip()
    assert changed(project, "HEAD~1") == ["src/lib.rs"]
    assert project.rows().count("stub/STUBBED") == 1


@pytest.mark.broad
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
@pytest.mark.broad
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


@pytest.mark.broad
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
