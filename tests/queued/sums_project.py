"""A project of sums with several issues, each of a module of its own, and a worker that drives them."""

from __future__ import annotations

import json
import os
import re
import select
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import languages
from kit import AFTER_MAKE, PLAN_ACCEPTED, PLAN_SIMPLE, SPLIT_ACCEPTED, Entry, Project, make_project

from pipeline.queue.orders import log_of
from pipeline.repo import Repository

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.queue.orders import OrderLog

KNOWN = Path(next(iter(languages.__path__))) / "known"
PLAIN = 'sandbox = "none"\n'


def issue(number: int, depends_on: Iterable[str] = ()) -> str:
    return f"""---
id: GAL-{number}
title: Double m{number}
status: Todo
parent: null
labels: [bug]
depends-on: [{", ".join(depends_on)}]
---
# GAL-{number}: Double m{number}

m{number} gives too little.

## Acceptance criteria
- [ ] m{number} 2 is 4
"""


def answers(number: int, sleep_s: float = 0) -> list[Entry]:
    """Return what the roles answer to an issue: its module is doubled."""
    name = f"m{number}"
    change = {"path": f"{name}.sum", "action": "modify"}
    plan = {
        "problem": "It gives too little.",
        "approach": "Double it.",
        "files": [change],
        "test_design": {"behaviours": [{"action": "call it with 2", "outcome": "4 is given"}]},
    }
    task = {
        "title": f"Double {name}",
        "description": f"{name} must give twice as much.",
        "acceptance_criteria": [f"{name} 2 is 4"],
        "files": [change],
        "test_files": [{"path": f"{name}.check", "action": "modify"}],
    }
    checks = f"{name}0: {name} 0 = 0\n{name}2: {name} 2 = 4\n"
    made = {"result": "COMPLETE", "summary": "doubled"}
    return [
        {"when": {"kind": "plan"}, "report": plan, "sleep_s": sleep_s},
        PLAN_ACCEPTED,
        PLAN_SIMPLE,
        {"when": {"kind": "split"}, "report": {"tasks": [task]}},
        SPLIT_ACCEPTED,
        {"when": {"kind": "write-tests"}, "files": {f"{name}.check": checks}, "report": {"verdict": "TESTS_READY"}},
        {"when": {"kind": "implement"}, "files": {f"{name}.sum": f"{name} n = n * 2\n"}, "report": made},
        *AFTER_MAKE,
    ]


@dataclass
class Queued:
    """A project with a queue."""

    project: Project
    count: int

    @property
    def ids(self) -> list[str]:
        """Return the issues."""
        return [f"GAL-{number}" for number in range(1, self.count + 1)]

    def redfirst(self, *argv: str) -> dict[str, Any]:
        """Run a command with --json and return its document."""
        return self.project.document(*argv)

    def add(self, *numbers: int, flags: Iterable[str] = ()) -> None:
        """Order issues, each with its own script; all of them where none is named."""
        for number in numbers or range(1, self.count + 1):
            script = f"agents.script={self.project.home}/script-{number}.json"
            self.redfirst("queue", "add", f"GAL-{number}", "--set", script, *flags)

    def orders(self) -> list[dict[str, Any]]:
        """Return the orders as `queue list` tells them."""
        return self.redfirst("queue", "list")["orders"]

    def work(self, *argv: str, code: int = 0) -> list[dict[str, Any]]:
        """Work until nothing is left that can begin; return what happened to orders, as events."""
        done = self.project.redfirst("work", "--once", "--json", *argv)
        assert done.returncode == code, (done.stdout, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def dry_run(self, *argv: str) -> dict[str, str]:
        """Return of each open order why it would not begin, by its issue."""
        return {one["issue"]: one["why"] or "" for one in self.redfirst("work", "--dry-run", *argv)["orders"]}

    def events(self, *types: str) -> list[dict[str, Any]]:
        """Return the events of these types."""
        done = self.project.redfirst("events", *(f"--type={each}" for each in types))
        return [json.loads(line) for line in done.stdout.splitlines()]

    def log(self) -> OrderLog:
        """Return the journal of orders, as far as it is whole."""
        log = log_of(Repository.find(self.project.root), self.project.environment())
        log.read_on()
        return log

    def driven(self) -> dict[int, int]:
        """Return the drivers that are at work, each with how many its order has had."""
        return {one.driver.pid: len(one.drivers) for one in self.log().orders.values() if one.driver and one.is_driven}

    def kill_driver(self, number: int = 0) -> None:
        """Kill a driver that is at work, and nothing else; return when it is gone."""
        pid = sorted(self.driven())[number]
        handle = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        assert select.select([handle], [], [], 10)[0]
        os.close(handle)

    def branches(self) -> list[str]:
        """Return the branches of issues."""
        names = self.project.git("for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()
        return sorted(name for name in names if name.startswith("gal-"))

    def subjects(self, branch: str) -> list[str]:
        """Return what a branch has over the base, oldest first."""
        return self.project.git("log", "--reverse", "--format=%s", f"main..{branch}").splitlines()


def most_at_once(events: list[dict[str, Any]]) -> int:
    """Return how many drivers there were at most, of the events of orders in the order in which they were written."""
    most = now = 0
    for event in events:
        kind = event["type"].split(".")[2]
        now += {"started": 1, "ended": -1}.get(kind, 0)
        most = max(most, now)
    return most


def share(project: Project, hub: str) -> None:
    """Let a project be one of a fleet that meets at a new hub."""
    project.git("init", "--quiet", "--bare", "--initial-branch=main", hub)
    project.git("remote", "add", "hub", hub)
    project.git("push", "--quiet", hub, "main")


def make(tmp_path: Path, count: int, *, sleep_s: float = 0, extra: str = "", **depends: list[str]) -> Queued:
    """Return a project of so many issues; `GAL_2=["GAL-1"]` says what one depends on."""
    numbers = range(1, count + 1)
    files = {f"m{number}.sum": f"m{number} n = n * 1\n" for number in numbers}
    files |= {f"m{number}.check": f"m{number}0: m{number} 0 = 0\n" for number in numbers}
    files |= {f"TODO/GAL-{number}.md": issue(number, depends.get(f"GAL_{number}", ())) for number in numbers}
    listed = "".join(f"- [ ] [GAL-{number}](GAL-{number}.md) Double m{number}\n" for number in numbers)
    project = make_project(tmp_path, {**files, "sums.project": "", "TODO/README.md": f"# Issues\n\n## Core\n{listed}"})
    project.env["TESTS_LANGUAGE"] = "languages.sums"
    project.env["PYTHONPATH"] = str(KNOWN)
    for number in numbers:
        project.script(answers(number, sleep_s), f"script-{number}.json")
    project.use_script([], PLAIN + extra)
    if hub := re.search(r'^hub = "(.+)"$', extra, re.MULTILINE):
        share(project, hub[1])
    return Queued(project, count)
