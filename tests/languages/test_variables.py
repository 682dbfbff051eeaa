"""`[toolchains.NAME] env`: variables reach each language's tests; a command that would drop its own is seen."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest
from languages import direct, nodes

from pipeline.config.load import set_by
from pipeline.judge.evidence.observation import Ended
from pipeline.testing.languages.projects.combined import find_environment
from pipeline.testing.languages.protocol import Environment, Lookup, Missing
from pipeline.testing.languages.table import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeline.judge.evidence.observation import Observation

SET = {"APP_ENV": "test", "TZ": "America/New_York", "CI": "no", "TERM": "vt100"}


def found(name: str, place: Path, variables: Mapping[str, str]) -> Environment:
    lookup = Lookup(place, place, None, place / "state", os.environ["PATH"], variables)

    async def look() -> Environment | Missing:
        return await find_environment(LANGUAGES[name].toolchain, lambda _: lookup)

    env = anyio.run(look)
    assert isinstance(env, Environment), env
    return env


def outcomes(seen: Observation) -> set[str]:
    assert seen.records, seen
    return {str(record.outcome) for record in seen.records.values()}


def test_variables_reach_a_test_of_python(tmp_path: Path) -> None:
    test = """
        import datetime, os

        def test_zone(): assert datetime.datetime.fromtimestamp(0).hour == 19
        def test_settings(): assert (os.environ["APP_ENV"], os.environ["CI"]) == ("test", "no")
        def test_terminal(): assert os.environ["TERM"] == "vt100"
        """
    direct.write(tmp_path, {"test_it.py": test})
    assert outcomes(direct.measure(tmp_path)) == {Ended.FAILED}
    env = direct.environment()
    theirs = replace(env, variables={**env.variables, **SET})
    assert found("pytest", tmp_path, SET).variables.items() >= SET.items()
    assert outcomes(direct.measure(tmp_path, env=theirs)) == {Ended.PASSED}


@pytest.mark.broad
def test_variables_reach_a_test_of_node(tmp_path: Path) -> None:
    test = (
        'require("node:test").test("it", () => require("node:assert").deepEqual('
        '[process.env.APP_ENV, process.env.CI], ["test", "no"]));\n'
    )
    direct.write(tmp_path, {"package.json": nodes.NODE, "it.test.js": test})
    assert outcomes(nodes.measure(tmp_path, env=found("node", tmp_path, {}))) == {Ended.FAILED}
    assert outcomes(nodes.measure(tmp_path, env=found("node", tmp_path, SET))) == {Ended.PASSED}


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (["env", "TZ=UTC", "APP_ENV=test", "python", "-m", "pytest"], ("TZ", "APP_ENV")),
        (["env", "-i", "A=1", "pytest"], ("A",)),
        (["/usr/bin/env", "A=1", "pytest"], ("A",)),
        (["A=1", "pytest"], ("A",)),
        (["A=1 pytest -x"], ("A",)),
        (["sh", "-c", "A=1 B=2 exec pytest"], ("A", "B")),
        (["nix", "develop", "-c", "env", "A=1", "cargo", "test"], ("A",)),
        (["nix-shell", "--run", "A=1 pytest"], ("A",)),
        (["cross-env", "NODE_ENV=test", "vitest", "run"], ("NODE_ENV",)),
        (["uv", "run", "--env-file", ".env", "pytest"], ("--env-file",)),
        (["uv", "run", "--env-file=.env", "pytest"], ("--env-file",)),
        (["dotenv", "run", "--", "pytest"], ("dotenv",)),
    ],
)
def test_what_a_command_sets_is_seen(command: list[str], names: tuple[str, ...]) -> None:
    assert set_by(command) == names


@pytest.mark.parametrize(
    "command",
    [
        ["env", "python", "-m", "pytest"],
        ["pytest", "-k", "a=b", "-o", "addopts=x", "--cov=src"],
        ["pytest", "-c", "pytest.ini", "tests/a=b"],
        ["cargo", "test", "--config", "build.jobs=1"],
        ["go", "test", "-ldflags", "-X main.v=1", "./..."],
        ["nix", "develop", "-c", "pytest", "A=1"],
        ["node", "--env-file=.env", "--test"],
        ["uv", "run", "pytest"],
    ],
)
def test_what_is_no_variable_of_a_command_is_left_alone(command: list[str]) -> None:
    assert set_by(command) == ()
