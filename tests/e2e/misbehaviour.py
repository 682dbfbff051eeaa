"""What the tests of misbehaving agents share: a host that the test owns, and proof that nothing arrived anywhere."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit import FILES, make_project

if TYPE_CHECKING:
    from kit import Entry, Project

POISON = "POISON"
"""A word that every forbidden content carries; it must not be found anywhere afterwards but in the run's own folder."""

MORE_FILES = {
    **FILES,
    "keep.py": "KEPT = 1\n",
    "tests/test_other.py": "from keep import KEPT\n\n\ndef test_is_kept():\n    assert KEPT == 1\n",
    ".gitignore": "*.log\n__pycache__/\n.pytest_cache/\n",
}
AGENT = """\
import json, os, pathlib, signal, subprocess, sys, time

document = json.load(sys.stdin)


def report(**words):
    pathlib.Path(os.environ["REDFIRST_REPORT"]).write_text(json.dumps(words))


"""


@dataclass
class Scene:
    """A project, a folder that plays the rest of the host, and how both were before the run."""

    project: Project
    host: Path
    start: str
    before: dict[str, bytes]

    @property
    def daemon(self) -> str:
        """Return a word that only the processes of this test have in their command lines."""
        return "left-behind-by-" + hashlib.sha256(str(self.host).encode()).hexdigest()[:12]

    def use_program(self, role: str, source: str, entries: list[Entry], words: str = "") -> None:
        """Let one role be a Python program behind the `command` backend (`words`: more TOML of its table)."""
        folder = self.project.home / "bot"
        folder.mkdir()
        program = folder / "agent.py"
        program.write_text(AGENT + source, encoding="utf-8")
        table = f'[agents.{role}]\nbackend = "command"\nargv = ["python3", "{program}"]\nread = ["{folder}"]'
        self.project.use_script(entries, f"{table}\n{words}")

    def assert_nothing_arrived(self) -> None:
        """Assert that the poison is in no commit, not in index or worktree, and that git and host are as before."""
        project = self.project
        assert project.git("log", "--all", "--format=%H", "-G", POISON) == ""
        assert project.git("status", "--porcelain") == ""
        worktree = [
            p for p in project.root.rglob("*") if not {".git", ".workflow"} & set(p.relative_to(project.root).parts)
        ]
        assert [path for path in worktree if path.is_symlink()] == []
        assert [path for path in worktree if path.is_file() and POISON.encode() in path.read_bytes()] == []
        assert surroundings(project, self.host) == self.before

    def assert_untouched(self) -> None:
        """Assert the same, and that branch, index and worktree are what they were."""
        self.assert_nothing_arrived()
        assert self.project.untouched_since(self.start)

    def assert_explained(self, row: str, *words: str) -> None:
        """Assert that `explain` shows a decision of this row with all the words."""
        done = self.project.redfirst("explain", "GAL-1", "-v")
        assert done.returncode == 0, done.stderr
        assert row in done.stdout
        assert [word for word in words if word not in done.stdout] == []

    def result(self, dispatch: str) -> dict[str, Any]:
        """Return the result of a dispatch."""
        path = self.project.run_folder() / "dispatches" / dispatch / "result.json"
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def violations(self, dispatch: str) -> dict[str, str]:
        """Return path -> rule of what the gate refused; quarantine and journal must say the same."""
        found = {line["path"]: line["rule"] for line in self.result(dispatch)["violations"]}
        kept = json.loads((self.project.run_folder() / "quarantine" / dispatch / "violations.json").read_text())
        assert {line["path"]: line["rule"] for line in kept} == found
        lines = [line["data"] for line in self.project.journal() if line["kind"] == "change_rejected"]
        said = next(line for line in lines if line["dispatch"] == dispatch)
        assert {line["path"]: line["rule"] for line in said["violations"]} == found
        return found

    def reask(self, dispatch: str) -> str:
        """Return why the dispatch says that the answer before it did not count; the prompt says it too."""
        started = [line["data"] for line in self.project.journal() if line["kind"] == "dispatch_started"]
        reason: str = next(line for line in started if line["dispatch"] == dispatch)["reask"]
        prompt = (self.project.run_folder() / "dispatches" / dispatch / "prompt.md").read_text(encoding="utf-8")
        assert f"did not count: {reason}" in prompt
        return reason


def scene(tmp_path: Path, files: dict[str, str] | None = None) -> Scene:
    """Return a project with a host around it; both belong to the test."""
    project = make_project(tmp_path, MORE_FILES if files is None else files)
    host = tmp_path / "host"
    host.mkdir()
    (host / "secret.txt").write_text("the host's own\n", encoding="utf-8")
    return Scene(project, host, project.git("rev-parse", "HEAD"), surroundings(project, host))


def surroundings(project: Project, host: Path) -> dict[str, bytes]:
    """Return what an agent must not reach: hooks, configuration, other branches, the host's files."""
    git = project.root / ".git"
    places = [*(git / "hooks").rglob("*"), *(git / "info").rglob("*"), git / "config", *host.rglob("*")]
    found = {str(path): path.read_bytes() if path.is_file() else b"" for path in places}
    refs = project.git(
        "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/main", "refs/tags", "refs/remotes"
    )
    return found | {"refs": refs.encode(), "HEAD": (git / "HEAD").read_bytes()}


def shell(script: str) -> list[str]:
    """Return a script as the `run` of an answer."""
    return ["sh", "-euc", script]


def entry(kind: str, role: str | None = None, **words: Any) -> Entry:
    """Return an answer for a kind, optionally of one role."""
    when = {"kind": kind} | ({"role": role} if role else {})
    return {"when": when, **words}


def last_rows(project: Project, after: str) -> list[str]:
    """Return the rows from the first one after *after*."""
    rows = project.rows()
    return rows[rows.index(after) + 1 :]


def processes_with(word: str) -> list[str]:
    """Return the command lines on this machine that carry *word*."""
    found: list[str] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if word in line:
                found.append(line)
    return found
