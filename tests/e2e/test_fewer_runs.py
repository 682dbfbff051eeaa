"""Whole runs, counted: how often a test runner starts for a task, what is not measured again, what runs first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import Played, diagnoses, go_on, makes, module, module_task, modules_project, play, until_tests, writes
from kit import AFTER_MAKE

from pipeline.judge.evidence.compare import SHARE, WORTH_S
from pipeline.testing.languages.runners import durations

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.lanes import Played
    from kit import Entry, Project

pytestmark = pytest.mark.slow

TRIED = '[agents.simplify]\nbackend = "off"\n[limits]\nparallel = 2\n[probes]\nmutants = 2\n'


def beside(tmp_path: Path, more: dict[str, str] | None = None) -> Project:
    """Return a project of two modules whose tasks are worked on side by side, and tried."""
    project = modules_project(tmp_path, range(1, 3), more=more)
    del project.env["REDFIRST_LIMITS__PARALLEL"]
    project.probed = True
    return project


def runs_told(played: Played) -> list[tuple[str, str]]:
    """Return tree and words of each run of tests but those of the small faults, in order."""
    lines = [line["data"] for line in played.project.journal() if line["kind"] == "tests_ran"]
    return [(data["tree"], data["what"]) for data in lines]


def evidence(played: Played, task: str) -> dict[str, Any]:
    return json.loads(played.artifact(f"evidence/task-{task}.json"))


def verifies(project: Project) -> None:
    start = project.journal()[0]["data"]["start_commit"]
    document = project.document("verify", f"{start}..HEAD")
    assert document["_code"] == 0, document
    told = document["_stderr"]
    assert told.count("the whole suite over the parent:") == 1, "that of the others is the commit before"


@pytest.mark.broad
def test_a_task_that_is_put_over_another_takes_two_runs(tmp_path: Path) -> None:
    project = beside(tmp_path)
    entries = [*until_tests(module_task(1), module_task(2)), writes(1), writes(2), makes(1), makes(2), *AFTER_MAKE]
    played = play(project, entries, extra=TRIED)
    assert played.document["_code"] == 0, played.document["_stderr"]
    found = evidence(played, "2")
    over, probes = {found["red_tree"], found["green"]["tree"]}, found["probes"]
    assert [what for tree, what in runs_told(played) if tree in over] == [
        "the new tests over the old code, must fail",
        "the whole suite over the new code, must pass",
    ]
    lane = probes["measured"]
    assert lane != found["green"]["tree"]
    assert "def value_2():\n    return 2" in project.git("show", f"{lane}:m2.py")
    assert "return 0" in project.git("show", f"{lane}:m1.py"), "what was tried is the work before it was put over"
    assert (probes["mutation"]["killed"], probes["reach"]["entering"], probes["repeated"]["runs"]) == (2, 1, 2)
    assert (probes["revert"]["measured"], probes["revert"]["production"]) == (found["red_tree"], found["production"])
    assert f"over tree {lane[:12]}" in played.artifact("evidence/probes-2.md")
    verifies(project)


def counted(tmp_path: Path, *entries: Entry, more: dict[str, str] | None = None, **task: Any) -> list[str]:
    """Return the words of each run of tests, but those of faults, of a run of one task."""
    project = beside(tmp_path, more)
    begin = until_tests({**module_task(1), **task})
    played = play(project, [*begin, *entries, *AFTER_MAKE], extra=TRIED)
    assert played.document["_code"] == 0, played.document["_stderr"]
    return [what for _, what in runs_told(played)]


def test_a_task_with_a_new_file_of_tests_takes_six_runs(tmp_path: Path) -> None:
    assert counted(tmp_path, writes(1), makes(1)) == [
        "the whole suite before any change, to compare with",
        "tests over the old code, new ones must fail",
        "new tests over the old code again, traced, must fail",
        "the whole suite over the new code, must pass",
        "the new tests over the new code again, must pass",
        "old tests near the change over the new code again, must pass",
    ]


@pytest.mark.broad
def test_what_is_put_over_something_that_its_tests_stand_on_is_tried_again(tmp_path: Path) -> None:
    """The first task brings a fixture for all tests that does the second one's work, once that is there."""
    swaps = (
        "import sys\n\nimport m2\nimport pytest\n\nKNOWN = m2.value_2()\n\n\n"
        "@pytest.fixture(autouse=True)\ndef swapped(monkeypatch):\n"
        "    if KNOWN == 2 and 'test_m2' in sys.modules:\n"
        "        monkeypatch.setattr('test_m2.value_2', lambda: 2)\n"
    )
    project = beside(tmp_path)
    created = [{"path": f"tests/{name}.py", "action": "create"} for name in ("test_m1", "conftest")]
    first = {**writes(1), "files": {**writes(1)["files"], "tests/conftest.py": swaps}}
    tasks = module_task(1, test_files=created), module_task(2)
    entries = [*until_tests(*tasks), first, writes(2), makes(1), makes(2), *AFTER_MAKE]
    played = play(project, entries, extra=TRIED)
    found = evidence(played, "2")
    assert found["green"]["tree"], played.document["_stderr"]
    assert (found["probes"]["measured"], found["probes"]["reach"]["elsewhere"]) == (
        "",
        ["tests/test_m2.py::test_value_2"],
    )


@pytest.mark.broad
def test_what_enters_code_that_was_changed_meanwhile_is_tried_again(tmp_path: Path) -> None:
    project = beside(tmp_path)
    (project.root / "m2.py").write_text("from m1 import value_1\n\n\ndef value_2():\n    return value_1() * 0\n")
    project.git("commit", "-qam", "m2 asks m1")
    code = "from m1 import value_1\n\n\ndef value_2():\n    return value_1() * 0 + 2\n"
    entered = {**makes(2), "files": {"m2.py": code}}
    entries = [*until_tests(module_task(1), module_task(2)), writes(1), writes(2), makes(1), entered, *AFTER_MAKE]
    played = play(project, entries, extra=TRIED)
    assert played.document["_code"] == 0, played.document["_stderr"]
    assert evidence(played, "2")["probes"]["measured"] == ""
    assert module(1, 1) in project.git("show", "work:m1.py") + "\n"


# --- over a long suite the nearest tests can condemn a candidate by themselves, and only all of them accept it --------

FAST = '[agents.simplify]\nbackend = "off"\n'
KEPT, POISON = "KEPT = 1\n", "# poison\n"
NEAR = "import m1\n\n\ndef test_near():\n    assert m1.KEPT == 1\n"
FAR = (
    "from pathlib import Path\n\n\ndef test_far():\n"
    "    assert 'poison' not in Path(__file__).parents[1].joinpath('m1.py').read_text()\n"
)
SECONDS = {"tests/test_base.py": 1.0, "tests/test_near.py": 1.0, "tests/test_far.py": 4 * WORTH_S}
"""The suite is made long by what the run has on record of it: nothing sleeps here."""
NEAREST = ["tests/test_base.py", "tests/test_m1.py", "tests/test_near.py"]


def made(text: str) -> Entry:
    return {**makes(1), "files": {"m1.py": module(1, 1) + text}}


ENTRIES: list[Entry] = [
    *until_tests(module_task(1)),
    writes(1),
    made(""),
    diagnoses(1, "production_logic", "KEPT is gone"),
    made(KEPT + POISON),
    diagnoses(1, "test_design", "do it again"),
    writes(1),
    made(KEPT),
    *AFTER_MAKE,
]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return a finished run whose candidates break a near test, then a far one, then none."""
    more = {"m1.py": module(1) + KEPT, "tests/test_near.py": NEAR, "tests/test_far.py": FAR}
    project = modules_project(tmp_path_factory.mktemp("nearest"), range(1, 2), more=more)
    parked = play(project, ENTRIES, "--approve", "split", extra=FAST)
    (cache,) = project.home.glob("state/**/pycache")
    durations.write(cache, SECONDS)
    return go_on(parked, "approve")


def runs_of(played: Played, number: int) -> list[dict[str, Any]]:
    """Return the runs of tests over the candidate of the nth answer of @make."""
    tree = played.asked("implement", number).result["tree"]
    lines = [line["data"] for line in played.project.journal() if line["kind"] == "tests_ran"]
    return [data for data in lines if data["tree"] == tree]


@pytest.mark.broad
def test_the_nearest_tests_condemn_a_candidate_by_themselves(played: Played) -> None:
    assert sum(SECONDS.values()) * SHARE > SECONDS["tests/test_base.py"] + SECONDS["tests/test_near.py"]
    ran = [data["selected"] for data in runs_of(played, 1)]
    assert ran[:2] == [NEAREST, ["tests/test_near.py::test_near"]]
    assert None not in ran, "not even when @make was asked again, over the same candidate"
    assert played.rows_of("1")[1] == "implement/REGRESSION"
    told = played.asked("diagnose").text("test_output")
    assert "breaks, in 2 of 2 runs: tests/test_near.py::test_near" in told
    assert "not all tests were run: those of the 3 nearest files were enough" in told


@pytest.mark.broad
def test_what_passes_the_nearest_tests_is_refused_by_all(played: Played) -> None:
    ran = [data["selected"] for data in runs_of(played, 2)]
    assert ran[:3] == [NEAREST, None, ["tests/test_far.py::test_far"]]
    assert ran.count(None) == 1
    assert played.rows_of("1")[3] == "implement/REGRESSION"
    told = played.asked("diagnose", 2).text("test_output")
    assert "breaks, in 2 of 2 runs: tests/test_far.py::test_far" in told
    assert "not all tests were run" not in told


@pytest.mark.broad
def test_only_a_run_of_all_tests_accepts(played: Played) -> None:
    assert [data["selected"] for data in runs_of(played, 3)] == [NEAREST, None]
    assert played.rows_of("1")[-1] == "implement/GREEN"
    assert played.document.get("outcome") == "completed", played.document["_stderr"]


@pytest.mark.broad
def test_what_was_read_of_the_imports_is_gone_with_the_run(played: Played) -> None:
    assert not [path for path in (played.project.home / "state").rglob("*") if path.parent.name == "imports"]
