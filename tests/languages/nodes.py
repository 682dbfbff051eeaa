"""Runs real JavaScript projects, offline, for the tests of the toolchain."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from js_runners import installed_set, search_path

from pipeline.process import Mount
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.languages.javascript.toolchain import NodeToolchain
from pipeline.testing.languages.protocol import Environment, Lookup, Measurement, Missing, Selection, View

if TYPE_CHECKING:
    from pipeline.judge.evidence.observation import Observation
    from pipeline.process import Box

TOOLCHAIN = NodeToolchain()
_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def manifest(**more: object) -> str:
    """Return a package.json with a name and these keys."""
    return json.dumps({"name": "greet", **more}) + "\n"


NODE = manifest(scripts={"test": "node --test"})
VITEST = manifest(type="module", scripts={"test": "vitest run"}, devDependencies={"vitest": "*"})
JEST = manifest(scripts={"test": "jest"}, devDependencies={"jest": "*"})


@cache
def environment(name: str, package: str) -> Environment:
    """Return the environment of a project with this package.json, whose packages are those of a set."""
    folder = tempfile.TemporaryDirectory(prefix="redfirst-project-")
    _KEPT.append(folder)
    checkout = Path(folder.name)
    (checkout / "package.json").write_text(package, encoding="utf-8")
    (checkout / "node_modules").symlink_to(installed_set(name) / "node_modules")
    found = find(checkout, path=search_path(name))
    assert isinstance(found, Environment), found
    return found


def find(
    checkout: Path, command: tuple[str, ...] | None = None, *, path: str, main: Path | None = None
) -> Environment | Missing:
    """Return what the toolchain finds for a checkout."""
    return anyio.run(TOOLCHAIN.find_environment, Lookup(checkout, main or checkout, command, checkout, path))


def measure(
    root: Path,
    name: str = "node",
    selection: Selection | None = None,
    *,
    trace: bool = False,
    timeout_s: float = 120.0,
    per_test_timeout_s: float | None = None,
    box: Box | None = None,
    env: Environment | None = None,
) -> Observation:
    """Return what a run of the project in `root` showed, with the packages of a set."""
    sandbox = box or NoBox()
    chosen = env or environment(name, (root / "package.json").read_text(encoding="utf-8"))

    async def run() -> Observation:
        view = View(Mount(root, sandbox.inside(root, Path("/measured")), writable=True))
        return await TOOLCHAIN.run_tests(
            Measurement(sandbox, view, chosen, selection, trace, timeout_s, per_test_timeout_s)
        )

    return anyio.run(run)


def check_types(root: Path, name: str = "node") -> Observation:
    """Return what of the project in `root` does not type-check."""
    env = environment(name, (root / "package.json").read_text(encoding="utf-8"))

    async def check() -> Observation:
        return await TOOLCHAIN.check_types(Measurement(NoBox(), View(Mount(root, root, writable=True)), env))

    return anyio.run(check)
