"""Whole runs: an old file of tests imports what is new at its top; its old tests are run all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from e2e.shapes import TRACKER, answers, evidence
from kit import FILES, GREET, Project, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.broad]

OLD = "from shop.greet import greet\n\n\ndef test_greets():\n    assert greet('a')\n"
BYE = '\n\ndef farewell(name):\n    return f"Bye, {name}!"\n'
TEST_BYE = '\n\ndef test_a_farewell():\n    assert farewell("Ada") == "Bye, Ada!"\n'
THERE = "tests/test_shop.py"
SHOP = {
    "pyproject.toml": FILES["pyproject.toml"],
    "shop/__init__.py": "",
    "shop/greet.py": GREET,
    THERE: OLD,
    **TRACKER,
}
NEW = {"path": "shop/greet.py", "name": "farewell", "signature": "(name)", "new": True}


def played(
    tmp_path: Path, tests: str, code: dict[str, str], *symbols: dict[str, Any]
) -> tuple[Project, dict[str, Any]]:
    """Return a run in which the old file of tests becomes this."""
    project = make_project(tmp_path, SHOP)
    config = '[agents.simplify]\nbackend = "off"\n[limits]\ntest_rewrite = 0\n'
    project.use_script(answers(SHOP, {THERE: tests}, code, symbols=symbols), config)
    return project, project.run()


def imports(what: str, tests: str = TEST_BYE) -> str:
    """Return the old tests below a further import, and new ones."""
    return f"{what}\n{OLD}{tests}"


def is_red_by_itself(project: Project, document: dict[str, Any]) -> None:
    assert document.get("outcome") == "completed", (project.rows(), document["_stderr"])
    assert "write-tests/RED" in project.rows(), project.rows()
    found = evidence(project, "task-1.json")
    assert list(found["ledger"]["red"]) == [f"{THERE}::test_a_farewell"]
    assert found["green"]["kept"] == 1, "the old test of the file is among what was kept"
    checked = project.redfirst("verify", "HEAD~1")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.broad
def test_a_new_function_of_a_module_that_is_there(tmp_path: Path) -> None:
    code = {"shop/greet.py": GREET + BYE}
    is_red_by_itself(*played(tmp_path, imports("from shop.greet import farewell"), code, NEW))
