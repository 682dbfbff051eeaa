"""Runs real tests of a project without a driver around them: what the kits of the languages have in common."""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pipeline.process import Mount
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.languages.protocol import Environment, Lookup, Measurement, Missing, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.judge.evidence.observation import Ended, Observation
    from pipeline.process import Box
    from pipeline.testing.languages.toolchain import Toolchain


def find(
    toolchain: Toolchain,
    place: Path,
    command: Sequence[str] | None = None,
    path: str | None = None,
    main: Path | None = None,
) -> Environment | Missing:
    """Return what the toolchain finds for a checkout, with the PATH of these tests or another one."""
    chosen = None if command is None else tuple(command)
    lookup = Lookup(place, main or place, chosen, place, os.environ["PATH"] if path is None else path)
    return anyio.run(toolchain.find_environment, lookup)


@cache
def environment_of(toolchain: Toolchain, *command: str) -> Environment:
    """Return the environment of this machine's own tools."""
    found = find(toolchain, Path(tempfile.gettempdir()), command or None)
    assert isinstance(found, Environment), found
    return found


def request(root: Path, env: Environment, box: Box | None = None, **more: Any) -> Measurement:
    """Return a request to measure the project in `root`, with more fields of a measurement."""
    sandbox = box or NoBox()
    view = View(Mount(root, sandbox.inside(root, Path("/measured")), writable=True))
    return Measurement(sandbox, view, env, **more)


def working_box(owner: int | None = None) -> Bubblewrap:
    """Return the kernel box; skip the test where it does not work."""
    bwrap = shutil.which("bwrap") or ""
    made = Bubblewrap(bwrap, owner)
    if not bwrap or not anyio.run(made.canary).ok:
        pytest.skip("this machine has no working bubblewrap")
    return made


def outcomes(seen: Observation) -> dict[str, Ended | None]:
    """Return how each test ended, by its id."""
    return {entry: record.outcome for entry, record in seen.records.items()}


def ends(seen: Observation) -> dict[str, Ended | None]:
    """Return how each test ended, by the last part of its id."""
    return {entry.rpartition("::")[2]: record.outcome for entry, record in seen.records.items()}


def measure_copy(toolchain: Toolchain, root: Path, env: Environment, **more: Any) -> Observation:
    """Return what the tests show in a fresh view, as in a run: without what is installed in the project."""
    with tempfile.TemporaryDirectory() as place:
        view = Path(place) / "view"
        shutil.copytree(root, view, ignore=shutil.ignore_patterns("node_modules", ".venv"))
        return anyio.run(toolchain.run_tests, request(view, env, **more))
