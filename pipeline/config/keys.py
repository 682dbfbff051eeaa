"""The keys of the configuration, derived from the model: their paths, environment variables and values as text.

A path is a tuple of words, `("agents", "check", "backend")`; people write it with dots. The variables of an `env`
table and the keys of each provider are keys of their own, so that layers merge them one by one; `ANY` stands for the
names that the user chooses. Nothing here performs I/O.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, cast, get_args, get_origin

from pydantic import BaseModel

from pipeline.config.model import Config
from pipeline.vocabulary import Role

KeyPath = tuple[str, ...]

PREFIX: Final = "REDFIRST_"
NEST: Final = "__"
ANY: Final = "*"

_WITH_ENV: Final = frozenset({"agents", "spares", "toolchains"})

ROLES: Final = frozenset(role.value for role in Role)


@dataclass(frozen=True)
class Leaf:
    """A key that holds a value. `is_text`: typed text is the value itself, unquoted; `is_list`: it may be a list."""

    path: KeyPath
    is_text: bool
    is_list: bool = False


def _members(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Annotated:
        yield from _members(get_args(annotation)[0])
    elif type(None) in get_args(annotation):
        for member in get_args(annotation):
            yield from _members(member)
    elif annotation is not type(None):
        yield annotation


def _walk(model: type[BaseModel], above: KeyPath) -> Iterator[Leaf]:
    for name, info in model.model_fields.items():
        path = (*above, name)
        kind, *others = _members(info.annotation)
        if get_origin(kind) is Mapping:
            value = get_args(kind)[1]
            yield from _walk(value, (*path, ANY)) if value is not str else (Leaf((*path, ANY), is_text=True),)
        elif isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _walk(kind, path)
        else:
            yield Leaf(path, is_text=isinstance(kind, type) and issubclass(kind, str | StrEnum), is_list=bool(others))


LEAVES: Final[Mapping[KeyPath, Leaf]] = {leaf.path: leaf for leaf in _walk(Config, ())}
"""Every key that can be set, in the order of the model."""


def find(path: KeyPath) -> Leaf | None:
    """Return the key at *path*, None if there is none; names in an `env` table and of providers are free."""
    return LEAVES.get(path) or next((leaf for known, leaf in LEAVES.items() if _fits(known, path)), None)


def _fits(known: KeyPath, path: KeyPath) -> bool:
    pairs = zip(known, path, strict=False)
    return len(known) == len(path) and all(word == name or (word == ANY and name) for word, name in pairs)


def children(above: KeyPath) -> list[str]:
    """Return the words that may follow *above* in a key's path."""
    depth = len(above)
    return list(dict.fromkeys(path[depth] for path in LEAVES if len(path) > depth and _fits(path[:depth], above)))


def dotted(path: KeyPath) -> str:
    """Return *path* as a dotted key."""
    return ".".join(path)


def from_dotted(text: str) -> KeyPath:
    """Return the path of a dotted key."""
    return tuple(text.split("."))


def variable(path: KeyPath) -> str:
    """Return the environment variable that sets *path*: `REDFIRST_BUDGET__COST_USD`."""
    if path[0] in _WITH_ENV and "env" in path[1:-1]:
        return f"{variable(path[:-1])}{NEST}{path[-1]}"
    return PREFIX + NEST.join(path).upper()


def from_variable(name: str) -> KeyPath:
    """Return the path that the variable *name* would set; what follows `ENV` keeps its case and its underscores."""
    words = name.removeprefix(PREFIX).split(NEST)
    lower = [word.lower() for word in words]
    if lower[0] in _WITH_ENV and "env" in lower[:-1]:
        at = lower.index("env") + 1
        return (*lower[:at], NEST.join(words[at:]))
    return tuple(lower)


def parse_text(path: KeyPath, text: str) -> object:
    """Return the value that *text* gives to the key at *path*: plain text, or else a TOML value.

    Raises:
        LookupError: there is no such key.
        ValueError: *text* is not a TOML value.
    """
    leaf = find(path)
    if leaf is None:
        raise LookupError(dotted(path))
    if leaf.is_text and not (leaf.is_list and text.lstrip().startswith("[")):
        return text
    hint = f'{text!r} is not a TOML value such as 3, true or ["uv", "sync"]'
    try:
        document = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        raise ValueError(hint) from None
    if list(document) != ["value"]:
        raise ValueError(hint)
    return document["value"]


def flatten(table: Mapping[str, object], above: KeyPath = ()) -> dict[KeyPath, object]:
    """Return the values of a nested *table* by path; empty tables vanish."""
    flat: dict[KeyPath, object] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            flat.update(flatten(cast("Mapping[str, object]", value), (*above, name)))
        else:
            flat[(*above, name)] = value
    return flat


def nest(flat: Mapping[KeyPath, object]) -> dict[str, Any]:
    """Return the nested table of which `flatten` gives *flat*."""
    table: dict[str, Any] = {}
    for path, value in flat.items():
        inner = table
        for word in path[:-1]:
            inner = inner.setdefault(word, {})
        inner[path[-1]] = value
    return table
