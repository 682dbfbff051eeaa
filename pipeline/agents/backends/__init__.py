"""How is an agent run? One protocol, one dict: a new way to run agents is a module and a line here.

A backend gets a job (prompt, view, box) and returns what the agent answered, with its tokens. Start with
`protocol.py`, then `program.py`, the smallest backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.agents.backends.acp import AcpBackend
from pipeline.agents.backends.api import ApiBackend
from pipeline.agents.backends.claude import ClaudeBackend
from pipeline.agents.backends.codex import CodexBackend
from pipeline.agents.backends.human import HumanBackend
from pipeline.agents.backends.program import CommandBackend
from pipeline.agents.backends.scripted import ScriptedBackend

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.agents.backends.protocol import Backend

BACKENDS: Final[Mapping[str, Backend]] = {
    "command": CommandBackend(),
    "scripted": ScriptedBackend(),
    "human": HumanBackend(),
    "claude": ClaudeBackend(),
    "codex": CodexBackend(),
    "acp": AcpBackend(),
    "api": ApiBackend(),
}
