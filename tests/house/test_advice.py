"""What the source advises is a command that there is, with options that it has; whether it works, situations show.

These are typed where they are printed: `tests/e2e/test_next_lines.py` and the files beside it.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

import pytest
from house.documents import ROOT, command_of, every_command

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUPS: Final = {words[0] for words, _ in every_command() if len(words) > 1}
_FIRST: Final = "|".join(sorted({words[0] for words, _ in every_command()}))
_WORD: Final = r"(?: (?:--?[a-z][\w-]*|{}|[A-Z]+|[a-z][\w-]*|\"\.\.\.\"))"
_ADVISED: Final = re.compile(rf"\bredfirst (?:{_FIRST})(?![\w-]){_WORD}*")
_PROGRAMS: Final = ("redfirst ", "git ", "cd ", "kill ", "npm ", "ls ", "pip ", "{}")


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a module that are no documentation, with `{}` for each value."""
    nodes = list(ast.walk(tree))
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    parts -= {id(node) for node in nodes if isinstance(node, ast.JoinedStr)}
    parts |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if id(node) in parts:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)


def unknown(advised: str) -> list[str]:
    """Return the words of a command that it does not know: sub-commands and options."""
    words = advised.split()[1:]
    if words[0] in GROUPS and words[1:2] in ([], ["{}"]):
        return []
    try:
        command, words = command_of(words)
    except AssertionError as error:
        return [str(error)]
    there = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return [word for word in words if re.match(r"--?[a-z]", word) and word not in there | {"--help", "-h"}]


@pytest.mark.slow
def test_every_command_that_a_message_names_is_one_that_there_is() -> None:
    modules = [path for path in (ROOT / "pipeline").rglob("*.py") if "redfirst " in path.read_text(encoding="utf-8")]
    parsed = [ast.parse(path.read_text(encoding="utf-8")) for path in modules]
    advised = {found[0] for tree in parsed for text in texts(tree) for found in _ADVISED.finditer(text)}
    assert len(advised) > 100
    assert unknown("redfirst show {} --nothing") == ["--nothing"]
    wrong = {command: words for command in advised if (words := unknown(command))}
    assert wrong == {}


@pytest.mark.slow
def test_what_stands_among_the_actions_is_a_command() -> None:
    sentences = [
        (path.name, text)
        for path in (ROOT / "pipeline").rglob("*.py")
        if "actions=" in (source := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.keyword) and node.arg in {"actions", "safe_next_actions"}
        for text in texts(node.value)
        if " " in text.strip() and not text.startswith(_PROGRAMS)
    ]
    assert sentences == [], "what is no command belongs into the message"
