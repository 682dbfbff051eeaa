"""A small real project, a script of answers, and redfirst run on it as a user would: the end-to-end tests' kit."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import forked

REDFIRST = Path(sys.executable).with_name("redfirst")
WITH_PLUGINS = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
"""A PATH on which pytest has our plugins, hypothesis among them."""
PLAIN = f"{Path(sys.prefix) / 'plain' / 'bin'}:{WITH_PLUGINS}"
"""A PATH on which pytest is alone (Makefile): what a project of a test is measured with is no matter of our plugins."""

GREET = '''"""Greetings."""


def greet(name):
    return f"Hello, {name}!"
'''
GREET_DONE = '''"""Greetings."""


def greet(name):
    if not name:
        raise ValueError("a name is needed")
    return f"Hello, {name}!"
'''
TEST_GREET = """from greet import greet


def test_greets_by_name():
    assert greet("Ada") == "Hello, Ada!"
"""
TEST_GREET_NEW = """import pytest

from greet import greet


def test_greets_by_name():
    assert greet("Ada") == "Hello, Ada!"


def test_an_empty_name_is_refused():
    with pytest.raises(ValueError):
        greet("")
"""
NEW_ID = "tests/test_greet.py::test_an_empty_name_is_refused"
ISSUE = """---
id: GAL-1
title: Reject empty names
status: Todo
parent: null
labels: [bug]
depends-on: []
---
# GAL-1: Reject empty names

`greet("")` returns "Hello, !".

## Acceptance criteria
- [ ] `greet("")` raises ValueError
"""
README = """# Issues

## Core
- [ ] [GAL-1](GAL-1.md) Reject empty names
"""
BARE_PYTEST = '[tool.pytest.ini_options]\naddopts = "--disable-plugin-autoload"\n'
"""pytest as most projects have it: what our own tests need is not theirs, and takes half a second to load."""
FILES: dict[str, str] = {
    "greet.py": GREET,
    "tests/test_greet.py": TEST_GREET,
    "pyproject.toml": BARE_PYTEST + 'pythonpath = ["."]\ntestpaths = ["tests"]\n',
    "TODO/GAL-1.md": ISSUE,
    "TODO/README.md": README,
}

Entry = dict[str, Any]

PLAN: Entry = {
    "when": {"kind": "plan"},
    "report": {
        "problem": "greet accepts an empty name.",
        "approach": "Raise ValueError before formatting.",
        "files": [{"path": "greet.py", "action": "modify", "why": "the check belongs to greet"}],
        "test_design": {
            "behaviours": [{"action": "call greet with an empty string", "outcome": "ValueError is raised"}]
        },
    },
}
PLAN_ACCEPTED: Entry = {"when": {"kind": "review-plan", "role": "check"}, "report": {"verdict": "ACCEPTABLE"}}
PLAN_SIMPLE: Entry = {
    "when": {"kind": "review-plan", "role": "simplify"},
    "report": {"verdict": "JUSTIFIED COMPLEXITY"},
}
TASK: dict[str, Any] = {
    "title": "Reject empty names",
    "description": "greet must refuse an empty name.",
    "acceptance_criteria": ['greet("") raises ValueError'],
    "files": [{"path": "greet.py", "action": "modify"}],
    "test_files": [{"path": "tests/test_greet.py", "action": "modify"}],
}
SPLIT: Entry = {"when": {"kind": "split"}, "report": {"tasks": [TASK]}}
ALL_WELL = dict.fromkeys(("coverage", "overlap", "single_purpose", "contracts", "testable", "test_approach"), True)
"""The six answers of the split review."""
SPLIT_ACCEPTED: Entry = {
    "when": {"kind": "review-split"},
    "report": {"verdict": "ACCEPTABLE", "answers": ALL_WELL},
}
TESTS: Entry = {
    "when": {"kind": "write-tests"},
    "files": {"tests/test_greet.py": TEST_GREET_NEW},
    "report": {"verdict": "TESTS_READY", "tests": [{"id": NEW_ID}]},
}
MAKE: Entry = {
    "when": {"kind": "implement"},
    "files": {"greet.py": GREET_DONE},
    "report": {"result": "COMPLETE", "summary": "raises ValueError"},
}
RESULT_ACCEPTED: Entry = {"when": {"kind": "review-result", "role": "check"}, "report": {"verdict": "ACCEPTABLE"}}
RESULT_SIMPLE: Entry = {
    "when": {"kind": "review-result", "role": "simplify"},
    "report": {"verdict": "JUSTIFIED COMPLEXITY"},
}
UNTIL_TESTS: list[Entry] = [PLAN, PLAN_ACCEPTED, PLAN_SIMPLE, SPLIT, SPLIT_ACCEPTED]
AFTER_MAKE: list[Entry] = [RESULT_ACCEPTED, RESULT_SIMPLE]
HONEST: list[Entry] = [*UNTIL_TESTS, TESTS, MAKE, *AFTER_MAKE]
"""Answers that take GAL-1 to commits without any detour."""


def judge(question: str, **report: Any) -> Entry:
    """Return an answer of @check to a judgement."""
    return {"when": {"kind": "judge", "question": question}, "report": report}


NO_PROBES = {
    "REDFIRST_PROBES__MUTANTS": "0",
    "REDFIRST_PROBES__REPEAT": "1",
    "REDFIRST_PROBES__REVERT": "false",
    "REDFIRST_PROBES__REACH": "false",
}


@dataclass
class Project:
    """A repository on branch `work`, its private home, and redfirst run inside it."""

    root: Path
    home: Path
    env: dict[str, str] = field(default_factory=dict[str, str])
    probed: bool = False
    """Whether the tests of each task are tried as `[probes]` says; else they are not: each probe is a run of pytest."""

    def git(self, *argv: str, cwd: Path | None = None) -> str:
        """Run git and return what it prints."""
        done = subprocess.run(
            ["git", *argv], cwd=cwd or self.root, env=self.environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"git {' '.join(argv)}: {done.stderr}"
        return done.stdout.strip()

    def write(self, files: dict[str, str]) -> None:
        """Write files below the root."""
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")

    def commit(self, message: str = "more") -> None:
        """Commit everything."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def environment(self) -> dict[str, str]:
        """Return a fixed environment: own home, fixed identity and dates, no configuration of the machine."""
        return {
            "PATH": PLAIN,
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.home / "state"),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_DATE": "2026-01-02T03:04:05 +0000",
            "GIT_COMMITTER_DATE": "2026-01-02T03:04:05 +0000",
            "SOURCE_DATE_EPOCH": "1767323045",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            **({} if self.probed else NO_PROBES),
            **self.env,
        }

    def script(self, entries: list[Entry], name: str = "script.yaml") -> Path:
        """Write a script of answers (JSON is YAML) and return its path."""
        path = self.home / name
        path.write_text(json.dumps(entries, indent=1), encoding="utf-8")
        return path

    def configure(self, text: str) -> None:
        """Write the user's configuration file."""
        path = self.home / "config" / "redfirst" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def use_script(self, entries: list[Entry], extra: str = "") -> None:
        """Let every role be played by these answers; `extra` is TOML put before the agents table."""
        script = self.script(entries)
        self.configure(f'{extra}\n[agents]\nbackend = "scripted"\nscript = "{script}"\n')

    def redfirst(self, *argv: str, cwd: Path | None = None, timeout: float = 580) -> subprocess.CompletedProcess[str]:
        """Run redfirst to its end."""
        command = [str(REDFIRST), *argv]
        return forked.run(command, cwd=cwd or self.root, env=self.environment(), timeout=timeout)

    def run(self, *argv: str, issue: str = "GAL-1") -> dict[str, Any]:
        """Run the issue and return the JSON document; stdout must be exactly that."""
        return self.document("run", issue, *argv)

    def document(self, *argv: str) -> dict[str, Any]:
        """Run a command with --json and return its document, with the log as `_stderr` and the exit code as `_code`."""
        done = self.redfirst(*argv, "--json")
        try:
            document: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            raise AssertionError(
                f"stdout is not one JSON document:\n{done.stdout}\n--- stderr\n{done.stderr}"
            ) from None
        document["_stderr"] = done.stderr
        document["_code"] = done.returncode
        return document

    # --- what a run left -------------------------------------------------------------------------------------------

    def run_folder(self, name: str = "run-GAL-1") -> Path:
        """Return the folder of a run."""
        return self.root / ".workflow" / name

    def journal(self, name: str = "run-GAL-1") -> list[dict[str, Any]]:
        """Return the journal's lines."""
        text = (self.run_folder(name) / "journal.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def rows(self, name: str = "run-GAL-1") -> list[str]:
        """Return the rows of the matrix that fired, in order."""
        return [line["data"]["row"] for line in self.journal(name) if line["kind"] == "decision"]

    def files_at(self, revision: str) -> list[str]:
        """Return the paths of a revision."""
        return self.git("ls-tree", "-r", "--name-only", revision).splitlines()

    def untouched_since(self, revision: str) -> bool:
        """Return whether branch, index and worktree are exactly as they were at *revision*."""
        return self.git("rev-parse", "HEAD") == revision and self.git("status", "--porcelain") == ""


def make_project(tmp_path: Path, files: dict[str, str] | None = None, *, home: Path | None = None) -> Project:
    """Return a committed project on branch `work` with issue GAL-1, in tmp_path/project."""
    place = home or tmp_path / "home"
    place.mkdir(exist_ok=True)
    project = Project(tmp_path / "project", place)
    copy_repository(project.root, FILES if files is None else files)
    return project


def copy_repository(folder: Path, files: dict[str, str]) -> None:
    """Make *folder* a repository of these files, committed on main, that stands on the branch `work`."""
    made = _made(tuple(files.items()))
    shutil.copytree(made.root, folder, symlinks=True, dirs_exist_ok=True)
    made.git("update-index", "-q", "--refresh", cwd=folder)


@cache
def _made(files: tuple[tuple[str, str], ...]) -> Project:
    """Return such a project, made once for each process: copying it takes less than six processes of git."""
    folder = Path(tempfile.mkdtemp(prefix="project-"))
    atexit.register(remove_in, folder, os.getpid())
    project = Project(folder / "project", folder)
    project.root.mkdir()
    project.git("init", "--quiet", "--initial-branch=main")
    project.git("config", "user.name", "Ada")
    project.git("config", "user.email", "ada@example.org")
    project.write(dict(files))
    project.commit("init")
    project.git("switch", "--quiet", "--create", "work")
    shutil.rmtree(project.root / ".git" / "hooks")
    (project.root / ".git" / "hooks").mkdir()
    return project


def remove_in(folder: Path, pid: int) -> None:
    """Remove a folder in the process that made it, and in no fork of it."""
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)
