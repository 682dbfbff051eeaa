"""A project of small modules of sums, and an issue whose tasks each change one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from e2e.lanes import Played
from e2e.shapes import TRACKER
from kit import AFTER_MAKE, PLAN_ACCEPTED, PLAN_SIMPLE, SPLIT_ACCEPTED, make_project

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from kit import Entry, Project

NAMES = ("ant", "bee", "cow", "dog", "elk")


def code(name: str, factor: int = 1) -> str:
    """Return a module with one function."""
    return f"{name} n = n * {factor}\n"


def old_check(name: str) -> str:
    return f"{name}0: {name} 0 = 0\n"


def new_check(name: str) -> str:
    """Return the tests with one that asks for the doubled value."""
    return f"{old_check(name)}{name}2: {name} 2 = 4\n"


def make(tmp_path: Path, count: int = 3, **more: str) -> Project:
    """Return a project of so many modules."""
    files = {f"{name}.sum": code(name) for name in NAMES[:count]}
    files |= {f"{name}.check": old_check(name) for name in NAMES[:count]}
    project = make_project(tmp_path, {**files, "sums.project": "", **TRACKER, **more})
    project.env |= {"TESTS_LANGUAGE": "languages.sums", "REDFIRST_SANDBOX": "none"}
    return project


def task(name: str, **more: Any) -> dict[str, Any]:
    """Return a draft of the task that doubles what a module gives."""
    return {
        "title": f"Double {name}",
        "description": f"{name} must give twice as much.",
        "acceptance_criteria": [f"{name} 2 is 4"],
        "files": [{"path": f"{name}.sum", "action": "modify"}],
        "test_files": [{"path": f"{name}.check", "action": "modify"}],
        **more,
    }


def split(*tasks: dict[str, Any]) -> list[Entry]:
    """Return the answers until the tasks begin."""
    plan = {
        "problem": "They give too little.",
        "approach": "Double each.",
        "files": [change for one in tasks for change in one["files"]],
        "test_design": {"behaviours": [{"action": "call each with 2", "outcome": "4 is given"}]},
    }
    return [
        {"when": {"kind": "plan"}, "report": plan},
        PLAN_ACCEPTED,
        PLAN_SIMPLE,
        {"when": {"kind": "split"}, "report": {"tasks": list(tasks)}},
        SPLIT_ACCEPTED,
    ]


def of_test(number: int, name: str, files: dict[str, str] | None = None, **more: Any) -> Entry:
    """Return the answer of @test to a task."""
    return {
        "when": {"kind": "write-tests", "task": str(number)},
        "files": files or {f"{name}.check": new_check(name)},
        "report": {"verdict": "TESTS_READY"},
        **more,
    }


def of_make(number: int, name: str, files: dict[str, str] | None = None, **more: Any) -> Entry:
    """Return the answer of @make to a task."""
    return {
        "when": {"kind": "implement", "task": str(number)},
        "files": files or {f"{name}.sum": code(name, 2)},
        "report": {"result": "COMPLETE", "summary": f"{name} is doubled"},
        **more,
    }


def doubled(names: Iterable[str], *, sleep_s: float = 0) -> list[Entry]:
    """Return the answers that double each module, without detours; each agent takes *sleep_s*."""
    listed = list(names)
    entries = split(*(task(name) for name in listed))
    for number, name in enumerate(listed, 1):
        entries += [of_test(number, name, sleep_s=sleep_s), of_make(number, name, sleep_s=sleep_s)]
    return [*entries, *AFTER_MAKE]


def play(project: Project, entries: list[Entry], *argv: str, parallel: int = 3, extra: str = "") -> Played:
    """Run the issue with so many tasks side by side; it must end with commits that verify."""
    project.use_script(entries, f"{extra}\n[limits]\nparallel = {parallel}\n")
    document = project.run(*argv)
    assert document.get("run_id"), (document.get("error"), document["_stderr"])
    return Played(project, document)


def lanes(project: Project) -> list[str]:
    """Return lane and row of each decision, in the order in which they were taken."""
    lines = [line["data"] for line in project.journal() if line["kind"] == "decision"]
    return [f"{data.get('lane', 'trunk')} {data['row']}" for data in lines]


def verified(project: Project) -> list[str]:
    """Assert that each commit of the run is proved by `verify`; return their subjects, oldest first."""
    start = project.journal()[0]["data"]["start_commit"]
    document = project.document("verify", f"{start}..HEAD")
    assert document["_code"] == 0, (document, document["_stderr"])
    return project.git("log", "--reverse", "--format=%s", f"{start}..HEAD").splitlines()
