"""What the Landlock box has to refuse; each attack is first shown to succeed where there is no box."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import anyio
import pytest
from dispatch.box_attacks import CALLS, METADATA, PROCESSES, READS, SETTING, WRITES
from landlocked import PYTHON, needs_landlock, read_only, run, sh, writable

from pipeline.dispatch.landlock import Landlock
from pipeline.dispatch.nobox import NoBox
from pipeline.process import Command

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from pipeline.dispatch.box import Box

pytestmark = [pytest.mark.slow, needs_landlock]

NOT_EVERYWHERE: Final = {"an attribute", "an attribute by a descriptor", "a removed attribute", "flags"}
"""What some file systems do not know; there is nothing to refuse on them."""
REFUSED: Final = {"EACCES", "EPERM", "EXDEV", "ELOOP", "ENOTSUP", "EOPNOTSUPP", "ENOTTY", "ENOSPC"}
"""Any other error would say that an attack went wrong by itself."""
KINDS: Final = {"socket": socket.SOCK_STREAM, "letters": socket.SOCK_DGRAM}
TRIES: Final = {"write": WRITES, "read": READS, "call": CALLS, "metadata": METADATA, "process": PROCESSES}


class Host:
    """Folders that a test owns, and a socket of each kind that listens."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        for name in ("view", "tool", "outside/empty"):
            (root / name).mkdir(parents=True)
        for name in ("outside/file", "outside/gone", "outside/moved", "outside/taken", "tool/file"):
            (root / name).write_text("secret")
        (root / "outside/a-link").symlink_to("file")
        (root / "outside/program").write_text("#!/bin/sh\nexit 0\n")
        (root / "outside/program").chmod(0o755)
        with contextlib.suppress(OSError):
            os.setxattr(root / "outside/file", "user.there", b"x")
        self.root = root
        self.sockets = {
            "tcp": stack.enter_context(socket.create_server(("127.0.0.1", 0))),
            "udp": stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)),
            "abstract": stack.enter_context(socket.socket(socket.AF_UNIX)),
        }
        self.sockets["udp"].bind(("127.0.0.1", 0))
        self.sockets["abstract"].bind(f"\0redfirst-{os.getpid()}-{id(self)}")
        self.sockets["abstract"].listen()
        place = os.open(root, os.O_PATH)
        for name, kind in KINDS.items():
            self.sockets[name] = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            self.sockets[name].bind(f"/proc/self/fd/{place}/{name}")  # the path of a socket has to be short
        os.close(place)
        self.sockets["socket"].listen()

    def tried(self, box: Box, tries: Mapping[str, str]) -> dict[str, str]:
        """Return name -> `done`, or the name of the error, for everything that was tried in `box`."""
        tcp, udp, abstract = (self.sockets[name].getsockname() for name in ("tcp", "udp", "abstract"))
        view, tool = self.root / "view", self.root / "tool"
        given = {
            "outside": str(self.root / "outside"),
            "view": str(view),
            "tool": str(tool),
            "driver": os.getpid(),
            "ports": {"tcp": tcp[1], "udp": udp[1]},
            "sockets": {"path": "../socket", "letters": "../letters", "abstract": abstract[1:].decode()},
            "tries": tries,
        }
        argv = PYTHON.argv("-I", "-S", "-c", SETTING, json.dumps(given))
        mounts = (*PYTHON.mounts, writable(view), read_only(tool))
        ended = anyio.run(box.run, Command(argv, view, mounts, timeout_s=60))
        assert ended.exit_code == 0, ended.stderr.decode()
        return json.loads(ended.stdout)

    def looks(self) -> dict[str, tuple[object, ...]]:
        """Return everything that can be known of what is outside, and of the readable folder."""
        found: dict[str, tuple[object, ...]] = {}
        for folder in (self.root / "outside", self.root / "tool"):
            for path in (folder, *folder.rglob("*")):
                status = path.lstat()
                shape = status.st_mode, status.st_uid, status.st_gid, status.st_nlink, status.st_size
                content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
                attributes = os.listxattr(path, follow_symlinks=False)
                found[str(path)] = (*shape, status.st_mtime_ns, status.st_ctime_ns, content, attributes)
        return found


@pytest.fixture
def stack() -> Generator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.mark.parametrize("kind", TRIES)
def test_everything_that_succeeds_without_a_box_is_refused_in_it(kind: str, tmp_path: Path, stack: ExitStack) -> None:
    open_host, host = Host(tmp_path / "open", stack), Host(tmp_path / "boxed", stack)
    without = open_host.tried(NoBox(), TRIES[kind])
    assert {name for name, word in without.items() if word != "done"} <= NOT_EVERYWHERE, without
    before = host.looks()
    boxed = host.tried(Landlock(), TRIES[kind])
    assert host.looks() == before
    assert {name: word for name, word in boxed.items() if word not in REFUSED} == {}


def test_files_are_moved_and_linked_between_folders_of_the_view(tmp_path: Path) -> None:
    script = "mkdir a b; touch a/x a/y; mv a/x b; ln a/y b/z; mv a b; ls b b/a"
    ended = sh(script, tmp_path, writable(tmp_path))
    assert (ended.exit_code, ended.stdout) == (0, b"b:\na\nx\nz\n\nb/a:\ny\n")


@pytest.mark.parametrize(("threads", "signal_number"), [(1000, None), (4500, signal.SIGKILL)])
def test_a_command_with_too_many_processes_and_threads_is_ended(
    threads: int, signal_number: int | None, tmp_path: Path
) -> None:
    script = f"""
import threading, time
threading.stack_size(1 << 16)
over = threading.Event()
for _ in range({threads}):
    threading.Thread(target=over.wait, daemon=True).start()
time.sleep(1 if {threads} < 4096 else 60)
"""
    ended = run(*PYTHON.argv("-I", "-S", "-c", script), cwd=tmp_path, mounts=PYTHON.mounts)
    assert ended.signal == signal_number
    assert not ended.timed_out
