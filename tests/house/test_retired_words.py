"""Words that were given up do not come back in names, in modules, in what people read."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PICTURES = {"apparatus", "laboratory", "purse", "purses", "reins"}
RIDDLES = {"absent", "heard", "obeyed", "provisional", "quiet", "remembered", "served"}
"""Participles that were names: what is heard, of whom? They stay words of sentences."""
ALONE = {"acting", "elsewhere", "kept", "later", "plain", "stage", "watched"}
"""Names of nothing where they stand alone; `later` beside `earlier`, for a local value, is plain English."""
_ANY = re.compile("|".join(PICTURES | RIDDLES | ALONE), re.IGNORECASE)
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@pytest.mark.slow
def test_retired_words_do_not_come_back() -> None:
    found = {
        str(path.relative_to(ROOT)): words
        for folder in ("pipeline", "todo")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (
            words := [
                *retired_in(path.read_text(encoding="utf-8")),
                *retired_names([path.stem]),
                *({path.stem} & ALONE),
            ]
        )
    }
    assert found == {}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def remembered(): ...", ["remembered"]),
        ("class RolePurses: ...", ["RolePurses"]),
        ("def f(provisional_ids): ...", ["provisional_ids"]),
        ("self.served = 1", ["served"]),
        ("import heard as quiet", ["quiet"]),
        ("def later(earlier, later): ...", ["later"]),
        ("raise E('the purse is empty')", ["the purse is empty"]),
        ("say(f'{name}: the purse is empty')", [": the purse is empty"]),
        ("'''What comes later is served.'''", []),
        ("argv = ['--quiet', 'purse']\nlater_than = x.later", []),
    ],
)
def test_a_retired_word_is_found(source: str, words: list[str]) -> None:
    assert list(retired_in(source)) == words


def retired_in(source: str) -> Iterator[str]:
    """Yield the names that a module gives, and the sentences that it says, with a retired word."""
    if not _ANY.search(source):
        return
    nodes = list(ast.walk(ast.parse(source)))
    documentation = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        yield from retired_names(_given_by(node))
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in ALONE:
            yield node.name
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            sentence = node.value if " " in node.value else ""
            yield from [sentence] if PICTURES & set(re.findall(r"\w+", sentence.lower())) else []


def retired_names(names: list[str]) -> Iterator[str]:
    """Yield the names of which a part is a retired word."""
    for name in names:
        if (PICTURES | RIDDLES) & set(_CAPITAL.sub("_", name).lower().split("_")):
            yield name


def _given_by(node: ast.AST) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.arg(arg=name) | ast.alias(asname=str(name)):
            return [name]
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return [name]
        case _:
            return []
