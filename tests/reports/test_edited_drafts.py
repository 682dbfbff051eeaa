"""An edited draft has the form of a rendered one, or is refused with the line and what is accepted there."""

from __future__ import annotations

import pytest

from pipeline.judge.reports.artifacts import PLAN_SECTIONS, TEST_DESIGN_PARTS, plan_md
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.drafts import PlanReport, SplitReport
from pipeline.judge.reports.edited import plan_form, task_form
from pipeline.judge.reports.fields import Action
from pipeline.judge.reports.parse import parse_report
from pipeline.judge.reports.taskfile import task_md
from pipeline.judge.reports.tasks import TASK_SECTIONS, Task, amend_tests, tasks_from_split
from pipeline.vocabulary import Role

REPORT = parse_report(
    "plan",
    Role.ORCHESTRATOR,
    None,
    {
        "problem": "It fails.\n\n# Not a title",
        "approach": "Mend it.",
        "files": [
            {"path": "a.py", "action": "modify", "why": "it is wrong"},
            {"path": "b c.py", "action": "rename", "from": "b.py"},
        ],
        "risks": ["None."],
        "out_of_scope": [{"title": "b rounds wrongly", "description": "also below zero"}],
        "test_design": {
            "behaviours": [{"action": "call it", "outcome": "it answers"}],
            "edge_cases": ["nothing"],
            "not_tested": ["all else"],
            "testability": ["fine"],
        },
    },
)
assert isinstance(REPORT, PlanReport), REPORT
PLAN = plan_md(REPORT, "GAL-1", "Mend it", 1)


def task() -> Task:
    """Return a task that has every section."""
    split = parse_report(
        "split",
        Role.ORCHESTRATOR,
        None,
        {
            "tasks": [
                {
                    "title": "t",
                    "acceptance_criteria": ["it answers"],
                    "files": [{"path": "a.py", "action": "modify"}],
                    "test_files": [{"path": "test_a.py", "action": "modify"}],
                    "tests_to_change": [{"id": "test_a.py::test_a", "reason": "it is wrong"}],
                    "code_context": [{"path": "a.py", "snippet": "def a():"}],
                    "integration_contract": "None.",
                    "constraints": ["Be short."],
                }
            ]
        },
    )
    assert isinstance(split, SplitReport), split
    tasks = tasks_from_split(split, ["1"])
    assert not isinstance(tasks, Malformed)
    (only,) = tasks
    other = only.tests_to_change[0].model_copy(update={"id": "test_a.py::test_b"})
    return amend_tests(only, [other], ["test_a.py"])


def test_what_is_rendered_has_exactly_the_sections_that_are_accepted() -> None:
    files, problems = plan_form(PLAN)
    assert problems == ()
    assert [(file.path, file.action, file.origin) for file in files] == [
        ("a.py", Action.MODIFY, None),
        ("b c.py", Action.RENAME, "b.py"),
    ]
    assert [line[3:] for line in PLAN.splitlines() if line.startswith("## ")] == list(PLAN_SECTIONS)
    assert [line[4:] for line in PLAN.splitlines() if line.startswith("### ")] == list(TEST_DESIGN_PARTS)
    text = task_md(task())
    assert task_form(text, task()) == ()
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == list(TASK_SECTIONS)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("## Problem", "## Problme", "did you mean 'Problem'?"),
        ("## Risks", "# Risks", "a second title, 'Risks'"),
        ("It fails.\n\n#### Not a title\n", "", "accepted is a section 'Problem' that says something"),
        ("### Edge Cases", "### Edge Case", "did you mean 'Edge Cases'?"),
        ("- `a.py` (modify)", "- a.py", "accepted is - `PATH` (create"),
        ("(modify)", "(paint)", "paint"),
        ("(modify)", "(rename)", "rename"),
        ("`a.py` (modify)", "`/a.py` (modify)", "the path is absolute"),
    ],
)
def test_a_part_of_a_plan_that_no_draft_has_is_told_with_its_line(old: str, new: str, says: str) -> None:
    assert old in PLAN
    text = PLAN.replace(old, new, 1)
    _, problems = plan_form(text)
    found = [problem for problem in problems if says in problem.message]
    assert found, problems
    assert found[0].line == 1 or new in text.splitlines()[found[0].line - 1]


def test_a_section_that_no_task_has_is_told_with_its_line() -> None:
    text = task_md(task()).replace("## Acceptance Criteria", "## Criteria")
    (problem,) = task_form(text, task())
    assert text.splitlines()[problem.line - 1] == "## Criteria"
    assert "Acceptance Criteria" in problem.message


def test_the_list_that_agents_read_is_that_of_the_front_matter_which_counts() -> None:
    whole = task()
    text = task_md(whole)
    path = whole.files[0].path
    (gone,) = task_form(text, whole.model_copy(update={"files": ()}))
    assert text.splitlines()[gone.line - 1] == f"- `{path}`"
    assert gone.message == f"{path} stands below 'Files to Modify' and not in `files` above, which counts"
    new = whole.files[0].model_copy(update={"path": "new.py"})
    (added,) = task_form(text, whole.model_copy(update={"files": (*whole.files, new)}))
    assert added.message == "new.py stands in `files` above, and not below 'Files to Modify', which agents read"
