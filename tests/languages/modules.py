"""Runs real Go modules, offline and without dependencies, for the tests of the toolchain."""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from pipeline.process import Mount
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.languages.go.toolchain import GoToolchain
from pipeline.testing.languages.protocol import Cache, Environment, Lookup, Measurement, Selection, View

if TYPE_CHECKING:
    from pipeline.judge.evidence.observation import Observation
    from pipeline.process import Box

TOOLCHAIN = GoToolchain()
MANIFEST = "module example.com/greet\n\ngo 1.19\n"

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="this machine has no go")


@cache
def environment() -> Environment:
    """Return the environment of the machine's own toolchain."""
    nowhere = Path(tempfile.gettempdir())
    found = anyio.run(TOOLCHAIN.find_environment, Lookup(nowhere, nowhere, None, nowhere, os.environ["PATH"]))
    assert isinstance(found, Environment), found
    return found


@cache
def compiled() -> Cache:
    """Return a cache for this process that has what most tests need of Go itself: newer versions come without it."""
    folder = tempfile.TemporaryDirectory(prefix="redfirst-gocache-")
    _KEPT.append(folder)
    with tempfile.TemporaryDirectory(prefix="redfirst-module-") as place:
        (Path(place) / "go.mod").write_text(MANIFEST)
        (Path(place) / "x_test.go").write_text(_USES)
        measure(Path(place), cache=Cache(Path(folder.name), warm=True))
    return Cache(Path(folder.name))


def seeded(folder: Path) -> Cache:
    """Return a cache of a test's own that has the same."""
    shutil.copytree(compiled().folder / "gocache", folder / "gocache")
    return Cache(folder)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []
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
    trace: bool = False,
    timeout_s: float = 300.0,
    per_test_timeout_s: float | None = None,
    env: Environment | None = None,
    box: Box | None = None,
    cache: Cache | None = None,
) -> Observation:
    """Return what a run of the project in `root` showed; what was compiled is shared between the tests of a process."""
    chosen, used = env or environment(), cache or compiled()
    sandbox = box or NoBox()

    async def run() -> Observation:
        view = View(Mount(root, sandbox.inside(root, Path("/measured")), writable=True))
        return await TOOLCHAIN.run_tests(
            Measurement(sandbox, view, chosen, selection, trace, timeout_s, per_test_timeout_s, used)
        )

    return anyio.run(run)


def check_types(root: Path, box: Box | None = None) -> Observation:
    """Return what of the project in `root` does not compile."""
    sandbox, env, used = box or NoBox(), environment(), compiled()

    async def check() -> Observation:
        view = View(Mount(root, sandbox.inside(root, Path("/measured")), writable=True))
        return await TOOLCHAIN.check_types(Measurement(sandbox, view, env, cache=used))

    return anyio.run(check)
