"""An agent that speaks the Agent Client Protocol, in the real box and behind the real gateway."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from agent_clis import cli
from dispatch.one_view import open_view
from model_service.service import ModelService
from pydantic import SecretStr

from pipeline.backends.acp import AcpBackend
from pipeline.backends.protocol import AgentJob, Service, Session
from pipeline.boxes.bubblewrap import Bubblewrap
from pipeline.config.agents import AgentConfig, Backend, Profile
from pipeline.config.providers import Api, Provider
from pipeline.dispatch.agent_call import call
from pipeline.dispatch.sandbox_escape import Alarm
from pipeline.gateway.halting import Patience
from pipeline.gateway.proxy import ModelGateway
from pipeline.process import WORKSPACE, Mount
from pipeline.reports.kinds import report_schema
from pipeline.routing.vocabulary import Role

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from model_service.script import Conversation

    from pipeline.backends.protocol import AgentResult
    from pipeline.boxes.box import ProvableBox
    from pipeline.policy.scope import ChangeKind

SECRET = "sk-the-real-credential/0123456789"
PROMPT = """\
You are @make.

# This request: implement

Implement task 1 (issue X-1, attempt 1).

Workspace: `{workspace}`
"""
AGAIN = "Your last answer to this request did not count: look again."
COMPLETE = {"result": "COMPLETE", "summary": "done"}
SESSION = Path("/redfirst-session")
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


def boxed() -> Bubblewrap:
    """Return the box; without bubblewrap the test is skipped."""
    program = shutil.which("bwrap")
    if program is None:
        pytest.skip("bubblewrap is not installed")
    return Bubblewrap(program)


@dataclass
class Stand:
    """One agent and its workspace; `ask` is one dispatch."""

    folder: Path
    profile: Profile
    box: ProvableBox
    argv: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=lambda: {"app.py": "a = 1\n"})
    writable: bool = True
    asked: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.view = open_view(self._fill, self.folder / "view", workspace=WORKSPACE, writable=self.writable)
        self.sessions = self.folder / "sessions"
        self.sessions.mkdir(mode=0o700)
        if not self.argv:
            self.argv = (str(cli(PROGRAMS[self.profile])),)

    def _fill(self, folder: Path) -> None:
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def job(self, *, session: str | None = None, **changes: Any) -> AgentJob:
        """Return a job without a model; *session* names the conversation to go on with."""
        self.asked += 1
        exchange = self.folder / f"exchange-{self.asked}"
        exchange.mkdir(mode=0o700)
        network = changes.get("network", "none")
        settings: dict[str, Any] = {
            "box": self.box,
            "document": json.dumps({"schema": "redfirst.dispatch/1", "role": "make", "kind": "implement"}).encode(),
            "view": self.view.mount,
            "exchange": exchange,
            "agent": AgentConfig(backend=Backend.ACP, profile=self.profile, argv=self.argv, network=network),
            "prompt": PROMPT.format(workspace=self.box.inside(self.view.mount.source, WORKSPACE)),
            "report_schema": report_schema("implement", Role.MAKE),
            "role": "make",
            "timeout_s": 60,
            "session": Session(Mount(self.sessions, SESSION, writable=True), session, AGAIN),
            **changes,
        }
        return AgentJob(**settings)

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

    def changes(self) -> dict[str, ChangeKind]:
        """Return what changed in the workspace."""
        return {change.path: change.kind for change in self.view.survey().changes}
