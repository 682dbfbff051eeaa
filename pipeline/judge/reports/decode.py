"""Decodes an agent's bytes to a JSON object, or explains why not. Nothing is repaired: a guess would be our claim."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, cast

MAX_BYTES: Final = 1_000_000
MAX_DEPTH: Final = 32

JsonObject = dict[str, object]


@dataclass(frozen=True)
class Malformed:
    """A malformed report, which does not count. The sentence is given to the agent in its re-ask (contract 5).

    Args:
        sentence: One sentence: where, what is wrong, what is accepted.
        pointer: The JSON pointer of the (first) fault; empty for the whole document.
    """

    sentence: str
    pointer: str = ""

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Missing:
    """A missing report: neither the file nor a line of stdout holds a JSON object. A verdict in prose is no report."""

    sentence: str = (
        "There was no report: write one JSON object to the file $REDFIRST_REPORT, "
        "or print it as the last line of stdout."
    )

    def __str__(self) -> str:
        return self.sentence


class _RefusedError(ValueError):
    """The standard library accepts this JSON, and we refuse it."""


def decode_object(raw: bytes | str) -> JsonObject | Malformed:
    """Return the JSON object in `raw`, or why there is none.

    Refused, each with its own sentence: more than `MAX_BYTES`, nesting deeper than `MAX_DEPTH`, a key given twice, NaN
    and infinities, lone surrogates, NUL, and anything that is not one object.
    """
    if len(raw) > MAX_BYTES:
        return Malformed(f"The report is larger than {MAX_BYTES} bytes; shorten it, long logs belong on stdout.")
    try:
        text = raw.decode("utf-8") if isinstance(raw, bytes) else raw
        value: object = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        return Malformed(f"The report is not UTF-8 (byte {error.start}).")
    except json.JSONDecodeError as error:
        return Malformed(f"The report is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.")
    except _RefusedError as error:
        return Malformed(f"The report is refused: {error}.")
    except RecursionError:
        return Malformed(f"The report nests deeper than {MAX_DEPTH} levels.")
    except ValueError:  # an integer literal of thousands of digits
        return Malformed("The report contains a number that is too long.")
    if not isinstance(value, dict):
        return Malformed("The report must be one JSON object, `{...}`.")
    found = cast("JsonObject", value)
    return _unacceptable(found) or found


def pointer_of(parts: tuple[str | int, ...]) -> str:
    """Return the JSON pointer (RFC 6901) of a place given by keys and indices."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def _unacceptable(root: JsonObject) -> Malformed | None:
    stack: list[tuple[object, tuple[str | int, ...]]] = [(root, ())]
    while stack:
        value, place = stack.pop()
        if len(place) > MAX_DEPTH:
            return Malformed(f"The report nests deeper than {MAX_DEPTH} levels.", pointer_of(place))
        if isinstance(value, str):
            problem = _bad_text(value)
            if problem is not None:
                return Malformed(f"At {pointer_of(place)}: the text contains {problem}.", pointer_of(place))
        elif isinstance(value, dict):
            for key, item in cast("JsonObject", value).items():
                if _bad_text(key) is not None:
                    return Malformed(f"At {pointer_of(place) or '/'}: a key contains {_bad_text(key)}.")
                stack.append((item, (*place, key)))
        elif isinstance(value, list):
            stack.extend((item, (*place, index)) for index, item in enumerate(cast("list[object]", value)))
    return None


def _bad_text(text: str) -> str | None:
    if "\0" in text:
        return "a NUL character"
    if any("\ud800" <= character <= "\udfff" for character in text):
        return "half of a surrogate pair"
    return None


def _unique(pairs: list[tuple[str, object]]) -> JsonObject:
    found: JsonObject = {}
    for key, value in pairs:
        if key in found:
            raise _RefusedError(f"the key {key[:60]!r} is given twice in one object")
        found[key] = value
    return found


def _no_constant(word: str) -> object:
    raise _RefusedError(f"{word} is not a JSON number")
