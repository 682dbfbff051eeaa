"""What a run keeps of its measurements: whole runs by tree, and what traced tests entered."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest
from evidence.observed import observed
from steps.probed import PYPROJECT, repository, tree_of, without_run

from pipeline.judge.evidence.observation import Ended, Reach, RunState
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.measure import kept_runs
from pipeline.testing.measure.measuring import measure

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "pyproject.toml": PYPROJECT,
    "core.py": "def answer():\n    return 42\n",
    "tests/test_core.py": "import core\n\ndef test_a(): assert core.answer() == 42\n\ndef test_b(): pass\n",
}


def test_a_run_that_did_not_go_through_is_not_kept(tmp_path: Path) -> None:
    seen = observed({"a.py::one": Ended.PASSED})
    kept_runs.keep(tmp_path, "abc", seen.model_copy(update={"state": RunState.CRASHED}), whole=True)
    assert kept_runs.whole_run(tmp_path, "abc") is None
    kept_runs.keep(tmp_path, "abc", seen, whole=True)
    assert kept_runs.whole_run(tmp_path, "abc") == seen
    assert kept_runs.whole_run(tmp_path, "abd") is None


def test_what_failed_once_over_a_tree_is_known_of_that_tree_until_it_is_forgotten(tmp_path: Path) -> None:
    one, two, three = (f"a.py::{name}" for name in ("one", "two", "three"))
    kept_runs.keep(tmp_path, "abc", observed({one: Ended.PASSED, two: Ended.FAILED, three: Ended.SKIPPED}), whole=True)
    kept_runs.keep(tmp_path, "abc", observed({one: Ended.TIMED_OUT}), whole=False)
    kept_runs.keep(tmp_path, "abc", observed({one: Ended.FAILED, two: Ended.PASSED}), whole=False)
    seen = {entry: record.outcome for entry, record in kept_runs.seen_failing(tmp_path, "abc").items()}
    assert seen == {one: Ended.TIMED_OUT, two: Ended.FAILED}, "each as it failed first"
    assert kept_runs.seen_failing(tmp_path, "abd") == {}
    kept_runs.forget(tmp_path, "abc")
    assert (kept_runs.seen_failing(tmp_path, "abc"), kept_runs.whole_run(tmp_path, "abc")) == ({}, None)


def test_what_was_traced_last_counts_and_what_was_not_traced_takes_nothing_away(tmp_path: Path) -> None:
    def traced(**entered: str | None) -> None:
        seen = observed({f"{name}.py::it": Ended.PASSED for name in entered})
        reach = {f"{name}.py::it": function and Reach(functions=(function,)) for name, function in entered.items()}
        records = {entry: record.model_copy(update={"reach": reach[entry]}) for entry, record in seen.records.items()}
        kept_runs.keep_reach(tmp_path, seen.model_copy(update={"records": records}))

    assert kept_runs.reach(tmp_path) == {}
    traced(a="core.py::f", b="core.py::g")
    traced(a=None, b="core.py::h")
    traced(c=None)
    assert {entry: found.functions for entry, found in kept_runs.reach(tmp_path).items()} == {
        "a.py::it": ("core.py::f",), "b.py::it": ("core.py::h",),
    }  # fmt: skip


@pytest.mark.slow
def test_a_measurement_keeps_what_it_traced(tmp_path: Path) -> None:
    project = repository(tmp_path, FILES, {"notes.txt": ""})
    with without_run(project) as lab:
        ids = frozenset({"tests/test_core.py::test_a"})
        anyio.run(measure, lab, tree_of(lab, "HEAD"), Selection(ids=ids))
        assert kept_runs.reach(lab.checkout.root) == {}
        anyio.run(partial(measure, trace=True), lab, tree_of(lab, "HEAD"), Selection(ids=ids))
        known = kept_runs.reach(lab.checkout.root)
    assert known.keys() == ids
    assert "core.py::answer" in known["tests/test_core.py::test_a"].functions
