"""No command that the source advises is forgotten: a situation executes it, or it stands here with the reason."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from e2e.next_table import TABLE
from house.unexecuted import OF_OUTCOMES, UNEXECUTED

import pipeline
from pipeline.runs.next_actions import ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(pipeline.__file__).parent
_STARTS: Final = ("redfirst ", "git ", "cd ")
_KEYWORDS: Final = {"actions", "safe_next_actions"}


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None


def _advice(tree: ast.AST) -> Iterator[str]:
    """Yield every text of a module that is given as an action, or begins as a command does; no docstring."""
    nodes = list(ast.walk(tree))
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    parts -= {id(node) for node in nodes if isinstance(node, ast.JoinedStr)}
    parts |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    given = [node.value for node in nodes if isinstance(node, ast.keyword) and node.arg in _KEYWORDS]
    inside = {id(part) for value in given for part in ast.walk(value)}
    for node in nodes:
        text = _text(node)
        if text is not None and id(node) not in parts and (id(node) in inside or text.startswith(_STARTS)):
            yield text


def sites() -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        found |= {(name, text) for text in _advice(ast.parse(path.read_text(encoding="utf-8")))}
    return found


def executed(module: str, text: str) -> bool:
    pattern = "".join(".*" if re.fullmatch(r"{\w*}", part) else re.escape(part) for part in re.split(r"({\w*})", text))
    return any(
        re.fullmatch(pattern, line) for advice in TABLE.values() if module in advice.sources for line in advice.lines
    )


def test_every_command_that_the_source_advises_is_executed_or_has_a_reason_not_to_be() -> None:
    known = {(module, text) for module, texts in UNEXECUTED.items() for text in texts}
    forgotten = {site for site in sites() - known if not executed(*site)}
    assert sorted(forgotten) == [], "give each a situation in tests/e2e/next_table.py"


def test_what_has_a_reason_is_still_in_the_source_and_is_not_executed() -> None:
    known = {(module, text) for module, texts in UNEXECUTED.items() for text in texts}
    assert sorted(known - sites()) == []
    assert sorted(site for site in known if executed(*site)) == []


def test_every_outcome_and_reason_has_a_situation_or_a_reason_not_to() -> None:
    told = {(outcome, reason) for outcome, reasons in ACTIONS.items() for reason in reasons}
    situations = {advice.stands for advice in TABLE.values() if advice.stands is not None}
    missing = {f"{outcome}/{reason}" for outcome, reason in told} - situations - OF_OUTCOMES.keys()
    assert sorted(missing) == []


def test_advice_is_found_in_a_source() -> None:
    source = 'raise E("git is here", actions=(f"look at {x}", "y"))\nA = f"redfirst show {run} --log"\n"""git doc"""\n'
    assert set(_advice(ast.parse(source))) == {"git is here", "look at {}", "y", "redfirst show {} --log"}
