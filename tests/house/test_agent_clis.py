"""The script that installs the agents for the tests, with an npm of ours: what it says, and what it does only once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from agent_clis import AGENTS, installed

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parents[2]
TOOLS: Final = ("bash", "env", "dirname", "cat", "grep", "head", "mkdir", "rm", "tee")

PROGRAMS: Final = {
    "@anthropic-ai/claude-code": "@anthropic-ai/claude-code-linux-x64/claude",
    "@openai/codex": "@openai/codex-linux-x64/vendor/some/bin/codex",
    "opencode-ai": "opencode-linux-x64/bin/opencode",
    "@google/gemini-cli": "@google/gemini-cli/bundle/gemini.js",
    "@agentclientprotocol/claude-agent-acp": "@agentclientprotocol/claude-agent-acp/dist/index.js",
    "@zed-industries/codex-acp": "@zed-industries/codex-acp-linux-x64/bin/codex-acp",
}
NPM: Final = f"""#!{sys.executable} -IS
import json, pathlib, sys
prefix = pathlib.Path(sys.argv[sys.argv.index("--prefix") + 1])
assert "--ignore-scripts" in sys.argv
with (prefix / "calls").open("a") as calls:
    calls.write("install\\n")
if (prefix / "offline").exists():
    sys.exit("npm: no network")
programs = {json.dumps(PROGRAMS)}
for package, version in json.loads((prefix / "package.json").read_text())["dependencies"].items():
    for path, text in ((f"{{package}}/package.json", json.dumps({{"version": version}})), (programs[package], "")):
        file = prefix / "node_modules" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
"""


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Return a folder for PATH with what every system has, and a Node that does nothing."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    (folder / "node").symlink_to("/bin/true")
    return folder


def with_npm(tools: Path) -> None:
    (tools / "npm").write_text(NPM)
    (tools / "npm").chmod(0o755)


def start(tools: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    script = ["scripts/agent-clis.sh", *argv]
    return subprocess.run(
        script, cwd=ROOT, env={"PATH": str(tools)}, capture_output=True, text=True, timeout=60, check=False
    )


def test_it_says_where_each_agent_is_and_installs_once(
    tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_npm(tools)
    folder = tmp_path / "agents"
    first, second = start(tools, str(folder)), start(tools, "--require", str(folder))
    assert (first.returncode, second.returncode, second.stderr) == (0, 0, "")
    lines = [line.split(" ") for line in first.stdout.splitlines()]
    assert [name for name, _, _ in lines] == list(AGENTS)
    assert all(version[0].isdigit() and Path(path).is_file() for _, version, path in lines)
    assert second.stdout == first.stdout
    assert (folder / "calls").read_text() == "install\n"
    monkeypatch.setenv("REDFIRST_TEST_AGENTS", str(folder))
    assert {name: str(path) for name, path in installed().items()} == {name: path for name, _, path in lines}


def test_asked_only_to_show_it_installs_nothing(tools: Path, tmp_path: Path) -> None:
    with_npm(tools)
    folder = tmp_path / "agents"
    done = start(tools, "--show", str(folder))
    assert (done.returncode, done.stdout) == (0, "")
    assert " ".join(AGENTS) in done.stderr
    assert not (folder / "calls").exists()
    start(tools, str(folder))
    assert len(start(tools, "--show", str(folder)).stdout.splitlines()) == len(AGENTS)


def test_another_version_is_installed_anew(tools: Path, tmp_path: Path) -> None:
    with_npm(tools)
    folder = tmp_path / "agents"
    start(tools, str(folder))
    (folder / "installed.json").write_text("{}")
    assert start(tools, str(folder)).returncode == 0
    assert (folder / "calls").read_text() == "install\n" * 2


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--require",), 1)])
def test_without_npm_every_agent_is_named_as_left_out(
    tools: Path, tmp_path: Path, words: tuple[str, ...], code: int
) -> None:
    done = start(tools, *words, str(tmp_path / "agents"))
    assert (done.returncode, done.stdout) == (code, "")
    assert "npm is not installed" in done.stderr
    assert " ".join(AGENTS) in done.stderr


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--require",), 1)])
def test_without_a_network_every_agent_is_named_as_left_out(
    tools: Path, tmp_path: Path, words: tuple[str, ...], code: int
) -> None:
    with_npm(tools)
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "offline").touch()
    done = start(tools, *words, str(folder))
    assert (done.returncode, done.stdout) == (code, "")
    assert "no network" in done.stderr
    assert " ".join(AGENTS) in done.stderr
    assert not (folder / "installed.json").exists()


def test_without_node_only_the_agents_that_need_it_are_left_out(tools: Path, tmp_path: Path) -> None:
    with_npm(tools)
    (tools / "node").unlink()
    done = start(tools, "--require", str(tmp_path / "agents"))
    assert done.returncode == 1
    assert "gemini claude-agent-acp" in done.stderr
    assert [line.split(" ")[0] for line in done.stdout.splitlines()] == ["claude", "codex", "opencode", "codex-acp"]


@pytest.mark.parametrize("words", [("--help",), ("a", "b")])
def test_wrong_words_are_told(tools: Path, words: tuple[str, ...]) -> None:
    done = start(tools, *words)
    assert (done.returncode, done.stderr) == (2, "usage: agent-clis.sh [--require | --show] [FOLDER]\n")


def test_it_is_executable_and_stops_at_the_first_failure() -> None:
    text = (ROOT / "scripts/agent-clis.sh").read_text()
    assert os.access(ROOT / "scripts/agent-clis.sh", os.X_OK)
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in text
