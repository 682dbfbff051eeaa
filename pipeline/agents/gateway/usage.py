"""What a model's answer took, and what that costs, without delaying or changing the answer.

An answer is one JSON document, or a stream of events with one each (`text/event-stream`). The dialects are told apart
by the shape of their documents, so that a service of the user's own needs no more than to speak one of them. What is
not understood is unknown, and said to be; an unknown price is None, never 0.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard, cast
from urllib.parse import urlsplit

from pipeline.config.providers import PriceTable, is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping


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


_MILLION: Final = 1_000_000
_DATED: Final = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|@\d{8}|-latest|:latest)$")
"""Suffixes that services add to the requested model's name."""
_NAMED: Final = frozenset({"anthropic", "openai", "google", "openrouter"})
"""Built-in services with the same name in the price list; others are identified by their address alone."""
_NO_PRICES: Final[Mapping[str, PriceTable]] = MappingProxyType({})


@dataclass(frozen=True)
class Tokens:
    """The tokens of requests. `input` includes `cache_read` and `cache_write`."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        """Return the sum of input and output tokens."""
        return self.input + self.output

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )


def cost_of(
    provider: str, model: str, tokens: Tokens, prices: Mapping[str, PriceTable] = _NO_PRICES, *, url: str | None = None
) -> float | None:
    """Return the cost of a request in USD; None if its price is unknown.

    Prices may rise with the length of a prompt, so ask for each request and not for a sum.

    Args:
        provider: The name of the model service in the configuration.
        model: As the service calls it.
        tokens: What the request consumed.
        prices: The configuration's own (`[prices]`), which hold before all others.
        url: Where the service is. What runs on this machine has no price but its own.
    """
    own = prices.get(model) or prices.get(_DATED.sub("", model))
    if own is not None:
        return _by(own, tokens)
    if url is not None and is_loopback(urlsplit(url).hostname or ""):
        return None
    return _by_the_list(provider, model, tokens, url)


def _by(price: PriceTable, tokens: Tokens) -> float:
    fresh = max(0, tokens.input - tokens.cache_read - tokens.cache_write)
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    usd = fresh * price.input + tokens.cache_read * read + tokens.cache_write * write + tokens.output * price.output
    return usd / _MILLION


def _by_the_list(provider: str, model: str, tokens: Tokens, url: str | None) -> float | None:
    # A megabyte of prices, which most commands never need.
    from genai_prices import Usage  # noqa: PLC0415
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

    usage = Usage(
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        cache_read_tokens=tokens.cache_read,
        cache_write_tokens=tokens.cache_write,
    )
    for name, address in ((None, url), (provider if provider in _NAMED else None, None)):
        if name is None and address is None:
            continue
        try:
            found = get_snapshot().calc(usage, model, name, address, None)
        except (LookupError, ValueError):  # not known, or figures that contradict each other
            continue
        # A model that is paid by the picture or the second has no price for what we counted.
        if all(getattr(found.model_price, key, None) is not None for key in ("input_mtok", "output_mtok")):
            return float(found.total_price)
    return None
