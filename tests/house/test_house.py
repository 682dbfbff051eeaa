"""The rules of the house that can be counted. A figure here is a ceiling: it goes down with the code, and never up.

    PYTHONPATH=tests:. python tests/house/test_house.py

prints the figures of today.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest
from house.documents import DESIGN, ROOT, every_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

PROMISES: Final = ROOT / "docs" / "testing.md"
CEILINGS: Final = {
    "pipeline/testing": 15629,
    "pipeline/app": 10607,
    "pipeline/steps": 6889,
    "pipeline/faces": 6755,
    "pipeline/agents": 6412,
    "pipeline/judge": 5324,
    "pipeline/matrix": 4516,
    "pipeline/sandbox": 3680,
    "pipeline/run": 3271,
    "pipeline/config": 1745,
    "pipeline/repo": 1487,
    "pipeline": 1287,
    "todo": 1112,
    "pipeline/queue": 1459,
}
"""Lines of code for each room; raising one needs a sentence of README that the code is for."""
IN_ALL: Final = 70_173
MODULES: Final = 500
IMPORTS: Final = 10.53
"""Of a hundred lines of code, those that import; the goal is 9."""
PARTICIPLES: Final = 636
"""Functions whose name is one participle alone: who reads `said(x)` has to look up who says what."""
LONGEST: Final = {"DESIGN.md": 500, "AGENTS.md": 60, "CHANGELOG.md": 60, "docs/testing.md": 80}
ALIKE: Final = {
    frozenset({"Write", "ProvingTest"}): "what a model may call, and what a report says",
    frozenset({"Edit"}): "the same two",
    frozenset({"GateExpired", "ApprovalExpired"}): "a line of the journal, and the event that programs are told",
    frozenset({"RunStopped", "Stopped"}): "the same two",
    frozenset({"InputRequested"}): "the same two",
    frozenset({"ArtifactWritten", "LeftFile"}): "a line of the journal, and a part of a document",
    frozenset({"Start"}): "lines of pytest's recorder and of the other runners, which have other fields for all",
    frozenset({"_Line", "Line"}): "what pytest's recorder writes, and what the other runners write",
}
"""Models with equal fields that are two things."""

# fmt: off
_IRREGULAR: Final = frozenset({
    "begun", "bent", "broken", "brought", "built", "caught", "chosen", "done", "drawn", "driven", "fed",
    "found", "given", "gone", "grown", "heard", "held", "hidden", "kept", "known", "laid", "led", "left",
    "lent", "lost", "made", "meant", "met", "paid", "said", "seen", "sent", "shown", "spent", "taken", "taught",
    "thrown", "told", "torn", "understood", "worn", "written",
})
# fmt: on


@cache
def modules() -> dict[Path, ast.Module]:
    """Return the modules of the program; data that ships as a project of its own is none."""
    paths = (path for place in ("pipeline", "todo") for path in sorted((ROOT / place).rglob("*.py")))
    there = (path for path in paths if "project" not in path.parts[:-1])
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in there}


@cache
def statements() -> dict[Path, list[ast.stmt]]:
    """Return the statements of each module, those inside of others too; expressions have none."""
    return {path: list(_inside(tree)) for path, tree in modules().items()}


def _inside(node: ast.AST) -> Iterator[ast.stmt]:
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, name, ()):
            if isinstance(inner, ast.stmt):
                yield inner
            yield from _inside(inner)


def package_of(path: Path) -> str:
    """Return the package that a module counts for."""
    parts = path.relative_to(ROOT).parts[:-1]
    return "/".join(parts[:2])


@cache
def lines_of_code() -> Counter[str]:
    """Return how many lines each package has that are neither blank nor comment nor documentation."""
    found: Counter[str] = Counter()
    for path, tree in modules().items():
        texts = _documentation([tree, *statements()[path]])
        documentation = {line for text in texts for line in range(text.lineno, (text.end_lineno or 0) + 1)}
        lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        found[package_of(path)] += sum(
            number not in documentation and line.lstrip()[:1] not in {"", "#"} for number, line in lines
        )
    return found


def _documentation(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            texts = (one.value for one in node.body if isinstance(one, ast.Expr))
            yield from (one for one in texts if isinstance(one, ast.Constant) and isinstance(one.value, str))


def import_lines() -> int:
    """Return how many lines import."""
    found = (node for nodes in statements().values() for node in nodes)
    return sum(
        (node.end_lineno or 0) - node.lineno + 1 for node in found if isinstance(node, ast.Import | ast.ImportFrom)
    )


def participles() -> list[str]:
    """Return the names of functions that are one participle alone."""
    names = (
        node.name.strip("_")
        for nodes in statements().values()
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return sorted(name for name in names if name in _IRREGULAR or re.fullmatch(r"[a-z]+[^e]ed", name))


def models() -> Iterator[tuple[str, frozenset[tuple[str, str]]]]:
    """Yield the name of each model, with the fields that it has beside those of what it extends."""
    classes = [node for nodes in statements().values() for node in nodes if isinstance(node, ast.ClassDef)]
    above = {node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases} for node in classes}
    known, before = {"BaseModel"}, 0
    while before != len(known):
        before = len(known)
        known |= {name for name, bases in above.items() if bases & known}
    for node in classes:
        if {ast.unparse(base).rpartition(".")[2] for base in node.bases} & known:
            fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
            yield node.name, frozenset((ast.unparse(one.target), ast.unparse(one.annotation)) for one in fields)


@pytest.mark.slow
def test_no_package_grows() -> None:
    found = lines_of_code()
    assert {name: lines for name, lines in found.items() if lines > CEILINGS.get(name, 0)} == {}
    assert sum(found.values()) <= IN_ALL
    assert len(modules()) <= MODULES


@pytest.mark.slow
def test_import_lines_are_few() -> None:
    assert 100 * import_lines() / lines_of_code().total() <= IMPORTS


@pytest.mark.slow
def test_no_more_functions_are_a_lone_participle() -> None:
    found = participles()
    assert len(found) <= PARTICIPLES, Counter(found).most_common(20)


@pytest.mark.slow
def test_no_two_models_have_equal_fields() -> None:
    by_fields: dict[frozenset[tuple[str, str]], list[str]] = {}
    for name, fields in models():
        by_fields.setdefault(frozenset(field for field in fields if "ClassVar" not in field[1]), []).append(name)
    alike = {frozenset(names) for fields, names in by_fields.items() if len(fields) > 1 and len(names) > 1}
    assert alike - ALIKE.keys() == set()


def test_every_option_has_a_sentence() -> None:
    silent = [
        (" ".join(words), parameter.name)
        for words, command in every_command()
        for parameter in command.params
        if not getattr(parameter, "help", None) and not getattr(parameter, "hidden", False)
    ]
    assert silent == []


@pytest.mark.parametrize("name", LONGEST)
def test_a_document_is_short(name: str) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= LONGEST[name]


def test_the_packages_are_the_rooms() -> None:
    table = DESIGN.read_text(encoding="utf-8").partition("## 3. Rooms")[2].partition("### 3.1")[0]
    rooms = {match[1] for line in table.splitlines() if (match := re.match(r"\| `([a-z]+)` \|", line))}
    assert {path.name for path in (ROOT / "pipeline").iterdir() if (path / "__init__.py").exists()} == rooms
    assert len(rooms) == 12


def test_every_path_that_the_rules_name_is_there() -> None:
    text = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:pipeline|tests|docs|scripts)/[\w/.-]+)[ `]", text)
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_tests_that_hold_a_promise_are_there() -> None:
    rows = [line.rsplit("|", 2)[1] for line in PROMISES.read_text(encoding="utf-8").splitlines() if "|" in line]
    named = [name for row in rows for name in re.findall(r"`([\w/]+(?:\.py)?)`", row)]
    assert len(named) > 40
    assert [name for name in named if not (ROOT / "tests" / name).exists()] == []


if __name__ == "__main__":
    for name, lines in lines_of_code().most_common():
        sys.stdout.write(f'    "{name}": {lines},\n')
    share = 100 * import_lines() / lines_of_code().total()
    sys.stdout.write(f"{lines_of_code().total()} {len(modules())} {share:.1f} {len(participles())}\n")
