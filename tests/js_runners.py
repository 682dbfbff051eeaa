"""The JavaScript runners that tests measure: installed by `scripts/js-runners.sh`, for this checkout only."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final, NoReturn

import pytest

SETS: Final = ("node", "vitest", "vitest-3", "jest", "jest-29", "jest-28", "newest")


def runners_folder() -> Path:
    """Return the folder that `scripts/js-runners.sh` filled; REDFIRST_TEST_RUNNERS names another than the default."""
    return Path(os.environ.get("REDFIRST_TEST_RUNNERS") or Path(__file__).parents[1] / ".js-runners-cache")


def installed_set(name: str) -> Path:
    """Return the folder of a set, which has `node_modules`; without it the test is skipped, or fails if CI=true."""
    assert name in SETS, name
    if shutil.which("node") is None:
        _without("this machine has no node")
    try:
        lines = (runners_folder() / "sets.txt").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        lines = []
    found = {line.partition(" ")[0]: Path(line.partition(" ")[2]) for line in lines}
    if name not in found or not (found[name] / "node_modules").is_dir():
        _without(f"the runners of {name} are not installed; run scripts/js-runners.sh")
    return found[name]


def search_path(name: str) -> str:
    """Return PATH with the node of a set first, if it has its own."""
    own = sorted((installed_set(name) / "node_modules").glob("node-linux-*/bin"))
    return ":".join((*map(str, own[:1]), os.environ["PATH"]))


def _without(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
