"""The agents as a user starts them on the host, with nothing of redfirst between them and the model.

Once with the request as an argument (`tests/model_service/bare.py` says how), and where redfirst speaks the Agent
Client Protocol with an agent, also with the smallest client of it: a difference between an agent's two modes is the
agent's, not ours.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from bench.agents_measure import ROOT, StreamFacts, Watch, started

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bench.agents_measure import Model

PROMPT: Final = (
    "You are @make. You implement one task.\n\n# This request: implement\n\n"
    "Implement task 1 (issue B-1, attempt 1).\n\nWorkspace: `{workspace}`\n"
)


@dataclass(frozen=True)
class Start:
    """What starts an agent."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


def installed() -> dict[str, Path]:
    """Return the agents that `scripts/agent-clis.sh` installed for this checkout, by name."""
    return tests_module("agent_clis").installed()


def tests_module(module: str) -> Any:
    folder = str(ROOT / "tests")
    if folder not in sys.path:
        sys.path.append(folder)
    return import_module(module)


def as_argument(name: str, model: Model, place: Path, workspace: Path) -> Start:
    """Return how an agent is started with the request among its arguments; `place` is for its home folder."""
    home = place / "home"
    home.mkdir()
    prompt = PROMPT.format(workspace=workspace)
    start = tests_module("model_service.bare").bare(name, url=model.url, home=home, workspace=workspace, prompt=prompt)
    return Start(start.argv, start.env)


def ask(name: str, model: Model, place: Path, workspace: Path) -> list[StreamFacts]:
    """Ask with the request as an argument; it has ended when the process has."""
    start = as_argument(name, model, place, workspace)
    began = time.monotonic()
    with started(start.argv, workspace, start.env, place / "errors.log") as process, Watch(process.pid) as watch:
        process.communicate()
        ended = time.monotonic()
    if process.returncode:
        raise RuntimeError((place / "errors.log").read_text(encoding="utf-8", errors="replace"))
    _check(workspace)
    return [StreamFacts(began, ended, watch.peak()[0])]


def _check(workspace: Path) -> None:
    text = (workspace / "calc.py").read_text(encoding="utf-8")
    if "a + b" not in text:
        raise RuntimeError(f"the agent did not make the edit: {text}")


# --- over the Agent Client Protocol ---------------------------------------------------------------------------------


def _opencode(model: Model, place: Path, workspace: Path) -> Start:
    start = as_argument("opencode", model, place, workspace)
    return Start((start.argv[0], "acp"), start.env)


def _gemini(model: Model, place: Path, workspace: Path) -> Start:
    start = as_argument("gemini", model, place, workspace)
    node, bundle = start.argv[:2]
    return Start((node, bundle, "--acp", "--skip-trust", "--model", "gemini-2.5-flash"), start.env)


def _claude(model: Model, place: Path, workspace: Path) -> Start:
    start = as_argument("claude", model, place, workspace)
    return Start(_program("claude-agent-acp"), {**start.env, "ANTHROPIC_MODEL": "scripted"})


def _codex(model: Model, place: Path, workspace: Path) -> Start:
    start = as_argument("codex", model, place, workspace)
    settings = [word for before, word in zip(start.argv, start.argv[1:], strict=False) if before == "-c"]
    settings += ['model="scripted"', 'sandbox_mode="danger-full-access"']
    return Start((*_program("codex-acp"), *(word for said in settings for word in ("-c", said))), start.env)


def _program(name: str) -> tuple[str, ...]:
    return tests_module("agent_clis").cli_argv(name)


_SERVERS: Final[Mapping[str, Callable[[Model, Path, Path], Start]]] = {
    "opencode": _opencode,
    "gemini": _gemini,
    "claude-agent-acp": _claude,
    "codex-acp": _codex,
}


def talk(name: str, model: Model, place: Path, workspace: Path) -> list[StreamFacts]:
    """Ask over the protocol; it has ended when the answer to the request is there, as a client sees it."""
    start = _SERVERS[name](model, place, workspace)
    began = time.monotonic()
    with started(start.argv, workspace, start.env, place / "errors.log") as process, Watch(process.pid) as watch:
        client = _Client(process)
        client.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        session = client.call("session/new", {"cwd": str(workspace), "mcpServers": []})["sessionId"]
        said = {"type": "text", "text": PROMPT.format(workspace=workspace)}
        client.call("session/prompt", {"sessionId": session, "prompt": [said]})
        ended = time.monotonic()
    _check(workspace)
    return [StreamFacts(began, ended, watch.peak()[0])]


class _Client:
    """Asks one thing after another, and allows whatever it is asked for."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._number = 0

    def call(self, method: str, params: Mapping[str, object]) -> dict[str, Any]:
        """Return the result.

        Raises:
            RuntimeError: there is none.
        """
        assert self._process.stdout is not None
        self._number += 1
        self._send(id=self._number, method=method, params=params)
        for line in self._process.stdout:
            if not line.startswith(b"{"):
                continue  # some products log there
            said = json.loads(line)
            if "method" in said and "id" in said:
                self._allow(said)
            elif said.get("id") == self._number:
                if "result" not in said:
                    raise RuntimeError(f"{method}: {said}")
                return said["result"]
        raise RuntimeError(f"{method}: the agent ended")

    def _allow(self, asked: dict[str, Any]) -> None:
        options = asked["params"].get("options", [])
        chosen = next((one["optionId"] for one in options if one["kind"].startswith("allow")), None)
        if chosen is None:
            self._send(id=asked["id"], error={"code": -32601, "message": "not offered"})
        else:
            self._send(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": chosen}})

    def _send(self, **message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()
