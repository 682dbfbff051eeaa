"""The exceptions that a person can act on. Everything else that escapes is a bug of ours (exit 1, with a log)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.outcomes import Reason


class UserError(Exception):
    """Something the user can mend; the message says what is wrong and what to do.

    Args:
        message: One or two sentences: what is wrong, what to do.
        reason: The word of the closed list (contract 2); also the `kind` of the error document.
        path: The file or folder concerned, if any.
        pointer: A JSON pointer into that file, if any (`/agents/check/backend`).
        details: Further facts, for `--json`.
        actions: Commands or acts that are safe next.
    """

    def __init__(
        self,
        message: str,
        reason: Reason,
        *,
        path: str | None = None,
        pointer: str | None = None,
        details: dict[str, object] | None = None,
        actions: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.path = path
        self.pointer = pointer
        self.details: dict[str, object] = details or {}
        self.actions = actions
