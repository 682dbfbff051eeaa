"""Reads the YAML front matter of an issue file as strings, and replaces one value with every other byte kept.

Most front matter is `key: value` lines, the value plain or simply quoted; these are read here in a few microseconds.
Everything else goes to the YAML parser (`yaml_events.py`), which gives the same values (a test compares them).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from todo.errors import TrackerError, invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_FRONT_MATTER: Final = 64 * 1024
MAX_DEPTH: Final = 16
FIRST_LINE: Final = 2
"""The line of the file on which the first line of the front matter stands."""

_NEWLINE = r"(?>\r\n|\n|\r)"
_FRONT: Final = re.compile(rf"\ufeff?---[ \t]*{_NEWLINE}((?:[^\r\n]*{_NEWLINE})*?)---[ \t]*(?:{_NEWLINE}|\Z)")
_LINE: Final = re.compile(rf"([^\r\n]*+)(?:{_NEWLINE}|\Z)")
_END: Final = re.compile(_NEWLINE)
_WORD = r"[A-Za-z0-9][A-Za-z0-9_./-]*+"
_PLAIN: Final = re.compile(
    r"(?P<key>[A-Za-z][A-Za-z0-9_-]*):"
    r"(?: +(?:(?P<value>~|[^\W_](?:[^:#]*[^:# ])?)|(?P<quoted>\"[^\"\\]*\"|'[^']*')"
    rf"|\[ *+(?P<list>(?:{_WORD} *+, *+)*+{_WORD})? *+\]))?"
    r" *(?: #.*)?"
)
_BLANK: Final = re.compile(r" *(?:#.*)?")
_WORDS: Final = re.compile(_WORD)
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
    return Document(name, text, start, end, found.end(), read_values(text[start:end], name))


def read_values(front: str, name: str) -> dict[str, Node]:
    """Return the values of front matter by key, every scalar as the string that YAML makes of it.

    Raises:
        TrackerError: not YAML, not a mapping, a key twice, an anchor or alias, nested too deep.
    """
    plain = read_plain(front)
    if plain is not None:
        return plain
    from todo.yaml_events import read_mapping  # noqa: PLC0415  (plain front matter, the usual one, needs no yaml)

    return read_mapping(front, name)


def read_plain(front: str) -> dict[str, Node] | None:
    """Return the values by key if every line has an unambiguous plain form, else None."""
    values: dict[str, Node] = {}
    for line in _LINE.finditer(front):
        text = line[1]
        # YAML has more line breaks and white space than we want to know here; none of it is printable.
        if not text.isprintable():
            return None
        found = _PLAIN.fullmatch(text)
        if found is None:
            if _BLANK.fullmatch(text):
                continue
            return None
        key = found["key"]
        if key in values:
            return None
        offset = line.start()
        value = found["value"]
        if value is not None:
            values[key] = Scalar(value, True, offset + found.start("value"), offset + found.end("value"))
        elif (quoted := found["quoted"]) is not None:  # without an escape, what is between the quotes is what it says
            values[key] = Scalar(quoted[1:-1], False, offset + found.start("quoted"), offset + found.end("quoted"))
        elif found["list"] is not None:
            first = offset + found.start("list")
            words = _WORDS.finditer(found["list"])
            values[key] = [Scalar(word[0], True, first + word.start(), first + word.end()) for word in words]
        elif "[" in text.partition("#")[0]:
            values[key] = []
        else:
            place = offset + found.end("key") + 1
            values[key] = Scalar("", True, place, place)
    return values or None


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
        after = read_values(changed, document.name)
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
