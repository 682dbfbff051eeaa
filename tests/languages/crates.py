"""Runs real cargo projects, crate-free and offline, for the tests of the toolchain."""

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
from pipeline.testing.languages.protocol import Cache, Environment, Lookup, Measurement, Selection, View
from pipeline.testing.languages.rust.toolchain import CargoToolchain

if TYPE_CHECKING:
    from pipeline.judge.evidence.observation import Observation
    from pipeline.process import Box

TOOLCHAIN = CargoToolchain()
MANIFEST = '[package]\nname = "greet"\nversion = "0.1.0"\nedition = "2021"\n'

needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="this machine has no cargo")


@cache
def environment() -> Environment:
    """Return the environment of the machine's own toolchain."""
    nowhere = Path(tempfile.gettempdir())
    found = anyio.run(TOOLCHAIN.find_environment, Lookup(nowhere, nowhere, None, nowhere, os.environ["PATH"]))
    assert isinstance(found, Environment), found
    return found


def measure(
    root: Path,
    selection: Selection | None = None,
    *,
    trace: bool = False,
    timeout_s: float = 120.0,
    per_test_timeout_s: float | None = None,
    env: Environment | None = None,
    box: Box | None = None,
    cache: Cache | None = None,
) -> Observation:
    """Return what a run of the project in `root` showed."""
    chosen = env or environment()
    sandbox = box or NoBox()

    async def run() -> Observation:
        view = View(Mount(root, sandbox.inside(root, Path("/measured")), writable=True))
        return await TOOLCHAIN.run_tests(
            Measurement(sandbox, view, chosen, selection, trace, timeout_s, per_test_timeout_s, cache)
        )

    return anyio.run(run)


def check_types(root: Path) -> Observation:
    """Return what of the project in `root` does not compile."""

    async def check() -> Observation:
        return await TOOLCHAIN.check_types(Measurement(NoBox(), View(Mount(root, root, writable=True)), environment()))

    return anyio.run(check)
