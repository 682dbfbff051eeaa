"""No module of the driver parses a source: `pipeline.testing.languages.readers` asks them through `limited`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PIPELINE = Path(__file__).parents[2] / "pipeline"
PURE = ("judge/policy", "judge/evidence", "testing/languages", "sandbox/limited")
PARSERS = ("ast", "symtable", "tokenize", "tree_sitter")


def imported(path: Path) -> dict[str, set[str]]:
    """Return what a module imports, at its top or later: module -> names."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found.setdefault(node.module, set()).update(alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            found |= {alias.name: {alias.name} for alias in node.names}
    return found


def asked_of_the_child() -> set[tuple[str, str]]:
    """Return the readers that `pipeline.testing.languages.readers` asks, as module and name."""
    tree = ast.parse((PIPELINE / "testing" / "languages" / "readers.py").read_text("utf-8"))
    return {
        (node.args[0].value.id, node.args[0].attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "limited"
        and isinstance(node.args[0], ast.Attribute)
        and isinstance(node.args[0].value, ast.Name)
    }


def test_only_pure_packages_import_a_parser_and_only_readers_their_readers() -> None:
    readers = asked_of_the_child()
    assert ("forgery", "notes") in readers
    modules = {module for module, _ in readers}
    names = {name for _, name in readers}
    wrong: list[str] = []
    for path in PIPELINE.rglob("*.py"):
        place = path.relative_to(PIPELINE)
        if "/".join(place.parts[:2]) in PURE:
            continue
        for module, used in imported(path).items():
            last = module.rpartition(".")[2]
            if module.partition(".")[0].startswith(PARSERS) or (
                module.startswith("pipeline.testing.languages")
                and module != "pipeline.testing.languages.readers"
                and last in modules | {"imports"}
                and used & names
            ):
                wrong.append(f"{place}: {module} {sorted(used)}")
    assert wrong == []
