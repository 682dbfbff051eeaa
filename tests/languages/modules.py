"""Runs real Go modules, offline and without dependencies, for the tests of the toolchain."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import forked
import pytest
from languages.measured import environment_of, request

from pipeline.testing.languages.go.toolchain import GoToolchain
from pipeline.testing.languages.protocol import Cache

if TYPE_CHECKING:
    from pipeline.judge.evidence.observation import Observation
    from pipeline.process import Box
    from pipeline.testing.languages.protocol import Environment, Selection

TOOLCHAIN = GoToolchain()
MANIFEST = "module example.com/greet\n\ngo 1.19\n"

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="this machine has no go")


def environment() -> Environment:
    """Return the environment of the machine's own toolchain."""
    return environment_of(TOOLCHAIN)


@cache
def compiled() -> Cache:
    """Return a cache for all workers that has what most tests need of Go itself: newer versions come without it."""
    session = os.environ.setdefault(forked.SESSION, str(os.getpid()))
    folder = Path(tempfile.gettempdir()) / f"redfirst-gocache-{session}"
    with Path(f"{folder}.lock").open("w") as lock, tempfile.TemporaryDirectory(prefix="redfirst-module-") as place:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            folder.mkdir()
            (Path(place) / "go.mod").write_text(MANIFEST)
            (Path(place) / "x_test.go").write_text(_USES)
            measure(Path(place), cache=Cache(folder, warm=True))
    return Cache(folder)


def seeded(folder: Path) -> Cache:
    """Return a cache of a test's own that has the same."""
    shutil.copytree(compiled().folder / "gocache", folder / "gocache")
    return Cache(folder)


_USES = """package greet

import (
    _ "fmt"
    _ "os/exec"
    "testing"
)

func TestNothing(t *testing.T) {}
"""


def measure(
    root: Path,
    selection: Selection | None = None,
    *,
    env: Environment | None = None,
    cache: Cache | None = None,
    **more: Any,
) -> Observation:
    """Return what a run of the project in `root` showed; what was compiled is shared between the tests of a process."""
    asked = request(root, env or environment(), selection=selection, cache=cache or compiled(), **more)
    return anyio.run(TOOLCHAIN.run_tests, asked)


def check_types(root: Path, box: Box | None = None) -> Observation:
    """Return what of the project in `root` does not compile."""
    return anyio.run(TOOLCHAIN.check_types, request(root, environment(), box, cache=compiled()))
