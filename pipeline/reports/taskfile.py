"""`task-<id>.md` as text and back. The front matter is the machine-read part; a person may edit it while parked."""

from __future__ import annotations

import json
from typing import Any, Final

import yaml
from pydantic import TypeAdapter, ValidationError

from pipeline.policy.characters import visible
from pipeline.reports.decode import MAX_BYTES, JsonObject, Malformed, pointer_of
from pipeline.reports.markdown import front_matter_end
from pipeline.reports.schema_errors import explain
from pipeline.reports.tasks import Task, TaskHead

_DEEPEST: Final = 4
"""A mapping, its lists, their mappings, and one to spare; PyYAML needs quadratic time for what nests without end."""
_MOST: Final = 20_000
"""Events of YAML: PyYAML needs a minute for a megabyte of list items, and no task has thousands of them."""
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_HEAD: Final = TypeAdapter(TaskHead)


class _BrokenError(Exception):
    """Front matter that is refused before it is typed."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


class _Dumper(yaml.SafeDumper):
    """PyYAML turns the rarer line breaks into newlines, and leaves what is hidden hidden, unless told to escape."""


def _text(_dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_plain = visible(text, keep="\n") == text
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


_Dumper.add_representer(str, _text)


def task_md(task: Task) -> str:
    """Return the file's text: front matter, then the body as it is."""
    head = task.model_dump(mode="json", by_alias=True, exclude={"body"})
    for change in (*head["files"], *head["test_files"]):
        if change["from"] is None:
            del change["from"]
    text = yaml.dump(head, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000, default_flow_style=False)
    front = visible(text, keep="\n")
    return f"---\n{front}---\n{task.body}"


def parse_task_md(text: str) -> Task | Malformed:
    """Return the task that the file's text describes.

    Scalars are read as texts and then typed, so `id: 1` is the id "1"; a bare `null` is "not given". Anchors, aliases,
    tags and keys given twice are refused. The sentence of a Malformed names the line and what is accepted there.
    """
    if len(text) > MAX_BYTES:
        return Malformed(f"The file is larger than {MAX_BYTES} bytes.")
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    end = front_matter_end(lines)
    if not end:
        return Malformed("Line 1: accepted is front matter between two lines of `---`.")
    places: dict[str, int] = {"": 1}
    try:
        head = _read("\n".join(lines[1:end]), places)
    except _BrokenError as error:
        return Malformed(f"Line {error.line}: {error.message}.")
    try:
        found = _HEAD.validate_json(json.dumps(head), strict=True)
    except ValidationError as error:
        faults = explain(error.errors(), head, _HEAD.json_schema())
        spots = [(_line_of(fault.pointer, places), fault) for fault in faults]
        sentence = "; ".join(
            f"line {line}: {fault.pointer.lstrip('/') or 'file'}: {fault.text}" for line, fault in spots
        )
        return Malformed(f"{sentence[0].upper()}{sentence[1:]}.", faults[0].pointer)
    fields = {name: getattr(found, name) for name in TaskHead.model_fields}
    return Task(**fields, body="\n".join(lines[end + 1 :]))


def _line_of(pointer: str, places: dict[str, int]) -> int:
    while pointer not in places:
        pointer = pointer.rpartition("/")[0]
    return places[pointer]


def _read(head: str, places: dict[str, int]) -> JsonObject:
    """Return the front matter as JSON values and fill `places` with the line of each pointer."""
    depth = 0
    try:
        for number, event in enumerate(yaml.parse(head, Loader=yaml.BaseLoader)):
            line = event.start_mark.line + 2 if event.start_mark else 1
            if number > _MOST:
                raise _BrokenError(line, "the front matter is longer than that of any task")
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
                raise _BrokenError(line, "anchors and aliases are not accepted")
            if getattr(event, "tag", None) is not None:
                raise _BrokenError(line, "tags are not accepted")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise _BrokenError(line, "this nests too deep")
        root = yaml.compose(head, Loader=yaml.BaseLoader)
        if isinstance(root, yaml.MappingNode):
            return _mapping(root, (), places)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        raise _BrokenError(line, f"this is not YAML ({error.problem})") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise _BrokenError(1, "this is not YAML that can be read") from error
    raise _BrokenError(1, "accepted is a list of `key: value` lines")


def _value(node: Any, place: tuple[str | int, ...], places: dict[str, int]) -> object:
    places.setdefault(pointer_of(place), node.start_mark.line + 2)
    match node:
        case yaml.MappingNode():
            return _mapping(node, place, places)
        case yaml.SequenceNode():
            items: list[Any] = node.value
            return [_value(item, (*place, index), places) for index, item in enumerate(items)]
        case _:
            return _scalar(str(node.value), plain=node.style is None, is_flag=place[-1:] == ("new",))


def _mapping(node: yaml.MappingNode, place: tuple[str | int, ...], places: dict[str, int]) -> JsonObject:
    found: JsonObject = {}
    pairs: list[tuple[Any, Any]] = node.value
    for key_node, value_node in pairs:
        line = key_node.start_mark.line + 2
        if not isinstance(key_node, yaml.ScalarNode):
            raise _BrokenError(line, "a key is a word")
        key = str(key_node.value)
        if key in found:
            raise _BrokenError(line, f"the key {key!r} is given twice")
        places[pointer_of((*place, key))] = line
        found[key] = _value(value_node, (*place, key), places)
    return found


def _scalar(text: str, *, plain: bool, is_flag: bool) -> object:
    if plain and text in _NULLS:
        return None
    if plain and is_flag and text in {"true", "false"}:
        return text == "true"
    return text
