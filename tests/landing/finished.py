"""Finished runs of many issues, each on a branch and a worktree of its own, in a language that needs no process."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from e2e.shapes import answers
from kit import ISSUE, Project, make_project
from queued.sums_project import KNOWN

OLD = "nothing: {name} 0 = 0\n"


@dataclass
class Fleet:
    """A repository whose main checkout stands on `main`, with issues GAL-1 to GAL-n and two sums in a file for each."""

    project: Project
    worktrees: dict[str, Path] = field(default_factory=dict[str, Path])

    def run(
        self,
        number: int,
        *argv: str,
        file: str | None = None,
        factor: int = 2,
        name: str = "",
        outcome: str = "completed",
        worktree: bool = True,
    ) -> dict[str, Any]:
        """Drive an issue to commits in a worktree of its own: its function multiplies by a factor then.

        Args:
            number: Of the issue.
            argv: Further words of the command.
            file: The file that is changed; by default the issue's own.
            factor: What it multiplies by.
            name: The function; by default the first one of the file.
            outcome: How the run must stand then.
            worktree: Whether it has one of its own.
        """
        self.prepare(number, file=file, factor=factor, name=name)
        document = self.project.run(
            *(argv if "--base" in argv else ("--base", "main", *argv)),
            *(("--worktree",) if worktree and "--worktree" not in argv else ()),
            issue=f"GAL-{number}",
        )
        assert document.get("outcome") == outcome, document
        self.worktrees[document["run_id"]] = self.folder(document)
        return document

    def prepare(self, number: int, *, file: str | None = None, factor: int = 2, name: str = "") -> None:
        """Let agents answer for an issue, as things are on the base now."""
        own = file or f"f{number}"
        name = name or own
        checks = (self.project.root / f"{own}.check").read_text(encoding="utf-8")
        sums = (self.project.root / f"{own}.sum").read_text(encoding="utf-8")
        tests = {f"{own}.check": f"{checks}by{number}: {name} 2 = {2 * factor}\n"}
        code = {f"{own}.sum": sums.replace(f"{name} n = n\n", f"{name} n = n * {factor}\n")}
        self.project.use_script(answers([*tests, *code], tests, code))

    def folder(self, document: dict[str, Any]) -> Path:
        """Return the worktree of a run."""
        return Path(document["run_dir"]).parents[1]

    def land(self, *argv: str) -> dict[str, Any]:
        """Land, and return the document."""
        return self.project.document("land", *argv)

    def show(self, run: str) -> dict[str, Any]:
        """Return how a run stands."""
        return self.project.document("show", run)

    def journal(self, run: str, kind: str) -> list[dict[str, Any]]:
        """Return the data of the lines of a kind."""
        text = (self.worktrees[run] / ".workflow" / run / "journal.jsonl").read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text.splitlines()]
        return [line["data"] for line in lines if line["kind"] == kind]

    def artifact(self, run: str, name: str) -> str:
        """Return a file of a run."""
        return (self.worktrees[run] / ".workflow" / run / name).read_text(encoding="utf-8")

    def boxes(self, revision: str = "main") -> list[str]:
        """Return the lines of README.md that list issues."""
        page = self.project.git("show", f"{revision}:TODO/README.md")
        return [line for line in page.splitlines() if line.startswith("- [")]


def make_fleet(
    tmp_path: Path, count: int, depends: dict[int, int] | None = None, extra: dict[str, str] | None = None
) -> Fleet:
    """Return a repository with so many issues; *depends*: which one needs which to be Done."""
    files = {"sums.project": "", **(extra or {})}
    lines = ["# Issues", "", "## Core"]
    for number in range(1, count + 1):
        files[f"f{number}.sum"] = f"f{number} n = n\nh{number} n = n\n"
        files[f"f{number}.check"] = OLD.format(name=f"f{number}")
        text = ISSUE.replace("GAL-1", f"GAL-{number}")
        if depends and number in depends:
            text = text.replace("depends-on: []", f"depends-on: [GAL-{depends[number]}]")
        files[f"TODO/GAL-{number}.md"] = text
        lines.append(f"- [ ] [GAL-{number}](GAL-{number}.md) Reject empty names")
    files["TODO/README.md"] = "\n".join(lines) + "\n"
    project = make_project(tmp_path, files)
    project.git("switch", "--quiet", "main")
    project.env["TESTS_LANGUAGE"] = "languages.sums"
    project.env["PYTHONPATH"] = str(KNOWN)  # for drivers that a worker starts
    return Fleet(project)
