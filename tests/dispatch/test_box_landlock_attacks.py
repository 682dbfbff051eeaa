"""What the Landlock box has to refuse; each attack is first shown to succeed where there is no box."""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import pytest
from dispatch.box_attacks import CALLS, METADATA, PROCESSES, READS, SETTING, WRITES
from landlocked import needs_landlock

from pipeline.dispatch.landlock import Landlock
from pipeline.dispatch.nobox import NoBox
from pipeline.process import Command, Mount
from pipeline.programs import locate

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from pipeline.dispatch.box import Box

pytestmark = needs_landlock

PYTHON: Final = locate(sys.executable)
NOT_EVERYWHERE: Final = {"an attribute", "an attribute by a descriptor", "a removed attribute", "flags"}
"""What some file systems do not know; there is nothing to refuse on them."""
KINDS: Final = {"socket": socket.SOCK_STREAM, "letters": socket.SOCK_DGRAM}


class Host:
    """Folders that a test owns, a socket of each kind that listens, and a box in front of them."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        for name in ("view", "tool", "outside/empty"):
            (root / name).mkdir(parents=True)
        for name in ("outside/file", "outside/gone", "outside/moved", "outside/taken", "tool/file"):
            (root / name).write_text("secret")
        (root / "outside/a-link").symlink_to("file")
        program = root / "outside/program"
        program.write_text("#!/bin/sh\nexit 0\n")
        program.chmod(0o755)
        try:
            os.setxattr(root / "outside/file", "user.there", b"x")
        except OSError:
            pass
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
        names = {name: self.sockets[name].getsockname() for name in ("tcp", "udp", "abstract")}
        given = {
            "outside": str(self.root / "outside"),
            "view": str(self.root / "view"),
            "tool": str(self.root / "tool"),
            "driver": os.getpid(),
            "ports": {name: names[name][1] for name in ("tcp", "udp")},
            "sockets": {
                "path": "../socket",
                "letters": "../letters",
                "abstract": names["abstract"][1:].decode(),
            },
            "tries": tries,
        }
        view, tool = self.root / "view", self.root / "tool"
        mounts = (*PYTHON.mounts, Mount(view, view, writable=True), Mount(tool, tool))
        argv = PYTHON.argv("-I", "-S", "-c", SETTING, json.dumps(given))
        ended = anyio.run(box.run, Command(argv, view, mounts, timeout_s=60))
        assert ended.exit_code == 0, ended.stderr.decode()
        return json.loads(ended.stdout)

    def looks(self) -> dict[str, tuple[object, ...]]:
        """Return everything that can be known of what is outside, and of the readable folder."""
        found: dict[str, tuple[object, ...]] = {}
        for folder in (self.root / "outside", self.root / "tool"):
            for path in (folder, *folder.rglob("*")):
                status = path.lstat()
                content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
                shape = status.st_mode, status.st_uid, status.st_gid, status.st_nlink, status.st_mtime_ns
                attributes = os.listxattr(path, follow_symlinks=False)
                found[str(path)] = (*shape, status.st_ctime_ns, content, attributes)
        return found


@pytest.fixture
def stack() -> Generator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.mark.parametrize(
    "tries", [WRITES, READS, CALLS, METADATA, PROCESSES], ids=["write", "read", "call", "metadata", "process"]
)
def test_everything_that_succeeds_without_a_box_is_refused_in_it(
    tries: Mapping[str, str], tmp_path: Path, stack: ExitStack
) -> None:
    open_host, host = Host(tmp_path / "open", stack), Host(tmp_path / "boxed", stack)
    without = open_host.tried(NoBox(), tries)
    assert {name for name, word in without.items() if word != "done"} <= NOT_EVERYWHERE, without
    before = host.looks()
    boxed = host.tried(Landlock(), tries)
    assert host.looks() == before
    assert [name for name, word in boxed.items() if word == "done"] == []
