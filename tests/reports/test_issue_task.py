"""An issue that nobody plans is one task: its criteria with ids, and later what was done for it."""

from __future__ import annotations

import pytest

from pipeline.judge.reports.fields import Action, FileChange, OldTest, Symbol
from pipeline.judge.reports.taskfile import parse_task_md, task_md
from pipeline.judge.reports.tasks import task_as_done, task_of_issue

LISTED = """# GAL-1: Names

Some are empty.

- [ ] no criterion, it stands above

## Acceptance criteria:

- [ ] `greet("")` raises
  ValueError
* [x] blank names, too
3. and nothing else

Some more words.

## Notes
- [ ] not this
"""


@pytest.mark.parametrize(
    ("body", "criteria"),
    [
        (LISTED, ['`greet("")` raises ValueError', "blank names, too", "and nothing else"]),
        ("Do it.\n\n- [ ] one\n- no box\n\n## More\n- [x] two\n", ["one", "two"]),
        ("Do it.\n\n- no box\n", ["Refuse empty names"]),
        ("## Acceptance criteria\n\nIt works.\n", ["Refuse empty names"]),
        ("## Acceptance criteria\n\n```\n- [ ] in a fence\n```\n- [ ] outside\n", ["outside"]),
        ("", ["Refuse empty names"]),
    ],
)
def test_criteria_are_the_items_of_their_section_else_all_boxes_else_the_title(body: str, criteria: list[str]) -> None:
    task = task_of_issue("Refuse empty names", body)
    assert [one.text for one in task.criteria] == criteria
    assert (task.id, task.files, task.criteria[0].id) == ("1", (), "C1")
    assert parse_task_md(task_md(task)) == task


def test_what_was_done_is_written_over_it_and_the_criteria_stay() -> None:
    task = task_of_issue("Refuse empty names", LISTED)
    changes = (
        (FileChange(path="greet.py", action=Action.MODIFY),),
        (FileChange(path="test_a.py", action=Action.CREATE),),
    )
    done = task_as_done(task, *changes, (Symbol(name="shout", path="greet.py"),), (OldTest(id="t", reason="why"),))
    assert done.acceptance_criteria == task.acceptance_criteria
    assert ([one.path for one in done.files], [one.path for one in done.test_files]) == (["greet.py"], ["test_a.py"])
    assert parse_task_md(task_md(done)) == done
