"""Runs a program as an agent: document in, report out, one sentence on how it ended (contract 5)."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.backends.protocol import AgentResult, Ended
from pipeline.process import Command, Mount

if TYPE_CHECKING:
    from pipeline.backends.protocol import AgentJob
    from pipeline.process import Completed

_INSIDE: Final = Path("/run/redfirst")
# More than a report may have, so that one that is too large is told apart from one that is broken.
_REPORT_BYTES: Final = 2_000_000
_LAST_WORDS: Final = 300


async def run_program(job: AgentJob, argv: tuple[str, ...], mounts: tuple[Mount, ...], stdin: bytes) -> AgentResult:
    """Run `argv` in the view with the document at `$REDFIRST_DISPATCH` and the report wanted at `$REDFIRST_REPORT`.

    Raises:
        SandboxError: the box did not work.
    """
    document, out = job.exchange / "dispatch.json", job.exchange / "out"
    document.write_bytes(job.document)
    out.mkdir()
    exchange = Mount(document, _INSIDE / document.name), Mount(out, _INSIDE / out.name, writable=True)
    inside = {mount.source: job.sandbox.inside(mount.source, mount.target) for mount in exchange}
    ended = await job.sandbox.run(
        Command(
            argv=argv,
            cwd=job.sandbox.inside(job.view.source, job.view.target),
            mounts=_unique((*mounts, *job.read, job.view, *job.artifacts, *exchange)),
            env={
                **job.env,
                "REDFIRST_DISPATCH": str(inside[document]),
                "REDFIRST_REPORT": str(inside[out] / "report.json"),
                "REDFIRST_DEPTH": str(job.depth),
            },
            stdin=stdin,
            timeout_s=job.timeout_s,
            network=job.network,
            gateway=job.gateway,
        )
    )
    report, fault = _read(out / "report.json")
    how, complaint = _judge(ended, job.timeout_s)
    return AgentResult(
        ended=how,
        exit_code=ended.exit_code,
        signal=ended.signal,
        report_file=report,
        stdout=ended.stdout,
        stderr=ended.stderr,
        truncated=ended.truncated,
        seconds=ended.seconds,
        complaint=complaint or fault,
    )


def _unique(mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
    """Return the mounts, each target once: a program and a `read` folder may name the same."""
    return tuple({mount.target: mount for mount in mounts}.values())


def _judge(ended: Completed, timeout_s: float) -> tuple[Ended, str | None]:
    if ended.timed_out:
        return Ended.TIMED_OUT, f"The agent did not finish within {timeout_s:g} seconds and was stopped."
    if ended.signal is not None:
        name = signal.Signals(ended.signal).name
        return Ended.SIGNAL, f"The agent was ended by signal {ended.signal} ({name})."
    if ended.exit_code != 0:
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        last = f"; the last line of its stderr is: {lines[-1][-_LAST_WORDS:]}" if lines else " and an empty stderr"
        return Ended.NONZERO, f"The agent ended with exit code {ended.exit_code}{last}."
    return Ended.OK, None


def _read(path: Path) -> tuple[bytes | None, str | None]:
    """Return what is in the report file, or why it cannot be read; neither if there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return _take(descriptor), None
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return None, None
    except OSError:
        pass  # a link, a socket, no permission: the same sentence
    return None, "The report at $REDFIRST_REPORT is not a readable regular file; write a plain file there."


def _take(descriptor: int) -> bytes:
    content = b""
    while len(content) < _REPORT_BYTES and (chunk := os.read(descriptor, _REPORT_BYTES - len(content))):
        content += chunk
    return content
