"""An agent that speaks the Agent Client Protocol, in the real box and behind the real gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
from agent_clis import cli
from backends.real_agents import SECRET, Place
from model_service.service import ModelService
from pydantic import SecretStr

from pipeline.agents.backends.acp import AcpBackend
from pipeline.agents.backends.protocol import AgentJob, Service
from pipeline.agents.dispatch.agent_call import call
from pipeline.agents.gateway.failing_service import Patience
from pipeline.agents.gateway.proxy import ModelGateway
from pipeline.config.agents import AgentConfig, Backend, Profile
from pipeline.config.providers import Api, Provider
from pipeline.sandbox.escapes import Alarm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model_service.script import Conversation

    from pipeline.agents.backends.protocol import AgentResult

PROGRAMS = {
    Profile.OPENCODE: "opencode",
    Profile.GEMINI: "gemini",
    Profile.CLAUDE: "claude-agent-acp",
    Profile.CODEX: "codex-acp",
}
DIALECT = {
    Profile.OPENCODE: Api.CHAT,
    Profile.GEMINI: Api.GOOGLE,
    Profile.CLAUDE: Api.ANTHROPIC,
    Profile.CODEX: Api.RESPONSES,
}
MODEL = {
    Api.CHAT: "scripted",
    Api.GOOGLE: "gemini-2.5-flash",
    Api.ANTHROPIC: "claude-opus-4-5",
    Api.RESPONSES: "gpt-5.4",
}


@dataclass
class Stand(Place):
    """One agent; `ask` is one dispatch."""

    profile: Profile
    argv: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.argv = self.argv or (str(cli(PROGRAMS[self.profile])),)

    def job(self, *, session: str | None = None, **changes: Any) -> AgentJob:
        """Return a job without a model; *session* names the conversation to go on with."""
        network = changes.get("network", "none")
        agent = AgentConfig(backend=Backend.ACP, profile=self.profile, argv=self.argv, network=network)
        return super().job(session=session, **({"agent": agent} | changes))

    def run(self, **changes: Any) -> AgentResult:
        """Return how one dispatch without a model went."""
        return anyio.run(AcpBackend().run, self.job(**changes))

    def served(self, service: ModelService, **changes: Any) -> tuple[AgentJob, ModelGateway]:
        """Return a job whose model is *service*, by way of the gateway."""
        api = changes.pop("api", DIALECT[self.profile])
        provider = Provider(url=service.url, credential_env="THE_KEY", api=(api,), timeout_s=60)
        log = self.folder / f"model-{self.asked}.jsonl"
        gateway = ModelGateway(provider, SecretStr(SECRET), log, name="loop", patience=Patience(3, 2))
        settings: dict[str, Any] = {
            "model": MODEL[api],
            "network": "model",
            "gateway": gateway,
            "service": Service("loop", provider),
        }
        return self.job(**(settings | changes)), gateway

    def ask(self, *script: Conversation, **changes: Any) -> tuple[AgentResult, ModelService]:
        """Return how one dispatch went, and what the model was asked."""
        with ModelService(script, secret=SECRET) as service:
            result = anyio.run(call, AcpBackend(), *self.served(service, **changes), Alarm())
        return result, service

    def ask_on(self, *scripts: Sequence[Conversation]) -> tuple[list[AgentResult], ModelService]:
        """Return how dispatches went that each go on in the conversation of the one before."""
        results: list[AgentResult] = []
        with ModelService([each for script in scripts for each in script], secret=SECRET) as service:
            for _ in scripts:
                session = results[-1].session if results else None
                results.append(anyio.run(call, AcpBackend(), *self.served(service, session=session), Alarm()))
        return results, service
