"""Nothing outside of `languages/` names a language: its runner, its files, its suffixes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from pipeline.testing.languages.table import LANGUAGES

ROOT = Path(__file__).parents[2]
ENDINGS = [end for language in LANGUAGES.values() for end in (*language.sources, *language.further)]
FILES = ["conftest.py", "__init__.py", "go.sum", *(mark for language in LANGUAGES.values() for mark in language.marks)]
RUNNERS = ["pytest", "cargo", "nextest", "vitest", "jest"]
NAMED = re.compile(
    rf"(?P<runner>\b(?:{'|'.join(RUNNERS)})\b)|(?P<file>{'|'.join(map(re.escape, FILES))})"
    rf"|^[*_/\w]*(?P<ending>{'|'.join(map(re.escape, ENDINGS))})$",
    re.IGNORECASE,
)
OURS = re.compile(r"\w+\.py|/run/redfirst/\w+\.py")

EXCEPTIONS = {
    "judge/policy/control_files.py": "what controls a project, for tools of every kind; most are no language of ours",
    "judge/policy/rights.py": "patterns for who gives none, as records of runs have them",
    "judge/evidence/observation.py": "a layout in the records of earlier runs has these defaults",
    "agents/backends/discovery.py": "how a product that is a package of npm is found",
    "agents/backends/codex.py": "the product's own package",
    "config/sources.py": "redfirst's own settings may stand in pyproject.toml",
    "programs.py": "how our own interpreter is shown in a box",
    "testing/measure/red.py": "stand-ins are made in Python only",
    "testing/measure/baseline.py": "advice on modules that Python does not find",
    "steps/final_review.py": "cosmetic edits are known of Python only",
}


@pytest.mark.slow
def test_nothing_outside_of_languages_names_a_language() -> None:
    naming = {
        str(path.relative_to(ROOT / "pipeline")): words
        for path in sorted((ROOT / "pipeline").rglob("*.py"))
        if not path.is_relative_to(ROOT / "pipeline" / "testing" / "languages")
        and not path.is_relative_to(ROOT / "pipeline" / "faces" / "demo")
        and (words := named_in(path))
    }
    assert {path: words for path, words in naming.items() if path not in EXCEPTIONS} == {}
    assert set(EXCEPTIONS) == set(naming), "an exception that is needed no longer goes"


def named_in(path: Path) -> list[str]:
    """Return the texts in the code of a module, not in its documentation or messages, that name a language."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    said = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
    ]
    return [text for text in texts if " " not in text and NAMED.search(text) and not OURS.fullmatch(text)]
