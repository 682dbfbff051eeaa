"""A candidate over a long suite: the nearest tests can condemn it by themselves, and only all of them accept it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import Played, diagnoses, go_on, makes, module, module_task, modules_project, play, until_tests, writes
from kit import AFTER_MAKE

from pipeline.judge.evidence.compare import SHARE, WORTH_S
from pipeline.testing.languages.runners import durations

if TYPE_CHECKING:
    from kit import Entry

pytestmark = [pytest.mark.slow, pytest.mark.broad]

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


def test_the_nearest_tests_condemn_a_candidate_by_themselves(played: Played) -> None:
    assert sum(SECONDS.values()) * SHARE > SECONDS["tests/test_base.py"] + SECONDS["tests/test_near.py"]
    ran = [data["selected"] for data in runs_of(played, 1)]
    assert ran[:2] == [NEAREST, ["tests/test_near.py::test_near"]]
    assert None not in ran, "not even when @make was asked again, over the same candidate"
    assert played.rows_of("1")[1] == "implement/REGRESSION"
    told = played.asked("diagnose").text("test_output")
    assert "breaks, in 2 of 2 runs: tests/test_near.py::test_near" in told
    assert "not all tests were run: those of the 3 nearest files were enough" in told


def test_what_passes_the_nearest_tests_is_refused_by_all(played: Played) -> None:
    ran = [data["selected"] for data in runs_of(played, 2)]
    assert ran[:3] == [NEAREST, None, ["tests/test_far.py::test_far"]]
    assert ran.count(None) == 1
    assert played.rows_of("1")[3] == "implement/REGRESSION"
    told = played.asked("diagnose", 2).text("test_output")
    assert "breaks, in 2 of 2 runs: tests/test_far.py::test_far" in told
    assert "not all tests were run" not in told


def test_only_a_run_of_all_tests_accepts(played: Played) -> None:
    assert [data["selected"] for data in runs_of(played, 3)] == [NEAREST, None]
    assert played.rows_of("1")[-1] == "implement/GREEN"
    assert played.document.get("outcome") == "completed", played.document["_stderr"]


def test_what_was_read_of_the_imports_is_gone_with_the_run(played: Played) -> None:
    assert not [path for path in (played.project.home / "state").rglob("*") if path.parent.name == "imports"]
