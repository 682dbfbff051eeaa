"""Converts results of readers to bytes and back: plain values, enumerations and our dataclasses only.

A parser is C code that reads hostile text, so what its process writes is hostile too. A pickle would run what it says;
this is JSON, in which each value but numbers and texts is a list that begins with its kind.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from typing import Any, Final, cast

_OURS: Final = (
    "pipeline.judge.policy.",
    "pipeline.judge.evidence.",
    "pipeline.testing.languages.",
)
"""The modules whose classes an answer may contain; making these has no side effects."""
_SEQUENCES: Final[Mapping[str, Any]] = {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}


class NonsenseError(ValueError):
    """The bytes hold no value that `dump` writes."""


def dump(value: object) -> bytes:
    """Return the value as bytes.

    Raises:
        TypeError: it is, or has in it, what cannot be written down.
    """
    return json.dumps(_plain(value), separators=(",", ":")).encode()


def load(data: bytes) -> object:
    """Return the value that `dump` wrote.

    Raises:
        NonsenseError: somebody else wrote it.
    """
    try:
        return _value(json.loads(data))
    except (ValueError, TypeError, LookupError, AttributeError, ImportError, RecursionError) as error:
        raise NonsenseError(type(error).__name__) from error


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return ["enum", _name(type(value)), value.name]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return ["bytes", base64.b64encode(value).decode()]
    if isinstance(value, Mapping):
        return ["dict", *([_plain(key), _plain(inner)] for key, inner in cast("Mapping[Any, Any]", value).items())]
    sequence = next((name for name, kind in _SEQUENCES.items() if type(value) is kind), None)
    if sequence is not None:
        return [sequence, *map(_plain, value)]
    if is_dataclass(value) and type(value).__module__.startswith(_OURS):
        return ["data", _name(type(value)), *(_plain(getattr(value, name)) for name in _fields(type(value)))]
    raise TypeError(f"{type(value)} is no plain value")


def _value(plain: Any) -> Any:
    if isinstance(plain, dict):
        raise NonsenseError("dict")
    if not isinstance(plain, list):
        return plain
    kind, *rest = cast("list[Any]", plain)
    if kind in _SEQUENCES:
        return _SEQUENCES[kind](map(_value, rest))
    if kind == "bytes":
        return base64.b64decode(rest[0], validate=True)
    if kind == "dict":
        return {_value(key): _value(inner) for key, inner in rest}
    if kind == "enum":
        return _class(rest[0], Enum)[rest[1]]
    if kind == "data":
        made = _class(rest[0], object)
        return made(**dict(zip(_fields(made), map(_value, rest[1:]), strict=True)))
    raise NonsenseError(str(kind))


def _fields(kind: Any) -> list[str]:
    return [one.name for one in fields(kind) if one.init]


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _class(name: str, above: type) -> Any:
    module, _, inside = name.partition(":")
    if not module.startswith(_OURS):
        raise NonsenseError(name)
    found = getattr(import_module(module), inside)
    if not (isinstance(found, type) and issubclass(found, above) and found.__module__ == module):
        raise NonsenseError(name)
    return found
