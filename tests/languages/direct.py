"""Runs real pytest projects without a box, for the tests of the toolchain and of the judges."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import anyio

from pipeline.judge.evidence.red_classes import Context
from pipeline.process import Mount
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.languages import names
from pipeline.testing.languages.projects.combined import Projects, find_environment
from pipeline.testing.languages.protocol import Cache, Environment, Lookup, Measurement, Missing, Selection, View
from pipeline.testing.languages.python.toolchain import PytestToolchain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.judge.evidence.observation import Observation
    from pipeline.process import Box

TOOLCHAIN = PytestToolchain()


def write(root: Path, files: Mapping[str, str]) -> Path:
    """Write the files, with their common indentation removed."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    return root


@cache
def environment() -> Environment:
    """Return the environment of the interpreter that runs these tests."""
    nowhere = Path(tempfile.gettempdir())
    command = (sys.executable, "-m", "pytest")
    lookup = Lookup(nowhere, nowhere, command, nowhere, os.environ["PATH"])
    found = anyio.run(TOOLCHAIN.find_environment, lookup)
    assert isinstance(found, Environment), found
    return found


@cache
def _bytecode() -> Cache:
    """Return what a run of no tests has compiled: pytest and its plugins."""
    folder = tempfile.TemporaryDirectory(prefix="redfirst-bytecode-")
    _KEPT.append(folder)
    place, kept = Path(folder.name, "project"), Path(folder.name, "kept")
    write(place, {"test_it.py": "def test_it(): pass\n"})
    kept.mkdir()
    view, env = View(Mount(place, place, writable=True)), environment()
    anyio.run(lambda: TOOLCHAIN.run_tests(Measurement(NoBox(), view, env, cache=Cache(kept, warm=True))))
    return Cache(kept)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def measure(
    root: Path,
    selection: Selection | None = None,
    *,
    trace: bool = False,
    timeout_s: float = 60.0,
    per_test_timeout_s: float | None = None,
    env: Environment | None = None,
    box: Box | None = None,
) -> Observation:
    """Return what a run of the project in `root` showed."""

    chosen = env or environment()
    sandbox = box or NoBox()
    kept = _bytecode()

    async def run() -> Observation:
        view = View(Mount(root, sandbox.inside(root, Path("/measured")), writable=True))
        return await TOOLCHAIN.run_tests(
            Measurement(sandbox, view, chosen, selection, trace, timeout_s, per_test_timeout_s, kept)
        )

    return anyio.run(run)


def files_of(root: Path) -> frozenset[str]:
    """Return the project's files, as a tree of git would name them."""
    return frozenset(
        str(path.relative_to(root)) for path in root.rglob("*.*") if path.is_file() and "__pycache__" not in path.parts
    )


def context_of(observation: Observation, existing: frozenset[str], **more: object) -> Context:
    """Return a context without symbols, changed by `more`."""
    values: dict[str, object] = {
        "symbols": (),
        "existing": existing,
        "layout": observation.layout,
        "names": names,
        **more,
    }
    return Context(**values)  # pyright: ignore[reportArgumentType]  checked by the tests that use it


def environments(toolchain: Projects, lookup: Lookup) -> Environment | Missing:
    """Return the environments of several projects, each looked for with the command of its own table."""
    tables = {one.name: one.table for one in toolchain.projects}

    def own(name: str) -> Lookup:
        table = tables[name]
        return lookup if table is None else replace(lookup, configured=table.command, variables=table.env)

    return anyio.run(find_environment, toolchain, own)
