"""Values of a conversation over the Agent Client Protocol: what may be done in it, and how it can end. Loads no SDK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
