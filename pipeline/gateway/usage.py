"""Reads the token usage in a model service's answer, without delaying or changing the answer.

An answer is one JSON document, or a stream of events with one each (`text/event-stream`). The dialects are told apart
by the shape of their documents, so that a service of the user's own needs no more than to speak one of them. What is
not understood is unknown, and said to be.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Final, TypeAlias, TypeGuard, cast

from pipeline.gateway.prices import Tokens

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | None"
Counts: TypeAlias = "dict[str, Counts | int]"

CAP: Final = 4_000_000
"""The most bytes kept of a document: sixteen side by side (`limits.AT_ONCE`) stay below the driver's memory limit."""

_MOST_TOKENS: Final = 10**12
_MOST_NAMES: Final = 64
_NAME: Final = re.compile(r"[!-~]{1,200}")
_TELLING: Final = re.compile(rb'"(usage|usageMetadata|error)"')
"""The keys that make a stream's event worth reading; most events only carry a word of the answer."""
_FREE: Final = re.compile(r"/count_tokens$|:countTokens$")


class _Word(IntEnum):
    """How final the figures of a document are."""

    NONE = 0
    BEGUN = 1
    """The first figures; more will come."""
    SO_FAR = 2
    """The latest figures, final if the answer ends here."""
    LAST = 3


class _Dialect(Enum):
    """Where a dialect has its counts, and what `genai_prices` calls it."""

    ANTHROPIC = "usage", "anthropic", "default"
    RESPONSES = "usage", "openai", "responses"
    CHAT = "usage", "openai", "chat"
    GOOGLE = "usageMetadata", "google", "default"


@dataclass(frozen=True)
class Reading:
    """The usage that an answer reports.

    Args:
        model: The model that answered, by its service's name; None if it is not said.
        tokens: What it consumed as far as is known; None if nothing is.
        complete: Whether that is all. An answer that broke off has consumed at least `tokens`.
        failed: Whether the service says, within an answer that began well, that it could not go on.
    """

    model: str | None = None
    tokens: Tokens | None = None
    complete: bool = False
    failed: bool = False


@dataclass
class UsageReader:
    """Reads usage from an answer's body as it arrives, in pieces of any size."""

    _model: str | None = None
    _dialect: _Dialect = _Dialect.CHAT
    _usage: Counts = field(default_factory=dict[str, "Counts | int"])
    _word: _Word = _Word.NONE
    _failed: bool = False
    _over: bool = False
    _form: _Document | _Events | None = None

    def feed(self, piece: bytes) -> None:
        """Read the next bytes of the body."""
        if self._form is None:
            piece = piece.lstrip()
            if not piece:
                return
            self._form = _Document() if piece[:1] in {b"{", b"["} else _Events()
        for text in self._form.feed(piece):
            self._read(text)

    def reading(self, *, whole: bool) -> Reading:
        """Return the usage that was read; nothing can be fed after that.

        Args:
            whole: Whether the answer came to its end.
        """
        if self._form is not None:
            for text in self._form.rest():
                self._read(text)
        tokens = _tokens(self._dialect, self._usage)
        over = whole or self._over
        known = tokens is not None and (self._word is _Word.LAST or (over and self._word is _Word.SO_FAR))
        return Reading(self._model, tokens, complete=known, failed=self._failed)

    def _read(self, text: bytes) -> None:
        if text.strip() == b"[DONE]":
            self._over = True
        if not _TELLING.search(text) and (self._model is not None or b'"model' not in text):
            return
        try:
            found = cast("Json", json.loads(text))
        except (ValueError, RecursionError):
            return
        for document in found if isinstance(found, list) else [found]:
            self._model = _model(document) or self._model
            word, dialect, usage = _said(document)
            if word is not _Word.NONE:
                self._word, self._dialect = max(self._word, word), dialect
                _take(self._usage, usage)
            self._failed = self._failed or _is_failure(document)


class _Document:
    """An answer that is a single JSON document."""

    def __init__(self) -> None:
        self._text: bytearray | None = bytearray()

    def feed(self, piece: bytes) -> tuple[bytes, ...]:
        if self._text is not None:
            self._text += piece
            if len(self._text) > CAP:
                self._text = None
        return ()

    def rest(self) -> tuple[bytes, ...]:
        return (bytes(self._text),) if self._text else ()


class _Events:
    """An answer that is a stream of events with JSON data; events with more than `CAP` bytes are left out."""

    def __init__(self) -> None:
        self._line, self._data = bytearray(), bytearray()
        self._too_long = False

    def feed(self, piece: bytes) -> list[bytes]:
        *ended, begun = piece.split(b"\n")
        events: list[bytes] = []
        for end in ended:
            self._take(end)
            events += self._end_of_line()
        self._take(begun)
        return events

    def rest(self) -> list[bytes]:
        return [*self._end_of_line(), *self._end_of_event()]

    def _take(self, part: bytes) -> None:
        if len(self._line) + len(self._data) + len(part) > CAP:
            self._too_long = True
            self._data.clear()
            # The beginning stays: an empty line would end the event.
            del self._line[1:]
            part = part[: 1 - len(self._line)]
        self._line += part

    def _end_of_line(self) -> list[bytes]:
        line = bytes(self._line).removesuffix(b"\r")
        self._line.clear()
        if not line:
            return self._end_of_event()
        if line.startswith(b"data:"):
            self._data += line[5:]
        return []

    def _end_of_event(self) -> list[bytes]:
        data, too_long = bytes(self._data), self._too_long
        self._data.clear()
        self._too_long = False
        return [data] if data and not too_long else []


def consumes(method: str, path: str) -> bool:
    """Return whether a request makes a model answer, which costs."""
    return method == "POST" and not _FREE.search(path)


def _said(document: Json) -> tuple[_Word, _Dialect, dict[str, Json]]:
    match document:
        case {"type": "message_start", "message": {"usage": dict(usage)}}:
            return _Word.BEGUN, _Dialect.ANTHROPIC, usage
        case {"type": "message_delta", "usage": dict(usage)} | {"type": "message", "usage": dict(usage)}:
            return _Word.LAST, _Dialect.ANTHROPIC, usage
        case {"response": {"usage": dict(usage)}} | {"object": "response", "usage": dict(usage)}:
            return _Word.LAST, _Dialect.RESPONSES, usage
        case {"object": "response.compaction", "usage": dict(usage)}:
            return _Word.LAST, _Dialect.RESPONSES, usage
        case {"usageMetadata": dict(usage), "candidates": [{"finishReason": str()}, *_]}:
            return _Word.LAST, _Dialect.GOOGLE, usage
        case {"usageMetadata": dict(usage)}:
            return _Word.SO_FAR, _Dialect.GOOGLE, usage
        case {"usage": dict(usage), "choices": []}:
            return _Word.LAST, _Dialect.CHAT, usage
        case {"usage": dict(usage)}:
            return _Word.SO_FAR, _Dialect.CHAT, usage
        case _:
            return _Word.NONE, _Dialect.CHAT, {}


def _take(usage: Counts, said: dict[str, Json], *, inside: bool = False) -> None:
    """Update counts, and those in details, by what follows: every dialect counts from the answer's beginning."""
    for name, value in said.items():
        before = usage.get(name)
        if before is None and len(usage) >= _MOST_NAMES:
            continue
        if isinstance(value, dict) and not inside and not isinstance(before, int):
            _take(cast("Counts", usage.setdefault(name, {})), value, inside=True)
        elif _is_count(value) and not isinstance(before, dict):
            usage[name] = max(value, before or 0)


def _tokens(dialect: _Dialect, usage: Counts) -> Tokens | None:
    """Return the tokens consumed; None if they are unknown."""
    if not usage:
        return None
    from genai_prices import extract_usage  # noqa: PLC0415  (a megabyte of prices, which most commands never need)

    root, provider, flavor = dialect.value
    try:
        found = extract_usage({root: usage}, provider_id=provider, api_flavor=flavor).usage
    except ValueError:
        return None
    counts = (found.input_tokens, found.output_tokens, found.cache_read_tokens, found.cache_write_tokens)
    return Tokens(*(int(count or 0) for count in counts))


def _is_count(value: Json) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS


def _model(document: Json) -> str | None:
    match document:
        case {"message": {"model": str(name)}} | {"response": {"model": str(name)}}:
            pass
        case {"model": str(name)} | {"modelVersion": str(name)}:
            pass
        case _:
            return None
    return name if _NAME.fullmatch(name) else None


def _is_failure(document: Json) -> bool:
    match document:
        case {"type": "error"} | {"type": "response.failed"} | {"error": dict()}:
            return True
        case _:
            return False
