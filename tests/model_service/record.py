"""What the service keeps of a request, for assertions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model_service.asked import Asked
    from model_service.documents import Json


@dataclass(frozen=True)
class Request:
    """One request for an answer, and what became of it.

    Args:
        dialect: anthropic, responses, chat, google.
        path: The path with the query.
        headers: By lower-case name.
        body: The JSON body.
        asked: What it says; None if it was turned away before that was looked at.
        conversation: The conversation of the script, counted from 0; None for a request beside the work.
        turn: The turn of it, counted from 0.
        status: What was answered; 0 for nothing at all.
    """

    dialect: str
    path: str
    headers: dict[str, str]
    body: Json
    asked: Asked | None
    conversation: int | None
    turn: int
    status: int

    @property
    def beside(self) -> bool:
        """Return whether it is none of the work: a title, a topic."""
        return self.asked is not None and self.conversation is None

    @property
    def tools(self) -> tuple[str, ...]:
        """Return the names of the tools that it offers."""
        return tuple(tool.name for tool in self.asked.tools) if self.asked else ()

    def line(self) -> str:
        """Return it as one line of JSON, without the body."""
        facts: Json = {"dialect": self.dialect, "path": self.path, "status": self.status, "headers": self.headers}
        if self.asked:
            said = self.asked.prompt
            facts |= {"model": self.asked.model, "effort": self.asked.effort, "stream": self.asked.stream}
            facts |= {"role": said.role, "kind": said.kind, "task": said.task, "tools": self.tools}
        return json.dumps({**facts, "conversation": self.conversation, "turn": self.turn})
