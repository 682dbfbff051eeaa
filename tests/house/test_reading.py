"""What people, roles and programs read from us is plain: short sentences, subject first, at most one negation."""

from __future__ import annotations

from functools import cache
from typing import Final

import pytest
from house.reading import ROOT, Fault, Text, faults, kinds, texts

READ: Final = {
    "readme": ("README.md",),
    "docs": ("docs", "AGENTS.md", "CHANGELOG.md", "DESIGN.md"),
    "prompts": ("agents", "commands"),
    "messages": ("pipeline", "todo"),
}
EXCEPTIONS: Final[dict[str, str]] = {}
"""The beginning of a sentence that stays as it is, and why. At most 20."""


@cache
def found(kind: str) -> tuple[Fault, ...]:
    return tuple(fault for text in texts(ROOT / place for place in READ[kind]) for fault in faults(text))


def is_excused(fault: Fault) -> bool:
    return any(fault.sentence.startswith(begin) for begin in EXCEPTIONS)


@pytest.mark.parametrize("kind", READ)
def test_each_sentence_is_plain(kind: str) -> None:
    assert not [str(fault) for fault in found(kind) if not is_excused(fault)]


def test_each_exception_is_needed_and_there_are_few() -> None:
    said = [fault.sentence for kind in READ for fault in found(kind)]
    assert [begin for begin in EXCEPTIONS if not any(sentence.startswith(begin) for sentence in said)] == []
    assert len(EXCEPTIONS) <= 20
    assert all(EXCEPTIONS.values())


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("What it changed there passes the gate of its role.", "turned"),
        ("What you edit counts.", "turned"),
        ("Of a task that waits the files are kept.", "turned"),
        ("To what is asked there is one answer.", "turned"),
        ("A run without a plan waits for nobody without a word.", "negated"),
        ("Nothing is not kept.", "negated"),
        (" ".join(["word"] * 26) + ".", "long (26 words)"),
    ],
)
def test_a_sentence_that_is_read_twice_is_found(sentence: str, kind: str) -> None:
    assert kind in kinds(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "What is asked of you?",
        "What you edit, in one line.",
        "What an agent can do.",
        "Which desk, where a run has two.",
        "The run waits, since nobody has answered and no limit is set.",
        " ".join(["word"] * 25) + ".",
    ],
)
def test_a_plain_sentence_is_none(sentence: str) -> None:
    assert list(kinds(sentence)) == []


def test_a_paragraph_is_five_lines() -> None:
    page = Text(ROOT / "README.md", 1, "A word. " * 80, paragraph=True)
    assert [fault.kind for fault in faults(page)] == ["paragraph (640 letters)"]
