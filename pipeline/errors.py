"""Errors that a person can act on. Any other exception that escapes is a bug of ours (exit 1, with a log)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.outcomes import Reason


class UserError(Exception):
    """An error that the user can fix; the message says what is wrong and what to do.

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
        self.also: tuple[UserError, ...] = ()
        """What else is in the way, and was found at the same time."""

    @property
    def facts(self) -> dict[str, object]:
        """Return the error's fields for a JSON document."""
        return {
            "kind": self.reason.value,
            "message": self.message,
            "path": self.path,
            "pointer": self.pointer,
            "details": self.details,
            "safe_next_actions": list(self.actions),
        }


def check_all(*checks: Callable[[], object]) -> None:
    """Run each check, and raise the first error with those of later checks added.

    Raises:
        UserError: of the first one that does not, with those of the others in `also`.
    """
    for number, check in enumerate(checks):
        try:
            check()
        except UserError as error:
            raise with_others(error, *checks[number + 1 :]) from None


def with_others(error: UserError, *checks: Callable[[], object]) -> UserError:
    """Return the error with those of the given checks added."""
    try:
        check_all(*checks)
    except UserError as another:
        error.also, another.also = (*error.also, another, *another.also), ()
    return error
