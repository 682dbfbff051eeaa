"""Writes and reads `task-<id>.md`. Its front matter is read by machine; a person may edit it in a parked run."""

from __future__ import annotations

import json
from typing import Final

import yaml
from pydantic import TypeAdapter, ValidationError

from pipeline.characters import visible
from pipeline.judge.reports.decode import MAX_BYTES, JsonObject, Malformed
from pipeline.judge.reports.markdown import front_matter_end
from pipeline.judge.reports.schema_errors import explain
from pipeline.judge.reports.tasks import Task, TaskHead
from pipeline.yaml_text import YamlError, read, text_or_null, written

_DEEPEST: Final = 4
"""The deepest YAML nesting: a mapping, its lists, their mappings, and one to spare."""
_MOST: Final = 20_000
"""The most YAML events: no task has thousands of list items."""
_WIDTH: Final = 10_000
"""Characters of a line: none is folded, so that a path or a command stays in one."""
_HEAD: Final = TypeAdapter(TaskHead)


class _Dumper(yaml.SafeDumper):
    """A YAML dumper that escapes rare line breaks and invisible characters, which PyYAML would change or keep."""


def _text(_dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_plain = visible(text, keep="\n") == text
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


_Dumper.add_representer(str, _text)


def task_md(task: Task) -> str:
    """Return the text of a task file: front matter, then the unchanged body."""
    head = task.model_dump(mode="json", by_alias=True, exclude={"body"})
    for change in (*head["files"], *head["test_files"]):
        if change["from"] is None:
            del change["from"]
    text = written(head, _Dumper, _WIDTH)
    front = visible(text, keep="\n")
    return f"---\n{front}---\n{task.body}"


def parse_task_md(text: str) -> Task | Malformed:
    """Return the task in a task file's text.

    Scalars are read as texts and then typed, so `id: 1` is the id "1"; a bare `null` is "not given". Anchors, aliases,
    tags and keys given twice are refused. The sentence of a Malformed names the line and what is accepted there.
    """
    if len(text) > MAX_BYTES:
        return Malformed(f"The file is larger than {MAX_BYTES} bytes.")
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    end = front_matter_end(lines)
    if not end:
        return Malformed("Line 1: accepted is front matter between two lines of `---`.")
    try:
        front = read("\n".join(lines[1:end]), scalar=_scalar, deepest=_DEEPEST, most=_MOST, first_line=2)
    except YamlError as error:
        return Malformed(f"Line {error.line}: {error.message}.")
    if front.mapping is None:
        return Malformed("Line 1: accepted is a list of `key: value` lines.")
    head: JsonObject = front.mapping
    try:
        found = _HEAD.validate_json(json.dumps(head), strict=True)
    except ValidationError as error:
        faults = explain(error.errors(), head, _HEAD.json_schema())
        spots = [(front.place(fault.pointer)[0], fault) for fault in faults]
        sentence = "; ".join(
            f"line {line}: {fault.pointer.lstrip('/') or 'file'}: {fault.text}" for line, fault in spots
        )
        return Malformed(f"{sentence[0].upper()}{sentence[1:]}.", faults[0].pointer)
    fields = {name: getattr(found, name) for name in TaskHead.model_fields}
    return Task(**fields, body="\n".join(lines[end + 1 :]))


def _scalar(text: str, key: str) -> object:
    """Return null and the flag `new` as such, any other scalar as text."""
    return text == "true" if key == "new" and text in {"true", "false"} else text_or_null(text, key)
