"""The protocol of backends, with the job that they get and the result that they return; `BACKENDS` lists them.

A backend starts something in the box, waits, and reports how that ended. Whether a report is well formed is decided by
`pipeline.judge.reports`, whether a change is allowed by the gate; a backend decides neither.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.config.agents import AgentConfig
from pipeline.run.info import Usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import datetime
    from pathlib import Path

    from pipeline.config.providers import Provider
    from pipeline.process import Box, Completed, Gateway, Mount


class Mishap(StrEnum):
    """Why a permitted tool call failed; the other rules of a `ToolAnswer` are refusals."""

    NO_SUCH_FILE = "no-such-file"
    FILE_KIND = "file-kind"
    FILE_SYSTEM = "file-system"
    BINARY_FILE = "binary-file"
    CONTENT = "content"
    NO_SUCH_TEXT = "no-such-text"
    SEVERAL_TEXTS = "several-texts"
    NO_SUCH_LINE = "no-such-line"
    PATTERN = "pattern"
    NO_TEST_COMMAND = "no-test-command"
    NO_CHECKS = "no-checks"
    PROGRAM_MISSING = "program-missing"
    ARGUMENTS = "arguments"


@dataclass(frozen=True)
class ToolAnswer:
    """The answer to a tool call.

    Args:
        text: For the model; hidden characters are written as escapes.
        rule: The rule that refused it, or the mishap; None if it was done.
        exit_code: Of a command; None if it was none, or a signal or the time limit ended it.
    """

    text: str
    rule: str | None = None
    exit_code: int | None = None

    @property
    def denied(self) -> bool:
        """Return whether a rule forbids the call."""
        return self.rule is not None and not isinstance(self.rule, Mishap)


@dataclass(frozen=True)
class Service:
    """A model service that the configuration names, and its name there."""

    name: str
    provider: Provider


@dataclass(frozen=True)
class Session:
    """A slot's conversation with an agent, which a re-ask can continue.

    The folder is shown to agents of this slot only. This program reads nothing of it but what it wrote itself.

    Args:
        mount: A writable folder, the same for each dispatch of one slot.
        id: The product's own name of the conversation to go on with; None begins one.
        prompt: What is said then, instead of the whole prompt.
    """

    mount: Mount
    id: str | None = None
    prompt: str = ""


@dataclass(frozen=True)
class AgentJob:
    """One dispatch to one agent.

    Args:
        box: Where it runs.
        document: The dispatch document (contract 5), JSON; its paths are those that the box shows.
        view: How the box shows the workspace, writable or not.
        exchange: An empty folder of the host that belongs to this job; document and report pass through it.
        artifacts: Read-only mounts of the files that the document names.
        read: Further read-only mounts (config `read`, toolchains).
        used: Entries of the script that earlier dispatches of the run took.
        env: Further variables.
        timeout_s: Wall time limit in seconds.
        network: `none`, `model` or `open`.
        gateway: What answers for the model, with `model`.
        depth: How many runs this one is inside of, counting itself (stops recursion).
        search_path: Where argv[0] is looked up; the PATH of this process if None.
        agent: How the role is configured: program or script, how much it should think, how many answers it may give.
        prompt: The text for the agent, as in the document.
        report_schema: The JSON Schema of the report, as in the document.
        role: The role's name, for what a product calls its agents.
        shell: Whether the role may run commands.
        model: The model to ask for, by the provider's name; None where the backend takes none.
        service: The model service; None where the product talks to its own.
        session: Where the conversation is kept; None if it cannot be gone on with.
        tools: The tools that the role may use, by name, for a backend whose loop is ours; each call is judged before it
            is carried out. Docstring and signature are what a model reads of one.
        home: The host's home folder, to find the product's login when the configuration says so.
        say: Tells the person who watches; one line at a time.
        on_words: Gets what the agent says and does, in words, while it works; lines may come together.
        desk_rules: What may be changed in the view, as a document that `dispatch.desk_gate` reads again, for a person.
        desk_tests: Returns the text of a program that runs the tests over files that lie in no box, for a person.
    """

    box: Box
    document: bytes
    view: Mount
    exchange: Path
    artifacts: tuple[Mount, ...] = ()
    read: tuple[Mount, ...] = ()
    used: frozenset[int] = frozenset()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout_s: float = 900.0
    network: str = "none"
    gateway: Gateway | None = None
    depth: int = 1
    search_path: str | None = None
    agent: AgentConfig = AgentConfig()  # noqa: RUF009  (frozen)
    prompt: str = ""
    report_schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    role: str = ""
    shell: bool = True
    model: str | None = None
    service: Service | None = None
    session: Session | None = None
    tools: Mapping[str, Callable[..., ToolAnswer | Awaitable[ToolAnswer]]] = field(
        default_factory=dict[str, "Callable[..., ToolAnswer | Awaitable[ToolAnswer]]"]
    )
    home: Path | None = None
    say: Callable[[str], None] = lambda _: None
    on_words: Callable[[str], None] = lambda _: None
    desk_rules: str | None = None
    desk_tests: Callable[[Path], str | None] | None = None


class Ended(StrEnum):
    """How the agent's process ended."""

    OK = "ok"
    NONZERO = "nonzero"
    SIGNAL = "signal"
    TIMED_OUT = "timed_out"
    STOPPED = "stopped"
    """This program ended it before it answered."""


class Fault(StrEnum):
    """Why an agent gave no answer, as its product says: an exit code of 0 proves nothing."""

    UNAUTHORIZED = "unauthorized"
    """The login or key was refused; asking again does not help."""
    UNAVAILABLE = "unavailable"
    """The model service is down, overloaded or out of reach, or does not know the model."""
    BUDGET = "budget"
    """The dispatch's allowance is used up."""
    STEPS = "steps"
    """The model gave as many answers as it may."""
    REFUSED = "refused"
    """The model declined."""
    TRUNCATED = "truncated"
    """The model's answer ended at its limit of output."""
    EMPTY = "empty"
    """The turn ended without text."""
    DENIED = "denied"
    """The agent gave up over tools that it may not use."""


@dataclass(frozen=True)
class AgentResult:
    """The result of asking one agent.

    Args:
        ended: How the process ended.
        seconds: Wall time.
        exit_code: None if a signal or the time limit ended it.
        signal: The signal that ended it, if any.
        report_file: The bytes of the report file, None if there is none.
        stdout: Log, and the report if there is no file.
        stderr: Log.
        truncated: Whether the middle of stdout or stderr is missing.
        complaint: One sentence to tell the agent why this does not count, None if the process ended well.
        usage: What it consumed.
        entry: The entry of the script that was played, counted from 0.
        fault: What kind of failure `complaint` is, where the product tells.
        denials: Calls that the product refused, one line each.
        steps: How many answers the model gave; None if nobody counted.
        session: The product's name of the conversation, if it can be gone on with.
        not_before: When the service of a fault may be asked again, where it or the product says so.
    """

    ended: Ended
    seconds: float
    exit_code: int | None = None
    signal: int | None = None
    report_file: bytes | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    truncated: bool = False
    complaint: str | None = None
    usage: Usage = field(default_factory=Usage)
    entry: int | None = None
    fault: Fault | None = None
    denials: tuple[str, ...] = ()
    steps: int | None = None
    session: str | None = None
    not_before: datetime | None = None

    @classmethod
    def of(cls, ended: Completed, how: Ended, report: bytes | None, complaint: str | None) -> AgentResult:
        """Return the result of a process."""
        said = (ended.exit_code, ended.signal, report, ended.stdout, ended.stderr, ended.truncated)
        return cls(how, ended.seconds, *said, complaint)


class Backend(Protocol):
    """A way to run agents."""

    def require(self, agent: AgentConfig, search_path: str) -> None:
        """Check that the programs and files in the configuration exist; called before a run begins.

        Raises:
            UserError: a program or a script is missing, or cannot be used.
        """
        ...

    async def run(self, job: AgentJob) -> AgentResult:
        """Run the agent for one job and return its result; every process that it started is dead.

        Raises:
            UserError: the configuration names something that is not there.
            BoxError: the box did not work, which says nothing about the agent.
        """
        ...
