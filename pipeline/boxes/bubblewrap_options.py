"""Builds bwrap's options, the same way for every command (the order of the last ones matters)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.process import BOX_HOME, MODEL_URL, BoxError
from pipeline.programs import SYSTEM_FOLDERS, SYSTEM_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.process import Command

HOME: Final = str(BOX_HOME)
ENV: Final = {
    "HOME": HOME,
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "TMPDIR": "/tmp",  # noqa: S108  (a tmpfs of the box, not the host's)
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "USER": "agent",
    "SHELL": "/bin/sh",
}
_UID: Final = "1000"
_HOST: Final = "box"
_RESOLVER: Final = "/etc/resolv.conf"
MADE_UP: Final = {
    "/etc/passwd": f"root:x:0:0::/nonexistent:/bin/false\nagent:x:{_UID}:{_UID}::{HOME}:/bin/sh\n",
    "/etc/group": f"root:x:0:\nagent:x:{_UID}:\n",
    "/etc/hosts": "127.0.0.1 localhost box\n::1 localhost\n",
    "/etc/hostname": f"{_HOST}\n",
    "/etc/machine-id": f"{'b0' * 16}\n",
    _RESOLVER: "nameserver 127.0.0.1\n",
}
"""Files that say who and where a command is, the same in every box; with an open network the resolver is the host's."""


def options(command: Command, sources: Sequence[str], files: Mapping[str, int]) -> Iterator[str]:
    """Yield bwrap's options; they are passed by file descriptor, since argv is readable inside (`/proc/1/cmdline`).

    Args:
        command: What will run.
        sources: Where bwrap finds the command's mounts, in their order.
        files: Descriptors of the files that are made up.
    """
    yield from ("--unshare-all", "--unshare-user", "--uid", _UID, "--gid", _UID, "--disable-userns")
    yield from ("--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL", "--hostname", _HOST)
    yield from _network(command.network)
    yield from _system()
    for path, descriptor in files.items():
        if path == _RESOLVER and command.network == "open":
            continue
        yield from ("--ro-bind-data", str(descriptor), path)
    yield from ("--proc", "/proc", "--dev", "/dev", "--size", _mib(64), "--tmpfs", "/dev/shm")  # noqa: S108  (inside)
    yield from ("--size", _mib(512), "--tmpfs", "/tmp", "--dir", "/var", "--symlink", "../tmp", "/var/tmp")  # noqa: S108  (inside)
    yield from ("--size", _mib(512), "--tmpfs", "/home", "--dir", HOME, "--size", _mib(16), "--tmpfs", "/run")
    for mount, source in zip(command.mounts, sources, strict=True):
        yield from ("--bind" if mount.writable else "--ro-bind", source, str(mount.target))
    model = {"REDFIRST_MODEL_URL": MODEL_URL} if command.network == "model" else {}
    for name, value in {**ENV, **command.env, **model}.items():
        yield from ("--setenv", name, value)
    yield from ("--remount-ro", "/dev", "--remount-ro", "/proc", "--remount-ro", "/", "--chdir", str(command.cwd))


def _network(network: str) -> Iterator[str]:
    match network:
        case "none":
            return
        case "model":
            yield "--share-net"  # with the namespace that the helper has made, not with the host's
        case "open":
            yield "--share-net"
            if Path(_RESOLVER).exists():
                yield from ("--ro-bind", str(Path(_RESOLVER).resolve()), _RESOLVER)
        case _:
            raise BoxError(f"this box has no network {network!r}")


def _system() -> Iterator[str]:
    for folder in SYSTEM_FOLDERS:
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            yield from ("--ro-bind", str(folder), str(folder))
    for path in SYSTEM_SETTINGS:
        if path.exists():
            yield from ("--ro-bind", str(path), str(path))


def _mib(count: int) -> str:
    return str(count * 1024 * 1024)
