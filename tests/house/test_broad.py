"""Broad cases are left out of a whole run, and `make test-all` takes them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def collected(broad: str | None) -> set[str]:
    """Return the ids that a whole run over the cheats would run."""
    environment = {key: value for key, value in os.environ.items() if key != "TESTS_BROAD"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "testpaths=tests/cheats"],
        cwd=ROOT,
        env={**environment, **({"TESTS_BROAD": broad} if broad else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {line for line in done.stdout.splitlines() if "::" in line}


def groups(ids: set[str]) -> set[str]:
    """Return the files that play the catalogue."""
    return {entry.split("::")[0] for entry in ids if "::test_it_ends_as_the_catalogue_says" in entry}


@pytest.mark.slow
def test_a_whole_run_takes_some_cases_and_test_all_takes_all() -> None:
    some, everything = collected(None), collected("all")
    assert some < everything
    assert groups(some) < groups(everything)
    assert groups(some)
