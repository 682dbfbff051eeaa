"""Keeps the last lines of what an agent says while it works, without secrets, for whoever watches the run."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from pipeline.dispatch.redaction import redact
from pipeline.secret_encodings import SHORTEST

if TYPE_CHECKING:
    from collections.abc import Collection

_SHOWN: Final = 4
_WIDTH: Final = 200
_WINDOW: Final = 64_000
"""How many characters are looked at for secrets: a key of many lines that ends among those shown begins among these."""


class LiveWords:
    """The words of one agent, in memory alone.

    Secrets are removed from more lines than are shown, and lines are cut to their width after that, so that no part of
    one is left. Of a secret of several lines each line counts, since the others may not have come yet.
    """

    def __init__(self, secrets: Collection[str]) -> None:
        lines = {line for secret in secrets for line in secret.splitlines() if len(line) >= SHORTEST}
        self._secrets = frozenset(secrets) | lines
        self._lines: deque[str] = deque()
        self._size = 0
        self._told: tuple[str, ...] | None = ()

    def hear(self, text: str) -> None:
        """Take what the agent said; empty lines do not count."""
        for line in text.splitlines():
            if line.strip():
                self._lines.append(line)
                self._size += len(line)
                self._told = None
        while self._size > _WINDOW and len(self._lines) > _SHOWN:
            self._size -= len(self._lines.popleft())

    def said(self) -> tuple[str, ...]:
        """Return the last lines, each cut to a width, without secrets."""
        if self._told is None:
            text = "\n".join(self._lines).encode(errors="replace")
            lines = redact(text, self._secrets).decode(errors="replace").splitlines()
            self._told = tuple(line.strip()[:_WIDTH] for line in lines[-_SHOWN:])
        return self._told
