"""The real agents that tests drive: installed by `scripts/agent-clis.sh`, for this checkout only."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final, NoReturn

import pytest

AGENTS: Final = ("claude", "codex", "opencode", "gemini", "claude-agent-acp", "codex-acp")


def agents_folder() -> Path:
    """Return the folder that `scripts/agent-clis.sh` filled; REDFIRST_TEST_AGENTS names another than the default."""
    return Path(os.environ.get("REDFIRST_TEST_AGENTS") or Path(__file__).parents[1] / ".agents-cache")


def installed() -> dict[str, Path]:
    """Return the native program or the JavaScript entry of each agent that is there, by name."""
    try:
        lines = (agents_folder() / "agents.txt").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    found = {name: Path(path) for name, _, path in (line.split(" ", 2) for line in lines)}
    return {name: path for name, path in found.items() if path.is_file()}


def cli(name: str) -> Path:
    """Return the program of an agent; where it is missing the test is skipped, and fails if CI=true."""
    assert name in AGENTS, name
    path = installed().get(name)
    return path if path is not None else _without(f"the agent {name} is not installed; run scripts/agent-clis.sh")


def cli_argv(name: str) -> tuple[str, ...]:
    """Return the words that start an agent: its program, after Node where that is what runs it; skips as `cli`."""
    path = cli(name)
    if path.suffix != ".js":
        return (str(path),)
    return (shutil.which("node") or _without(f"the agent {name} needs Node"), str(path))


def _without(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
