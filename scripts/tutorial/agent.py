"""Every role of the recorded session, SCRIPTED: prepared answers to whatever is asked, and no model.

A redraft of the plan is made from the plan as the person left it, and each piece of code takes a few seconds.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

THINKING_S = 4
"""What @test and @make take, so that there is something to interrupt."""
BEHAVIOURS = [
    {"action": "slug('!?') is called", "outcome": "ValueError is raised"},
    {"action": "slug(' Hello World ') is called", "outcome": "'hello-world' is returned"},
]
TAB = {"action": "slug('a\\tb') is called", "outcome": "'a-b' is returned"}
APPROACH = "A title without a letter or digit is a ValueError. Spaces around it are dropped."
TESTS = """import pytest

from slugs import slug


def test_a_space_becomes_a_hyphen() -> None:
    assert slug("Hello World") == "hello-world"


def test_a_title_needs_a_letter_or_digit() -> None:
    with pytest.raises(ValueError, match="!"):
        slug("!?")


def test_white_space_only_separates_words() -> None:
    assert slug(" Hello World ") == "hello-world"
    assert slug("a\\tb") == "a-b"
"""
CODE = '''"""Short names for titles, as they stand in addresses."""


def slug(title: str) -> str:
    """Return the title in small letters, with a hyphen between its words.

    Raises:
        ValueError: there is no letter or digit in it.
    """
    if not any(character.isalnum() for character in title):
        raise ValueError(f"no letter or digit in {title!r}")
    return "-".join(title.lower().split())
'''
NEW_TESTS = ("test_a_title_needs_a_letter_or_digit", "test_white_space_only_separates_words")
WELL = dict.fromkeys(("coverage", "overlap", "single_purpose", "contracts", "testable", "test_approach"), True)


def plan(before: str | None) -> dict[str, Any]:
    """Return the first draft, or the one after a rejection: what the person left, and what they asked for."""
    approach = before.split("## Approach\n")[1].split("\n## ")[0].strip() if before else APPROACH
    return {
        "problem": "slug() makes names that no address can have, of '!?' and ' a'.",
        "approach": approach + (" Tabs count as spaces." if before else ""),
        "files": [
            {"path": "slugs.py", "action": "modify", "why": "slug() is the one place that reads titles"},
            {"path": "tests/test_slugs.py", "action": "modify", "why": "its tests"},
        ],
        "test_design": {"behaviours": [*BEHAVIOURS, TAB] if before else BEHAVIOURS},
    }


SPLIT = {
    "title": "refuse titles that make no name",
    "description": "slug() refuses a title without a letter or digit, and drops white space around it.",
    "acceptance_criteria": ["slug('!?') raises ValueError", "slug(' a ') is 'a'"],
    "files": [{"path": "slugs.py", "action": "modify"}],
    "test_files": [{"path": "tests/test_slugs.py", "action": "modify"}],
}


def answer(task: dict[str, Any]) -> dict[str, Any]:
    """Return the report; write what the role writes."""
    match task["kind"]:
        case "plan":
            before = task["artifacts"].get("previous_plan")
            return plan(Path(before).read_text() if before else None)
        case "split":
            return {"tasks": [SPLIT]}
        case "write-tests":
            time.sleep(THINKING_S)
            Path("tests/test_slugs.py").write_text(TESTS)
            ids = [f"tests/test_slugs.py::{name}" for name in NEW_TESTS]
            shown = [{"id": f"C{number}", "tests": [one]} for number, one in enumerate(ids, 1)]
            return {"verdict": "TESTS_READY", "tests": [{"id": one} for one in ids], "criteria": shown}
        case "implement":
            time.sleep(THINKING_S)
            Path("slugs.py").write_text(CODE)
            return {"result": "COMPLETE", "summary": "slug() refuses titles that make no name"}
        case "review-split":
            return {"verdict": "ACCEPTABLE", "answers": WELL}
        case "review-result" if task["role"] == "check":
            met = [{"task": "1", "id": one, "met": True} for one in ("C1", "C2")]
            return {"verdict": "ACCEPTABLE", "criteria": met}
        case _:
            said = "JUSTIFIED COMPLEXITY" if task["role"] == "simplify" else "ACCEPTABLE"
            return {"verdict": said}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    Path(os.environ["REDFIRST_REPORT"]).write_text(json.dumps(answer(asked)))
