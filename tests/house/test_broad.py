"""Broad cases are run in turns: every share is another part of them, and together they are all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = "tests/attacks"


def collected(share: str, *more: str) -> set[str]:
    """Return the ids that a whole run would run."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *more],
        cwd=ROOT,
        env={**os.environ, "TESTS_BROAD": share},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {line for line in done.stdout.splitlines() if "::" in line}


@pytest.mark.slow
def test_the_shares_are_together_all_and_none_is_empty() -> None:
    everything = collected("all", FOLDER)
    shares = [collected(str(share), FOLDER) for share in range(6)]
    assert set[str]().union(*shares) == everything
    always = {entry for entry in everything if all(entry in share for share in shares)}
    parts = [share - always for share in shares]
    assert all(parts)
    assert sum(map(len, parts)) == len(everything - always)
