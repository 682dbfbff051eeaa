"""How each real agent is started directly, with nothing of redfirst between it and the service.

It is what proves the service, and what a bench compares a dispatch with. The adapters are not built from this.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_clis import cli_argv

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from model_service.documents import Json

_OPENCODE_OFF: Final = (
    "PROJECT_CONFIG",
    "AUTOUPDATE",
    "MODELS_FETCH",
    "LSP_DOWNLOAD",
    "CLAUDE_CODE",
    "DEFAULT_PLUGINS",
)


@dataclass(frozen=True)
class Bare:
    """What starts an agent."""

    argv: tuple[str, ...]
    env: dict[str, str]


def bare(name: str, *, url: str, home: Path, workspace: Path, prompt: str) -> Bare:
    """Return how an agent is asked with a prompt in a workspace; `home` is its own, and empty.

    Skips the test if the agent is not there.
    """
    (home / "tmp").mkdir()
    base = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "NO_PROXY": "127.0.0.1",
    }
    argv, env = _AGENTS[name](url, home, workspace, prompt)
    return Bare((*cli_argv(name), *argv), base | env)


_Start = tuple[tuple[str, ...], dict[str, str]]


def _claude(url: str, home: Path, workspace: Path, prompt: str) -> _Start:
    argv = ("-p", prompt, "--output-format", "stream-json", "--verbose", "--model", "scripted")
    quiet = ("--setting-sources", "", "--strict-mcp-config", "--no-session-persistence")
    return (*argv, *quiet, "--permission-mode", "bypassPermissions"), {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "placeholder",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }


def _codex(url: str, home: Path, workspace: Path, prompt: str) -> _Start:
    provider = f'model_providers.loop={{name="loop",base_url="{url}/v1",wire_api="responses",env_key="LOOP_KEY"}}'
    settings = (
        'model_provider="loop"',
        provider,
        'approval_policy="never"',
        "analytics.enabled=false",
        "check_for_update_on_startup=false",
    )
    argv = ("exec", "--json", "--ephemeral", "--ignore-user-config", "--skip-git-repo-check", "-m", "scripted")
    place = ("--sandbox", "danger-full-access", "-C", str(workspace))
    given = tuple(word for setting in settings for word in ("-c", setting))
    return (*argv, *place, *given, prompt), {"LOOP_KEY": "placeholder"}


def _opencode(url: str, home: Path, workspace: Path, prompt: str) -> _Start:
    options = {"baseURL": f"{url}/v1", "apiKey": "placeholder"}
    models: Json = {"scripted": {}, "scripted-small": {}}
    config: Json = {
        "model": "loop/scripted",
        "small_model": "loop/scripted-small",
        "enabled_providers": ["loop"],
        "autoupdate": False,
        "share": "disabled",
        "provider": {"loop": {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}},
        "agent": {"redfirst-bare": {"mode": "primary", "prompt": "You work.", "permission": {"*": "allow"}}},
    }
    off = {f"OPENCODE_DISABLE_{name}": "1" for name in _OPENCODE_OFF}
    argv = ("run", "--format", "json", "--agent", "redfirst-bare", "--dir", str(workspace), prompt)
    return argv, {"OPENCODE_CONFIG_CONTENT": json.dumps(config), **off}


def _gemini(url: str, home: Path, workspace: Path, prompt: str) -> _Start:
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False}}
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    argv = ("-p", prompt, "--yolo", "--skip-trust", "-m", "gemini-2.5-flash", "--output-format", "json")
    return argv, {
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": "placeholder",
        "GEMINI_CLI_NO_RELAUNCH": "1",
    }


_AGENTS: Final[dict[str, Callable[[str, Path, Path, str], _Start]]] = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
    "gemini": _gemini,
}
