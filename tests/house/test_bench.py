"""The benchmarks run, and their figures belong to runs that did what they should; how long it took is not judged."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_benchmark_measures_a_run_and_its_floor(tmp_path: Path) -> None:
    argv = [sys.executable, str(ROOT / "bench" / "pipeline.py"), "--rounds", "1", "--tasks", "1", "--files", "5"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 dispatches, 4 measurements, 2 commits" in done.stdout
    assert re.search(r"ratio +\d+\.\d\d +\(", done.stdout)
    assert re.search(r"processes +\d+ +\d+\.\d", done.stdout)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_benchmark_of_a_dispatch_measures_every_box_that_works_here(tmp_path: Path) -> None:
    argv = [sys.executable, "-P", str(ROOT / "bench" / "dispatch.py"), "--quick"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1000 files, 3 edited; plain execution takes" in done.stdout
    for kind in ("bubblewrap overlay", "bubblewrap shadow", "none shadow"):
        if f"{kind.split()[0]}: " not in done.stdout:  # said where a box does not work
            assert re.search(rf"^ +{kind}, first( +\d+\.\d)+ +\(", done.stdout, re.MULTILINE)
            assert re.search(rf"^ +{kind}( +-?\d+\.\d)+ +\(", done.stdout, re.MULTILINE)
    assert list(tmp_path.iterdir()) == []
