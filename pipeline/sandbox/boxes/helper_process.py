"""Starts `namespace_helper.py`, receives descriptors from it, and enters the namespaces that it made."""

from __future__ import annotations

import contextlib
import marshal
import os
import shutil
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.process import BoxError, Namespaces

if TYPE_CHECKING:
    from collections.abc import Generator


_HELPER: Final = Path(__file__).with_name("namespace_helper.py")


@contextlib.contextmanager
def memory_file(content: bytes) -> Generator[int]:
    """Yield the descriptor of a file in memory with this content, at its beginning."""
    descriptor = os.memfd_create("redfirst")
    try:
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def helper_command(order: dict[str, Any]) -> Generator[tuple[tuple[str, ...], int]]:
    """Yield the argv of the helper for `order`, and the descriptor that it must inherit."""
    with memory_file(marshal.dumps(order)) as told:
        yield (sys.executable, "-I", "-S", str(_HELPER), str(told)), told


def tool(name: str) -> str:
    """Return the path of a program of util-linux.

    Raises:
        BoxError: it is not installed.
    """
    found = shutil.which(name)
    if found is None:
        raise BoxError(f"{name} (util-linux) is not installed")
    return found


def namespace_prefix(namespaces: Namespaces | None) -> tuple[str, ...]:
    """Return the argv prefix that runs a command in `namespaces`.

    They are named as this process has them open: a descriptor that were passed on would stay open in the box.
    """
    if namespaces is None:
        return ()
    held = f"/proc/{os.getpid()}/fd"
    by_user = ("--preserve-credentials", f"--user={held}/{namespaces.user}") if namespaces.user else ()
    return (tool("nsenter"), *by_user, f"--mount={held}/{namespaces.mount}", "--")


def received_descriptors(channel: socket.socket, count: int) -> tuple[int, ...]:
    """Return the `count` descriptors that the helper sends.

    Raises:
        BoxError: it sent others.
    """
    _, descriptors, _, _ = socket.recv_fds(channel, 16, count, socket.MSG_CMSG_CLOEXEC)
    if len(descriptors) != count:
        for descriptor in descriptors:
            os.close(descriptor)
        raise BoxError("the namespace helper did not hand over its descriptors")
    return tuple(descriptors)
