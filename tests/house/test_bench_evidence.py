"""The benchmark of evidence measures a run that did what it should; how long it took is not judged."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.broad
def test_the_benchmark_compares_red_and_green_with_two_bare_runs(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    argv = [sys.executable, "-P", str(ROOT / "bench" / "evidence.py"), "--rounds", "1", "--json", str(figures)]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [*argv, "--subjects", "small", "--config", "[probes]\nmutants = 2\n"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^ +ratio +\d+\.\d\d +\(\d+\.\d\d to \d+\.\d\d\), goal 1\.05$", done.stdout, re.MULTILINE)
    for stage, calls in (("baseline", 1), ("red", 1), ("green", 1), ("repeat", 1), ("revert", 1), ("mutants", 1)):
        assert re.search(rf"^ +{stage} +\d+ ms +\d+ % \(\d+ to \d+\)  in {calls} calls$", done.stdout, re.MULTILINE), (
            done.stdout
        )
    (one,) = json.loads(figures.read_text())
    assert one["ratios"] == [one["ratio"]]
    assert 0 < one["shares"]["revert"] < one["shares"]["test runs"]
    (run,) = one["runs"]
    assert run["red"] + run["green"] < run["run"]
    assert list(tmp_path.iterdir()) == [figures]


@pytest.mark.slow
def test_the_benchmark_says_what_it_leaves_out(tmp_path: Path) -> None:
    argv = [sys.executable, "-P", str(ROOT / "bench" / "evidence.py"), "--rounds", "1", "--subjects", "cargo"]
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=True)
    assert "cargo is left out: it is not installed" in done.stdout


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    ("argv", "said"), [(["--subjects", "small,large"], "there is no subject 'large'"), (["--rounds", "0"], "one round")]
)
@pytest.mark.slow
def test_the_benchmark_refuses_what_it_cannot_do(argv: list[str], said: str) -> None:
    command = [sys.executable, "-P", str(ROOT / "bench" / "evidence.py"), *argv]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert said in done.stderr
