"""What it takes to ask an agent, and what comes back. One protocol; `BACKENDS` has its implementations.

A backend starts something in the box, waits, and reports how that ended. Whether a report is well formed is decided by
`pipeline.reports`, whether a change is allowed by the gate; a backend decides neither.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeline.process import Gateway, Mount, Sandbox


@dataclass(frozen=True)
class AgentJob:
    """One dispatch to one agent.

    Args:
        sandbox: Where it runs.
        document: The dispatch document (contract 5), JSON; its paths are those that the box shows.
        view: How the box shows the workspace, writable or not.
        exchange: An empty folder of the host that belongs to this job; document and report pass through it.
        artifacts: Read-only mounts of the files that the document names.
        read: Further read-only mounts (config `read`, toolchains).
        argv: The program, for `command`.
        script: The answers, for `scripted`.
        used: Entries of the script that earlier dispatches of the run took.
        env: Further variables.
        timeout_s: Wall time limit in seconds.
        network: `none`, `model` or `open`.
        gateway: What answers for the model, with `model`.
        depth: How many runs this one is inside of, counting itself (stops recursion, architecture 10).
        search_path: Where argv[0] is looked up; the PATH of this process if None.
    """

    sandbox: Sandbox
    document: bytes
    view: Mount
    exchange: Path
    artifacts: tuple[Mount, ...] = ()
    read: tuple[Mount, ...] = ()
    argv: tuple[str, ...] = ()
    script: Path | None = None
    used: frozenset[int] = frozenset()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout_s: float = 900.0
    network: str = "none"
    gateway: Gateway | None = None
    depth: int = 1
    search_path: str | None = None


class Ended(StrEnum):
    """How the agent's process ended."""

    OK = "ok"
    NONZERO = "nonzero"
    SIGNAL = "signal"
    TIMED_OUT = "timed_out"


@dataclass(frozen=True)
class Usage:
    """What the agent says that it consumed; None where it says nothing."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    model: str | None = None


@dataclass(frozen=True)
class AgentResult:
    """How it went.

    Args:
        ended: How the process ended.
        exit_code: None if a signal or the time limit ended it.
        signal: The signal that ended it, if any.
        report_file: The bytes of the report file, None if there is none.
        stdout: Log, and the report if there is no file.
        stderr: Log.
        truncated: Whether the middle of stdout or stderr is missing.
        seconds: Wall time.
        complaint: One sentence to tell the agent why this does not count, None if the process ended well.
        usage: What it consumed.
        entry: The entry of the script that was played, counted from 0.
    """

    ended: Ended
    exit_code: int | None
    signal: int | None
    report_file: bytes | None
    stdout: bytes
    stderr: bytes
    truncated: bool
    seconds: float
    complaint: str | None
    usage: Usage = Usage()
    entry: int | None = None


class Backend(Protocol):
    """A way to run an agent."""

    def require(self, argv: tuple[str, ...], script: Path | None, search_path: str) -> None:
        """Return when what the configuration names is there; asked before a run is begun.

        Raises:
            UserError: a program or a script is missing, or cannot be used.
        """
        ...

    async def run(self, job: AgentJob) -> AgentResult:
        """Ask the agent; everything it started is dead on return.

        Raises:
            UserError: the configuration names something that is not there.
            SandboxError: the box did not work, which says nothing about the agent.
        """
        ...
