"""Runs a program on the host for its answer, in a session that is ended afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
from subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


async def answer_of(
    argv: Sequence[str | Path], *, folder: str | Path, environ: Mapping[str, str], of_errors: bool = False
) -> tuple[int, bytes]:
    """Run a program to its end and return exit code and output; after a cancellation nothing is left running.

    Args:
        argv: The program and its arguments; it can read nothing from the terminal, nor be ended by it.
        folder: Where it runs.
        environ: Its whole environment.
        of_errors: Return what it printed as errors, and not what it printed.

    Raises:
        OSError: it cannot be started.
    """
    said = bytearray()
    process = await anyio.open_process(
        [str(word) for word in argv],
        cwd=folder,
        env=dict(environ),
        stdin=DEVNULL,
        stdout=DEVNULL if of_errors else PIPE,
        stderr=PIPE if of_errors else DEVNULL,
        start_new_session=True,  # Ctrl-C at the terminal is for the driver
    )
    stream = process.stderr if of_errors else process.stdout
    try:
        async for part in stream or ():
            said += part
        return await process.wait(), bytes(said)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await process.aclose()
