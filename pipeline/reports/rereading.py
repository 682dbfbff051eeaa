"""Reads plan.md and task files that a person edited, section by section, as the fields of a draft."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pipeline.policy.characters import on_one_line
from pipeline.reports.artifacts import APPROACH, FILES, PROBLEM, RISKS, TEST_DESIGN, TEST_DESIGN_PARTS, plan_md
from pipeline.reports.drafts import Behaviour, DesignOfTests, PlannedFile
from pipeline.reports.edited import plan_form
from pipeline.reports.tasks import CRITERIA, body_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.reports.drafts import Plan, SplitTask
    from pipeline.reports.tasks import Task

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
