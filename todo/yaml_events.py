"""Reads front matter that has more than plain lines, from the events of PyYAML's C parser.

Events, not objects: all scalars stay strings (no YAML 1.1 booleans or dates), anchors are refused before anything
could be multiplied, depth is counted without recursion, and each scalar's place is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from todo.errors import TrackerError, invalid
from todo.frontmatter import FIRST_LINE, MAX_DEPTH, Node, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_BYTE_ORDER_MARK: Final = "\ufeff"


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
        root = _compose(yaml.parse(front, Loader=_Loader), name)
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
        raise _bad_key("A key of the front matter must be a word.", name, line)
    if node.text in mapping:
        raise _bad_key(f"The key `{node.text}` is there twice. Remove one.", name, line)
    return node.text


def _bad_key(message: str, name: str, line: int) -> TrackerError:
    return invalid(message, path=name, line=line)
