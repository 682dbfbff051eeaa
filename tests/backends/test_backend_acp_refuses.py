"""What an agent over the Agent Client Protocol is not even asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from backends.acp_stand import Stand

from pipeline.agents.backends.acp import AcpBackend
from pipeline.agents.backends.protocol import Service
from pipeline.config.agents import AgentConfig, Backend, Profile
from pipeline.config.providers import Api, Provider
from pipeline.errors import UserError
from pipeline.judge.policy.roles import Network
from pipeline.sandbox.boxes.nobox import NoBox

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ({}, "needs profile"),
        ({"profile": Profile.CUSTOM}, "needs argv"),
        ({"profile": Profile.OPENCODE}, "opencode was not found"),
        ({"profile": Profile.GEMINI}, "gemini on PATH was not found"),
        ({"profile": Profile.CUSTOM, "argv": ("sh",), "login": True}, "login = true is for a known profile"),
    ],
)
def test_a_configuration_that_cannot_work(tmp_path: Path, agent: dict[str, Any], words: str) -> None:
    (tmp_path / "sh").write_text("#!/bin/sh\n")
    (tmp_path / "sh").chmod(0o755)
    with pytest.raises(UserError, match=words):
        AcpBackend().require(AgentConfig(backend=Backend.ACP, **agent), str(tmp_path))


def test_an_agent_that_cannot_reach_its_model(tmp_path: Path) -> None:
    program = tmp_path / "gemini"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    config = AgentConfig(backend=Backend.ACP, profile=Profile.GEMINI, network=Network.NONE)
    with pytest.raises(UserError, match="has to reach its model"):
        AcpBackend().require(config, str(tmp_path))
    AcpBackend().require(config.model_copy(update={"network": Network.MODEL}), str(tmp_path))


@pytest.mark.broad
def test_a_service_that_speaks_another_dialect(tmp_path: Path) -> None:
    program = tmp_path / "codex-acp"
    program.symlink_to("/bin/true")
    place = Stand(tmp_path / "stand", NoBox(), Profile.CUSTOM, (str(program),))
    place.profile = Profile.CODEX
    service = Service("claude", Provider(url="https://example.com", api=(Api.ANTHROPIC,)))
    with pytest.raises(UserError, match="codex-acp speaks responses; the provider claude speaks anthropic"):
        anyio.run(AcpBackend().run, place.job(network="model", service=service))


def test_code_of_the_repository_that_cannot_be_hidden_is_not_run(tmp_path: Path) -> None:
    files = {"app.py": "a = 1\n", ".opencode/plugin/evil.js": "x"}
    place = Stand(tmp_path, NoBox(), Profile.CUSTOM, ("/bin/true",), files=files)
    place.profile = Profile.OPENCODE
    with pytest.raises(UserError, match=r"\.opencode, without isolation"):
        anyio.run(AcpBackend().run, place.job(network="open"))


def test_the_sdk_is_loaded_by_nobody_else() -> None:
    code = "import sys, pipeline.agents.backends, pipeline.faces.cli.main; sys.exit('acp' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True)
