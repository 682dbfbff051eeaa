from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.drafts import SplitReport
from pipeline.judge.reports.fields import Action, FileChange, Need, OldTest, Symbol, Symptom
from pipeline.judge.reports.parse import parse_report
from pipeline.judge.reports.taskfile import parse_task_md, task_md
from pipeline.judge.reports.tasks import Task, amend_task, amend_tests, execution_order, tasks_from_split
from pipeline.vocabulary import Role

pytestmark = pytest.mark.slow


def split(*tasks: dict[str, Any]) -> SplitReport:
    least = {"title": "t", "acceptance_criteria": ["c"], "files": [], "test_files": []}
    report = parse_report("split", Role.ORCHESTRATOR, None, {"tasks": [{**least, **task} for task in tasks]})
    assert isinstance(report, SplitReport), report
    return report


def tasks_of(*tasks: dict[str, Any]) -> tuple[Task, ...]:
    found = tasks_from_split(split(*tasks), map(str, count(1)))
    assert not isinstance(found, Malformed), found
    return found


FULL: dict[str, Any] = {
    "title": "Reject: empty 'names'",
    "acceptance_criteria": ['`greet("")` raises ValueError', "", "a\nb"],
    "files": [{"path": "src/g.py", "action": "modify"}, {"path": "n.py", "action": "rename", "from": "null"}],
    "test_files": [{"path": "tests/test_g.py", "action": "create"}],
    "code_context": [{"path": "src/g.py", "snippet": "def greet(name):\n```"}],
    "symbols": [{"name": "greet", "new": False}, {"name": "Empty", "path": "n.py", "signature": "true"}],
    "tests_to_change": [{"id": "tests/test_g.py::test_x[a: b]", "reason": "pins\nthe old"}],
    "integration_contract": "greet(name) -> str",
    "constraints": ["no new dependency"],
    "description": "Reject them.\n## Constraints\n```\nopen",
    "symptom": "crash",
}


def test_a_split_becomes_tasks_with_our_ids() -> None:
    found = tasks_from_split(split({}, {"depends_on": [1, 1]}), ["fix-3", "fix-4", "fix-5"])
    assert isinstance(found, tuple)
    assert [task.id for task in found] == ["fix-3", "fix-4"]
    assert found[1].depends_on == ("fix-3",)


@pytest.mark.parametrize(
    ("dependencies", "pointer", "needle"),
    [
        ([[2]], "/tasks/0/depends_on", "no task 2"),
        ([[0]], "/tasks/0/depends_on", "no task 0"),
        ([[], [2]], "/tasks/1/depends_on", "itself"),
        ([[], [3], [2]], "/tasks/1/depends_on", "cycle"),
    ],
)
def test_dependencies_that_cannot_be_met_are_malformed(
    dependencies: list[list[int]], pointer: str, needle: str
) -> None:
    found = tasks_from_split(split(*({"depends_on": numbers} for numbers in dependencies)), map(str, count(1)))
    assert isinstance(found, Malformed)
    assert found.pointer == pointer
    assert needle in found.sentence


def test_tasks_are_done_in_the_order_of_dependencies_then_of_the_list() -> None:
    tasks = tasks_of({"depends_on": [3]}, {}, {}, {"depends_on": [1]})
    assert [task.id for task in execution_order(tasks)] == ["2", "3", "1", "4"]


def test_a_task_file_has_the_sections_that_agents_know() -> None:
    text = task_md(tasks_of(FULL)[0])
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == [
        "## Task", "## Acceptance Criteria", "## Code Context", "## Files to Modify", "## Test File",
        "## Tests to Change", "## Integration Contract", "## Constraints",
    ]  # fmt: skip
    assert "- `n.py` (rename) from `null`" in text
    assert "- `tests/test_g.py` (create)" in text
    assert "#### Constraints" in text


def test_the_criteria_can_be_read_back_from_the_body() -> None:
    assert tasks_of(FULL)[0].acceptance_criteria == ('`greet("")` raises ValueError', "a b")


def test_the_file_parses_back_to_the_same_task() -> None:
    task = tasks_of(FULL)[0]
    assert parse_task_md(task_md(task)) == task
    assert parse_task_md(task_md(task).replace("\n", "\r\n")) == task


_TRICKY = [
    "null",
    "~",
    "true",
    "1",
    "- x",
    "a: b",
    "#",
    "'",
    '"',
    "&a",
    "*a",
    "!t",
    "---",
    "{",
    "|",
    "yes",
    "1_0",
    "=",
    "<<",
]
_WORDS = st.sampled_from(_TRICKY) | st.text(min_size=1, max_size=30).filter(
    lambda text: text.strip() != "" and text.isprintable()
)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.text(
    "ab \n\t\r\x85\u2028\ufeff'\":#-", max_size=12
)
_PATHS = st.sampled_from(["null", "a.py", "src/ü b.py", "true", "1", "x: y", "~", "[a]", "- b", "#c", "'q'"])


@st.composite
def changes(draw: st.DrawFn) -> FileChange:
    action = draw(st.sampled_from(Action))
    origin = "old" if action is Action.RENAME else None
    return FileChange.model_validate({"path": draw(_PATHS), "action": action, "from": origin})


_SUITE_FILES = st.builds(FileChange, path=_PATHS, action=st.sampled_from([Action.MODIFY, Action.CREATE]))
_TASKS = st.builds(
    Task,
    id=st.sampled_from(["1", "12", "fix-1"]),
    title=_WORDS,
    files=st.lists(changes(), max_size=3).map(tuple),
    test_files=st.lists(_SUITE_FILES, max_size=2).map(tuple),
    symbols=st.lists(st.builds(Symbol, name=_WORDS, signature=_TEXTS, new=st.booleans()), max_size=2).map(tuple),
    tests_to_change=st.lists(st.builds(OldTest, id=_WORDS, reason=_TEXTS), max_size=2).map(tuple),
    depends_on=st.lists(st.sampled_from(["1", "fix-2"]), max_size=2).map(tuple),
    symptom=st.sampled_from([None, *Symptom]),
    body=_TEXTS.filter(lambda text: "\r\n" not in text),
)


@given(_TASKS)
def test_any_task_survives_the_way_through_its_file(task: Task) -> None:
    assert parse_task_md(task_md(task)) == task


@given(st.text(max_size=80) | st.text(max_size=80).map(lambda text: f"---\n{text}\n---\n"))
def test_no_text_makes_parsing_raise(text: str) -> None:
    assert isinstance(parse_task_md(text), Task | Malformed)


GOOD = "---\nid: 1\ntitle: t\nfiles:\n- path: a.py\n  action: modify\ntest_files: []\n---\nbody\n"


def test_what_a_person_writes_by_hand_is_read_as_meant() -> None:
    task = parse_task_md("\ufeff" + GOOD.replace("title: t", "title: 1.0\nsymptom:\nevidence: regression"))
    assert isinstance(task, Task)
    assert (task.id, task.title, task.symptom, task.body) == ("1", "1.0", None, "body\n")


@pytest.mark.parametrize(
    ("old", "new", "line", "needle"),
    [
        ("modify", "frob", 6, "accepted is 'modify', 'create', 'delete' or 'rename'"),
        ("a.py", "../a.py", 5, "accepted: a relative POSIX path"),
        ("id: 1", "id: first", 2, "matches"),
        ("title: t", "title: t\nowner: me", 4, "accepted keys are id, title, files"),
        ("title: t", "title: t\ntitle: u", 4, "given twice"),
        ("title: t", "title: &a t", 3, "anchors"),
        ("title: t", "title: t\nsymptom: *a", 4, "anchors"),
        ("title: t", "title: !!python/name:os.system t", 3, "tags"),
        ("title: t", "title: [", 5, "not YAML"),
        ("title: t\n", "", 1, "title: this key is required"),
        ("- path: a.py\n  action: modify", "- a.py", 5, "files/0"),
        ("---\nid", "id", 1, "front matter"),
        ("id: 1", "? [a]\n: b", 2, "a key is a word"),
    ],
)  # fmt: skip
def test_a_broken_edit_is_named_with_its_line_and_what_is_accepted(old: str, new: str, line: int, needle: str) -> None:
    assert isinstance(parse_task_md(GOOD), Task)
    found = parse_task_md(GOOD.replace(old, new, 1))
    assert isinstance(found, Malformed)
    assert found.sentence.startswith(f"Line {line}: ")
    assert needle in found.sentence


def test_front_matter_nested_without_end_is_refused() -> None:
    assert isinstance(parse_task_md(GOOD.replace("title: t", "title: " + "[" * 50_000)), Malformed)


def below_tests(path: str) -> bool:
    return path.startswith("tests/")


def test_granted_paths_are_added_where_they_belong() -> None:
    (task,) = tasks_of({"files": [{"path": "a.py", "action": "modify"}]})
    needs = [
        Need(path="b.py", action="create", why="new home"),
        Need(path="tests/conftest.py"),
        Need(path="a.py", action="delete"),
    ]
    amended = amend_task(task, needs, "asked for", is_test=below_tests)
    assert [(change.path, change.action) for change in amended.files] == [("a.py", "delete"), ("b.py", "create")]
    assert [change.path for change in amended.test_files] == ["tests/conftest.py"]
    assert amended.body.startswith(task.body)
    assert "- `b.py` (create): new home\n- `tests/conftest.py` (modify): asked for\n" in amended.body
    assert parse_task_md(task_md(amended)) == amended
    assert amend_task(task, [], "", is_test=below_tests) == task


def test_amendments_share_one_section() -> None:
    (task,) = tasks_of({})
    task = amend_task(task, [Need(path="a.py")], "w", is_test=below_tests)
    task = amend_tests(task, [OldTest(id="tests/test_o.py::test_old", reason="pins it")], ["tests/test_o.py"])
    assert task.body.count("## Amendments") == 1
    assert [test.id for test in task.tests_to_change] == ["tests/test_o.py::test_old"]
    assert [change.path for change in task.test_files] == ["tests/test_o.py"]
