"""What prompts and reviews are told of a project: instructions near the task, characters that nobody sees."""

from __future__ import annotations

import pytest

from pipeline.agents.dispatch.prompt import instruction_files
from pipeline.characters import hidden_places


def test_instructions_are_looked_for_on_the_way_to_the_files_of_the_task() -> None:
    found = instruction_files(["packages/greet/src/a.py", "top.py"])
    assert found[:4] == ["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"]
    assert [name for name in found if name.endswith("/AGENTS.md")] == [
        "packages/AGENTS.md",
        "packages/greet/AGENTS.md",
        "packages/greet/src/AGENTS.md",
    ]


@pytest.mark.parametrize(
    ("before", "after", "places"),
    [
        ("", "a = 1\nb = '\u202e\u2066x'\n", ("2:6 U+202E", "2:7 U+2066")),
        ("x\u200by\n", "new\nx\u200by\n", ()),
        ("", "\ufeffa\tb\r\n", ()),
        ("", "ok \U000e0041", ("1:4 U+E0041",)),
        ("", "na\u00efve \u2764\ufe0f", ()),
    ],
)
def test_characters_that_are_not_seen_are_named_by_place_where_a_line_is_new(
    before: str, after: str, places: tuple[str, ...]
) -> None:
    assert hidden_places(before, after) == places
