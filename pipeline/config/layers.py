"""Reads each layer of the configuration (file, environment, command line) as flat values with origins (contract 4)."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from pydantic import ValidationError

from pipeline.config import keys
from pipeline.config.model import Config
from pipeline.config.problems import did_you_mean, pointer, refusal
from pipeline.config.sources import Document, Layer, Origin
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from pipeline.config.keys import KeyPath

_FEW: Final = 12
"""The most accepted words that an error lists when none of them is similar."""
_RESERVED: Final = ("TRUST", "DEPTH", "REPORT", "DISPATCH", "MODEL_URL", "LOG")
RESERVED: Final = frozenset(keys.PREFIX + word for word in _RESERVED)
"""Variables with our prefix that are no configuration keys: set by the user for this program, or by it for an agent."""

EVERY: Final = "*"
"""In the place of a role: each one that no other flag names, and that is not switched off elsewhere."""

FlatLayer = Mapping["KeyPath", tuple[object, Origin]]


@dataclass(frozen=True)
class Flags:
    """The settings on the command line: text by dotted key, and a backend by role, or for `EVERY` one."""

    values: Mapping[str, str] = field(default_factory=dict[str, str])
    agents: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def parse(cls, assignments: Sequence[str] = (), agents: Sequence[str] = ()) -> Flags:
        """Return the flags of `--set KEY=VALUE` and `--agent ROLE=NAME`; `--agent NAME` is each role that has none.

        Raises:
            UserError: one of them has no `=`, and is no backend.
        """
        everywhere = [item for item in agents if "=" not in item and item not in keys.ROLES]
        named = _pairs("--agent ROLE=NAME", [item for item in agents if item not in everywhere])
        all_roles = {EVERY: everywhere[-1]} if everywhere else {}
        return cls(_pairs("--set KEY=VALUE", assignments), {**all_roles, **named})

    def over(self, earlier: Flags) -> Flags:
        """Return these flags merged over *earlier* ones; for each key the later flag wins, however it is spelled."""
        roles = [*self.agents, *(Role if EVERY in self.agents else ())]
        keys_now = {key_path(key) for key in self.values} | {_backend_of(role) for role in roles}
        values = {key: text for key, text in earlier.values.items() if key_path(key) not in keys_now}
        agents = {role: name for role, name in earlier.agents.items() if _backend_of(role) not in keys_now}
        return Flags({**values, **self.values}, {**agents, **self.agents})

    def anchored(self, home: Path) -> Flags:
        """Return these flags with relative paths made absolute from the working directory."""
        texts = {key: _anchored_text(key_path(key), text, home) for key, text in self.values.items()}
        return Flags(texts, self.agents)


def validated(table: Mapping[str, object], origin_of: Callable[[KeyPath], Origin]) -> Config:
    """Return the configuration that *table* alone gives.

    Strict, through JSON: `timeout_s = "900"` is an error, while lists and words become tuples and enums.

    Raises:
        UserError: an unknown key, or a value that is not accepted.
    """
    try:
        return Config.model_validate_json(json.dumps(table, default=str), strict=True)
    except ValidationError as error:
        raise refusal(error, origin_of) from error


def from_document(document: Document, home: Path) -> FlatLayer:
    """Return the values in a configuration file.

    Raises:
        UserError: an unknown key, or a value that is not accepted.
    """
    validated(document.table, document.origin)
    return {
        path: (_anchored(path, value, document.folder, home), document.origin(path))
        for path, value in keys.flatten(document.table).items()
    }


def from_environment(environ: Mapping[str, str], home: Path) -> FlatLayer:
    """Return the values in `REDFIRST_*` variables; relative paths start in the working directory.

    Raises:
        UserError: a variable with our prefix that is no key, or a value that is not accepted.
    """
    flat: dict[KeyPath, tuple[object, Origin]] = {}
    for name in sorted(environ):
        if name.startswith(keys.PREFIX) and name not in RESERVED:
            path, origin = keys.from_variable(name), Origin(Layer.ENVIRONMENT, name)
            if keys.find(path) is None:
                raise _unknown(origin, name, [*sorted(RESERVED), *map(keys.variable, keys.LEAVES)])
            flat[path] = (_typed(path, environ[name], origin, home), origin)
    return flat


def from_flags(flags: Flags, home: Path, off: Collection[str] = ()) -> FlatLayer:
    """Return the values in flags; relative paths start in the working directory.

    Args:
        flags: The flags.
        home: What `~` is.
        off: The roles that are switched off below: a flag for all of them brings back none of these.

    Raises:
        UserError: an unknown key or role, or a value that is not accepted.
    """
    flat: dict[KeyPath, tuple[object, Origin]] = {}
    found: dict[KeyPath, tuple[object, Origin]] = {}
    for key, text in flags.values.items():
        path, origin = key_path(key), Origin(Layer.FLAG, f"--set {key}")
        found[path] = (typed_value(path, text, origin), origin)
    if found:  # together: two keys of one table may need each other
        values = {path: value for path, (value, _) in found.items()}
        last = next(reversed(found.values()))[1]
        validated(keys.nest(values), lambda path: found[path][1] if path in found else last)
    flat |= {path: (_anchored(path, value, Path.cwd(), home), origin) for path, (value, origin) in found.items()}
    agents = dict(flags.agents)
    if (everywhere := agents.pop(EVERY, None)) is not None:
        _typed(_backend_of(Role.MAKE), everywhere, Origin(Layer.FLAG, "--agent"), home)  # refused if no role is left
        agents = {**{role.value: everywhere for role in Role if role not in off}, **agents}
    for role, backend in agents.items():
        origin = Origin(Layer.FLAG, f"--agent {role}")
        if role not in keys.ROLES:
            raise _unknown(origin, role, list(Role), "role")
        path = _backend_of(role)
        flat[path] = (_typed(path, backend, origin, home), origin)
    return flat


def _backend_of(role: str) -> KeyPath:
    return "agents", role, "backend"


def _anchored_text(path: KeyPath, text: str, home: Path) -> str:
    """Return the text of a value with its paths absolute; an invalid value is unchanged, to be refused later."""
    try:
        value = keys.parse_text(path, text)
    except (LookupError, ValueError):
        return text
    found = _anchored(path, value, Path.cwd(), home)
    return text if found == value else found if isinstance(found, str) else json.dumps(found)


def _pairs(usage: str, items: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals:
            raise UserError(f'"{item}" has no "=": write {usage}.', Reason.USAGE, details={"item": item})
        pairs[name] = value
    return pairs


def typed_value(path: KeyPath, text: str, origin: Origin) -> object:
    """Return the value that *text* gives to the key at *path*; the model checks it later with the others.

    Raises:
        UserError: there is no such key, or *text* is no value of its kind.
    """
    if keys.find(path) is None:
        raise _unknown(origin, keys.dotted(path), list(map(keys.dotted, keys.LEAVES)))
    return _parsed(path, text, origin)


def key_path(key: str) -> KeyPath:
    """Return the path of a key in TOML notation: a name with a dot is quoted."""
    if '"' not in key:
        return keys.from_dotted(key)
    try:
        table: object = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return keys.from_dotted(key)
    path: list[str] = []
    while isinstance(table, dict):
        ((name, table),) = cast("dict[str, object]", table).items()
        path.append(name)
    return tuple(path)


def _typed(path: KeyPath, text: str, origin: Origin, home: Path) -> object:
    value = _parsed(path, text, origin)
    validated(keys.nest({path: value}), lambda _: origin)
    return _anchored(path, value, Path.cwd(), home)


def _parsed(path: KeyPath, text: str, origin: Origin) -> object:
    try:
        return keys.parse_text(path, text)
    except ValueError as error:
        raise UserError(
            f"{origin}: {error}.", Reason.CONFIG, path=origin.source, pointer=pointer(path), details={"text": text}
        ) from error


def _anchored(path: KeyPath, value: object, folder: Path, home: Path) -> object:
    """Return *value* with its paths absolute: a relative path starts at the folder of the layer's file."""
    match path, value:
        case (("agents" | "spares", *_, "script"), str() as text):
            return _absolute(text, folder, home)
        case (("agents" | "spares", *_, "read"), list()):
            return [_absolute(text, folder, home) for text in cast("list[str]", value)]
        case _:
            return value


def _absolute(text: str, folder: Path, home: Path) -> str:
    path = Path(text)
    return str(home.joinpath(*path.parts[1:]) if path.parts[:1] == ("~",) else folder / path)


def _unknown(origin: Origin, word: str, known: Sequence[str], what: str = "key of the configuration") -> UserError:
    near = did_you_mean(word, known)
    few = f" Accepted: {', '.join(known)}." if len(known) <= _FEW else ""
    hint = f' Did you mean "{near}"?' if near else few
    return UserError(
        f'{origin}: "{word}" is no {what}.{hint}',
        Reason.CONFIG,
        path=origin.source,
        details={"accepted": list(known), "did_you_mean": near},
        actions=("redfirst config show",),
    )
