"""`land` is killed at random instants: whoever lands afterwards finds each run on the base once, and nothing lost."""

from __future__ import annotations

import random
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pytest
from landing.finished import make_fleet

if TYPE_CHECKING:
    from pathlib import Path

    from landing.finished import Fleet

pytestmark = [pytest.mark.slow, pytest.mark.broad, pytest.mark.timeout(3600)]

KILLS: Final = 12


def land_killed(fleet: Fleet, after_s: float) -> float:
    """Land, and kill that after some seconds; return how long it lived."""
    began = time.monotonic()
    with suppress(subprocess.TimeoutExpired):  # then it was killed
        fleet.project.redfirst("land", timeout=after_s)
    return time.monotonic() - began


def test_a_land_that_is_killed_anywhere_lands_each_run_once(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 3)
    project = fleet.project
    for number in (1, 2, 3):
        fleet.run(number)
    project.write({"other.txt": "of others\n"})
    project.commit("other work")
    project.git("branch", "start")
    whole = land_killed(fleet, 600)
    assert fleet.boxes() == [f"- [x] [GAL-{n}](GAL-{n}.md) Reject empty names" for n in (1, 2, 3)]
    chance = random.Random(17)  # noqa: S311  (no secret)
    for kill in range(KILLS):
        project.git("reset", "--quiet", "--hard", "start")
        land_killed(fleet, chance.uniform(0.2, whole))
        told = fleet.land()
        assert told["ok"], (kill, told)
        subjects = project.git("log", "--format=%s", "start..main").splitlines()
        assert sorted(subjects) == sorted(
            [*(f"chore(todo): close GAL-{n}" for n in (1, 2, 3)), *["fix: reject empty names"] * 3]
        ), kill
        assert fleet.boxes() == [f"- [x] [GAL-{n}](GAL-{n}.md) Reject empty names" for n in (1, 2, 3)]
        assert project.git("status", "--porcelain") == "", kill
        assert not list((project.root / ".git").glob("*.lock"))
