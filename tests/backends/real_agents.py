"""A real agent in the real box, behind the real gateway, with the scripted model at the end."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from dispatch.one_view import open_view
from model_service.service import ModelService
from pydantic import SecretStr

from pipeline.agents.backends import BACKENDS
from pipeline.agents.backends.protocol import AgentJob, Session
from pipeline.agents.gateway.proxy import ModelGateway
from pipeline.config.agents import AgentConfig, Backend, Effort
from pipeline.config.providers import CredentialHeader, Provider
from pipeline.judge.reports.kinds import report_schema
from pipeline.process import WORKSPACE, Mount
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from model_service.script import Conversation

    from pipeline.agents.backends.protocol import AgentResult
    from pipeline.judge.policy.rights import ChangeKind
    from pipeline.sandbox.boxes.box import ProvableBox

SECRET = "sk-the-real-credential/0123456789"
PATHS = (
    "POST /v1/messages",
    "POST /v1/messages/count_tokens",
    "POST /v1/responses",
    "POST /v1/chat/completions",
    "GET /v1/models",
)
PROMPT = """\
You are @make.

# This request: implement

Implement task 1 (issue X-1, attempt 1).

Workspace: `{workspace}`
"""
AGAIN = "Your last answer to this request did not count: look again."
COMPLETE = {"result": "COMPLETE", "summary": "done"}
SESSION = Path("/redfirst-session")


def boxed() -> Bubblewrap:
    """Return the box; without bubblewrap the test is skipped."""
    program = shutil.which("bwrap")
    if program is None:
        pytest.skip("bubblewrap is not installed")
    return Bubblewrap(program)


def job_of(settings: dict[str, Any]) -> AgentJob:
    """Return a job; what the configuration of its agent says may stand among its own settings."""
    said = {name: settings[name] for name in ("argv", "script", "effort", "max_steps") if name in settings}
    said |= {"effort": Effort(said["effort"])} if "effort" in said else {}
    agent: AgentConfig = settings.get("agent", AgentConfig())
    own = {name: value for name, value in settings.items() if name not in {*said, "agent"}}
    return AgentJob(**own, agent=agent.model_copy(update=said))


@dataclass
class Place:
    """A box and a workspace for one agent, dispatch after dispatch."""

    folder: Path
    box: ProvableBox
    files: Mapping[str, str] = field(default_factory=lambda: {"app.py": "a = 1\n"}, kw_only=True)
    writable: bool = field(default=True, kw_only=True)
    asked: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.view = open_view(self._fill, self.folder / "view", workspace=WORKSPACE, writable=self.writable)
        self.sessions = self.folder / "sessions"
        self.sessions.mkdir(mode=0o700)

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
        settings: dict[str, Any] = {
            "box": self.box,
            "document": json.dumps({"schema": "redfirst.dispatch/1", "role": "make", "kind": "implement"}).encode(),
            "view": self.view.mount,
            "exchange": exchange,
            "prompt": PROMPT.format(workspace=self.box.inside(self.view.mount.source, WORKSPACE)),
            "report_schema": report_schema("implement", Role.MAKE),
            "role": "make",
            "timeout_s": 240,
            "session": Session(Mount(self.sessions, SESSION, writable=True), session, AGAIN),
        }
        return job_of(settings | changes)

    def changes(self) -> dict[str, ChangeKind]:
        """Return what changed in the workspace."""
        return {change.path: change.kind for change in self.view.survey().changes}


@dataclass
class Stand(Place):
    """A product with a backend of its own; `ask` is one dispatch."""

    backend: str
    program: Path

    def served(self, service: ModelService, **changes: Any) -> AgentJob:
        """Return a job whose model is *service*, by way of the gateway."""
        provider = Provider(
            url=service.url, credential_env="THE_KEY", header=CredentialHeader.BEARER, paths=PATHS, timeout_s=60
        )
        settings: dict[str, Any] = {
            "argv": (str(self.program),),
            "agent": AgentConfig(backend=Backend(self.backend)),
            "model": "claude-sonnet-4-5",
            "network": "model",
            "gateway": ModelGateway(provider, SecretStr(SECRET), self.folder / f"model-{self.asked}.jsonl"),
        }
        return self.job(**(settings | changes))

    def ask(
        self, *script: Conversation, session: str | None = None, **changes: Any
    ) -> tuple[AgentResult, ModelService]:
        """Return how one dispatch went, and what the model was asked."""
        with ModelService(script, secret=SECRET) as service:
            result = anyio.run(BACKENDS[self.backend].run, self.served(service, session=session, **changes))
        return result, service

    def ask_on(self, *scripts: Sequence[Conversation]) -> tuple[list[AgentResult], ModelService]:
        """Return how dispatches went that each go on in the conversation of the one before."""
        results: list[AgentResult] = []
        with ModelService([each for script in scripts for each in script], secret=SECRET) as service:
            for _ in scripts:
                session = results[-1].session if results else None
                results.append(anyio.run(BACKENDS[self.backend].run, self.served(service, session=session)))
        return results, service
