"""Values of a conversation over the Agent Client Protocol: the request, and how it can end. Loads no SDK."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  (dataclasses and pyright read it at run time)
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.agents.backends.protocol import Fault, Usage


@dataclass(frozen=True)
class Policy:
    """The permissions of a role, for an agent that asks before tool calls."""

    writes: bool
    shell: bool

    def allows(self, kind: str | None) -> bool:
        """Return whether the role may make a tool call of this kind."""
        match kind:
            case "read" | "search" | "think":
                return True
            case "edit" | "delete" | "move":
                return self.writes
            case "execute":
                return self.shell
            case _:  # fetch and switch_mode among them; a kind that says nothing may be anything
                return kind in {None, "other"} and self.writes and self.shell


@dataclass(frozen=True)
class AcpRequest:
    """The request to the agent, with its limits and options.

    Args:
        cwd: The workspace, as the agent sees it.
        prompt: What is said.
        policy: What it may do.
        timeout_s: How long everything may take; it is told to stop a little before.
        meta: `_meta` of a new session.
        options: What the session's options are set to.
        session: The conversation to go on with; None begins one.
        again: What is said in that one.
    """

    cwd: str
    prompt: str
    policy: Policy
    timeout_s: float
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    session: str | None = None
    again: str = ""


@dataclass(frozen=True)
class Over:
    """The agent ended its turn, and gave the reason."""

    reason: str
    usage: Usage


@dataclass(frozen=True)
class Failed:
    """The conversation failed: the agent reported an error, or does not speak the protocol."""

    why: str
    fault: Fault | None = None


@dataclass(frozen=True)
class Late:
    """The agent did not answer in time."""

    why: str


@dataclass(frozen=True)
class Gone:
    """The agent's process ended before it answered."""


Ending = Over | Failed | Late | Gone
