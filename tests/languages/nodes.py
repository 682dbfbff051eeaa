"""Runs real JavaScript projects, offline, for the tests of the toolchain."""

from __future__ import annotations

import json
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from js_runners import installed_set, search_path
from languages import measured
from languages.measured import request

from pipeline.testing.languages.javascript.toolchain import NodeToolchain
from pipeline.testing.languages.protocol import Environment

if TYPE_CHECKING:
    from pipeline.judge.evidence.observation import Observation
    from pipeline.testing.languages.protocol import Selection

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


find = partial(measured.find, TOOLCHAIN)


def measure(
    root: Path, name: str = "node", selection: Selection | None = None, *, env: Environment | None = None, **more: Any
) -> Observation:
    """Return what a run of the project in `root` showed, with the packages of a set."""
    chosen = env or environment(name, (root / "package.json").read_text(encoding="utf-8"))
    return anyio.run(TOOLCHAIN.run_tests, request(root, chosen, selection=selection, **more))


def check_types(root: Path, name: str = "node") -> Observation:
    """Return what of the project in `root` does not type-check."""
    env = environment(name, (root / "package.json").read_text(encoding="utf-8"))
    return anyio.run(TOOLCHAIN.check_types, request(root, env))
