"""The benchmarks run, and their figures belong to runs that did what they should; how long it took is not judged."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from agent_clis import agents_folder, cli

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.broad
def test_the_benchmark_measures_a_run_and_its_floor(tmp_path: Path) -> None:
    argv = [sys.executable, str(ROOT / "bench" / "pipeline.py"), "--rounds", "1", "--tasks", "1", "--files", "5"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"7 dispatches, \d+ measurements, 2 commits", done.stdout)
    assert re.search(r"ratio +\d+\.\d\d +\(", done.stdout)
    assert re.search(r"processes +\d+ +\d+\.\d", done.stdout)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.broad
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


@pytest.mark.slow
@pytest.mark.broad
def test_the_benchmark_of_agents_compares_a_dispatch_with_the_bare_agent(tmp_path: Path) -> None:
    cli("codex")
    figures = tmp_path / "figures.json"
    argv = [sys.executable, "-P", str(ROOT / "bench" / "agents.py"), "--rounds", "1", "--agents", "codex"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    env["REDFIRST_TEST_AGENTS"] = str(agents_folder())
    done = subprocess.run(
        [*argv, "--json", str(figures)], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for title in ("bare", "ours, first", "ours, next", "our share, first", "our share, next"):
        assert re.search(rf"^ +{title}( +-?\d+){{6}}  \(-?\d+ to -?\d+\)$", done.stdout, re.MULTILINE), done.stdout
    (one,) = json.loads(figures.read_text())["askings"]["codex"]
    assert all(asking["before"] > 0 and asking["between"] > 0 and asking["memory"] > 0 for asking in one.values())
    assert list(tmp_path.iterdir()) == [figures]


@pytest.mark.slow
def test_the_benchmark_of_agents_names_what_is_not_installed(tmp_path: Path) -> None:
    argv = [sys.executable, "-P", str(ROOT / "bench" / "agents.py"), "--rounds", "1", "--agents", "claude,codex-acp"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    env["REDFIRST_TEST_AGENTS"] = str(tmp_path)
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "claude is left out, without claude; run scripts/agent-clis.sh" in done.stdout
    assert "codex-acp is left out, without codex-acp, codex; run scripts/agent-clis.sh" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.broad
def test_the_benchmark_of_recipes_checks_and_plans_them(tmp_path: Path) -> None:
    argv = [sys.executable, "-P", str(ROOT / "bench" / "recipes.py"), "--rounds", "1", "--steps", "200"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"^(\w+) +[\d.]+ ms  ratio +[\d.]+$", done.stdout, re.MULTILINE) == ["compose", "check", "plan"]


@pytest.mark.slow
@pytest.mark.broad
def test_the_benchmark_of_the_queue_compares_drivers_at_once(tmp_path: Path) -> None:
    argv = [sys.executable, "-P", str(ROOT / "bench" / "work.py"), "--runs", "3", "--jobs", "2", "--against", "1"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(", 0 failed\n") == 2
    assert re.search(r"^ratio \d+\.\d\d$", done.stdout, re.MULTILINE)
    assert list(tmp_path.iterdir()) == []
