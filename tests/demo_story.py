"""A run of the demo's size as a script: two tasks, a revised plan, judged tests, a refused write, a fix task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kit import GREET, PLAN_SIMPLE, RESULT_SIMPLE, SPLIT_ACCEPTED, TEST_GREET, judge, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

GREET_1 = GREET.replace(
    '    return f"', '    if not name:\n        raise ValueError("a name is needed")\n    return f"'
)
GREET_2 = GREET_1.replace("!r}", "}") + '\n\ndef part(name):\n    return f"Goodbye, {name}!"\n'
GREET_3 = GREET_2.replace("def part(name):\n", 'def part(name):\n    if not name:\n        raise ValueError("no")\n')
TEST_1 = (
    "import pytest\n\n"
    + TEST_GREET
    + '\n\ndef test_an_empty_name_is_refused():\n    with pytest.raises(ValueError):\n        greet("")\n'
)
TEST_PART = 'import greet\n\n\ndef test_parts_by_name():\n    assert greet.part("Ada") == "Goodbye, Ada!"\n'
TEST_PART_2 = (
    "import pytest\n\n"
    + TEST_PART
    + '\n\ndef test_nobody_parts():\n    with pytest.raises(ValueError):\n        greet.part("")\n'
)


def _plan(*more: dict[str, str]) -> Entry:
    files = [{"path": "greet.py", "action": "modify", "why": "both functions live there"}, *more]
    behaviour = {"action": "call greet with an empty string", "outcome": "ValueError is raised"}
    report = {
        "problem": "greet accepts an empty name, and nobody can part.",
        "approach": "Raise ValueError before formatting; add part beside greet.",
        "files": files,
        "test_design": {"behaviours": [behaviour]},
    }
    return {"when": {"kind": "plan"}, "report": report}


def _task(title: str, criterion: str, tests: tuple[str, str], **more: Any) -> dict[str, Any]:
    return {
        "title": title,
        "description": f"{title}.",
        "acceptance_criteria": [criterion],
        "files": [{"path": "greet.py", "action": "modify"}],
        "test_files": [{"path": tests[0], "action": tests[1]}],
        **more,
    }


_MISSING = {
    "severity": "HIGH",
    "title": "no word on part",
    "location": "plan.md",
    "problem": "the plan does not say what part returns",
    "evidence": "the approach names greet only",
    "concern": "plan",
}
_UNCHECKED = {
    "severity": "HIGH",
    "title": "part accepts nobody",
    "location": "greet.py",
    "problem": "part formats an empty name",
    "evidence": 'part("") returns a farewell to nobody',
    "concern": "production",
}
_NEW_SYMBOL = {"path": "greet.py", "name": "part", "signature": "part(name)", "new": True}
_EMPTY = "tests/test_greet.py::test_an_empty_name_is_refused"


def _tests(task: str, path: str, content: str, test_id: str, **more: Any) -> Entry:
    report = {"verdict": "TESTS_READY", "tests": [{"id": test_id}], **more}
    return {"when": {"kind": "write-tests", "task": task}, "files": {path: content}, "report": report}


def _make(task: str, files: dict[str, str]) -> Entry:
    return {"when": {"kind": "implement", "task": task}, "files": files, "report": {"result": "COMPLETE"}}


def _review(kind: str, verdict: str, *findings: dict[str, str], **more: Any) -> Entry:
    return {
        "when": {"kind": kind, "role": "check"},
        "report": {"verdict": verdict, "findings": list(findings), **more},
    }


STORY: list[Entry] = [
    _plan(),
    _review("review-plan", "NEEDS WORK", _MISSING),
    PLAN_SIMPLE,
    _plan({"path": "tests/test_part.py", "action": "create", "why": "the tests of part"}),
    _review("review-plan", "ACCEPTABLE", prior=[{"id": "plan-1-01", "status": "resolved"}]),
    PLAN_SIMPLE,
    {
        "when": {"kind": "split"},
        "report": {
            "tasks": [
                _task("Reject empty names", 'greet("") raises ValueError', ("tests/test_greet.py", "modify")),
                _task(
                    "Part politely",
                    'part("Ada") returns "Goodbye, Ada!"',
                    ("tests/test_part.py", "create"),
                    symbols=[_NEW_SYMBOL],
                    depends_on=[1],
                ),
            ]
        },
    },
    SPLIT_ACCEPTED,
    _tests("1", "tests/test_greet.py", TEST_1, _EMPTY, escalate_to_check=True, escalation_reason="is it ValueError?"),
    judge("tests", verdict="ACCEPTABLE"),
    _make("1", {"greet.py": GREET_1, "tests/test_greet.py": TEST_GREET}),
    _make("1", {"greet.py": GREET_1}),
    _tests("2", "tests/test_part.py", TEST_PART, "tests/test_part.py::test_parts_by_name"),
    _make("2", {"greet.py": GREET_2}),
    _review("review-result", "NEEDS WORK", _UNCHECKED),
    RESULT_SIMPLE,
    {
        "when": {"kind": "split"},
        "report": {"tasks": [_task("Nobody parts", 'part("") raises ValueError', ("tests/test_part.py", "modify"))]},
    },
    _tests("fix-1", "tests/test_part.py", TEST_PART_2, "tests/test_part.py::test_nobody_parts"),
    _make("fix-1", {"greet.py": GREET_3}),
    _review("review-result", "ACCEPTABLE", prior=[{"id": "final-1-01", "status": "resolved"}]),
    RESULT_SIMPLE,
]
"""Twenty-one dispatches, one of them refused by the gate and asked again."""


def make_story(tmp_path: Path) -> Project:
    """Return a project whose agents play `STORY`; killed dispatches count, so their limit is out of the way."""
    project = make_project(tmp_path)
    project.use_script(STORY, "[limits]\ndispatches = 300")
    return project
