"""Kills at random instants of workers, single drivers and a console: the next worker brings everything to its end."""

from __future__ import annotations

import http.client
import os
import random
import select
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from crashes import await_end_of, problems, processes_of, repeated_dispatches, spawn
from kit import Project
from queued.sums_project import Queued, make

from pipeline.queue.orders import MOST_DEATHS

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.broad]

ISSUES, JOBS, KILLS = 8, "4", 5


def within(worker: subprocess.Popen[str], seconds: float) -> bool:
    """Return whether the worker ends within so many seconds."""
    handle = os.pidfd_open(worker.pid)
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


class Console:
    """A console that somebody looks at, with its stream of events open."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self.begin()

    def begin(self) -> None:
        """Start it, and look at it."""
        self._process = spawn(self._project, "console")
        assert self._process.stdout is not None
        link = urlsplit(str(self._process.stdout.readline()).split()[-1])
        assert link.port is not None
        self._connection = http.client.HTTPConnection("127.0.0.1", link.port, timeout=300)
        self._connection.request("GET", f"{link.path}?{link.query}", headers={"Host": link.netloc})
        answer = self._connection.getresponse()
        answer.read()
        cookie = str(answer.getheader("Set-Cookie")).partition(";")[0]
        self._connection.request("GET", "/events", headers={"Host": link.netloc, "Cookie": cookie})
        assert self._connection.getresponse().readline() == b"retry: 1000\n"

    def end(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.communicate()
        self._connection.close()

    def has(self, pid: int) -> bool:
        """Return whether a process is of it."""
        try:
            return os.getsid(pid) == self._process.pid
        except ProcessLookupError:
            return False


def kill_some(queued: Queued, chance: random.Random, console: Console) -> int:
    """Let a worker run, kill single drivers and the console now and then, at last the worker; return the kills."""
    kills = 0
    with spawn(queued.project, "work", "--once", "--jobs", JOBS) as worker:
        while not within(worker, chance.uniform(0.5, 5)):
            driven = [one for one in queued.log().orders.values() if one.is_driven]
            victims = sorted(one.driver.pid for one in driven if one.driver and one.deaths + 1 < MOST_DEATHS)
            kills += 1
            if chance.random() < 0.2:
                console.end()
                console.begin()
                continue
            if victims and chance.random() < 0.4:
                with suppress(ProcessLookupError):  # it ended just now
                    os.kill(chance.choice(victims), 9)
                continue
            there = {pid: name for pid, name in processes_of(queued.project).items() if not console.has(pid)}
            worker.kill()
            worker.communicate()
            await_end_of(there)
            break
        worker.communicate()
    return kills


def left(queued: Queued) -> list[str]:
    """Return what is left that belongs to no finished order: locks, claims, checkouts, processes, worktrees."""
    project = queued.project
    lines = project.git("worktree", "list", "--porcelain").splitlines()
    worktrees = [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")][1:]
    known = {one.worktree.folder for one in queued.log().orders.values() if one.worktree}
    unknown = [f"worktree {path}" for path in worktrees if path not in known]
    found = [line for line in problems(project) if not line.startswith("worktree ")]
    return [*found, *unknown, *([] if len(worktrees) == queued.count else [f"{len(worktrees)} worktrees"])]


@pytest.mark.parametrize("seed", range(5))
def test_kills_of_workers_and_drivers_lose_nothing_and_move_each_branch_once(seed: int, tmp_path: Path) -> None:
    queued, chance = make(tmp_path, ISSUES, sleep_s=0.2), random.Random(seed)  # noqa: S311  (a schedule, no secret)
    queued.add()
    kills, console = 0, Console(queued.project)
    while kills < KILLS and any(one["state"] not in {"ended", "dropped"} for one in queued.orders()):
        kills += kill_some(queued, chance, console)
    assert kills >= 1
    queued.work("--jobs", JOBS)
    console.end()
    assert [(one["issue"], one["outcome"]) for one in queued.orders()] == [(name, "completed") for name in queued.ids]
    assert len(queued.branches()) == ISSUES
    for number, branch in enumerate(queued.branches(), 1):
        moves = queued.project.git("log", "-g", "--format=%H", branch).splitlines()
        assert len(moves) == 2, f"{branch} was made and then moved {len(moves) - 1} times"
        place = Project(queued.project.root.parent / f"project-gal-{number}", queued.project.home)
        assert repeated_dispatches(place, f"run-GAL-{number}") == []
    assert left(queued) == []
