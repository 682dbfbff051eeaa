"""Runs real cargo projects, crate-free and offline, for the tests of the toolchain."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from languages.measured import environment_of, request

from pipeline.testing.languages.rust.toolchain import CargoToolchain

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.judge.evidence.observation import Observation
    from pipeline.testing.languages.protocol import Environment, Selection

TOOLCHAIN = CargoToolchain()
MANIFEST = '[package]\nname = "greet"\nversion = "0.1.0"\nedition = "2021"\n'

needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="this machine has no cargo")


def environment() -> Environment:
    """Return the environment of the machine's own toolchain."""
    return environment_of(TOOLCHAIN)


def measure(
    root: Path, selection: Selection | None = None, *, env: Environment | None = None, **more: Any
) -> Observation:
    """Return what a run of the project in `root` showed."""
    return anyio.run(TOOLCHAIN.run_tests, request(root, env or environment(), selection=selection, **more))


def check_types(root: Path) -> Observation:
    """Return what of the project in `root` does not compile."""
    return anyio.run(TOOLCHAIN.check_types, request(root, environment()))
