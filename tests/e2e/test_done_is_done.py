"""Whole runs: what passed and does not is never published, whatever a task lists, a diagnosis grants or an agent says.

Each story of the first part was published once, with exit 0, over a suite that fails.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import diagnoses, finding, go_on, play, resolved, review
from e2e.shapes import FAST, SUMS, answers, evidence, sums_project
from kit import (
    AFTER_MAKE,
    FILES,
    GREET,
    GREET_DONE,
    HONEST,
    MAKE,
    NEW_ID,
    PLAN,
    PLAN_ACCEPTED,
    PLAN_SIMPLE,
    SPLIT_ACCEPTED,
    TASK,
    TEST_GREET,
    TEST_GREET_NEW,
    TESTS,
    judge,
    make_project,
)

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.lanes import Played
    from kit import Entry, Project


pytestmark = pytest.mark.slow

OLD = "tests/test_old.py::test_shouts"
TEST_OLD = 'from greet import greet\n\n\ndef test_shouts():\n    assert greet("Ada").upper() == "HELLO, ADA!"\n'
BREAKING = GREET.replace(
    "    return", '    if not name:\n        raise ValueError("a name is needed")\n    return'
).replace("!", ".")
TEST_NEW = (
    "import pytest\n\nfrom greet import greet\n\n\n"
    'def test_empty():\n    with pytest.raises(ValueError):\n        greet("")\n'
)
"""The module's one old test is `tests/test_old.py`: what ends a greeting is noticed by nothing else."""


def project_of(tmp_path: Path, files: dict[str, str] | None = None) -> Project:
    """Return a project whose one old test notices how a greeting ends."""
    kept = {path: text for path, text in FILES.items() if path != "tests/test_greet.py"}
    return make_project(tmp_path, {**kept, "tests/test_old.py": TEST_OLD, **(files or {})})


def until_tests(**task: Any) -> list[Entry]:
    """Return the answers that lead to one task."""
    plan = {**PLAN, "report": {**PLAN["report"], "files": task.get("files", TASK["files"])}}
    split = {"when": {"kind": "split"}, "report": {"tasks": [{**TASK, **task}]}}
    return [plan, PLAN_ACCEPTED, PLAN_SIMPLE, split, SPLIT_ACCEPTED]


def played(project: Project, entries: list[Entry], extra: str = FAST) -> dict[str, Any]:
    """Return the document of a run; its script may end early: such a run parks."""
    project.use_script(entries, extra)
    return project.run()


def is_unpublished(project: Project, document: dict[str, Any]) -> bool:
    """Return whether the run has put no commit on the branch, and does not say that it is done."""
    begun = json.loads((project.run_folder() / "run.json").read_text(encoding="utf-8"))["start_commit"]
    return (
        project.git("rev-parse", "HEAD") == begun and document.get("outcome") != "completed" and document["_code"] != 0
    )


def written(files: dict[str, str | None]) -> Entry:
    return {**TESTS, "files": files, "report": {"verdict": "TESTS_READY"}}


def story(project: Project, made: str, *then: Entry, test: str = "tests/test_new.py", **more: Any) -> dict[str, Any]:
    """Return the document of a run whose @test brings a new file, and whose @make writes this code."""
    task = {"test_files": [{"path": test, "action": "create"}], **more.get("task", {})}
    tests = written({test: more.get("text", TEST_NEW)})
    return played(project, [*until_tests(**task), tests, {**MAKE, "files": {"greet.py": made}}, *then])


@pytest.mark.broad
def test_a_test_that_broke_has_to_pass_though_the_task_lists_it_or_a_diagnosis_gives_leave_to_change_it(
    tmp_path: Path,
) -> None:
    project = project_of(tmp_path)
    leave = [{"id": OLD, "reason": "the ending may change"}]
    let_it = judge("diagnose", diagnosis="production_logic", notes="let it", tests_to_change=leave)
    again = {**MAKE, "files": {"greet.py": BREAKING}}
    document = story(project, BREAKING, let_it, again, *AFTER_MAKE, task={"tests_to_change": leave})
    assert project.rows().count("implement/REGRESSION") == 2, project.rows()
    assert is_unpublished(project, document)


DEAD = {
    "dead.py": "def dead():\n    return 1\n",
    "tests/test_dead.py": "import dead\n\n\ndef test_dead():\n    dead.dead()\n",
}
REMOVAL: dict[str, Any] = {
    "evidence": "regression",
    "files": [{"path": "dead.py", "action": "delete"}],
    "test_files": [{"path": "tests/test_dead.py", "action": "delete"}],
    "tests_to_change": [{"id": "tests/test_dead.py", "reason": "its code goes"}],
}


def removal(tmp_path: Path) -> tuple[Project, list[Entry], Entry]:
    """Return a project with dead code and its test, the answers that lead to a task that removes both, and @make's."""
    return project_of(tmp_path, DEAD), until_tests(**REMOVAL), {**MAKE, "files": {"dead.py": None}}


NO_TEST = {"when": {"kind": "write-tests"}, "report": {"verdict": "NOT_TESTABLE", "reason": "config-only"}}


@pytest.mark.broad
def test_a_test_that_goes_while_its_code_stays_is_not_done(tmp_path: Path) -> None:
    project, first, made = removal(tmp_path)
    gone = written({"tests/test_dead.py": None})
    document = played(project, [*first, gone, {**made, "files": {}}, *AFTER_MAKE])
    assert "implement/NO_CHANGE" in project.rows(), project.rows()
    assert is_unpublished(project, document)


@pytest.mark.parametrize("beside", ["tests/helpers.py", "tests/test_old.py"])
@pytest.mark.broad
def test_what_changes_beside_a_removal_is_for_check_to_judge(beside: str, tmp_path: Path) -> None:
    project = project_of(tmp_path, {**DEAD, "tests/helpers.py": "def check(a, b):\n    assert a == b\n"})
    files = [*REMOVAL["test_files"], {"path": beside, "action": "modify"}]
    changed = written({"tests/test_dead.py": None, beside: "def check(a, b):\n    pass\n"})
    leave = [*REMOVAL["tests_to_change"], {"id": beside, "reason": "its imports"}]
    task = {**REMOVAL, "test_files": files, "tests_to_change": leave}
    played(project, [*until_tests(**task), changed])
    assert "write-tests/RED" not in project.rows(), project.rows()
    assert project.rows()[-1].startswith("write-tests/")


@pytest.mark.broad
def test_dead_code_whose_test_nobody_removes_is_not_done(tmp_path: Path) -> None:
    project, first, made = removal(tmp_path)
    accepted = judge("not_testable", accepted=True)
    document = played(project, [*first, NO_TEST, accepted, made, *AFTER_MAKE])
    assert "implement/NOT_GREEN" in project.rows(), project.rows()
    assert is_unpublished(project, document)
    told = next((project.run_folder() / "evidence").glob("green-*.md")).read_text(encoding="utf-8")
    assert "cannot be collected" in told
    assert "tests/test_dead.py" in told


@pytest.mark.broad
def test_the_suite_is_held_against_the_baseline_before_anything_is_published(tmp_path: Path) -> None:
    """An edit of a comment changes no program, so that nothing was measured after it; a test reads the comment."""
    reads = 'def test_says_so():\n    assert "won" in open("greet.py").read()\n'
    project = project_of(tmp_path, {"greet.py": "# the won\n" + GREET, "tests/test_reads.py": reads})
    made = "# the won\n" + BREAKING.replace(".'", "!'").replace('."', '!"')
    typo = finding("A typo", concern="cosmetic", edit={"path": "greet.py", "old": "won", "new": "two"})
    first = review("review-result", "NEEDS WORK", typo)
    document = story(project, made, first, review("review-result", "ACCEPTABLE", prior=resolved("final-1-01")))
    assert project.rows()[-2:] == ["final-review/ACCEPTABLE", "publish/REGRESSION"], document["_stderr"]
    assert (document["outcome"], document["reason"], document["_code"]) == ("parked", "regression", 4)
    assert is_unpublished(project, document)
    told = (project.run_folder() / "evidence/published.md").read_text(encoding="utf-8")
    assert "tests/test_reads.py::test_says_so passed and fails now" in told
    assert project.document("resume", "run-GAL-1")["reason"] == "regression", "it is measured again, and fails again"


# --- old tests that pass only because of new files --------------------------------------------------------------------

PATCHES = """import greet as _module

_said = _module.greet
_module.greet = lambda name: _said(name).replace(".", "!")
"""


@pytest.mark.broad
def test_a_new_module_that_patches_the_code_is_not_there_when_old_tests_are_run_again(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    project.probed = True
    document = story(project, BREAKING, *AFTER_MAKE, test="tests/test_a_new.py", text=f"{PATCHES}\n{TEST_NEW}")
    assert "implement/GREEN_UNSTABLE" in project.rows(), document["_stderr"]
    assert is_unpublished(project, document)
    assert "the old tests as they were" not in document["_stderr"], "new files of tests alone cost no measurement"


# --- a test that fails already can be the RED of a task as it is, and Done means that it passes -----------------------

FAILING = {**FILES, "tests/test_greet.py": TEST_GREET_NEW}
NAMES_IT = {"acceptance_criteria": [f"{NEW_ID} passes"]}
NOTHING = written({})


@pytest.mark.broad
def test_make_this_failing_test_pass(tmp_path: Path) -> None:
    project = make_project(tmp_path, FAILING)
    document = played(project, [*until_tests(**NAMES_IT), NOTHING, MAKE, *AFTER_MAKE])
    assert document.get("outcome") == "completed", document["_stderr"]
    assert project.rows()[6:8] == ["write-tests/RED", "implement/GREEN"]
    assert list(evidence(project, "task-1.json")["ledger"]["red"]) == [NEW_ID]
    checked = project.document("verify", "work~1")
    assert checked["_code"] == 0, checked


@pytest.mark.broad
def test_a_failing_test_of_another_file_is_taken_with_the_leave_of_check(tmp_path: Path) -> None:
    project = make_project(tmp_path, {**FAILING, "tests/test_other.py": "def test_other():\n    assert True\n"})
    task = {"test_files": [{"path": "tests/test_other.py", "action": "modify"}]}
    named = {**NOTHING, "report": {"verdict": "TESTS_READY", "tests": [{"id": NEW_ID}]}}
    agreed = judge("tests", verdict="ACCEPTABLE")
    document = played(project, [*until_tests(**task), named, agreed, MAKE, *AFTER_MAKE])
    assert project.rows()[6:9] == ["write-tests/DISPUTED", "check-tests/ACCEPTABLE", "implement/GREEN"]
    assert document.get("outcome") == "completed", document["_stderr"]


@pytest.mark.broad
def test_judged_by_regression_the_named_test_passes_or_nothing_is_done(tmp_path: Path) -> None:
    project = make_project(tmp_path, FAILING)
    task = {"evidence": "regression", **NAMES_IT}
    lazy = {**MAKE, "files": {"greet.py": GREET + "\n# tidied\n"}}
    entries = [*until_tests(**task), lazy, *AFTER_MAKE]
    document = played(project, entries)
    assert "implement/NOT_GREEN" in project.rows()
    assert is_unpublished(project, document)


@pytest.mark.broad
def test_the_next_run_takes_up_what_a_failed_one_left_on_the_branch(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    stuck = FAST + '[limits]\nplan_rework = 0\n[failure]\nkeep = "wip"\n'
    wrong = {**MAKE, "files": {"greet.py": GREET + "\n# wrong\n"}}
    gives_up = judge("diagnose", diagnosis="plan", notes="it is wrong")
    failed = played(project, [*until_tests(), TESTS, wrong, gives_up], stuck)
    assert failed.get("outcome") == "failed", failed["_stderr"]
    project.use_script(HONEST)
    again = project.run()
    assert again.get("outcome") == "completed", again["_stderr"]
    assert project.rows("run-GAL-1@2")[6:8] == ["write-tests/RED", "implement/GREEN"]


TABLE = """from greet import greet

NAMED = {{"Ada": "Hello, Ada!"{more}}}


def outcome(name):
    try:
        return greet(name)
    except ValueError:
        return None


def test_each_name():
    for name, text in NAMED.items():
        assert outcome(name) == text
"""


@pytest.mark.broad
def test_rows_that_are_added_to_a_table_are_red_where_their_test_is_named(tmp_path: Path) -> None:
    test = "tests/test_greet.py::test_each_name"
    project = make_project(tmp_path, {**FILES, "tests/test_greet.py": TABLE.format(more="")})
    rows = {"tests/test_greet.py": TABLE.format(more=', "": None')}
    named = {**TESTS, "files": rows, "report": {"verdict": "TESTS_READY", "tests": [{"id": test}]}}
    agreed = judge("tests", verdict="ACCEPTABLE")
    document = played(project, [*until_tests(), named, agreed, MAKE, *AFTER_MAKE])
    assert document.get("outcome") == "completed", (project.rows(), document["_stderr"])
    assert project.rows()[6:9] == ["write-tests/CHANGED_OLD_TEST", "check-tests/ACCEPTABLE", "implement/GREEN"]
    assert list(evidence(project, "task-1.json")["ledger"]["red"]) == [test]
    checked = project.document("verify", "work~1")
    assert checked["_code"] == 0, checked


# --- old tests are measured as they were over the new code, whatever was done to their text ---------------------------

SIGNAL = "implement/HIDDEN_REGRESSION"
OLD_CHECK = "greet.check::nothing"
AGREES = judge("tests", verdict="ACCEPTABLE")


def changed_run(tmp_path: Path, changed: str, new: str, code: str, *answered: Entry, **task: Any) -> Played:
    """Return a run in which the old check becomes *changed*, beside a *new* one, and the sum *code*."""
    script = answers(SUMS, {"greet.check": f"nothing: {changed}\ntwo: {new}\n"}, {"greet.sum": f"{code}\n"})
    script[3]["report"]["tasks"][0] |= task
    before = [one for one in answered if one is AGREES]
    after = [one for one in answered if one is not AGREES]
    return play(sums_project(tmp_path), [*script[:6], *before, script[6], *after, *script[7:]], extra=FAST)


def told(found: Played) -> str:
    return found.asked("diagnose", role="check").text("test_output")


def test_a_changed_test_over_broken_code_is_a_signal_and_none_over_right_code(tmp_path: Path) -> None:
    wrong = judge("diagnose", diagnosis="production_logic", notes="nothing stays nothing")
    right = answers(SUMS, {}, {"greet.sum": "greet n = n * 2\n"})[6]
    found = changed_run(tmp_path, "greet 2 = 4", "greet 2 = 4", "greet n = n + 2", AGREES, wrong, right)
    assert found.document["outcome"] == "completed", (found.rows, found.document["note"])
    assert found.rows.count(SIGNAL) == 1, "over the code that makes nothing of nothing again, the test may be another"
    assert f"changed to fit: {OLD_CHECK} fails: " in told(found)
    assert evidence(found.project, "task-1.json")["green"]["as_they_were"] == []
    checked = found.project.redfirst("verify", "HEAD~1")
    assert checked.returncode == 0, checked.stdout


def test_what_the_task_lists_is_told_to_the_final_review_by_its_id_and_reason(tmp_path: Path) -> None:
    listed = [{"id": OLD_CHECK, "reason": "the issue adds one"}]
    found = changed_run(tmp_path, "greet 0 = 1", "greet 2 = 3", "greet n = n + 1", tests_to_change=listed)
    assert found.document["outcome"] == "completed", (found.rows, found.document["note"])
    line = f"{OLD_CHECK} fails in its old form, as planned: the issue adds one"
    assert line in found.asked("final-review", role="check").text("evidence")
    checked = found.project.redfirst("verify", "HEAD~1")
    assert checked.returncode == 0, checked.stdout
    assert line in checked.stdout
    place = found.folder / "evidence/task-1.json"  # as an earlier version wrote it
    earlier: dict[str, Any] = {**json.loads(place.read_text("utf-8")), "loosened": ["words"], "reworked": []}
    del earlier["green"]["as_they_were"]
    place.write_text(json.dumps(earlier), "utf-8")
    checked = found.project.redfirst("verify", "HEAD~1")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.broad
def test_an_old_file_that_cannot_be_collected_any_more_is_a_signal_with_its_error(tmp_path: Path) -> None:
    other = TEST_GREET_NEW.replace("from greet import greet", "from greet import salute as greet")
    renamed = GREET_DONE.replace("def greet", "def salute")
    symbols = [{"path": "greet.py", "name": "salute", "new": True}]
    leave = judge(
        "diagnose",
        diagnosis="production_logic",
        notes="all is as the issue says",
        tests_to_change=[{"id": "tests/test_greet.py", "reason": "greet is called salute"}],
    )
    script = answers(FILES, {"tests/test_greet.py": other}, {"greet.py": renamed}, symbols=symbols)
    found = play(make_project(tmp_path), [*script[:7], leave, *script[7:]], extra=FAST)
    assert found.document["outcome"] == "completed", (found.rows, found.document["note"])
    assert found.rows.count(SIGNAL) == 1, found.rows
    assert "tests/test_greet.py cannot be collected any more: ImportError: cannot import name 'greet'" in told(found)
    assert len(found.dispatches("implement")) == 1, "what is listed since is measured again, and nobody is asked"


NEAR = "from greet import greet\n\n\ndef test_it_ends_so():\n    assert greet('Bob').endswith('!')\n"
FAR = "".join(f"def test_{n}():\n    assert {n} < 3\n\n\n" for n in range(3))
MEASURED = "the old tests as they were over the new code, must pass: "


@pytest.mark.parametrize(("above", "ran"), [("", 2), ("import test_greet\n\n\n", 5)])
def test_with_the_changed_file_only_its_nearest_are_run_if_no_other_file_mentions_it(
    tmp_path: Path, above: str, ran: int
) -> None:
    files = {**FILES, "tests/test_near.py": NEAR, "tests/test_of_numbers.py": above + FAR}
    found = play(make_project(tmp_path, files), HONEST, extra=FAST)
    assert found.document["outcome"] == "completed", (found.rows, found.document["note"])
    assert f"{MEASURED}{ran} passed" in found.document["_stderr"]
    assert "old tests near the change over the new code again" not in found.document["_stderr"], "that was such a run"


def test_a_changed_file_that_patches_the_code_for_its_neighbours_is_a_signal(tmp_path: Path) -> None:
    less = TEST_GREET.replace('== "Hello, Ada!"', '.startswith("Hello, Ada")')
    files = {**FILES, "tests/test_greet.py": less, "tests/test_near.py": NEAR, "tests/test_of_numbers.py": FAR}
    old = less.partition("\n")[2]
    tests = {"tests/test_greet.py": TEST_GREET_NEW.replace(TEST_GREET.partition("\n")[2], f"{PATCHES}\n{old}")}
    wrong = judge("diagnose", diagnosis="production_logic", notes="it has to end so")
    right = answers(FILES, {}, {"greet.py": GREET_DONE})[6]
    script = answers(FILES, tests, {"greet.py": BREAKING})
    found = play(make_project(tmp_path, files), [*script[:7], wrong, right, *script[7:]], extra=FAST)
    assert found.rows.count(SIGNAL) == 1, (found.rows, found.document["note"])
    assert "changed to fit: tests/test_near.py::test_it_ends_so fails: " in told(found)


# --- what was seen failing on some bytes stays failing for them, until somebody has judged why ------------------------

COUNTS = "tests/test_count.py::test_counts"
EMPTY = "tests/test_new.py::test_empty"
FAILURE = "a counterexample was found"
UNTIL_MAKE: list[Entry] = [
    *until_tests(test_files=[{"path": "tests/test_new.py", "action": "create"}]),
    {**TESTS, "files": {"tests/test_new.py": TEST_NEW}, "report": {"verdict": "TESTS_READY"}},
]
MADE: Entry = {**MAKE, "files": {"greet.py": GREET_DONE}}
TO_MAKE = diagnoses(1, "production_logic", "the code has a hole")
TO_NOBODY = diagnoses(1, "environment", "the machine was full")


def counting(marks: Path, *failing: int, over: str = "a name is needed") -> str:
    """Return what fails in these of the runs that meet code with the words *over*."""
    return (
        "\n\ndef turn():\n    import greet, inspect, pathlib\n"
        f"    if {over!r} not in inspect.getsource(greet):\n        return\n"
        f"    marks = pathlib.Path({str(marks)!r})\n    marks.mkdir(exist_ok=True)\n"
        "    seen = len(list(marks.iterdir()))\n    (marks / str(seen)).touch()\n"
        f"    assert seen not in {failing!r}, {FAILURE!r}\n"
    )


def with_old_test(tmp_path: Path, *failing: int, over: str = "a name is needed") -> Project:
    turn = counting(tmp_path / "marks", *failing, over=over)
    return project_of(tmp_path, {"tests/test_count.py": f"import greet{turn}\n\ndef test_counts():\n    turn()\n"})


def unstable(played: Played) -> int:
    return played.rows.count("implement/GREEN_UNSTABLE")


def test_an_old_test_that_fails_once_is_a_question_and_the_same_bytes_do_not_answer_it(tmp_path: Path) -> None:
    project = with_old_test(tmp_path, 0)
    entries = [*UNTIL_MAKE, MADE, TO_MAKE, MADE, TO_NOBODY, TO_MAKE, *AFTER_MAKE]
    played = play(project, entries, extra=FAST + "[limits]\nmake_retry = 3\n")
    assert unstable(played) == 2, played.rows
    assert (played.document["reason"], is_unpublished(project, played.document)) == ("environment", True)
    told = played.asked("diagnose").text("test_output")
    assert f"{COUNTS}: fails: " in told, "what is in question is named"
    assert FAILURE in told, "with the failure"
    assert FAILURE in played.asked("implement", 2).text("measured"), "@make is not asked over what seems well"
    # what a person has mended is measured again, and @make is not paid once more for the same bytes
    again = go_on(played, "resume")
    assert again.document.get("outcome") == "completed", (again.document, again.rows)


@pytest.mark.broad
def test_the_tasks_own_test_that_failed_once_stays_failing_for_the_same_bytes(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    own = TEST_NEW.rstrip() + "\n    turn()\n" + counting(tmp_path / "marks", 1)
    tests = {**TESTS, "files": {"tests/test_new.py": own}, "report": {"verdict": "TESTS_READY"}}
    project.env |= {"REDFIRST_PROBES__REPEAT": "2"}
    played = play(project, [*UNTIL_MAKE[:-1], tests, MADE, TO_MAKE, MADE, TO_NOBODY], extra=FAST)
    assert unstable(played) == 2, played.rows
    assert is_unpublished(project, played.document)


@pytest.mark.broad
def test_new_tests_that_two_runs_saw_differently_are_not_red_for_the_same_bytes(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    once = TEST_NEW.replace("    with ", "    if first():\n        return\n    with ")
    once += (
        f"\n\ndef first():\n    import pathlib\n    mark = pathlib.Path({str(marks)!r})\n"
        "    new = not mark.exists()\n    mark.touch()\n    return new\n"
    )
    varying = {**TESTS, "files": {"tests/test_new.py": once}, "report": {"verdict": "TESTS_READY"}}
    steady = {**varying, "files": {"tests/test_new.py": TEST_NEW}}
    played = play(project_of(tmp_path), [*UNTIL_MAKE[:-1], varying, varying, steady, MADE, *AFTER_MAKE], extra=FAST)
    assert played.rows.count("write-tests/RED_UNSTABLE") == 2, played.rows
    assert "write-tests/RED" in played.rows, "other bytes are judged by themselves"
    assert played.document["outcome"] == "completed", played.document["_stderr"]
    said = played.asked("write-tests", 3).text("findings")
    assert f"unstable: {EMPTY}" in said
    assert "the same bytes" in said


@pytest.mark.broad
def test_what_fails_sometimes_over_the_code_before_as_well_is_flaky_as_ever(tmp_path: Path) -> None:
    project = with_old_test(tmp_path, 1, 2, 4, 6, over="def greet")
    played = play(project, [*UNTIL_MAKE, MADE, *AFTER_MAKE], extra=FAST)
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert unstable(played) == 0


@pytest.mark.broad
def test_verify_refutes_a_commit_that_it_sees_failing_where_its_parent_never_does(tmp_path: Path) -> None:
    project = with_old_test(tmp_path, 50)
    played = play(project, [*UNTIL_MAKE, MADE, *AFTER_MAKE], extra=FAST)
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    for number in range(50):
        (tmp_path / "marks" / str(number)).touch()
    found = project.document("verify", "run-GAL-1")
    assert found["_code"] == 7, found["_stderr"]
    assert "passed each time before, and fails sometimes now" in str(found["commits"])
