"""Proves that a box isolates on this machine: a probe in it tries to get out, and the host checks whether it did.

A probe that never ran would look like a perfect box, so it must also do what is allowed and say so.
"""

from __future__ import annotations

import json
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from pipeline.data_types import Frozen
from pipeline.process import Box, BoxError, Command, Completed, Mount
from pipeline.programs import locate
from pipeline.scratch import scratch_folder

INSTALL: Final = (
    "Install bubblewrap 0.8 or newer (apt install bubblewrap, dnf install bubblewrap, pacman -S bubblewrap)"
)
_APPARMOR: Final = (
    "Ubuntu restricts user namespaces: allow them for /usr/bin/bwrap with an AppArmor profile "
    "(abi <abi/4.0>, profile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }), then reload AppArmor"
)
_NAMESPACES: Final = (
    "Allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1; in a container, a seccomp profile "
    "that permits them)"
)
_ADVICE: Final = (
    ("setting up uid map", _APPARMOR),
    ("RTM_NEWADDR", _APPARMOR),
    ("Unknown option", INSTALL),
    ("namespace", _NAMESPACES),
    ("mount proc", _NAMESPACES),
)
_TIMEOUT_S: Final = 30.0
_WORKSPACE: Final = Path("/workspace")
_PROBE: Final = Path("/run/redfirst/probe.py")


@dataclass(frozen=True)
class Proof:
    """The result of a box's proof; if it failed, why, and advice as the beginning of a sentence."""

    ok: bool
    why: str
    advice: str


class Probed(Frozen):
    """The probe's report on what it could do in the box; `canary_probe.py` writes it."""

    wrote_inside: bool
    changed_inside: bool
    wrote_outside: bool
    changed_outside: bool
    connected: bool
    home: list[str]
    writable: list[str]
    root: bool
    capable: bool


async def prove(box: Box) -> Proof:
    """Return the proof that a command in `box` can write only into its view, reach no host socket and see no home."""
    python = locate(sys.executable)
    with (
        scratch_folder("canary") as folder,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        view, outside = folder / "view", folder / "outside"
        view.mkdir()
        outside.mkdir()
        script = Path(__file__).with_name("canary_probe.py")
        port: int = listener.getsockname()[1]
        mounts = (*python.mounts, Mount(view, _WORKSPACE, writable=True), Mount(script, _PROBE))
        probe, cwd = box.inside(script, _PROBE), box.inside(view, _WORKSPACE)
        argv = python.argv("-I", "-S", str(probe), str(outside), str(port), str(Path.home()))
        try:
            ended = await box.run(Command(argv=argv, cwd=cwd, mounts=mounts, timeout_s=_TIMEOUT_S))
        except BoxError as error:
            return _failed(str(error))
        if any(outside.iterdir()):
            return _failed("a command in the box wrote outside its view")
        if not (view / "inside").exists():
            return _failed(f"the probe did not run: {_words(ended)}")
        if _was_called(listener):
            return _failed("a command in the box reached a socket of the host")
    shown = {mount.target.relative_to(Path.home()).parts[0] for mount in mounts if Path.home() in mount.target.parents}
    return _judge(ended, shown)


def _judge(ended: Completed, shown: set[str]) -> Proof:
    try:
        probed = Probed.model_validate(json.loads(ended.stdout))
    except (ValueError, ValidationError):
        return _failed(f"the probe did not answer: {_words(ended)}")
    if probed.wrote_outside or not probed.wrote_inside:
        return _failed("a command in the box wrote outside its view")
    if probed.changed_outside:
        return _failed("a command in the box changed permissions outside its view")
    if not probed.changed_inside:
        return _failed("a command in the box cannot make a file executable")
    if probed.connected:
        return _failed("a command in the box reached a socket of the host")
    if seen := sorted(set(probed.home) - shown):
        return _failed(f"a command in the box sees {seen[0]} of the home folder")
    if probed.writable:
        return _failed(f"a command in the box may write {probed.writable[0]}")
    if probed.capable:
        return _failed("a command in the box has capabilities")
    if probed.root:
        return _failed("a command in the box runs as root")
    return Proof(ok=True, why="writing, connecting and looking outside all failed", advice="")


def _failed(why: str) -> Proof:
    advice = next((advice for words, advice in _ADVICE if words in why), INSTALL)
    return Proof(ok=False, why=why.rstrip("."), advice=advice)


def _words(ended: Completed) -> str:
    return ended.stderr.decode(errors="replace").strip()[-500:] or f"it ended with {ended.exit_code}"


def _was_called(listener: socket.socket) -> bool:
    listener.setblocking(False)
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True
