"""A whole host that a test owns: a user's repository, a home, other folders, processes, sockets; and one dispatch in it.

Everything an attack may want to reach lies below one folder, so that a defence that fails harms nobody and is seen: the
folder is hashed before and after each case.
"""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from attacks.catalogue import Verdict

from pipeline.config.model import Config
from pipeline.dispatch.box import try_boxes
from pipeline.dispatch.dispatcher import Dispatcher
from pipeline.dispatch.request import Request, Tools
from pipeline.dispatch.roles import load_roles, load_templates
from pipeline.git import Entry, Repository, TreeChange
from pipeline.policy.scope import Action, Grant, TestScope
from pipeline.programs import locate
from pipeline.routing.vocabulary import Role, Signal
from pipeline.runs.checkout import PrivateCheckout
from pipeline.runs.info import DispatchRecord

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from pipeline.dispatch.box import Box
    from pipeline.process import Mount
    from pipeline.runs.info import DispatchResult

PWNED: Final = "PWNED"
"""What an attack prints, or calls a file, when it has succeeded."""

FILES: Final[Mapping[str, str]] = {
    ".gitignore": "*.log\n",
    "Cargo.toml": '[package]\nname = "crate"\nversion = "0.1.0"\n',
    "README.md": "# A project\n",
    "TODO/ISSUE-1.md": "---\nid: ISSUE-1\ntitle: Add\nstatus: Todo\n---\n# ISSUE-1: Add\n",
    "conftest.py": "",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\ntestpaths = ["tests"]\n',
    "src/app.py": '"""The app."""\n\n\ndef add(left, right):\n    return left - right\n',
    "src/lib.rs": "pub fn add(a: i32, b: i32) -> i32 { a + b }\n",
    "src/other.py": "# a module that no task names\nVALUE = 41 + 1\n",
    "tests/conftest.py": "import pytest\n",
    "tests/test_app.py": "from app import add\n\n\ndef test_nothing():\n    assert add(0, 0) == 0\n",
}
MAKE_GRANTS: Final = (Grant("src/app.py", Action.MODIFY),)
TESTS: Final = TestScope(
    files=(Grant("tests/test_app.py", Action.MODIFY), Grant("tests/test_new.py", Action.CREATE)),
    folders=("tests",),
    code=frozenset({"src/app.py"}),
    known=frozenset({"tests/test_app.py"}),
)
_ASKED: Final[Mapping[Role, tuple[str, str]]] = {
    Role.ORCHESTRATOR: ("plan", '{"problem": "p", "files": [], "approach": "a"}'),
    Role.CHECK: ("review-plan", '{"verdict": "ACCEPTABLE"}'),
    Role.SIMPLIFY: ("review-plan", '{"verdict": "JUSTIFIED COMPLEXITY"}'),
    Role.TEST: ("write-tests", '{"verdict": "TESTS_READY"}'),
    Role.MAKE: ("implement", '{"result": "COMPLETE", "summary": "done"}'),
    Role.PM: ("follow-ups", '{"items": []}'),
}
_AGENT: Final = r"""#!{shell}
view=$PWD
look() {{
  (cd "$view" && find .git -printf '%p %y %m %s %n %l %T@\n' | LC_ALL=C sort | cksum
   cd "$view" && find . -mindepth 1 -path ./.git -prune -o -printf '%p %y %m %s %n %l %T@ %C@\n' | LC_ALL=C sort | cksum) 2>&1 |
    tr -s ' \n' '::'
}}
finish() {{
  echo "attack-after $(look)"
  [ -e "$REDFIRST_REPORT" ] || [ -L "$REDFIRST_REPORT" ] || printf '%s' '{report}' > "$REDFIRST_REPORT"
}}
trap finish EXIT
echo "attack-before $(look)"
{text}
"""
_TIMEOUT_S: Final = 30
_MODERN_KERNEL: Final = (6, 12)


def make_box(name: str) -> tuple[Box | None, str]:
    """Return the box that the product opens for this setting, or None, and why."""
    trials = anyio.run(try_boxes, name)
    if not trials:
        return None, "there is none to try"
    return (trials[-1].box if trials[-1].proof.ok else None), trials[-1].proof.why


def is_demanded(name: str) -> bool:
    """Return whether this machine has to offer the box: not to work is a failure here, and no reason to skip."""
    if name == "bubblewrap":
        return shutil.which("bwrap") is not None
    version = tuple(int("".join(filter(str.isdigit, part))) for part in platform.release().split(".")[:2])
    return name == "none" or version >= _MODERN_KERNEL


@dataclass(frozen=True)
class Happened:
    """What one dispatch of an attack came to.

    Args:
        verdict: By what happened to the changes.
        result: What the product says.
        stdout: What the attack printed.
        log: What it complained about, for the reader of a failing test.
        decoy_only: All that was different in the view at its end lay in the decoy repository.
        wrongs: Everything that is not as it was, each in words; empty if the host never noticed.
    """

    verdict: Verdict
    result: DispatchResult
    stdout: str
    log: str
    decoy_only: bool
    wrongs: tuple[str, ...]

    def rules(self) -> dict[str, str]:
        """Return path -> rule of what the gate refused."""
        return {violation.path: violation.rule for violation in self.result.violations}


@dataclass
class World:
    """The host. `box` is what stands between it and the attacks."""

    root: Path
    box: Box
    repository: Repository
    checkout: PrivateCheckout
    base: str
    neighbour: subprocess.Popen[bytes]
    listeners: Mapping[str, socket.socket]
    terminal: str
    overlay: bool
    number: int = 0
    shown: str = ""

    def __post_init__(self) -> None:
        self.dispatcher = self._dispatcher()

    @property
    def name(self) -> str:
        """Return what is attacked, for the figures."""
        return f"{self.box.name}, {'overlay' if self.overlay else 'shadow'} views"

    @property
    def real(self) -> Path:
        """Return the user's worktree."""
        return self.root / "real"

    @property
    def host(self) -> Path:
        """Return a folder that stands for the rest of the host."""
        return self.root / "host"

    @property
    def shared(self) -> bool:
        """Return whether the box shows the host's own paths and processes."""
        return not self.box.maps_paths

    def places(self) -> dict[str, str]:
        """Return what stands for each placeholder of a text."""
        return {
            "view": '"$view"',
            "real": str(self.real),
            "host": str(self.host),
            "run": str(self.root / "run"),
            "pty": self.terminal,
            "tcp": str(self.listeners["tcp"].getsockname()[1]),
            "udp": str(self.listeners["udp"].getsockname()[1]),
            "abstract": self.listeners["abstract"].getsockname()[1:].decode(),
            "victim": str(self.neighbour.pid),
            "driver": str(os.getpid()),
        }

    def attack(self, role: Role, text: str, base: str | None = None) -> Happened:
        """Let an agent of this role run `text` in its view, and look around afterwards."""
        self.number += 1
        name = f"{self.number:03}-attack-{role.value}"
        kind, report = _ASKED[role]
        mark = secrets.token_hex(8)
        shell = "/bin/bash" if "$'" in text else "/bin/sh"
        program = self.root / "scripts" / f"{mark}.sh"
        program.write_text(_AGENT.format(shell=shell, report=report, text=text), encoding="utf-8")
        program.chmod(0o755)
        self._show(base or self.base)
        before = self.fingerprint(name)
        result = anyio.run(self._dispatch, name, role, kind, program, base or self.base)
        folder = self.root / "run" / "dispatches" / name
        stdout = (folder / "stdout.log").read_text(encoding="utf-8", errors="replace")
        log = (folder / "stderr.log").read_text(encoding="utf-8", errors="replace")
        assert "attack-before" in stdout, f"the attack did not run: {log}"
        was, now = (_looked(stdout, when) for when in ("before", "after"))
        wrongs = [*self._differences(name, before), *self._left_behind(mark), *self._reached()]
        wrongs += [f"it printed {line}" for line in stdout.splitlines() if PWNED in line]
        kept = [folder / "result.json", *folder.glob("report.raw")]
        wrongs += [f"{path.name} has what it asked for" for path in kept if PWNED.encode() in path.read_bytes()]
        wrongs += [f"the tree has {path}" for path in self._unasked_for(role, result)]
        return Happened(
            verdict=_verdict(result, changed=now is not None and was != now),
            result=result,
            stdout=stdout,
            log=log,
            decoy_only=was is not None and now is not None and was[1] == now[1],
            wrongs=tuple(wrongs),
        )

    async def _dispatch(self, name: str, role: Role, kind: str, program: Path, base: str) -> DispatchResult:
        record = DispatchRecord(
            dispatch=name,
            number=self.number,
            step="attack",
            visit=1,
            resumes=0,
            role=role,
            kind=kind,
            question=None,
            task=None,
            attempt=1,
            reask=None,
            base_tree=base,
            backend="command",
        )
        request = Request(role, kind, base, grants=MAKE_GRANTS, tests=TESTS, tools=_tools)
        self.dispatcher.config = _config(program)
        return await self.dispatcher.dispatch(record, request, phase="-", why="an attack")

    def _dispatcher(self) -> Dispatcher:
        """Return what carries out the attacks: the only place that knows how one is built."""
        return Dispatcher(
            run_id="run-ISSUE-1",
            run_folder=self.root / "run",
            repository=self.repository,
            checkout=self.checkout,
            config=Config(),
            box=self.box,
            roles=load_roles(),
            templates=load_templates(),
            search_path=os.environ["PATH"],
            overlay=self.overlay,
        )

    def _show(self, tree: str) -> None:
        """Let the product make what lies under the views of a tree, which then nothing may change."""
        if tree != self.shown:
            self.dispatcher.views.open(tree, writable=False).close()
            self.shown = tree

    def tree_with(self, files: Mapping[str, str]) -> str:
        """Return the base tree with these files."""
        entries = {path: Entry(path, "100644", self.repository.write_blob(text.encode())) for path, text in files.items()}
        return self.repository.build_tree(self.base, [TreeChange(path, entry) for path, entry in entries.items()])

    # --- what must not have changed -------------------------------------------------------------------------------

    def fingerprint(self, dispatch: str) -> dict[str, str]:
        """Return a hash of everything below the root that this dispatch may not touch, by path.

        Its own folders in the run and new git objects are what a dispatch is for; all else is somebody's.
        """
        found: dict[str, str] = {}
        for at, folders, names in os.walk(self.root):
            here = Path(at)
            folders[:] = [name for name in folders if name not in {"scripts", dispatch}]
            if here.name == ".git" or here.parent.name == "modules":
                folders[:] = [name for name in folders if name != "objects"]
            for path in (here / name for name in (*names, *folders)):
                found[str(path.relative_to(self.root))] = _look(path)
        return found

    def _differences(self, dispatch: str, before: Mapping[str, str]) -> list[str]:
        after = self.fingerprint(dispatch)
        return [f"{path} on the host changed" for path in before.keys() | after if before.get(path) != after.get(path)]

    def _left_behind(self, mark: str) -> list[str]:
        """Return the processes that carry the mark of the case, or stand in a folder of this world."""
        return [
            f"process {entry.name} is left: {_line(entry)}"
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and int(entry.name) != self.neighbour.pid and self._is_of(entry, mark)
        ]

    def _is_of(self, process: Path, mark: str) -> bool:
        try:
            words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            return mark.encode() in words or (process / "cwd").readlink().is_relative_to(self.root)
        except OSError:  # it ended, or belongs to somebody else
            return False

    def _reached(self) -> list[str]:
        """Return who called the host's sockets, and whether the neighbour was killed."""
        called = [f"the host's {name} socket was reached" for name, one in self.listeners.items() if _was_called(one)]
        return called if self.neighbour.poll() is None else [*called, "a process of the host was killed"]

    def _unasked_for(self, role: Role, result: DispatchResult) -> list[str]:
        """Return what is in the tree that the role may not change; a rejected dispatch keeps its legal part at most."""
        if result.tree is None:
            return []
        allowed = {
            Role.MAKE: {grant.path for grant in MAKE_GRANTS},
            Role.TEST: {grant.path for grant in TESTS.files},
        }.get(role, set())
        changed = [change.path for change in self.repository.diff(result.base_tree, result.tree)]
        if role is Role.TEST:  # new files beside the tests, and test regions of Rust files, are its own as well
            changed = [path for path in changed if not path.startswith("tests/test_") and path != "src/lib.rs"]
        return [path for path in changed if path not in allowed]


@contextmanager
def make_world(root: Path, box: Box, *, overlay: bool) -> Generator[World]:
    """Make a host below `root`, which is empty, and take its processes and sockets away again."""
    for name in (
        *("real", "host/usr/bin", "host/etc/cron.d", "host/tmp", "home/.ssh", "scripts"),
        *("run/dispatches", "run/quarantine"),
    ):
        (root / name).mkdir(parents=True)
    (root / "host/secret.txt").write_text(f"{PWNED}-SECRET\n")
    (root / "host/tool").write_text("a file of a toolchain\n")
    (root / "home/.ssh/id_ed25519").write_text(f"{PWNED}-KEY\n")
    repository = _make_repository(root)
    base = repository.tree_of(str(repository.resolve("HEAD")))
    checkout = PrivateCheckout(repository, root / "state")
    checkout.open(base)
    checkout.views()
    with ExitStack() as stack:
        secret = {"PATH": os.environ["PATH"], "NEIGHBOUR": f"{PWNED}-ENVIRONMENT"}
        neighbour = stack.enter_context(subprocess.Popen(["sleep", "3600"], cwd="/", env=secret))
        stack.callback(neighbour.kill)
        terminal = os.openpty()
        for end in terminal:
            stack.callback(os.close, end)
        listeners = {name: stack.enter_context(one) for name, one in _listen(root).items()}
        yield World(root, box, repository, checkout, base, neighbour, listeners, os.ttyname(terminal[1]), overlay)


def _make_repository(root: Path) -> Repository:
    real, library = root / "real", root / "library"
    _git(root, "init", "--quiet", "--template=", "library")
    (library / "f.c").write_text("int main(void) { return 0; }\n")
    _commit(library)
    _git(real, "init", "--quiet", "--initial-branch=work")
    for name, text in FILES.items():
        path = real / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    _git(real, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "vendor/sub")
    _commit(real)
    (real / "notes.log").write_text("ignored, and the user's own\n")
    return Repository.find(real)


def _git(folder: Path, *argv: str) -> None:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "core.autocrlf=false")
    subprocess.run(["git", *who, *argv], cwd=folder, check=True, capture_output=True)


def _commit(folder: Path) -> None:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", "start")


def _listen(root: Path) -> dict[str, socket.socket]:
    """Return sockets of the host that nobody calls but an attack."""
    abstract = f"redfirst-attack-{secrets.token_hex(8)}"
    found = {
        "tcp": socket.create_server(("127.0.0.1", 0)),
        "udp": socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "abstract": socket.socket(socket.AF_UNIX),
        "unix": socket.socket(socket.AF_UNIX),
    }
    found["udp"].bind(("127.0.0.1", 0))
    found["abstract"].bind(f"\0{abstract}")
    before = Path.cwd()
    os.chdir(root / "host")  # a path in a socket's address has to be short
    found["unix"].bind("socket")
    os.chdir(before)
    found["abstract"].listen()
    found["unix"].listen()
    for one in found.values():
        one.setblocking(False)
    return found


def _was_called(listener: socket.socket) -> bool:
    try:
        if listener.type is socket.SOCK_DGRAM:
            listener.recv(1)
        else:
            listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _config(program: Path) -> Config:
    """Return a configuration in which every agent is this program."""
    agent = {
        "backend": "command",
        "argv": [str(program)],
        "read": [str(program)],
        "env": {"ATTACK_MARK": program.stem},
        "timeout_s": _TIMEOUT_S,
    }
    return Config.model_validate({"agents": {**agent, "pm": {"backend": "command"}}})


def _tools(_view: Mount) -> Tools:
    """Return this interpreter for the attacks that are written in Python, as a project's own would be shown."""
    python = locate(sys.executable)
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    return Tools(python.mounts, {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1"})


def _look(path: Path) -> str:
    status = path.lstat()
    shape = f"{status.st_mode:o} {status.st_uid}"
    if path.is_symlink():
        return f"{shape} {path.readlink()}"
    if path.is_file():
        return f"{shape} {status.st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    return shape


def _line(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "ended meanwhile"


def _looked(stdout: str, when: str) -> tuple[str, str] | None:
    """Return what the agent saw of its view: of the decoy, and of the rest."""
    line = next((line for line in stdout.splitlines() if line.startswith(f"attack-{when} ")), None)
    if line is None:
        return None
    sums = line.split(" ", 1)[1].strip(":").split(":")
    return ":".join(sums[:2]), ":".join(sums[2:])


def _verdict(result: DispatchResult, *, changed: bool) -> Verdict:
    if result.signal is Signal.ESCAPE:
        raise AssertionError(f"the attack escaped: {result.complaint}")
    if result.gate == "rejected":
        return Verdict.VIOLATION
    if result.changes:
        return Verdict.ACCEPTED
    return Verdict.DISCARDED if changed or result.dropped else Verdict.BLOCKED
