"""Ways to end a driver at a chosen moment, and what must hold of a project when its run has been brought to its end."""

from __future__ import annotations

import os
import re
import select
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import forked
from kit import REDFIRST
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kit import Entry, Project

DYING = Path(__file__).with_name("dying.py")
KILLED = -9


def spawn(project: Project, *argv: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    """Start redfirst in a session of its own, with its output in pipes."""
    return subprocess.Popen(
        [str(REDFIRST), *argv],
        cwd=cwd or project.root,
        env=project.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill_after(project: Project, seconds: float, *argv: str) -> int:
    """Run redfirst, kill its process and nothing else after *seconds*; return its exit code, -9 if it was killed."""
    try:
        return project.redfirst(*argv, timeout=seconds).returncode
    except subprocess.TimeoutExpired:
        return KILLED


def die_at(project: Project, pattern: str, number: int, *argv: str) -> int:
    """Run redfirst so that it dies at an instant (see `dying`); return its exit code, -9 when it died there."""
    command = [str(DYING), pattern, str(number), *argv]
    done = forked.run(command, cwd=project.root, env=project.environment(), timeout=300)
    assert done.returncode in {KILLED, 0}, done.stderr
    return done.returncode


def going_on(project: Project, name: str = "run-GAL-1") -> tuple[str, str]:
    """Return what a user types after a crash: resume, or run where there is no run yet."""
    return ("resume", name) if (project.run_folder(name) / "run.json").exists() else ("run", "GAL-1")


@dataclass(frozen=True)
class Result:
    """What a run put on the branch."""

    commits: tuple[str, ...]
    tree: str

    @classmethod
    def of(cls, project: Project) -> Result:
        """Return what is on the branch now."""
        commits = project.git("rev-list", "--reverse", "main..work").splitlines()
        return cls(tuple(commits), project.git("rev-parse", "work^{tree}"))


def problems(project: Project) -> list[str]:
    """Return what a run that has ended must not leave: locks, worktrees, refs, files, processes."""
    found = [f"lock {path}" for where in (project.root / ".git", project.home) for path in where.rglob("*.lock")]
    found += [f"temporary file {path}" for path in project.root.rglob("*.tmp")]
    found += [f"state {path}" for path in (project.home / "state").glob("redfirst/runs/*/*")]
    found += [f"status {line}" for line in project.git("status", "--porcelain", "--ignored").splitlines()]
    found += [f"worktree {line}" for line in project.git("worktree", "list").splitlines()[1:]]
    refs = project.git("for-each-ref", "--format=%(refname)", "refs/redfirst").splitlines()
    found += [f"ref {ref}" for ref in refs if not ref.startswith("refs/redfirst/runs/")]
    found += [f"process {name}" for name in processes_of(project).values()]
    return [line for line in found if line != "status !! .workflow/"]


def processes_of(project: Project) -> dict[int, str]:
    """Return the command lines of what the project's runs started: by its home, or by what its box has mounted."""
    home = str(project.home).encode()
    found: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                if home in (folder / "environ").read_bytes() or home in (folder / "mountinfo").read_bytes():
                    argv = (folder / "cmdline").read_bytes()
                    found[int(folder.name)] = argv.replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue  # it has ended, or is a zombie
    return found


def await_end_of(processes: Mapping[int, str], within_s: float = PATIENCE_S) -> None:
    """Return when these processes have ended; they are ending already."""
    for pid, name in processes.items():
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            assert select.select([handle], [], [], within_s)[0], f"{pid} is still there: {name}"
        finally:
            os.close(handle)


class Bell:
    """A FIFO that an agent in its box can write into: how a test learns that a dispatch is under way."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "bell"
        self.folder.mkdir()
        os.mkfifo(self.folder / "fifo", 0o666)
        self.flags = ("--set", f'agents.read=["{self.folder}"]')

    def sleeper(self, entry: Entry) -> Entry:
        """Return *entry* played by an agent that rings and then sleeps for ten minutes."""
        return {**entry, "run": ["sh", "-c", f"echo > {self.folder}/fifo; sleep 600"]}

    def wait(self, driver: subprocess.Popen[str], within_s: float = 60) -> None:
        """Return when the agent has rung; an error when the driver ended before."""
        bell = os.open(self.folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
        end = os.pidfd_open(driver.pid)
        try:
            ready, _, _ = select.select([bell, end], [], [], within_s)
            assert ready == [bell], f"the agent was not started: {driver.stderr.read() if driver.stderr else ''}"
        finally:
            os.close(bell)
            os.close(end)


def repeated_dispatches(project: Project, name: str = "run-GAL-1") -> list[str]:
    """Return what contradicts "a finished dispatch is never repeated", by journal and folders."""
    wrong: list[str] = []
    finished: set[str] = set()
    for line in project.journal(name):
        dispatch = line["data"].get("dispatch")
        if line["kind"] == "dispatch_started" and dispatch in finished:
            wrong.append(f"{dispatch} was started again after it had finished")
        if line["kind"] == "dispatch_finished":
            wrong += [f"{dispatch} finished twice"] if dispatch in finished else []
            finished.add(dispatch)
    folders = {path.name for path in (project.run_folder(name) / "dispatches").iterdir()}
    with_result = {n for n in folders if (project.run_folder(name) / "dispatches" / n / "result.json").exists()}
    wrong += [f"{n} has a result and no line" for n in with_result - finished]
    wrong += [f"{n} is no folder of a finished or lost dispatch" for n in folders - finished if ".lost-" not in n]
    numbers = sorted(re.sub(r"-.*", "", n) for n in finished)
    wrong += [] if numbers == [f"{n:03}" for n in range(1, len(numbers) + 1)] else [f"numbers {numbers}"]
    return wrong


def footprint(project: Project, cwd: Path | None = None) -> tuple[object, ...]:
    """Return everything of the user's and ours that a refused command must not touch."""
    where = cwd or project.root
    status = subprocess.run(
        ["git", "status", "--porcelain", "--ignored", "--branch"],
        cwd=where,
        env=project.environment(),
        capture_output=True,
        check=False,
    ).stdout
    refs = subprocess.run(
        ["git", "for-each-ref"], cwd=where, env=project.environment(), capture_output=True, check=False
    ).stdout
    ours = sorted(str(path) for path in project.home.glob("state/redfirst/runs/**/*"))
    return status, refs, ours, sorted(str(path) for path in where.glob(".workflow/**/*"))
