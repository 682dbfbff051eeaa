"""No command that the source advises is forgotten: a situation executes it, or it stands here with the reason."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from e2e.next_table import OUTCOMES, SET_UP, TABLE
from house.unexecuted import OF_OUTCOMES, ONLY_THE_USER_KNOWS, UNEXECUTED
from house.unexecuted_of_runs import UNEXECUTED_OF_RUNS

import pipeline
from pipeline.runs.next_actions import ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(pipeline.__file__).parent
SITUATIONS: Final = TABLE | OUTCOMES | SET_UP
REASONS: Final = UNEXECUTED | UNEXECUTED_OF_RUNS
_STARTS: Final = ("redfirst ", "git ", "cd ", "kill ", "npm ")
_OTHER_PROGRAMS: Final = ("ls ", "pip ")
_HELD: Final = re.compile(r'"\.\.\."|(?<![\w/-])(?!COMMIT|PLACE|TODO|GAL)[A-Z]{2,}(?![\w-])')
_KEYWORDS: Final = {"actions", "safe_next_actions"}
_MAY_ADVISE: Final = re.compile(rf"actions\b|{'|'.join(_STARTS)}")
_SAID: Final = re.compile(r"(?:(?<=[\w'])|(?<= {}))   #.*")
"""What is said of a command beside it."""
_REDFIRST: Final = (
    "abandon agents approve config demo desk diff doctor explain hand-in init issue mcp recipes reject resume routes "
    "run runs schema show simulate stop tdd trust verify"
)
_GIT: Final = (
    "add branch cat-file checkout cherry-pick commit config fetch for-each-ref log merge reflog reset restore rm show "
    "stash status switch update-ref worktree"
)
_SECOND: Final = "done edit explain get lint list new ready set show status todo try"
_WORD: Final = (
    rf"""(?: (?:--?[a-z][\w-]*(?:[= ](?:[A-Z]{{2,}}|"\.\.\."))?|{{}}|[A-Z]{{2,}}|{_SECOND.replace(" ", "|")}))"""
)
_WITHIN: Final = re.compile(
    rf"\b(?:redfirst (?:{_REDFIRST.replace(' ', '|')})|git (?:{_GIT.replace(' ', '|')}))(?![\w-]){_WORD}*"
)
"""A command within a sentence, as far as it is told from the words around it."""


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None


def _advice(tree: ast.AST) -> Iterator[str]:
    """Yield what a module tells to type; no docstring.

    That is each text that is given as an action or begins as a command does, and the commands within other texts.
    """
    nodes = list(ast.walk(tree))
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    parts -= {id(node) for node in nodes if isinstance(node, ast.JoinedStr)}
    parts |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    given = [node.value for node in nodes if isinstance(node, ast.keyword) and node.arg in _KEYWORDS]
    inside = {id(part) for value in given for part in ast.walk(value)}
    for node in nodes:
        text = _text(node)
        if text is None or id(node) in parts:
            continue
        if id(node) in inside or text.startswith(_STARTS):
            yield text
        else:
            yield from (found[0] for found in _WITHIN.finditer(text))


@cache
def _modules() -> dict[str, ast.Module]:
    """Return the modules that may advise a command, by their path; the others need not be parsed."""
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}
    return {name: ast.parse(text) for name, text in texts.items() if _MAY_ADVISE.search(text)}


@cache
def sites() -> frozenset[tuple[str, str]]:
    return frozenset((name, text) for name, module in _modules().items() for text in _advice(module))


def executed(module: str, text: str) -> bool:
    text = _SAID.sub("", text)
    pattern = "".join(".*" if re.fullmatch(r"{\w*}", part) else re.escape(part) for part in re.split(r"({\w*})", text))
    return any(
        re.fullmatch(pattern, _SAID.sub("", line))
        for advice in SITUATIONS.values()
        if module in advice.sources
        for line in advice.lines
    )


def test_every_command_that_the_source_advises_is_executed_or_has_a_reason_not_to_be() -> None:
    known = {(module, text) for module, texts in REASONS.items() for text in texts}
    forgotten = {site for site in sites() - known if not executed(*site)}
    assert sorted(forgotten) == [], "give each a situation in tests/e2e/next_table.py"


def test_what_has_a_reason_is_still_in_the_source_and_is_not_executed() -> None:
    known = {(module, text) for module, texts in REASONS.items() for text in texts}
    assert sorted(known - sites()) == []
    assert sorted(site for site in known if executed(*site)) == []


def test_every_outcome_and_reason_has_a_situation_or_a_reason_not_to() -> None:
    told = {(outcome, reason) for outcome, reasons in ACTIONS.items() for reason in reasons}
    situations = {advice.stands for advice in SITUATIONS.values() if advice.stands is not None}
    missing = {f"{outcome}/{reason}" for outcome, reason in told} - situations - OF_OUTCOMES.keys()
    assert sorted(missing) == []


def test_what_stands_among_the_actions_is_a_command() -> None:
    sentences = [
        (name, text)
        for name, module in _modules().items()
        for text in _given(module)
        if " " in text.strip() and not text.startswith((*_STARTS, *_OTHER_PROGRAMS, "{}"))
    ]
    assert sentences == [], "what is no command belongs into the message"


def _given(tree: ast.AST) -> Iterator[str]:
    """Yield the texts that are given as actions."""
    given = [node.value for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg in _KEYWORDS]
    for value in given:
        nodes = list(ast.walk(value))
        parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
        parts -= {id(node) for node in nodes if isinstance(node, ast.JoinedStr)}
        yield from (text for node in nodes if id(node) not in parts and (text := _text(node)) is not None)


def test_a_place_is_held_only_for_what_the_user_alone_knows() -> None:
    held = {line for advice in SITUATIONS.values() for line in advice.lines if _HELD.search(_SAID.sub("", line))}
    assert sorted(held - ONLY_THE_USER_KNOWS.keys()) == [], "print the value, or give the reason in unexecuted.py"
    assert sorted(ONLY_THE_USER_KNOWS.keys() - held) == []


def test_advice_is_found_in_a_source() -> None:
    source = 'raise E("git is here", actions=(f"look at {x}", "y"))\nA = f"redfirst show {run} --log"\n"""git doc"""\n'
    assert set(_advice(ast.parse(source))) == {"git is here", "look at {}", "y", "redfirst show {} --log"}
    sentence = (
        'say(f"It waits: redfirst approve {run}, or redfirst reject {run} --feedback \\"...\\". git is not here")'
    )
    told = {"redfirst approve {}", 'redfirst reject {} --feedback "..."'}
    assert set(_advice(ast.parse(sentence))) == told
