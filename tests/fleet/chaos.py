"""A fleet under fire: machines in namespaces that are killed, frozen and lost, and a Postgres that goes away.

A machine is a process namespace with a name, a boot and a clock of its own. All machines see their home at the same
path, as machines of a team do. Whoever kills the first process of a machine has killed all of it at once.
"""

from __future__ import annotations

import json
import os
import random
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from e2e.shapes import FAST
from kit import Entry, Project
from queued.sums_project import KNOWN, answers, issue
from waiting import wait_until

from pipeline.config.tables import Fleet
from pipeline.queue import order_lines
from pipeline.queue.order_lines import NotNowError, RunWords
from pipeline.queue.orders import MOST_DEATHS, OrderLog, Wanted
from pipeline.queue.postgres import PostgresRows, make_schema

if TYPE_CHECKING:
    from postgres import Server

    from pipeline.queue.orders import Order

_OWN: Final = ("unshare", "--user", "--map-root-user", "--mount", "--uts", "--pid", "--fork", "--kill-child")
_BOOT: Final = "/proc/sys/kernel/random/boot_id"
_WORKER: Final = (
    "import pipeline.queue.postgres as server, pipeline.queue.worker as worker, redfirst; "
    "server.STALLED_S, worker.LOOKS_S = {stalled}, {looks}; redfirst.main()"
)


def _can_be_made() -> bool:
    try:
        argv = [*_OWN, "--mount-proc", "sh", "-c", "hostname m && mount --bind /dev/null " + _BOOT]
        return subprocess.run(argv, capture_output=True, timeout=120, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


needs_machines = pytest.mark.skipif(not _can_be_made(), reason="namespaces of one's own are not allowed here")


@dataclass
class Pace:
    """How fast a fleet is: when a worker counts as stalled, how often it looks, how long an agent thinks."""

    stalled_s: float = 30
    looks_s: float = 10
    thinks_s: float = 3


def _state(pid: int) -> str:
    folder = Path(f"/proc/{pid}")
    try:
        return f"{(folder / 'stat').read_text().rpartition(')')[2].split()[0]} {(folder / 'wchan').read_text()}"
    except OSError:
        return "gone"


def _order_of(driver: int) -> str:
    """Return the order of a driver, by the name of its log; nothing where it has ended."""
    try:
        return Path(f"/proc/{driver}/fd/2").readlink().name.rpartition("-")[0]
    except OSError:
        return ""


@dataclass
class Machine:
    """A machine: a folder that is its home, and, while it is on, a worker in namespaces of its own."""

    name: str
    folder: Path
    fleet: ChaosFleet
    boot: str = ""
    env: dict[str, str] = field(default_factory=dict[str, str])
    """What is otherwise in its environment: another version of redfirst, a clock of its own."""
    process: subprocess.Popen[bytes] | None = None
    frozen_until: float = 0

    def argv(self, *argv: str, again: bool = False) -> list[str]:
        """Return the command that runs something on this machine; *again*: until it ends as it should."""
        run = f"{shlex.join(argv)} & wait $!"  # bash is the first process, and buries the dead
        if again:  # as a service is, whose worker cannot begin while the server is away
            # one that a signal meets while it still loads ends by it, and is not begun again
            ended = "code=$?; [ $code != 0 ] && [ $code -lt 128 ]"
            run = f"while {shlex.join(argv)}; {ended}; do sleep 1; done; exit $code"
        said = self.folder / f"boot-{self.boot}"
        said.write_text(f"{self.boot}\n")
        here = shlex.quote(str(self.fleet.here))
        inside = (
            f"hostname {self.name}; mount --bind {shlex.quote(str(said))} {_BOOT}; "
            f"mount --bind {shlex.quote(str(self.folder))} {here}; cd {here}/project; {run}"
        )
        return [*_OWN, "--mount-proc", "bash", "-c", inside]

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a command on the machine to its end."""
        self.boot = self.boot or str(uuid.uuid4())
        env = self.fleet.environment() | self.env
        return subprocess.run(
            self.argv(*argv), env=env, cwd="/", capture_output=True, text=True, timeout=300, check=False
        )

    def redfirst(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run redfirst on it, while it is off."""
        return self.run(sys.executable, "-P", "-c", "import redfirst; redfirst.main()", *argv)

    def make(self) -> None:
        """Make its home: a clone, and a configuration."""
        self.folder.mkdir()
        home = Project(self.folder / "project", self.folder)
        home.git("clone", "--quiet", self.fleet.url, str(home.root), cwd=self.folder)
        home.git("config", "user.name", "Ada")
        home.git("config", "user.email", "ada@example.org")
        home.configure(self.fleet.configuration())

    def start(self) -> None:
        """Boot it, with a worker."""
        self.boot = str(uuid.uuid4())
        pace = self.fleet.pace
        code = _WORKER.format(stalled=pace.stalled_s, looks=pace.looks_s)
        argv = self.argv(sys.executable, "-P", "-c", code, "work", "--jobs", "4", again=True)
        with (self.folder / "said").open("ab") as said:
            said.write(f"--- boot {self.boot}\n".encode())
            self.process = subprocess.Popen(
                argv,
                env=self.fleet.environment() | {"PYTHONFAULTHANDLER": "1"} | self.env,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )

    @property
    def is_awake(self) -> bool:
        """Return whether it is on, and not frozen."""
        return self.process is not None and not self.frozen_until

    def init(self) -> int | None:
        """Return the number of its first process, as the host sees it."""
        pid = self.process.pid if self.process is not None else 0
        try:
            found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return None
        return int(found[0]) if found else None

    def processes(self) -> dict[int, str]:
        """Return all processes of the machine as the host sees them, with their command lines."""
        init = self.init()
        found: dict[int, str] = {}
        if init is None:
            return found
        space = Path(f"/proc/{init}/ns/pid").readlink()
        for one in Path("/proc").iterdir():
            if one.name.isdigit():
                try:
                    if (one / "ns/pid").readlink() == space:
                        found[int(one.name)] = (one / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                except OSError:
                    continue
        return found

    def drivers(self) -> list[int]:
        """Return its drivers, as the host sees them."""
        return [pid for pid, argv in self.processes().items() if "and redfirst.main()" in argv]

    def kill(self) -> None:
        """Take its power away; return when nothing of it is left."""
        init = self.init()
        assert self.process is not None
        handle = None if init is None else os.pidfd_open(init)
        self.process.kill()
        self.process.wait()
        self.process, self.frozen_until = None, 0
        if handle is not None:
            assert select.select([handle], [], [], 60)[0], "a machine does not die"
            os.close(handle)

    def lose(self) -> None:
        """Kill it, and everything that it had."""
        self.kill()
        shutil.rmtree(self.folder)

    def signal(self, number: int) -> None:
        """Send a signal to all of it, children of the moment included."""
        seen: set[int] = set()
        while new := self.processes().keys() - seen:
            for pid in new:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue
            seen |= new

    def worker(self) -> int:
        """Return its worker, as the host sees it."""
        found = self.processes().items()
        return next(pid for pid, argv in found if "worker.LOOKS_S" in argv and not argv.startswith("bash"))

    def stop(self) -> None:
        """Let the worker end as a person lets it."""
        os.kill(self.worker(), signal.SIGTERM)
        assert self.process is not None
        try:
            code = self.process.wait(120)
        except subprocess.TimeoutExpired:
            raise AssertionError(self.at_work()) from None
        assert code in {0, 130, 143}, (self.folder / "said").read_text()[-4000:]
        self.process = None

    def at_work(self) -> str:
        """Return what its processes do that do not end, and where in the program they are."""
        found = self.processes()
        begun = time.time()
        lines = [f"{pid} {_state(pid)}: {argv[:300]}" for pid, argv in found.items()]
        for pid, argv in found.items():
            if "redfirst.main()" in argv and not argv.startswith("bash"):
                os.kill(pid, signal.SIGABRT)  # PYTHONFAULTHANDLER
        wait_until(lambda: not self.drivers())
        logs = [one for one in self.folder.rglob("*.log") if one.stat().st_mtime >= begun]
        return "\n".join([*lines, *(one.read_text()[-6000:] for one in (self.folder / "said", *logs))])


@dataclass
class Blow:
    """What was done to a machine, when, and the orders that it drove then."""

    kind: str
    machine: str
    at: float
    orders: tuple[str, ...]


@dataclass
class ChaosFleet:
    """Machines, one hub, one Postgres, and issues that are ordered as the work goes on."""

    place: Path
    server: Server
    count: int
    pace: Pace
    machines: list[Machine] = field(default_factory=list["Machine"])
    blows: list[Blow] = field(default_factory=list[Blow])
    killed: Counter[str] = field(default_factory=Counter[str])
    wait_s: float = 600
    port: int = 0
    daemon: subprocess.Popen[bytes] | None = None

    @property
    def hub(self) -> Path:
        """Return the hub."""
        return self.place / "hub"

    @property
    def url(self) -> str:
        """Return where machines reach the hub: its server is none of them, and leaves no lock when one of them dies."""
        return f"git://127.0.0.1:{self.port}/hub"

    def _serve(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        argv = ["daemon", "--listen=127.0.0.1", f"--port={self.port}", f"--base-path={self.place}", "--export-all"]
        more = ["--enable=receive-pack", "--reuseaddr", "--max-connections=0"]
        self.daemon = subprocess.Popen(["git", *argv, *more], stderr=subprocess.DEVNULL, start_new_session=True)
        ask = ["git", "ls-remote", self.url]
        wait_until(lambda: subprocess.run(ask, capture_output=True, check=False).returncode == 0, "no git daemon")

    @property
    def here(self) -> Path:
        """Return where each machine has its home, as it sees it."""
        return self.place / "home"

    @property
    def ledger(self) -> Path:
        """Return where agents write down that they were asked."""
        return self.place / "shared/ledger"

    def environment(self) -> dict[str, str]:
        """Return the environment of a person on any of the machines."""
        env = Project(self.here / "project", self.here).environment()
        timed = {name: text for name, text in env.items() if "DATE" not in name}  # two commits of one work differ
        return timed | {"TESTS_LANGUAGE": "languages.sums", "PYTHONPATH": str(KNOWN)}

    def configuration(self) -> str:
        """Return the configuration of a person on any of the machines."""
        fleet = f'[fleet]\nhub = "{self.url}"\nwait_s = {self.wait_s}\npostgres = "{self.server.dsn()}"\n'
        return f'{FAST}{fleet}[agents]\nbackend = "scripted"\nscript = "{self.place}/shared/script-1.json"\n'

    def make(self, machines: int) -> None:
        """Make hub, issues, scripts and machines; nothing is ordered yet, and no machine is on."""
        self.here.mkdir()
        (self.place / "shared").mkdir()
        self.ledger.touch()
        first = Project(self.place / "first", self.place)
        first.root.mkdir()
        numbers = range(1, self.count + 1)
        files = {f"m{number}.sum": f"m{number} n = n * 1\n" for number in numbers}
        files |= {f"m{number}.check": f"m{number}0: m{number} 0 = 0\n" for number in numbers}
        files |= {f"TODO/GAL-{number}.md": issue(number) for number in numbers}
        listed = "".join(f"- [ ] [GAL-{number}](GAL-{number}.md) Double m{number}\n" for number in numbers)
        first.git("init", "--quiet", "--initial-branch=main")
        first.git("config", "user.name", "Ada")
        first.git("config", "user.email", "ada@example.org")
        first.write({**files, "sums.project": "", "TODO/README.md": f"# Issues\n\n## Core\n{listed}"})
        first.commit("init")
        first.git("init", "--quiet", "--bare", "--initial-branch=main", str(self.hub))
        first.git("config", "core.logAllRefUpdates", "always", cwd=self.hub)
        first.git("push", "--quiet", str(self.hub), "main")
        self._serve()
        for number in numbers:
            (self.place / f"shared/script-{number}.json").write_text(json.dumps(self.script(number)))
        for number in range(1, machines + 1):
            machine = Machine(f"machine{number}", self.place / f"machine{number}", self)
            machine.make()
            self.machines.append(machine)
        make_schema(self.server.dsn())

    def script(self, number: int) -> list[Entry]:
        """Return the answers to an issue, by agents that write down that they were asked."""
        entries = [one for one in answers(number) if one["when"].get("role") != "simplify"]
        for entry in entries:
            said = f"GAL-{number} {entry['when']['kind']}"
            entry["run"] = ["sh", "-c", f"echo {said} $(hostname) >> {self.ledger}; sleep {self.pace.thinks_s}"]
        return entries

    def order(self, number: int) -> None:
        """Order an issue."""
        said = RunWords(values=(f"agents.script={self.place}/shared/script-{number}.json",))
        with self.log().locked() as log:
            log.place(Wanted(via="cli", issue=f"GAL-{number}", options=said))

    def log(self) -> OrderLog:
        """Return the orders; it is asked again where the server is just being started."""
        found: list[OrderLog] = []

        def read() -> bool:
            log = OrderLog(self.place, PostgresRows(self.server.dsn(), Fleet(hub=self.url).name))
            try:
                log.read_on()
            except NotNowError:
                return False
            found.append(log)
            return True

        wait_until(read, "the server does not answer")
        return found[0]

    def orders(self) -> list[Order]:
        """Return the orders."""
        return list(self.log().orders.values())

    def facts(self) -> list[tuple[float, order_lines.OrderFact]]:
        """Return all that was said of orders, and when."""
        log, found = self.log(), list[tuple[float, order_lines.OrderFact]]()
        fresh = OrderLog(self.place, PostgresRows(self.server.dsn(), Fleet(hub=self.url).name))
        del log
        for line in fresh.read_on():
            found.append((datetime.fromisoformat(line.at).timestamp(), line.data))
        return found

    def driven_on(self, machine: Machine) -> tuple[str, ...]:
        """Return the orders that a machine drives."""
        found = self.orders()
        return tuple(one.id for one in found if one.driver and one.driver.boot_id == machine.boot and one.is_open)

    def until(self, number: int, asked: int) -> None:
        """Return when agents were asked so often for an issue."""
        wait_until(lambda: self.asked(f"GAL-{number}") >= asked, "no agent is asked")

    def until_done(self) -> None:
        """Return when all orders are closed."""
        wait_until(lambda: not any(one.is_open for one in self.orders()), "an order stays open")

    def driver_logs(self) -> list[str]:
        """Return what the last driver of each order said."""
        folders = [one.folder / "state/redfirst/repos" for one in self.machines]
        return [path.read_text() for folder in folders for path in sorted(folder.glob("*/logs/*.log"))]

    # --- blows -----------------------------------------------------------------------------------------------------

    def _note(self, kind: str, machine: Machine) -> None:
        self.blows.append(Blow(kind, machine.name, time.time(), self.driven_on(machine)))

    def kill(self, machine: Machine) -> None:
        """Kill a machine."""
        self._note("kill", machine)
        machine.kill()

    def lose(self, machine: Machine) -> None:
        """Lose a machine with its disk."""
        self._note("lost", machine)
        machine.lose()

    def freeze(self, machine: Machine, seconds: float) -> None:
        """Freeze a machine for a while."""
        self._note("freeze", machine)
        machine.signal(signal.SIGSTOP)
        machine.frozen_until = time.monotonic() + seconds

    def thaw(self) -> None:
        """Let those go on whose time has come."""
        for machine in self.machines:
            if machine.frozen_until and time.monotonic() >= machine.frozen_until:
                machine.frozen_until = 0
                machine.signal(signal.SIGCONT)

    def kill_driver(self, machine: Machine, chance: random.Random) -> bool:
        """Kill a driver of a machine alone, of an order that may lose one more; return whether there was one."""
        found = {pid: order for pid in sorted(machine.drivers()) if (order := _order_of(pid))}
        # what its worker writes of a start and of a death may come late
        if not found or any(self.killed[order] + 1 >= MOST_DEATHS for order in found.values()):
            return False
        victim = chance.choice(list(found))
        self.killed[found[victim]] += 1
        self._note("driver", machine)
        with suppress(ProcessLookupError):  # it ended just now
            os.kill(victim, signal.SIGKILL)
        return True

    def restart_server(self, chance: random.Random) -> None:
        """Crash the server, and start it again."""
        self.blows.append(Blow("restart", "", time.time(), ()))
        self.server.stop()
        time.sleep(chance.uniform(0, 2))
        self.server.start()

    # --- the whole of it -------------------------------------------------------------------------------------------

    def under_fire(self, seed: int, blows: dict[str, int], within_s: float) -> None:
        """Let the machines work, strike them, and return when every order that was placed is closed.

        Blows for which there was no time are left out: `blows` has those that were dealt.
        """
        chance, until = random.Random(seed), time.monotonic() + within_s  # noqa: S311  (a schedule, no secret)
        left = [kind for kind, number in blows.items() for _ in range(number)]
        chance.shuffle(left)
        ordered, back, strikes = 0, dict[str, float](), 0.0
        for machine in self.machines:
            machine.start()
        while left or back or any(one.is_open for one in self.orders()) or any(m.frozen_until for m in self.machines):
            assert time.monotonic() < until + within_s, self.told()
            if time.monotonic() >= until:
                left.clear()
            self.thaw()
            for machine in self.machines:
                if machine.name in back and time.monotonic() >= back[machine.name]:
                    del back[machine.name]
                    if not machine.folder.exists():
                        machine.make()
                    machine.start()
            n_open = sum(one.is_open for one in self.orders())
            if ordered < self.count and n_open < 4 and (left or ordered < 3):
                ordered += 1
                self.order(ordered)
                continue
            if time.monotonic() >= strikes and self._strike(left, back, chance):
                strikes = time.monotonic() + chance.uniform(0, self.pace.looks_s / 2 + 2 * self.pace.thinks_s)
            time.sleep(0.2)  # the pace of the fire

    def _strike(self, left: list[str], back: dict[str, float], chance: random.Random) -> bool:
        """Do the next blow, if there is somebody whom it can hit; return whether it was done."""
        awake = [one for one in self.machines if one.is_awake]
        busy = [one for one in awake if one.drivers() and self.driven_on(one)]
        if not left or not busy:
            return False
        kind, machine = left[-1], chance.choice(busy)
        if kind == "restart":
            self.restart_server(chance)
        elif kind == "driver":
            if not self.kill_driver(machine, chance):
                left.insert(0, left.pop())
                return False
        elif len(awake) < 2:
            return False
        elif kind == "freeze":
            self.freeze(machine, self.pace.stalled_s + self.pace.looks_s + chance.uniform(0, 5))
        else:
            (self.kill if kind == "kill" else self.lose)(machine)
            back[machine.name] = time.monotonic() + chance.uniform(0, 1.5 * self.pace.looks_s)
        left.pop()
        return True

    def rest(self) -> None:
        """Stop all workers as a person would, and let each machine look once more for what is left to do."""
        for machine in self.machines:
            if machine.process is not None:
                machine.stop()
        for machine in self.machines:
            done = machine.redfirst("work", "--once")
            assert done.returncode == 0, done.stderr

    def end(self) -> None:
        """Kill what a test that fails leaves."""
        for machine in self.machines:
            if machine.process is not None:
                machine.kill()
        if self.daemon is not None:
            self.daemon.terminate()
            self.daemon.wait()

    # --- what came of it -------------------------------------------------------------------------------------------

    def hub_git(self, *argv: str) -> str:
        """Ask the hub."""
        return Project(self.hub, self.place).git(*argv)

    def lost_nothing(self) -> None:
        """Check that nothing is left that must not be after the fire."""
        problems = self._problems()
        assert not problems, "\n".join([*problems, self.told()])

    def _problems(self) -> list[str]:
        found = [
            f"{one.what} ({one.id}) is {one.state}: {one.outcome} {one.reason} {one.note}"
            for one in self.orders()
            if (one.state, one.outcome) != ("ended", "completed")
        ]
        counts = Counter(one.what for one in self.orders())
        found += [f"{what} was ordered {number} times" for what, number in counts.items() if number > 1]
        refs = dict(
            line.split()[::-1]
            for line in self.hub_git("for-each-ref", "--format=%(objectname) %(refname)").splitlines()
        )
        found += [f"{ref} is left at the hub" for ref in refs if "/claims/" in ref]
        start = self.hub_git("rev-parse", "main")
        for one in self.orders():
            number = one.what.partition("-")[2]
            # a machine that was struck before the hub heard of its branch has that name
            named = re.compile(rf"refs/heads/gal-{number}-(\d-)?double-m{number}")
            branches = [ref for ref in refs if named.fullmatch(ref)]
            if len(branches) != 1:
                found.append(f"{one.what} has {len(branches)} branches at the hub: {branches}")
                continue
            (branch,) = branches
            moves = (self.hub / "logs" / branch).read_text().splitlines()
            if len(moves) != 1 or moves[0].split()[1] != refs[branch]:
                found.append(f"{branch} moved {len(moves)} times: {moves}")
            if self.hub_git("show", f"{branch}:m{number}.sum") != f"m{number} n = n * 2":
                found.append(f"{branch} has not the work")
            if self.hub_git("merge-base", branch, "main") != start:
                found.append(f"{branch} does not stand on main")
            found += self._paid_too_often(one)
        heads = [ref for ref in refs if ref.startswith("refs/heads/gal-")]
        found += [f"{len(heads)} branches of {len(self.orders())} orders"] if len(heads) != len(self.orders()) else []
        return found

    def checkpoint(self, issue: str) -> str:
        """Return the ref of an issue's run; who froze before it had the issue may have left another one, stopped."""
        named = [f"refs/redfirst/checkpoints/*/run-{issue}{more}" for more in ("", "@*")]
        refs = self.hub_git("for-each-ref", "--format=%(refname)", *named).split()
        ended = [ref for ref in refs if '"run_finished"' in self.hub_git("show", f"{ref}:run/journal.jsonl")]
        (found,) = ended or refs
        return found

    def journal(self, issue: str) -> list[dict[str, Any]]:
        """Return the journal of an issue's run as the hub has it."""
        lines = self.hub_git("show", f"{self.checkpoint(issue)}:run/journal.jsonl").splitlines()
        return [json.loads(line) for line in lines]

    def kept(self, issue: str) -> tuple[int, int]:
        """Return how often a run of an issue was pushed to the hub, and how large its last checkpoint is, in bytes."""
        ref = self.checkpoint(issue)
        files = self.hub_git("ls-tree", "-r", "-l", f"{ref}:run").splitlines()
        return len((self.hub / "logs" / ref).read_text().splitlines()), sum(int(line.split()[3]) for line in files)

    def asked(self, issue: str) -> int:
        """Return how often an agent was asked for an issue, whoever asked."""
        return sum(line.split()[0] == issue for line in self.ledger.read_text().splitlines())

    def paid_twice(self, order: Order) -> tuple[int, int]:
        """Return how many dispatches of an order were paid and did not count, and how often a driver began for it."""
        finished = sum(line["kind"] == "dispatch_finished" for line in self.journal(order.what))
        return self.asked(order.what) - finished, len(order.drivers) - 1

    def _paid_too_often(self, order: Order) -> list[str]:
        more, begun_again = self.paid_twice(order)
        return (
            [f"{order.what} paid {more} dispatches too many, and began {begun_again} times again"]
            if more > begun_again
            else []
        )

    def takeovers(self) -> dict[str, list[float]]:
        """Return by kind of blow how many seconds went by until a driver was at work again, for each order it hit."""
        facts, found = self.facts(), dict[str, list[float]]()
        for blow in self.blows:
            for order in blow.orders:
                later = [(at, fact) for at, fact in facts if fact.order == order and at >= blow.at]
                if later and isinstance(later[0][1], order_lines.OrderStarted | order_lines.OrderLeft):
                    began = next((at for at, fact in later if isinstance(fact, order_lines.OrderStarted)), None)
                    found.setdefault(blow.kind, []).extend([] if began is None else [began - blow.at])
        return found

    def told(self) -> str:
        """Return how it stands, for a test that fails."""
        orders = self.orders()
        said = [
            f"{one.id} {one.what} {one.state} {one.outcome} {one.reason} {one.note} starts {len(one.drivers)}"
            for one in orders
        ]
        counts = Counter(one.what for one in orders)
        odd = {one.id for one in orders if one.outcome != "completed" or counts[one.what] > 1}
        said += [f"{at:.3f} {fact!r}" for at, fact in self.facts() if fact.order in odd]
        said += [f"{blow.at:.3f} {blow.kind} {blow.machine}" for blow in self.blows if odd.intersection(blow.orders)]
        for machine in self.machines:
            text = (machine.folder / "said").read_text() if (machine.folder / "said").exists() else ""
            said.append(f"--- {machine.name}\n{text[-3000:]}")
        return "\n".join(said)
