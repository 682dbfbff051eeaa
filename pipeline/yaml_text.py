"""Parses untrusted YAML within limits, and keeps the place of each value.

It is read from the events of the C parser. So nothing is built before it is refused: tags (they change what a word
means), a key given twice, what nests without end, and anchors and aliases, by which one line can stand for a million.
Whoever accepts these counts what they stand for. It also writes YAML, as the dumper of a kind of file spells it.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BYTE_ORDER_MARK: Final = "\ufeff"

Place = tuple[int, int]
"""Line and column, both counted from 1."""


class YamlError(ValueError):
    """The text cannot be read; `line` and `column` are counted from 1, `message` has no full stop."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(f"line {place[0]}: {message}")
        self.line, self.column = place
        self.message = message


@dataclass(frozen=True)
class Document:
    """A parsed YAML text: its value, and the place of each part.

    Args:
        value: Dicts, lists and scalars.
        places: Where each value begins, by its JSON pointer; of a member of a mapping, its key.
    """

    value: object
    places: Mapping[str, Place]

    @property
    def mapping(self) -> dict[str, object] | None:
        """Return the value if it is a mapping."""
        value: Any = self.value
        return cast("dict[str, object]", value) if isinstance(value, dict) else None

    def place(self, pointer: str) -> Place:
        """Return the place of the value at *pointer*, or of the nearest value that contains it."""
        while pointer not in self.places:
            pointer = pointer.rpartition("/")[0]
        return self.places[pointer]


def text_or_null(text: str, key: str) -> object:  # noqa: ARG001  (as `read` asks)
    """Return an unquoted scalar as text, and YAML's null as None."""
    return None if text in _NULLS else text


def text_only(text: str, key: str) -> object:  # noqa: ARG001
    """Return a scalar as text, whatever it looks like."""
    return text


def core(text: str, key: str) -> object:  # noqa: ARG001
    """Return an unquoted scalar by YAML 1.2's types: null, true, false, numbers; `no` is a word."""
    if text in _NULLS or text in {"true", "false"}:
        return {"true": True, "false": False}.get(text)
    for kind in (int, float):
        if text[:1].isascii() and text.lstrip("+-")[:1].isdigit() and "_" not in text:
            try:
                return kind(text)
            except ValueError:
                continue
    return text


@dataclass
class _Open:
    """A collection whose end has not been read; `key` waits for its value, or is that of the list it belongs to."""

    node: list[object] | dict[str, object]
    pointer: str
    anchor: str | None
    begun_at: int
    key: str | None = field(default=None)

    def pointer_of_next(self) -> str:
        part = str(len(self.node)) if isinstance(self.node, list) else self.key or ""
        return f"{self.pointer}/{part.replace('~', '~0').replace('/', '~1')}"


def read(
    text: str,
    *,
    scalar: Callable[[str, str], object] = core,
    deepest: int = 12,
    most: int = 100_000,
    first_line: int = 1,
    aliases: bool = False,
) -> Document:
    """Return the document in a YAML text.

    Args:
        text: One YAML document; JSON is YAML, too.
        scalar: What a scalar without quotes is, given its text and the key that it, or its list, belongs to.
        deepest: Collections in each other.
        most: Scalars and collections, counted wherever an alias repeats them.
        first_line: What the first line is called; front matter begins in the second line of its file.
        aliases: Whether anchors and aliases are accepted.

    Raises:
        YamlError: it is not YAML, or has what is refused.
    """
    mark = text.find(_BYTE_ORDER_MARK, 1)
    if mark > 0:  # libyaml drops it wherever it stands, other readers take it for a letter
        raise YamlError((text.count("\n", 0, mark) + first_line, 1), "there is a byte order mark (U+FEFF) in the text")
    builder = _Builder(scalar, deepest, most, first_line, aliases=aliases)
    try:
        for event in yaml.parse(text.removeprefix(_BYTE_ORDER_MARK), Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark
        place = (1, 1) if at is None else (at.line + first_line, at.column + 1)
        if "nesting depth" in str(error.problem):
            raise YamlError(place, _too_deep(deepest)) from None
        raise YamlError(place, f"this is not YAML ({error.problem})") from None
    except yaml.YAMLError as error:
        raise YamlError((first_line, 1), f"this is not YAML ({str(error).splitlines()[0]})") from None
    return Document(builder.root, builder.places)


def _too_deep(deepest: int) -> str:
    return f"this nests deeper than {deepest} levels"


class _Builder:
    """Builds values from parser events."""

    def __init__(
        self, scalar: Callable[[str, str], object], deepest: int, most: int, first_line: int, *, aliases: bool
    ) -> None:
        self.root: object = None
        self.places: dict[str, Place] = {"": (1, 1)}
        self._scalar = scalar
        self._deepest = deepest
        self._most = most
        self._first_line = first_line
        self._aliases = aliases
        self._stack: list[_Open] = []
        self._documents = 0
        self._count = 0
        self._named: dict[str, tuple[object, int]] = {}

    def place(self, event: Any) -> Place:
        mark = event.start_mark
        return mark.line + self._first_line, mark.column + 1

    def take(self, event: Any) -> None:
        anchor: str | None = getattr(event, "anchor", None)  # of an alias, the one that it repeats
        if anchor is not None and not self._aliases:
            raise YamlError(self.place(event), "anchors and aliases are not accepted")
        if getattr(event, "tag", None) is not None:
            raise YamlError(self.place(event), "tags are not accepted")
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise YamlError(self.place(event), "one YAML document only")
            case yaml.ScalarEvent():
                self._add_scalar(event)
            case yaml.AliasEvent():
                self._repeat(event)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                if len(self._stack) == self._deepest:
                    raise YamlError(self.place(event), _too_deep(self._deepest))
                node: dict[str, object] | list[object] = {} if isinstance(event, yaml.MappingStartEvent) else []
                begun_at, key = self._count, self._stack[-1].key if self._stack else None
                opened = _Open(node, self._add(node, event), anchor, begun_at)
                opened.key = key if isinstance(node, list) else None
                self._stack.append(opened)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                ended = self._stack.pop()
                if ended.anchor is not None:
                    self._named[ended.anchor] = (ended.node, self._count - ended.begun_at)
            case _:
                pass

    def _repeat(self, event: Any) -> None:
        if event.anchor not in self._named:
            raise YamlError(self.place(event), f"there is no anchor &{event.anchor} above")
        value, count = self._named[event.anchor]
        self._add(value, event, count)

    def _add_scalar(self, event: Any) -> None:
        above = self._stack[-1] if self._stack else None
        text: str = event.value
        if above is not None and isinstance(above.node, dict) and above.key is None:
            if text in above.node:
                raise YamlError(self.place(event), f"the key {text!r} is given twice")
            above.key = text
            self.places[above.pointer_of_next()] = self.place(event)
            return
        key = above.key or "" if above is not None else ""
        value = text if event.style else self._scalar(text, key)
        self._add(value, event)
        if event.anchor is not None:
            self._named[event.anchor] = (value, 1)

    def _add(self, value: object, event: Any, count: int = 1) -> str:
        """Add a value to its collection and return its pointer."""
        self._count += count
        if self._count > self._most:
            raise YamlError(self.place(event), f"the text has more than {self._most} values")
        if not self._stack:
            self.root = value
            return ""
        above = self._stack[-1]
        if isinstance(above.node, dict) and above.key is None:
            raise YamlError(self.place(event), "a key is a word")
        pointer = above.pointer_of_next()
        self.places.setdefault(pointer, self.place(event))
        if isinstance(above.node, list):
            above.node.append(value)
        else:
            above.node[cast("str", above.key)] = value
            above.key = None
        return pointer


def written(document: Mapping[str, object], dumper: type[yaml.SafeDumper], width: int) -> str:
    """Return the YAML text of *document*, its keys in their order.

    Args:
        document: Dicts, lists and scalars.
        dumper: How each kind of value is spelled.
        width: Characters after which a line is folded.
    """
    text = io.StringIO()
    one: Any = dumper(text, sort_keys=False, allow_unicode=True, width=width, default_flow_style=False)
    one.open()
    one.represent(dict(document))
    one.close()
    return text.getvalue()
