"""Runs a program as an agent: passes it the document, reads its report, and describes how it ended (contract 5).

The backend `command` is no more than that: any program that reads one JSON document and answers with one JSON object.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from pipeline.agents.backends.protocol import AgentJob, AgentResult, Ended
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.process import Command, Completed, Mount, Talk
from pipeline.programs import SYSTEM_FOLDERS, SYSTEM_SETTINGS, locate
from pipeline.trees import read_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pipeline.config.model import AgentConfig

INSIDE: Final = Path("/run/redfirst")
"""The folder in the box for the files between this program and an agent."""
# More than a report may have, so that one that is too large is told apart from one that is broken.
_REPORT_BYTES: Final = 2_000_000
_LAST_WORDS: Final = 300


@dataclass(frozen=True)
class Exchange:
    """The files between this program and one agent: `dispatch.json` in, `out/report.json` back.

    Args:
        job: The job; its exchange folder is its own.
        document: The dispatch document on the host.
        out: The folder on the host that the agent may write.
    """

    job: AgentJob
    document: Path
    out: Path

    @classmethod
    def open(cls, job: AgentJob) -> Self:
        """Return the exchange of *job*, after the document is written."""
        exchange = cls(job, job.exchange / "dispatch.json", job.exchange / "out")
        exchange.document.write_bytes(job.document)
        exchange.out.mkdir(exist_ok=True)
        return exchange

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """Return the mounts that show the files in the box."""
        return self.shown(self.document), Mount(self.out, INSIDE / self.out.name, writable=True)

    def shown(self, path: Path) -> Mount:
        """Return the read-only mount of a further file of the exchange folder."""
        return Mount(path, INSIDE / path.name)

    def inside(self, path: Path) -> Path:
        """Return the path at which an agent finds a file of the exchange folder."""
        return self.job.box.inside(path, INSIDE / path.relative_to(self.job.exchange))

    async def run(
        self,
        argv: tuple[str, ...],
        mounts: tuple[Mount, ...],
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        talk: Talk | None = None,
        on_line: Callable[[bytes], None] | None = None,
    ) -> Completed:
        """Run `argv` in the view.

        Args:
            argv: The program.
            mounts: What it needs beside what the job shows.
            stdin: What it is fed.
            env: Overrides the job's variables.
            talk: Gets the streams instead.
            on_line: Gets each line of its output while it runs.

        Raises:
            BoxError: the box did not work.
        """
        job = self.job
        return await job.box.run(
            Command(
                argv=argv,
                cwd=job.box.inside(job.view.source, job.view.target),
                mounts=_unique((*mounts, *job.read, job.view, *job.artifacts, *self.mounts)),
                env={
                    **job.env,
                    **(env or {}),
                    "REDFIRST_DISPATCH": str(self.inside(self.document)),
                    "REDFIRST_REPORT": str(self.inside(self.out / "report.json")),
                    "REDFIRST_DEPTH": str(job.depth),
                },
                stdin=stdin,
                timeout_s=job.timeout_s,
                network=job.network,
                gateway=job.gateway,
                talk=talk,
                on_line=on_line,
            )
        )

    def report(self) -> tuple[bytes | None, str | None]:
        """Return the content of the report file, or why it cannot be read; neither if it is missing."""
        try:
            return read_regular(self.out / "report.json", _REPORT_BYTES - 1), None
        except FileNotFoundError:
            return None, None
        except OSError:  # a link, a socket, no permission: the same sentence
            return None, "The report at $REDFIRST_REPORT is not a readable regular file; write a plain file there."


async def run_program(job: AgentJob, argv: tuple[str, ...], mounts: tuple[Mount, ...], stdin: bytes) -> AgentResult:
    """Run `argv` in the view; it finds the document at `$REDFIRST_DISPATCH` and writes to `$REDFIRST_REPORT`.

    Raises:
        BoxError: the box did not work.
    """
    exchange = Exchange.open(job)
    ended = await exchange.run(argv, mounts, stdin, on_line=lambda line: job.on_words(line.decode(errors="replace")))
    report, fault = exchange.report()
    how, complaint = how_it_ended(ended, job.timeout_s)
    return AgentResult.of(ended, how, report, complaint or fault)


def signal_words(number: int) -> str:
    """Return how a signal is called; those for real time have a number alone."""
    name = signal.strsignal(number)
    return f"signal {number} ({name})" if name is not None else f"signal {number}"


def how_it_ended(ended: Completed, timeout_s: float) -> tuple[Ended, str | None]:
    """Return how a process ended, and a sentence about it if it did not end well."""
    if ended.timed_out:
        return Ended.TIMED_OUT, f"The agent did not finish within {timeout_s:g} seconds and was stopped."
    if ended.signal is not None:
        return Ended.SIGNAL, f"The agent was ended by {signal_words(ended.signal)}."
    if ended.exit_code != 0:
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        last = f"; the last line of its stderr is: {lines[-1][-_LAST_WORDS:]}" if lines else " and an empty stderr"
        return Ended.NONZERO, f"The agent ended with exit code {ended.exit_code}{last}."
    return Ended.OK, None


def _unique(mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
    """Return the mounts with each target once: a program and a `read` folder may have the same."""
    return tuple({mount.target: mount for mount in mounts}.values())


ADD: Final = "add it, or its folder, to `read` of this agent"


class CommandBackend:
    """Runs the configured program; argv[0] is looked up on the host and shown in the box."""

    def require(self, agent: AgentConfig, search_path: str) -> None:
        """Check that the program is installed.

        Raises:
            UserError: it is not.
        """
        if agent.argv:
            locate(agent.argv[0], search_path)

    async def run(self, job: AgentJob) -> AgentResult:
        """Run one dispatch with the program and return its result.

        Raises:
            UserError: there is no argv, or its program is not there.
            BoxError: the box did not work.
        """
        if not job.agent.argv:
            raise UserError('backend = "command" needs argv: the program to start, as a list.', Reason.CONFIG)
        program = locate(job.agent.argv[0], job.search_path)
        result = await run_program(job, program.argv(*job.agent.argv[1:]), program.mounts, job.document)
        unseen = not_shown(job.agent.argv, (mount.target for mount in (*job.read, *program.mounts, job.view)))
        if result.ended is not Ended.NONZERO or not unseen or not job.box.maps_paths:
            return result
        return replace(result, complaint=f"{result.complaint} {unseen[0]} is here, but not in the box: {ADD}.")


def not_shown(argv: Sequence[str], shown: Iterable[Path]) -> tuple[str, ...]:
    """Return the files in a program's arguments that the box does not show."""
    folders = (*shown, *SYSTEM_FOLDERS, *SYSTEM_SETTINGS)
    paths = [Path(word) for word in argv[1:] if word.startswith("/")]
    return tuple(str(path) for path in paths if path.exists() and not any(map(path.is_relative_to, folders)))
