"""Runs real pytest projects without a box, for the tests of the toolchain and of the judges."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import anyio
from languages.measured import environment_of, request

from pipeline.judge.evidence.classify import classify
from pipeline.judge.evidence.red_classes import Context, RedClass
from pipeline.testing.languages import names
from pipeline.testing.languages.projects.combined import Projects, find_environment
from pipeline.testing.languages.protocol import Cache, Lookup
from pipeline.testing.languages.python.toolchain import PytestToolchain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.judge.evidence.observation import Ended, Observation
    from pipeline.testing.languages.protocol import Environment, Missing, Selection

TOOLCHAIN = PytestToolchain()


def write(root: Path, files: Mapping[str, str]) -> Path:
    """Write the files, with their common indentation removed."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    return root


def environment() -> Environment:
    """Return the environment of the interpreter that runs these tests."""
    return environment_of(TOOLCHAIN, sys.executable, "-m", "pytest")


@cache
def _bytecode() -> Cache:
    """Return what a run of no tests has compiled: pytest and its plugins."""
    folder = tempfile.TemporaryDirectory(prefix="redfirst-bytecode-")
    _KEPT.append(folder)
    place, kept = Path(folder.name, "project"), Path(folder.name, "kept")
    write(place, {"test_it.py": "def test_it(): pass\n"})
    kept.mkdir()
    anyio.run(TOOLCHAIN.run_tests, request(place, environment(), cache=Cache(kept, warm=True)))
    return Cache(kept)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def measure(
    root: Path, selection: Selection | None = None, *, env: Environment | None = None, **more: Any
) -> Observation:
    """Return what a run of the project in `root` showed."""
    asked = request(root, env or environment(), selection=selection, cache=_bytecode(), **more)
    return anyio.run(TOOLCHAIN.run_tests, asked)


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


def by_name(
    table: Mapping[tuple[Ended, RedClass | None], str],
) -> dict[str, tuple[Ended, RedClass | None]]:
    """Return how each test ends, and what it is for the judges, from lists of names with commas."""
    return {name: found for found, names in table.items() for name in names.split(", ")}


def judged(
    seen: Observation, context: Context, prefix: str, names: Mapping[str, tuple[Ended, RedClass | None]]
) -> dict[str, tuple[RedClass, bool]]:
    """Return what the failures of these tests are for the judges, and whether they are a legal RED."""
    found = {name: classify(seen.records[prefix + name], context) for name, (_, cls) in names.items() if cls}
    return {name: (one.cls, one.legal) for name, one in found.items()}


def expected(names: Mapping[str, tuple[Ended, RedClass | None]]) -> dict[str, tuple[RedClass, bool]]:
    """Return what `judged` has to return: legal is what misses or contradicts behaviour."""
    legal = {RedClass.ASSERTION_MISMATCH, RedClass.MISSING_BEHAVIOR}
    return {name: (cls, cls in legal) for name, (_, cls) in names.items() if cls}


def environments(toolchain: Projects, lookup: Lookup) -> Environment | Missing:
    """Return the environments of several projects, each looked for with the command of its own table."""
    tables = {one.name: one.table for one in toolchain.projects}

    def own(name: str) -> Lookup:
        table = tables[name]
        return lookup if table is None else replace(lookup, configured=table.command, variables=table.env)

    return anyio.run(find_environment, toolchain, own)
