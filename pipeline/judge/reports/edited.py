"""Checks the form of drafts that a person edited, so that no part is overlooked, and reads their sections as fields."""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from pipeline.characters import on_one_line
from pipeline.judge.reports.artifacts import (
    APPROACH,
    FILES,
    PLAN_SECTIONS,
    PROBLEM,
    RISKS,
    TEST_DESIGN,
    TEST_DESIGN_PARTS,
    plan_md,
)
from pipeline.judge.reports.drafts import Behaviour, DesignOfTests, Plan, PlannedFile, SplitTask
from pipeline.judge.reports.fields import FileChange
from pipeline.judge.reports.markdown import Document, Text, parse
from pipeline.judge.reports.problems import Problem
from pipeline.judge.reports.schema_errors import explain
from pipeline.judge.reports.tasks import AMENDMENTS, CRITERIA, FILES_TO_MODIFY, TASK_SECTIONS, TEST_FILE, Task, body_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.judge.reports.decode import JsonObject


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


_HEADING: Final = re.compile(r"^## +(.+?) *$", re.MULTILINE)
_PART: Final = re.compile(r"^### +(.+?) *$", re.MULTILINE)
_ITEM: Final = re.compile(r"^[-*+] +", re.MULTILINE)
_BEHAVIOUR: Final = re.compile(r"ACTION: *(?P<action>.*?) *OUTCOME: *(?P<outcome>.*)", re.DOTALL)
_WHY: Final = re.compile(r"`(?P<path>[^`]+)`[^:]*: *(?P<why>.*)", re.DOTALL)


def plan_reread(text: str, drafted: Plan) -> dict[str, Any]:
    """Return the fields of a plan whose sections a person changed in its file."""
    now = _changed(_parts(text, _HEADING), _parts(plan_md(drafted, "X-1", "x", 1), _HEADING))
    found: dict[str, Any] = {}
    if now.get(PROBLEM):
        found["problem"] = now[PROBLEM]
    if APPROACH in now:
        found["approach"] = now[APPROACH]
    if RISKS in now:
        found["risks"] = _items(now[RISKS])
    if FILES in now:
        why = {said["path"]: said["why"] for said in map(_WHY.match, _items(now[FILES])) if said is not None}
        files, _ = plan_form(text)
        found["files"] = tuple(
            PlannedFile.model_validate({**one.model_dump(by_alias=True), "why": why.get(one.path, "")}) for one in files
        )
    if TEST_DESIGN in now:
        parts = [_items(_parts(now[TEST_DESIGN], _PART).get(name, "")) for name in TEST_DESIGN_PARTS]
        said = [match for match in map(_BEHAVIOUR.match, parts[0]) if match is not None]
        behaviours = tuple(Behaviour(action=one["action"], outcome=one["outcome"]) for one in said)
        found["test_design"] = DesignOfTests(
            behaviours=behaviours, edge_cases=parts[1], not_tested=parts[2], testability=parts[3]
        )
    return found


def task_reread(task: Task, drafted: SplitTask) -> dict[str, Any]:
    """Return the fields of a task by its file: those of the front matter, and those whose sections were changed."""
    keys = ("title", "files", "test_files", "symbols", "tests_to_change", "evidence", "symptom")
    found: dict[str, Any] = {key: getattr(task, key) for key in keys}
    now = _changed(_parts(task.body, _HEADING), _parts(body_of(drafted, task.id), _HEADING))
    for name, key in (("Task", "description"), ("Integration Contract", "integration_contract")):
        if name in now:
            found[key] = now[name]
    if "Constraints" in now:
        found["constraints"] = _items(now["Constraints"])
    if CRITERIA in now:
        found["acceptance_criteria"] = task.acceptance_criteria
    return found


def _changed(now: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Return the sections that differ; a removed one has an empty text."""
    names = dict.fromkeys((*now, *before))
    return {name: now.get(name, "") for name in names if now.get(name, "") != before.get(name, "")}


def _parts(text: str, heading: re.Pattern[str]) -> dict[str, str]:
    """Return the texts below the headings of one level, by heading."""
    found = heading.split(text.replace("\r\n", "\n"))[1:]
    return {name: body.strip() for name, body in zip(found[::2], found[1::2], strict=True)}


def _items(text: str) -> tuple[str, ...]:
    return tuple(on_one_line(item) for item in _ITEM.split(text) if item.strip())
