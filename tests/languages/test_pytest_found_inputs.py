"""Counterexamples that hypothesis found in one measurement are tried first in the next; nothing else comes through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from kit import WITH_PLUGINS
from steps.probed import PYPROJECT, repository, tree_of, without_run

from pipeline.judge.evidence.observation import Ended
from pipeline.sandbox.boxes.box import try_boxes
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.measure.measuring import FOUND, measure

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.judge.evidence.observation import Observation
    from pipeline.process import Box

pytestmark = pytest.mark.slow

TEST = """from hypothesis import given, settings, strategies as st

from phases import PHASES


@settings(phases=PHASES, deadline=None)
@given(st.integers(min_value=0, max_value=10**9))
def test_no_number(n):
    assert n < 0
"""
FILES = {
    "pyproject.toml": PYPROJECT,
    "tests/test_numbers.py": TEST,
    "phases.py": "from hypothesis import Phase\n\nPHASES = (Phase.generate,)\n",
}
ONLY_WHAT_WAS_FOUND = {"phases.py": "from hypothesis import Phase\n\nPHASES = (Phase.reuse,)\n"}
PLANTING = """import os
import pathlib

NAME = "0123456789abcdef"


def test_plants():
    top = pathlib.Path(os.environ["HYPOTHESIS_STORAGE_DIRECTORY"])
    inner = top / "examples" / NAME
    inner.mkdir(parents=True, exist_ok=True)
    (inner / NAME[::-1]).symlink_to("/etc/passwd")
    (inner / "evil.py").write_text("raise SystemExit")
    os.mkfifo(inner / ("a" * 16))
    (inner / ("b" * 16)).mkdir()
    (inner / ("b" * 16) / ("c" * 16)).write_bytes(b"deeper")
    (inner / ("d" * 16)).write_bytes(b"found")
    (top / "examples" / ("e" * 16)).symlink_to("/etc")
    (top / "examples" / "conftest.py").write_text("raise SystemExit")
    (top / "unicode_data").mkdir()
"""


def outcomes(seen: Observation) -> set[Ended | None]:
    return {record.outcome for record in seen.records.values()}


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("boxed", [False, True], ids=["no box", "in the box"])
def test_a_counterexample_stays_found(tmp_path: Path, *, boxed: bool) -> None:
    box: Box = NoBox()
    if boxed:
        tried = anyio.run(try_boxes, "bubblewrap")
        if not tried or not tried[-1].proof.ok:
            pytest.skip("no box works here")
        box = tried[-1].box
    project = repository(tmp_path, FILES, ONLY_WHAT_WAS_FOUND)
    with without_run(project, box=box, search_path=WITH_PLUGINS) as lab:
        searching, reusing = tree_of(lab, "HEAD~"), tree_of(lab, "HEAD")
        assert outcomes(anyio.run(measure, lab, reusing)) == {Ended.SKIPPED}, "nothing was found yet"
        assert outcomes(anyio.run(measure, lab, searching)) == {Ended.FAILED}
        again = anyio.run(lambda: measure(lab, reusing, again=True))
        assert outcomes(again) == {Ended.FAILED}


@pytest.mark.broad
def test_nothing_but_inputs_comes_through(tmp_path: Path) -> None:
    project = repository(tmp_path, {"pyproject.toml": PYPROJECT, "tests/test_p.py": PLANTING}, {"notes.txt": ""})
    with without_run(project, search_path=WITH_PLUGINS) as lab:
        assert outcomes(anyio.run(measure, lab, tree_of(lab, "HEAD"))) == {Ended.PASSED}
        top = lab.checkout.root / FOUND
        kept = {str(path.relative_to(top)) for path in top.rglob("*") if not path.is_dir()}
        assert kept == {f"hypothesis/examples/0123456789abcdef/{'d' * 16}"}
        assert not any(path.is_symlink() for path in top.rglob("*"))
