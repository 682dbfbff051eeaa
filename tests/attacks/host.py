"""A whole host that a test owns: a user's repository, a home, other folders, a process, sockets, a terminal.

Everything an attack may want to reach lies below one folder, so that a defence that fails harms nobody and is seen: the
folder is hashed before and after each case.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.repo import Repository

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from collections.abc import Set as AbstractSet

PWNED: Final = "PWNED"
"""What an attack prints, or calls a file, when it has succeeded; every secret of the host begins with it."""

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
"""The user's project; besides, it has a submodule in vendor/sub."""

_FOLDERS: Final = (
    *("real", "host/usr/bin", "host/etc/cron.d", "host/tmp", "home/.ssh", "scripts"),
    *("run/dispatches", "state/caches", "state/sessions"),
)


@dataclass(frozen=True)
class Host:
    """What is below `root`, and what runs and listens."""

    root: Path
    repository: Repository
    neighbour: subprocess.Popen[bytes]
    listeners: Mapping[str, socket.socket]
    terminal: str

    def places(self) -> dict[str, str]:
        """Return what stands for each placeholder of a text."""
        return {
            "view": '"$view"',
            "real": str(self.root / "real"),
            "host": str(self.root / "host"),
            "run": str(self.root / "run"),
            "pty": self.terminal,
            "tcp": str(self.listeners["tcp"].getsockname()[1]),
            "udp": str(self.listeners["udp"].getsockname()[1]),
            "abstract": self.listeners["abstract"].getsockname()[1:].decode(),
            "victim": str(self.neighbour.pid),
            "driver": str(os.getpid()),
        }

    def fingerprint(self, but: AbstractSet[str]) -> dict[str, str]:
        """Return a hash of everything below the root, by path, without what is at the paths `but`.

        New git objects are what a dispatch is for, and do not count; all else is somebody's.
        """
        found: dict[str, str] = {}
        for at, folders, names in os.walk(self.root):
            here = Path(at)
            if here.name == ".git" or here.parent.name == "modules":
                folders[:] = [name for name in folders if name != "objects"]
            folders[:] = [name for name in folders if str((here / name).relative_to(self.root)) not in but]
            found |= {str((here / name).relative_to(self.root)): _look(here / name) for name in (*names, *folders)}
        return found

    def left_behind(self, mark: str) -> list[str]:
        """Return the processes that carry `mark`, or stand in a folder of this host."""
        found = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and self._is_of(entry, mark)]
        return [f"process {entry.name} is left: {_line(entry)}" for entry in found]

    def reached(self) -> list[str]:
        """Return which sockets were called, and whether the neighbour was killed."""
        called = [f"the host's {name} socket was reached" for name, one in self.listeners.items() if _was_called(one)]
        return called if self.neighbour.poll() is None else [*called, "a process of the host was killed"]

    def _is_of(self, process: Path, mark: str) -> bool:
        try:
            command = (process / "cmdline").read_bytes()
            if command.endswith(_READER) and _parent(process) == os.getpid():
                return False  # the driver's own, which is this process here
            words = command + (process / "environ").read_bytes()
            return mark.encode() in words or (process / "cwd").readlink().is_relative_to(self.root)
        except OSError:  # it ended, or belongs to somebody else
            return False


_READER = b"\0cat-file\0--batch\0"


def _parent(process: Path) -> int:
    return int((process / "stat").read_text().rpartition(")")[2].split()[1])


@contextmanager
def make_host(root: Path) -> Generator[Host]:
    """Make a host below `root`, which is empty, and take its processes and sockets away again."""
    for name in _FOLDERS:
        (root / name).mkdir(parents=True)
    (root / "host/secret.txt").write_text(f"{PWNED}-FILE\n")
    (root / "host/tool").write_text("a file of a toolchain\n")
    (root / "home/.ssh/id_ed25519").write_text(f"{PWNED}-KEY\n")
    repository = _make_repository(root)
    with ExitStack() as stack:
        words = {"PATH": os.environ["PATH"], "NEIGHBOUR": f"{PWNED}-NEIGHBOUR"}
        neighbour = stack.enter_context(subprocess.Popen(["sleep", "3600"], cwd="/", env=words))
        stack.callback(neighbour.kill)
        terminal = os.openpty()
        for end in terminal:
            stack.callback(os.close, end)
        listeners = {name: stack.enter_context(one) for name, one in _listen(root / "host").items()}
        yield Host(root, repository, neighbour, listeners, os.ttyname(terminal[1]))


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


def _listen(folder: Path) -> dict[str, socket.socket]:
    """Return sockets of the host that nobody calls but an attack; one of them is in `folder`."""
    abstract = f"redfirst-attack-{secrets.token_hex(8)}"
    found = {
        "tcp": socket.create_server(("127.0.0.1", 0)),
        "udp": socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "abstract": socket.socket(socket.AF_UNIX),
        "unix": socket.socket(socket.AF_UNIX),
    }
    found["udp"].bind(("127.0.0.1", 0))
    found["abstract"].bind(f"\0{abstract}")
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    found["unix"].bind(f"/proc/self/fd/{place}/socket")  # the path in a socket's address has to be short
    os.close(place)
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
