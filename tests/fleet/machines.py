"""Two machines of a fleet: clones of one project with a home each, and the hub that both know."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from e2e.shapes import FAST, SUMS, SUMS_HONEST
from kit import Project, make_project
from queued.sums_project import KNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kit import Entry

RUN = "run-GAL-1"


@dataclass
class Machine:
    """A clone of the project, with a home of its own."""

    project: Project
    hub: Path

    @property
    def main(self) -> Path:
        """Return the clone."""
        return self.project.root

    def redfirst(self, *argv: str, cwd: Path | None = None) -> dict[str, Any]:
        """Run a command with --json somewhere; return its document with the exit code and the log."""
        done = self.project.redfirst(*argv, "--json", cwd=cwd)
        assert done.stdout, done.stderr
        return json.loads(done.stdout) | {"_code": done.returncode, "_stderr": done.stderr}

    @property
    def worktree(self) -> Path:
        """Return the worktree that its run of GAL-1 has here."""
        return self.main.with_name("project-gal-1")

    def journal(self) -> list[dict[str, Any]]:
        """Return the lines of the run here."""
        return [
            json.loads(line) for line in (self.worktree / ".workflow" / RUN / "journal.jsonl").read_text().splitlines()
        ]

    def refs(self) -> dict[str, str]:
        """Return what the hub has."""
        lines = self.project.git("ls-remote", "--refs", str(self.hub)).splitlines()
        return {ref: oid for oid, _, ref in (line.partition("\t") for line in lines)}


def fleet(
    tmp_path: Path, scripts: Sequence[Sequence[Entry]] = (SUMS_HONEST, SUMS_HONEST), extra: str = FAST, more: str = ""
) -> tuple[Machine, ...]:
    """Return a machine for each script of answers; all stand on `main` as the hub has it."""
    first = make_project(tmp_path, dict(SUMS))
    hub = tmp_path / "hub"
    first.git("init", "--quiet", "--bare", "--initial-branch=main", str(hub))
    first.git("config", "core.logAllRefUpdates", "always", cwd=hub)
    first.git("push", "--quiet", str(hub), "main")
    machines: list[Machine] = []
    for number, script in enumerate(scripts, 1):
        place = tmp_path / f"machine-{number}"
        place.mkdir()
        project = Project(place / "project", place)
        first.git("clone", "--quiet", str(hub), str(project.root))
        project.git("config", "user.name", "Ada")
        project.git("config", "user.email", "ada@example.org")
        project.env["TESTS_LANGUAGE"] = "languages.sums"
        project.env["PYTHONPATH"] = str(KNOWN)
        project.use_script(list(script), f'{extra}[fleet]\nhub = "{hub}"\nwait_s = 3\n{more}')
        machines.append(Machine(project, hub))
    return tuple(machines)
