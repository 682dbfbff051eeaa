"""Checks the form of drafts that a person edited, so that no part of them is overlooked."""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from pipeline.reports.artifacts import FILES, PLAN_SECTIONS, PROBLEM, TEST_DESIGN, TEST_DESIGN_PARTS
from pipeline.reports.fields import FileChange
from pipeline.reports.markdown import Document, Text, parse
from pipeline.reports.problems import Problem
from pipeline.reports.schema_errors import explain
from pipeline.reports.tasks import AMENDMENTS, FILES_TO_MODIFY, TASK_SECTIONS, TEST_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.reports.decode import JsonObject
    from pipeline.reports.tasks import Task

RULE: Final = "H020"
_FILE: Final = re.compile(
    r"\s*[-*+]\s+`(?P<path>[^`]+)`\s*\((?P<action>\w+)(?:\s+from\s+`(?P<from>[^`]+)`)?\)\s*(?::.*)?"
)
_LISTED: Final = re.compile(r"\s*[-*+]\s+`(?P<path>[^`]+)`")
_SCHEMA: Final = FileChange.model_json_schema()


def plan_form(text: str) -> tuple[tuple[FileChange, ...], tuple[Problem, ...]]:
    """Return the files that an edited plan names, and the problems of parts that our drafts do not have."""
    document = parse(text.removeprefix("\ufeff"))
    problems = [*_sections(document, "plan", PLAN_SECTIONS)]
    for line in document.headings:
        if line.section == TEST_DESIGN and line.text.startswith("### "):
            problems += _known(line, line.subsection, f"part of {TEST_DESIGN!r}", TEST_DESIGN_PARTS)
    said = any(line.text.strip() and not line.is_heading for line in document.section(PROBLEM))
    if not said and not problems:  # else it stands below a misspelt heading
        problems.append(Problem(1, RULE, f"accepted is a section {PROBLEM!r} that says something"))
    files: list[FileChange] = []
    for line in document.section(FILES):
        if re.match(r"\s*[-*+]\s", line.text):
            found = _file(line)
            if isinstance(found, Problem):
                problems.append(found)
            else:
                files.append(found)
    return tuple(files), tuple(sorted(problems))


def task_form(text: str, task: Task) -> tuple[Problem, ...]:
    """Return the problems of parts in an edited task file that our drafts do not have, or that contradict its head."""
    document = parse(text.removeprefix("\ufeff"))
    listed = ((FILES_TO_MODIFY, "files", task.files), (TEST_FILE, "test_files", task.test_files))
    contrary = [problem for section, key, files in listed for problem in _contrary(document, section, key, files)]
    return (*_sections(document, "task", TASK_SECTIONS), *contrary)


def _contrary(document: Document, section: str, key: str, files: Sequence[FileChange]) -> Iterator[Problem]:
    """Yield where the list below a heading, which agents read, is not that of the front matter, which counts."""
    items = ((line, _LISTED.match(line.text)) for line in document.section(section))
    said = {found["path"]: line.number for line, found in items if found is not None}
    wanted = [file.path for file in files]
    granted = "".join(line.text for line in document.section(AMENDMENTS))
    for path, number in said.items():
        if path not in wanted:
            yield Problem(number, RULE, f"{path} stands below {section!r} and not in `{key}` above, which counts")
    for path in wanted if said else ():
        if path not in said and path not in granted:
            yield Problem(
                min(said.values()),
                RULE,
                f"{path} stands in `{key}` above, and not below {section!r}, which agents read",
            )


def _sections(document: Document, what: str, accepted: Sequence[str]) -> Iterator[Problem]:
    titles = [line for line in document.headings if line.text.startswith("# ")]
    for line in titles[1:]:
        yield Problem(line.number, RULE, f"a second title, {line.text[2:].strip()!r}; sections begin with ##")
    for line in document.headings:
        if line.text.startswith("## "):
            yield from _known(line, line.section, f"section of a {what}", accepted)


def _known(line: Text, title: str, what: str, accepted: Sequence[str]) -> Iterator[Problem]:
    if title in accepted:
        return
    near = get_close_matches(title.title(), accepted, n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    yield Problem(line.number, RULE, f"{title!r} is no {what}; {meant}accepted are {', '.join(accepted)}")


def _file(line: Text) -> FileChange | Problem:
    found = _FILE.fullmatch(line.text)
    if found is None:
        return Problem(line.number, RULE, "accepted is - `PATH` (create, modify, delete, or rename from `PATH`): why")
    given: JsonObject = {key: value for key, value in found.groupdict().items() if value is not None}
    try:
        return FileChange.model_validate_json(json.dumps(given))
    except ValidationError as error:
        fault = explain(error.errors(), given, _SCHEMA)[0]
        return Problem(line.number, RULE, f"{fault.pointer.lstrip('/') or 'file'}: {fault.text}")
