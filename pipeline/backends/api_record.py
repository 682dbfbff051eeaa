"""Stores an in-process conversation: a transcript for people, and the history to continue it."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_core import PydanticSerializationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage

    from pipeline.backends.protocol import Session

_FIELD: Final = 20_000
_WHOLE: Final = 4_000_000


@dataclass
class Transcript:
    """A transcript as JSON lines (seconds since the beginning, kind, facts), bounded, with a mark where it is cut.

    Each line is a list, so that none of it can be taken for the report, which is an object.
    """

    truncated: bool = False
    _began: float = field(default_factory=time.monotonic)
    _lines: list[bytes] = field(default_factory=list[bytes])
    _size: int = 0

    def note(self, what: str, **facts: str | int | None) -> None:
        """Append a line; its long texts are shortened."""
        if self.truncated:
            return
        said = {name: self._short(fact) for name, fact in facts.items() if fact is not None}
        line = json.dumps([round(time.monotonic() - self._began, 3), what, said])
        encoded = line.encode("ascii") + b"\n"
        if self._size + len(encoded) > _WHOLE:
            self.truncated = True
            encoded = b'[0, "cut", {"text": "this transcript is full"}]\n'
        self._size += len(encoded)
        self._lines.append(encoded)

    @property
    def content(self) -> bytes:
        """Return all lines."""
        return b"".join(self._lines)

    @staticmethod
    def _short(fact: str | int) -> str | int:
        if isinstance(fact, int) or len(fact) <= _FIELD:
            return fact
        return f"{fact[:_FIELD]} [{len(fact) - _FIELD} more characters]"


def keep_conversation(session: Session, messages: Sequence[ModelMessage]) -> str | None:
    """Store a conversation and return its name, a hash of its content, so that no other can replace it.

    None if it cannot be written: a model may say what JSON cannot (too deep, half a letter).
    """
    try:
        content = ModelMessagesTypeAdapter.dump_json(list(messages))
    except PydanticSerializationError:
        return None
    name = hashlib.sha256(content).hexdigest()
    (session.mount.reach / f"{name}.json").write_bytes(content)
    return name


def kept_conversation(session: Session) -> list[ModelMessage] | None:
    """Return the stored conversation of a session; None if there is none, or its content was changed."""
    if session.id is None or not session.id.isalnum():
        return None
    try:
        content = (session.mount.reach / f"{session.id}.json").read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content).hexdigest() != session.id:
        return None
    try:
        return ModelMessagesTypeAdapter.validate_json(content)
    except ValidationError:  # another version wrote it
        return None
