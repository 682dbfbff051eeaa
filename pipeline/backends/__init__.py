"""How is an agent run? One protocol, one dict: a new way to run agents is a module and a line here.

A backend gets a job (prompt, view, box) and returns what the agent answered, with its tokens. It may import `config`,
`gateway` and `process`; it knows no run and no step. Start with `protocol.py`, then `program.py`, the smallest backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.backends.acp import AcpBackend
from pipeline.backends.api import ApiBackend
from pipeline.backends.claude import ClaudeBackend
from pipeline.backends.codex import CodexBackend
from pipeline.backends.human import HumanBackend
from pipeline.backends.program import CommandBackend
from pipeline.backends.scripted import ScriptedBackend

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.backends.protocol import Backend

BACKENDS: Final[Mapping[str, Backend]] = {
    "command": CommandBackend(),
    "scripted": ScriptedBackend(),
    "human": HumanBackend(),
    "claude": ClaudeBackend(),
    "codex": CodexBackend(),
    "acp": AcpBackend(),
    "api": ApiBackend(),
}
