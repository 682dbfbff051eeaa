"""One dispatch of the `api` backend: a scripted model behind the real gateway, the real tools on a real view."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from backends.real_agents import job_of
from dispatch.one_view import open_view
from model_service.service import ModelService
from pydantic import SecretStr

from pipeline.agents.backends.api import ApiBackend
from pipeline.agents.backends.protocol import AgentJob, Service, Session
from pipeline.agents.dispatch.gate import Policy
from pipeline.agents.dispatch.model_tools import Workbench
from pipeline.agents.dispatch.roles import load_roles
from pipeline.agents.gateway.proxy import ModelGateway
from pipeline.config.providers import Api, Provider
from pipeline.judge.policy.rights import Action, Grant, TestScope
from pipeline.judge.reports.kinds import report_schema
from pipeline.process import Mount
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model_service.script import Conversation

    from pipeline.agents.backends.protocol import AgentResult
    from pipeline.judge.policy.rights import Change
    from pipeline.process import Box

SECRET = "the-real-credential-0123456789"
WORK = Path("/redfirst-view")
DIALECTS = [pytest.param(api, marks=() if api is Api.CHAT else pytest.mark.slow) for api in Api]
"""The quick tests speak one: each SDK takes a second to import."""
GRANTS = (Grant("app.py", Action.MODIFY), Grant("new.py", Action.CREATE))


def fill(folder: Path) -> None:
    (folder / "app.py").write_text("a = 1\nb = 1\n")
    (folder / "other.py").write_text("c = 1\n")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_app.py").write_text("from app import a\n\n\ndef test_a():\n    assert a == 2\n")


@dataclass
class Play:
    """What is the same for all dispatches of a test."""

    folder: Path
    api: Api = Api.CHAT
    box: Box = field(default_factory=NoBox)
    role: Role = Role.MAKE
    kind: str = "implement"
    grants: tuple[Grant, ...] = GRANTS
    writable: bool = True
    number: int = 0

    def __post_init__(self) -> None:
        self.spec = load_roles()[self.role]
        self.writable &= self.role in {Role.MAKE, Role.TEST}
        self.view = open_view(fill, self.folder / "view", workspace=WORK, writable=self.writable)
        (self.folder / "session").mkdir()

    def prompt(self, reask: str = "") -> str:
        told = f"Your last answer to this request did not count: {reask}" if reask else ""
        workspace = self.box.inside(self.view.mount.source, WORK)
        return (
            f"You are @{self.role}.\n\n# This request: {self.kind}\n\nImplement task 1 (issue GAL-1, attempt 1).\n\n"
            f"{told}\n\nWorkspace: `{workspace}`\n"
        )

    def job(self, url: str, **changes: Any) -> AgentJob:
        self.number += 1
        exchange = self.folder / f"exchange-{self.number}"
        exchange.mkdir(mode=0o700)
        described = {"url": url, "api": (self.api,), "credential_env": "THE_KEY", **changes.pop("provider", {})}
        provider = Provider.model_validate(described)
        settings: dict[str, Any] = {
            "box": self.box,
            "document": b"{}",
            "view": self.view.mount,
            "exchange": exchange,
            "timeout_s": 240,
            "network": "model",
            "gateway": ModelGateway(provider, SecretStr(SECRET), self.folder / "model.jsonl", name="ours"),
            "service": Service("ours", provider),
            "model": "scripted",
            "prompt": self.prompt(),
            "report_schema": report_schema(self.kind, self.role),
            "role": self.role.value,
            "shell": self.spec.shell,
            "tools": self.bench().offered(),
            **changes,
        }
        return job_of(settings)

    def bench(self) -> Workbench:
        tests = TestScope(files=(Grant("tests/test_app.py", Action.MODIFY),), folders=("tests",))
        return Workbench(self.spec, self.view.mount, self.box, Policy(self.spec.writes, self.grants, tests))

    def session(self, id: str | None = None, prompt: str = "") -> Session:  # noqa: A002  (its name)
        return Session(Mount(self.folder / "session", Path("/session"), writable=True), id, prompt)

    def run(self, service: ModelService, **changes: Any) -> AgentResult:
        """Ask an agent of the service and return how it went."""
        return anyio.run(ApiBackend().run, self.job(service.url, **changes))

    def play(self, *script: Conversation, **changes: Any) -> AgentResult:
        """Ask an agent whose model plays the script, to its end."""
        with ModelService(script, secret=SECRET) as service:
            result = self.run(service, **changes)
        assert service.problems == []
        assert service.unused == ()
        return result

    def changes(self) -> tuple[Change, ...]:
        return self.view.survey().changes


def report(result: AgentResult) -> dict[str, Any]:
    """Return the report."""
    return json.loads(result.report_file or b"null")


def told(result: AgentResult, what: str) -> Sequence[dict[str, Any]]:
    """Return the facts of these lines of the transcript."""
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return [facts for _, kind, facts in lines if kind == what]
