"""Reads the YAML front matter of an issue file as strings, and replaces one value with every other byte kept.

It is read from the events of PyYAML's C parser, not as objects: all scalars stay strings (no YAML 1.1 booleans or
dates), anchors are refused before anything could be multiplied, depth is counted without recursion, and each scalar's
place is known, so that it can be replaced where it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import yaml

from todo.errors import TrackerError, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_FRONT_MATTER: Final = 64 * 1024
MAX_DEPTH: Final = 16
FIRST_LINE: Final = 2
"""The line of the file on which the first line of the front matter stands."""

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BYTE_ORDER_MARK: Final = "\ufeff"
_NEWLINE = r"(?>\r\n|\n|\r)"
_FRONT: Final = re.compile(rf"\ufeff?---[ \t]*{_NEWLINE}((?:[^\r\n]*{_NEWLINE})*?)---[ \t]*(?:{_NEWLINE}|\Z)")
_END: Final = re.compile(_NEWLINE)
_SAFE: Final = re.compile(r"[A-Za-z0-9](?:[\w ()./+-]*[\w()./+-])?")


class Scalar(NamedTuple):
    """A YAML scalar as written: its text, whether it is unquoted, its place in the front matter."""

    text: str
    plain: bool
    start: int
    end: int

    @property
    def is_null(self) -> bool:
        """Return whether YAML reads the scalar as null; a quoted word is never null."""
        return self.plain and self.text in {"", "~", "null", "Null", "NULL"}


Node: TypeAlias = "Scalar | list[Node] | dict[str, Node]"


@dataclass(frozen=True, slots=True)
class Document:
    """An issue file in parts: `text[:start]`, the front matter `text[start:end]`, its closing line, `text[body:]`."""

    name: str
    text: str
    start: int
    end: int
    body: int
    values: Mapping[str, Node]

    @property
    def front(self) -> str:
        """Return the text between the two `---` lines."""
        return self.text[self.start : self.end]

    def line_of(self, key: str) -> int | None:
        """Return the line number in the file of a key's scalar value, None if the value is no scalar."""
        node = self.values.get(key)
        if not isinstance(node, Scalar):
            return None
        return FIRST_LINE + len(_END.findall(self.front, 0, node.start))


def decode(content: bytes, name: str) -> str:
    """Return the text of a tracker file; encoding it as UTF-8 gives the bytes back.

    Raises:
        TrackerError: the file is not UTF-8.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise invalid("The file is not UTF-8. Save it as UTF-8.", path=name, line=line) from None


def parse(text: str, name: str) -> Document:
    """Return the parts of an issue file's text.

    Raises:
        TrackerError: tracker_invalid, with the line where known.
    """
    found = _FRONT.match(text)
    if found is None:
        if not text.removeprefix("\ufeff").startswith("---"):
            raise invalid("The file does not begin with a line `---`: it has no front matter.", path=name, line=1)
        raise invalid("The front matter is not closed by a line `---`.", path=name, line=1)
    start, end = found.span(1)
    if end - start > MAX_FRONT_MATTER:
        raise invalid(f"The front matter is longer than {MAX_FRONT_MATTER} characters.", path=name, line=1)
    return Document(name, text, start, end, found.end(), read_mapping(text[start:end], name))


class _Open:
    """A YAML collection whose end has not been read; `key` waits for its value."""

    def __init__(self, node: list[Node] | dict[str, Node]) -> None:
        self.node = node
        self.key: str | None = None


def read_mapping(front: str, name: str) -> dict[str, Node]:
    """Return the values of front matter by key.

    Raises:
        TrackerError: not YAML, not a mapping, a key twice, an anchor or alias, nested too deep.
    """
    if _BYTE_ORDER_MARK in front:  # libyaml drops it wherever it stands, other readers take it for a letter
        line = front.count("\n", 0, front.index(_BYTE_ORDER_MARK)) + FIRST_LINE
        raise invalid("There is a byte order mark (U+FEFF) in the front matter. Remove it.", path=name, line=line)
    try:
        root = _compose(yaml.parse(front, Loader=_LOADER), name)
    except yaml.MarkedYAMLError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + FIRST_LINE
        if "nesting depth" in str(error.problem):  # libyaml has a limit of its own since PyYAML 6.0.4
            raise _too_deep(name, line) from None
        raise invalid(f"The front matter is not YAML: {error.problem}.", path=name, line=line) from None
    except yaml.YAMLError as error:
        raise invalid(f"The front matter is not YAML: {str(error).splitlines()[0]}.", path=name) from None
    if not isinstance(root, dict):
        raise invalid("The front matter must be `key: value` lines.", path=name, line=FIRST_LINE)
    return root


def _compose(events: Iterator[Any], name: str) -> Node | None:
    root: Node | None = None
    stack: list[_Open] = []
    for event in events:
        start: Any = event.start_mark
        line: int = start.line + FIRST_LINE
        if getattr(event, "anchor", None) is not None:
            raise invalid("Anchors and aliases (& and *) are not allowed in front matter.", path=name, line=line)
        node: Node
        match event:
            case yaml.ScalarEvent():
                plain = not event.style and event.tag is None
                end: Any = event.end_mark
                node = Scalar(event.value, plain, start.index, end.index)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                if len(stack) == MAX_DEPTH:
                    raise _too_deep(name, line)
                stack.append(_Open({} if isinstance(event, yaml.MappingStartEvent) else []))
                continue
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                node = stack.pop().node
            case yaml.DocumentStartEvent() if root is not None:
                raise invalid("The front matter must be one YAML document.", path=name, line=line)
            case _:
                continue
        if stack:
            _add(stack[-1], node, name, line)
        else:
            root = node
    return root


def _too_deep(name: str, line: int | None) -> TrackerError:
    return invalid(f"The front matter is nested deeper than {MAX_DEPTH} levels.", path=name, line=line)


def _add(parent: _Open, node: Node, name: str, line: int) -> None:
    if isinstance(parent.node, list):
        parent.node.append(node)
    elif parent.key is not None:
        parent.node[parent.key] = node
        parent.key = None
    else:
        parent.key = _key(node, parent.node, name, line)


def _key(node: Node, mapping: dict[str, Node], name: str, line: int) -> str:
    if not isinstance(node, Scalar):
        raise invalid("A key of the front matter must be a word.", path=name, line=line)
    if node.text in mapping:
        raise invalid(f"The key `{node.text}` is there twice. Remove one.", path=name, line=line)
    return node.text


def with_scalar(document: Document, key: str, value: str) -> str:
    """Return the file's text with the value of one top-level key replaced; `value` is a word or words of letters.

    Where the old text stands there as it is read, only these characters change: quotes, comment and the form of the
    value stay. A value written otherwise (folded, escaped) is replaced whole. Either is read back before it counts.

    Raises:
        TrackerError: it cannot be done without changing something else.
    """
    node = document.values[key]
    if isinstance(node, Scalar):
        front = document.front
        span = front[node.start : node.end]
        line_end = span[len(span.rstrip("\r\n")) :]
        head, found, tail = span.rpartition(node.text)
        for replaced in (head + value + tail if found else value, value + line_end):
            changed = front[: node.start] + replaced + front[node.end :]
            if _only_differs_in(document, changed, key, value):
                return document.text[: document.start] + changed + document.text[document.end :]
    message = f"`{key}` cannot be changed alone. Write it on one line: `{key}: ...`."
    raise invalid(message, path=document.name, line=document.line_of(key))


def _only_differs_in(document: Document, changed: str, key: str, value: str) -> bool:
    try:
        after = read_mapping(changed, document.name)
    except TrackerError:
        return False
    expected = {name: plain_data(node) for name, node in document.values.items()} | {key: value}
    return {name: plain_data(node) for name, node in after.items()} == expected


def plain_data(node: Node) -> object:
    """Return a YAML node as strings, lists and dicts."""
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, list):
        return [plain_data(item) for item in node]
    return {key: plain_data(item) for key, item in node.items()}


def written_scalar(text: str) -> str:
    """Return a one-line YAML scalar that reads as `text`, unquoted when that is safe in any context."""
    if _SAFE.fullmatch(text) and not Scalar(text, True, 0, 0).is_null:
        return text
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return f"\\U{ord(character):08X}"
