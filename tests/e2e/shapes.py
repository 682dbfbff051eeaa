"""Projects of many shapes: answers for any change, and environments that are made without a network."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING, Any

from kit import AFTER_MAKE, ISSUE, PLAN_ACCEPTED, PLAN_SIMPLE, README, SPLIT_ACCEPTED, Entry, make_project

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from kit import Project

NOBODY = """

def test_nobody():
    import pytest

    with pytest.raises(ValueError):
        greet("")
"""
"""The test to add where `greet` is imported."""

TRACKER = {"TODO/GAL-1.md": ISSUE, "TODO/README.md": README}


def answers(
    existing: Iterable[str],
    tests: dict[str, str],
    code: dict[str, str],
    *,
    symbols: Iterable[dict[str, Any]] = (),
    ready: dict[str, Any] | None = None,
    run: list[str] | None = None,
) -> list[Entry]:
    """Return the answers of a run without detours that writes these tests and this code.

    Args:
        existing: Paths that are there; others are created.
        tests: Test files and their content.
        code: Production files and their content.
        symbols: What the task introduces.
        ready: The report of @test, if it says more than the verdict.
        run: What @make runs after writing.
    """
    there = set(existing)
    files = [{"path": path, "action": "modify" if path in there else "create"} for path in code]
    task = {
        "title": "Reject empty names",
        "description": "greet must refuse an empty name.",
        "acceptance_criteria": ['greet("") raises ValueError'],
        "files": files,
        "test_files": [{"path": path, "action": "modify" if path in there else "create"} for path in tests],
        "symbols": list(symbols),
    }
    plan = {
        "problem": "greet accepts an empty name.",
        "approach": "Raise ValueError before formatting.",
        "files": files,
        "test_design": {"behaviours": [{"action": "call greet with nothing", "outcome": "ValueError is raised"}]},
    }
    made = {"result": "COMPLETE", "summary": "raises ValueError"}
    return [
        {"when": {"kind": "plan"}, "report": plan},
        PLAN_ACCEPTED,
        PLAN_SIMPLE,
        {"when": {"kind": "split"}, "report": {"tasks": [task]}},
        SPLIT_ACCEPTED,
        {"when": {"kind": "write-tests"}, "files": tests, "report": ready or {"verdict": "TESTS_READY"}},
        {"when": {"kind": "implement"}, "files": code, "run": run, "report": made},
        *AFTER_MAKE,
    ]


# --- sums: whole runs whose tests take no process --------------------------------------------------------------------

SUM, SUM_DONE = "greet n = n\n", "greet n = n * 2\n"
CHECK = "nothing: greet 0 = 0\n"
SUMS = {"greet.sum": SUM, "greet.check": CHECK, "sums.project": "", **TRACKER}
SUM_TESTS, SUM_CODE = {"greet.check": f"{CHECK}two: greet 2 = 4\n"}, {"greet.sum": SUM_DONE}
SUMS_HONEST = answers(SUMS, SUM_TESTS, SUM_CODE)
FAST = 'sandbox = "none"\n[agents.simplify]\nbackend = "off"\n'
"""What no box is about: a dispatch without one takes a fifth."""


def sums_project(
    place: Path, script: Sequence[Entry] = SUMS_HONEST, files: Mapping[str, str] = SUMS, extra: str = FAST
) -> Project:
    """Return a project in the language of `languages/sums`, with a script of answers."""
    project = make_project(place, dict(files))
    project.env["TESTS_LANGUAGE"] = "languages.sums"
    project.use_script(list(script), extra)
    return project


def make_environment(folder: Path) -> Path:
    """Return the python of a new virtual environment in *folder* that has the packages of ours, pytest among them."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    ours = sysconfig.get_path("purelib")
    pointer = folder / "lib" / version / "site-packages" / "ours.pth"
    pointer.write_text(f"{ours}\n", encoding="utf-8")
    return folder / "bin" / "python"


def install_editable(python: Path, project: Path) -> None:
    """Install the project into an environment as `pip install -e .` does, without dependencies or a network."""
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "install", "--quiet"]
    done = subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--no-index", "--editable", str(project)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def done(project: Project, *argv: str) -> dict[str, Any]:
    """Run GAL-1, which must come to its end and leave a clean worktree; return the document."""
    result = project.run(*argv)
    assert result.get("outcome") == "completed", f"{result.get('error') or result['note']}\n{result['_stderr']}"
    assert project.git("status", "--porcelain") == ""
    return result


def evidence(project: Project, name: str) -> dict[str, Any]:
    """Return a document of the run's evidence."""
    return json.loads((project.run_folder() / "evidence" / name).read_text(encoding="utf-8"))


def red_of(project: Project, task: str = "1") -> dict[str, str]:
    """Return why each test of a task was RED."""
    return {entry: found["cls"] for entry, found in evidence(project, f"task-{task}.json")["ledger"]["red"].items()}


def dispatches(project: Project, name: str) -> list[Path]:
    """Return the folders of the dispatches whose names end so, in order."""
    return sorted(project.run_folder().glob(f"dispatches/*{name}"))


def stdout_of(dispatch: Path) -> str:
    """Return what the agent of a dispatch printed."""
    return (dispatch / "stdout.log").read_text(encoding="utf-8")


def changed(project: Project, revision: str) -> list[str]:
    """Return the paths that a commit changes."""
    return project.git("-c", "core.quotePath=false", "diff", "--name-only", f"{revision}~1", revision).splitlines()
