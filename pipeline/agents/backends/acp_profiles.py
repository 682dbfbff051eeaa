"""The known agents that speak the Agent Client Protocol, and the setup of each for one dispatch.

Isolation is part of a profile, never an option: nothing that a repository holds for a product (settings, plugins,
hooks, servers, agents, instructions) is loaded. A product's own sandbox is off inside our box, and its permissions say
what the role may do, so that the model is told early; what keeps it is the box and the gate.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping  # noqa: TC003  (dataclasses and pyright read them at run time)
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pipeline.agents.backends.claude import ISOLATED
from pipeline.agents.backends.codex import PROVIDER, SETTINGS
from pipeline.agents.backends.products import Bundle, Native
from pipeline.config.agents import Effort, Profile
from pipeline.config.providers import Api
from pipeline.process import MODEL_URL

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.agents.backends.protocol import AgentJob


_PLACEHOLDER: Final = "placeholder"
"""A dummy credential for products that insist on one. The gateway adds the real one."""
_PROVIDER: Final = "redfirst"
_TRIES: Final = "2"
"""The number of retries set in products that have such a setting: we decide whom to ask next."""


@dataclass(frozen=True)
class Product:
    """A known agent: its program, its folder, and its abilities.

    Args:
        program: How it is found.
        apis: The dialects that it speaks.
        setup: How it is told the terms.
        sums: Whether what it says of tokens is the whole turn's, not the last answer's.
        resumes: Whether a conversation can be gone on with in another process.
        hides: What no setting keeps it from running, at the top of a repository: the box shows nothing there.
        priced: How the models begin whose cost it knows; for others it makes one up. Empty: it may be believed.
    """

    program: Native | Bundle
    apis: tuple[Api, ...]
    setup: Callable[[Terms], Setup]
    sums: bool = True
    resumes: bool = True
    hides: tuple[str, ...] = ()
    priced: tuple[str, ...] = ()


# --- opencode -------------------------------------------------------------------------------------------------------

_SDK: Final = {
    Api.CHAT: ("@ai-sdk/openai-compatible", "/v1"),
    Api.RESPONSES: ("@ai-sdk/openai", "/v1"),
    Api.ANTHROPIC: ("@ai-sdk/anthropic", "/v1"),
    Api.GOOGLE: ("@ai-sdk/google", "/v1beta"),
}
"""The SDK adapter in opencode for each dialect, and its suffix to the URL."""
_THINKING: Final = {Effort.LOW: 4_000, Effort.MEDIUM: 12_000, Effort.HIGH: 30_000}
_OPENCODE_OFF: Final = (
    "PROJECT_CONFIG", "AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "CLAUDE_CODE", "DEFAULT_PLUGINS", "EXTERNAL_SKILLS",
    "SHARE",
)  # fmt: skip


def _opencode(terms: Terms) -> Setup:
    # The last rule that matches counts; `ask` would end the turn at a refusal, without a word to the model.
    permission = {"*": "allow"} if terms.job.view.writable and terms.job.shell else _opencode_rules(terms)
    permission |= dict.fromkeys(("webfetch", "websearch", "question", "task", "skill"), "deny")
    agent: dict[str, Any] = {"mode": "primary", "permission": permission, "steps": terms.job.agent.max_steps}
    config: dict[str, Any] = {
        "autoupdate": False,
        "share": "disabled",
        "snapshot": False,
        "lsp": False,
        "formatter": False,  # it would change files after each edit
        "agent": {terms.agent: agent, "title": {"disable": True}},
    }
    model = terms.job.model
    if terms.api is not None:
        kind, path = _SDK[terms.api]
        options = {"baseURL": MODEL_URL + path, "apiKey": _PLACEHOLDER}
        models = {model or "": {"options": _opencode_effort(terms)}}
        config |= {
            "enabled_providers": [_PROVIDER],
            "provider": {_PROVIDER: {"npm": kind, "name": _PROVIDER, "options": options, "models": models}},
        }
        model = f"{_PROVIDER}/{model}"
    if model is not None:
        config |= {"model": model, "small_model": model}
    return Setup(
        arguments=("acp", "--pure"),
        env={
            "OPENCODE_CONFIG_CONTENT": json.dumps(config),
            **{f"OPENCODE_DISABLE_{name}": "1" for name in _OPENCODE_OFF},
            **({"OPENCODE_DB": str(terms.conversations / "opencode.db")} if terms.conversations is not None else {}),
            **({"XDG_DATA_HOME": str(terms.folder.parent)} if terms.folder is not None else {}),
        },
        options={"mode": terms.agent},
    )


def _opencode_rules(terms: Terms) -> dict[str, str]:
    allowed = ["read", "grep", "glob", "list", "todowrite", "todoread", "external_directory", "doom_loop"]
    allowed += ["edit"] * terms.job.view.writable + ["bash"] * terms.job.shell
    return {"*": "deny", **dict.fromkeys(allowed, "allow")}


def _opencode_effort(terms: Terms) -> dict[str, Any]:
    if (effort := terms.job.agent.effort) is None:
        return {}
    if terms.api is Api.ANTHROPIC:
        return {"thinking": {"type": "enabled", "budgetTokens": _THINKING[effort]}}
    if terms.api is Api.GOOGLE:
        return {"thinkingConfig": {"thinkingBudget": _THINKING[effort]}}
    return {"reasoningEffort": effort}


# --- Gemini CLI -----------------------------------------------------------------------------------------------------

_GEMINI_READS: Final = ("read_file", "read_many_files", "list_directory", "glob", "grep_search", "write_todos")
_GEMINI_WRITES: Final = ("write_file", "replace")


def _gemini(terms: Terms) -> Setup:
    # The workspace is not trusted, so that nothing in it counts; then every tool asks, and is answered by the policy.
    tools = [*_GEMINI_READS, *_GEMINI_WRITES * terms.job.view.writable, *("run_shell_command",) * terms.job.shell]
    settings: dict[str, Any] = {
        "general": {"enableAutoUpdate": False, "checkpointing": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "security": {"folderTrust": {"enabled": True}, "environmentVariableRedaction": {"enabled": False}},
        "context": {
            "fileName": ["redfirst-reads-these-itself.md"],
            "discoveryMaxDirs": 0,
            "includeDirectories": [str(folder) for folder in terms.folders],
        },
        "tools": {"core": tools, "sandbox": False},
        "mcp": {"allowed": []},
        "experimental": {"enableAgents": False, "skills": False},
        "hooksConfig": {"enabled": False},
        # To look for loops it would ask another model.
        "model": {"maxSessionTurns": terms.job.agent.max_steps, "disableLoopDetection": True},
    }
    env = {"GEMINI_CLI_NO_RELAUNCH": "1", "NO_BROWSER": "1"}
    if terms.folder is not None:
        env["GEMINI_CLI_HOME"] = str(terms.folder.parent)
    if terms.api is not None:
        settings["security"]["auth"] = {"selectedType": "gemini-api-key"}
        env |= {"GOOGLE_GEMINI_BASE_URL": MODEL_URL, "GEMINI_API_KEY": _PLACEHOLDER}
    arguments = ("--acp", *(("--model", terms.job.model) if terms.job.model is not None else ()))
    return Setup(arguments, env, files={"settings.json": json.dumps(settings)})


# --- Claude Code, through claude-agent-acp --------------------------------------------------------------------------

_CLAUDE_READS: Final = ("Read", "Grep", "Glob", "TodoWrite")
_CLAUDE_WRITES: Final = ("Edit", "Write", "NotebookEdit")
_CLAUDE_SHELL: Final = ("Bash", "BashOutput", "KillShell")


def _claude(terms: Terms) -> Setup:
    tools = [*_CLAUDE_READS, *_CLAUDE_WRITES * terms.job.view.writable, *_CLAUDE_SHELL * terms.job.shell]
    options: dict[str, Any] = {"settingSources": [], "strictMcpConfig": True, "tools": tools, "agents": {}}
    options["maxTurns"] = terms.job.agent.max_steps
    if terms.job.agent.effort is not None:
        options["effort"] = terms.job.agent.effort
    if terms.job.model is not None:
        options["model"] = terms.job.model
    env = {**ISOLATED, "CLAUDE_CODE_MAX_RETRIES": _TRIES}
    if terms.folder is not None:
        env["CLAUDE_CONFIG_DIR"] = str(terms.folder)
    if terms.job.model is not None:
        env |= {"ANTHROPIC_MODEL": terms.job.model, "ANTHROPIC_CUSTOM_MODEL_OPTION": terms.job.model}
        # Side requests are asked of the model that was chosen, too: nothing is inherited silently.
        env["ANTHROPIC_SMALL_FAST_MODEL"] = terms.job.model
    if terms.api is not None:
        env |= {"ANTHROPIC_BASE_URL": MODEL_URL, "ANTHROPIC_API_KEY": _PLACEHOLDER}
    return Setup(env=env, meta={"claudeCode": {"options": options}}, options={"mode": "default"})


# --- Codex, through codex-acp ---------------------------------------------------------------------------------------


def _codex(terms: Terms) -> Setup:
    # Its shell is also how it reads: it stays open for every role, and the box shows a reviewer a read-only view.
    settings = [*SETTINGS, 'sandbox_mode="danger-full-access"', *(PROVIDER if terms.api is not None else ())]
    if terms.job.model is not None:
        settings.append(f"model={json.dumps(terms.job.model)}")
    if (effort := terms.job.agent.effort) is not None:
        # Of a model that it does not know it would not ask for any.
        settings += [f"model_reasoning_effort={json.dumps(effort)}", "model_supports_reasoning_summaries=true"]
    words = [word for setting in settings for word in ("-c", setting)]
    env = {"NO_BROWSER": "1"} | ({"CODEX_HOME": str(terms.folder)} if terms.folder is not None else {})
    return Setup(tuple(words), env, options={"mode": "full-access"})


# --- any other ------------------------------------------------------------------------------------------------------


def custom(terms: Terms) -> Setup:
    """Return the setup of an unknown agent, with only what every agent has."""
    env = {"XDG_STATE_HOME": str(terms.conversations)} if terms.conversations is not None else {}
    return Setup(env=env, options={"model": terms.job.model} if terms.job.model is not None else {})


PRODUCTS: Final[Mapping[Profile, Product]] = {
    Profile.OPENCODE: Product(
        Native("opencode", "/opencode", "bin/opencode", None, "npm install -g opencode-ai", "1.18.33"),
        (Api.CHAT, Api.RESPONSES, Api.ANTHROPIC, Api.GOOGLE),
        _opencode,
        sums=False,
        hides=(".opencode", "opencode.json", "opencode.jsonc"),
    ),
    Profile.GEMINI: Product(
        Bundle("gemini", "npm install -g @google/gemini-cli", "0.61.0"),
        (Api.GOOGLE,),
        _gemini,
        resumes=False,  # it says that it can, finds no session, and would send the history when it has answered
    ),
    Profile.CLAUDE: Product(
        Bundle("claude-agent-acp", "npm install -g @agentclientprotocol/claude-agent-acp", "0.49.0"),
        (Api.ANTHROPIC,),
        _claude,
        priced=("claude", "haiku", "sonnet", "opus"),
    ),
    Profile.CODEX: Product(
        Native(
            "codex-acp", "@zed-industries/codex-acp", "bin/codex-acp", None, "npm install -g @zed-industries/codex-acp",
            "0.16.0",
        ),
        (Api.RESPONSES,),
        _codex,
    ),
}  # fmt: skip
"""The known agents by profile."""


@dataclass(frozen=True)
class Terms:
    """The job of an agent, and its folders in one dispatch.

    Args:
        job: What it is asked and may do, by which model.
        agent: A name that no agent of the repository has.
        folder: Where the product keeps its things, if that is not its own place in the home folder.
        conversations: Where a conversation is kept that can be gone on with; None if it is not.
        api: How the gateway's service is spoken to; None where the product talks to its own.
        folders: Where else than in the workspace it has to look, for a product that keeps to its workspace.
    """

    job: AgentJob
    agent: str
    folder: Path | None
    conversations: Path | None
    api: Api | None = None
    folders: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Setup:
    """The arguments, variables and files that set up a product for one dispatch.

    Args:
        arguments: What follows the program.
        env: Its variables.
        files: Read-only files below the product's own folder, with their content.
        meta: `_meta` of a new session.
        options: What the session's options are set to, in this order.
    """

    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    options: Mapping[str, str] = field(default_factory=dict[str, str])
