"""A repository with triggers, and deliveries to it as their senders make them."""

from __future__ import annotations

import base64
import hmac
import itertools
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from runs.real import alone, git, make_repository

from pipeline.app.triggers import DeliveryDocument, deliver
from pipeline.queue.orders import Order, OrderLog, log_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

    from pipeline.repo import Repository

NOW = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)
KEY = b"k" * 32
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
LABEL = """
[triggers.label]
source = "github"
on = "issues.labeled:redfirst"
senders = ["ada"]
own_login = "redfirst-bot"
secret_env = "HOOK"
gates = ["plan"]
recipe = "quick"
"""
SHOP = """
[triggers.shop]
source = "generic"
on = "issue.filed"
secret_env = "SHOP"
"""
HELPER = """
[triggers.helper]
source = "agent"
"""
_NAMES = itertools.count(1)

Delivery = tuple[dict[str, str], bytes]


def signed(body: bytes, name: str, event: str = "issues") -> dict[str, str]:
    """Return the headers that GitHub sends with a body."""
    mac = hmac.new(b"secret", body, sha256).hexdigest()
    return {"x-github-event": event, "x-github-delivery": name, "x-hub-signature-256": f"sha256={mac}"}


def github(number: int = 12, *, name: str | None = None, event: str = "issues", **more: Any) -> Delivery:
    """Return a delivery of GitHub, of a label that was put on an issue; each has bytes of its own."""
    issue = {
        "number": number,
        "title": "Reject empty names",
        "body": 'greet("") says hello.',
        "labels": [{"name": "bug"}],
    }
    said: dict[str, Any] = {
        "action": "labeled",
        "label": {"name": "redfirst"},
        "sender": {"login": "Ada"},
        "issue": {**issue, **more.pop("issue", {})},
        "nth": next(_NAMES),
    }
    body = json.dumps({**said, **more}).encode()
    return signed(body, name or f"d-{next(_NAMES)}", event), body


def generic(*, name: str | None = None, at: datetime = NOW, key: bytes | None = KEY, **data: Any) -> Delivery:
    """Return a delivery of a sender of Standard Webhooks; without a key one that nobody signed."""
    said = {"type": "issue.filed", "data": {"id": "SHOP-7", "title": "Count again", "body": "It miscounts.", **data}}
    body = json.dumps(said).encode()
    headers = {"webhook-id": name or f"m-{next(_NAMES)}", "webhook-timestamp": str(int(at.timestamp()))}
    if key is not None:
        text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        headers["webhook-signature"] = f"v1,{base64.b64encode(hmac.new(key, text, sha256).digest()).decode()}"
    return headers, body


@dataclass
class Outside:
    """A repository, and whoever delivers to it."""

    repository: Repository
    environ: Mapping[str, str]
    now: datetime = field(default=NOW)

    def deliver(self, trigger: str, delivery: Delivery) -> DeliveryDocument:
        headers, body = delivery
        return deliver(self.repository, self.environ, trigger, headers, body, clock=lambda: self.now)

    def result(self, trigger: str, delivery: Delivery) -> tuple[str, str, int]:
        """Return what became of a delivery, why, and the status of HTTP."""
        found = self.deliver(trigger, delivery)
        return found.result, found.why, found.status

    def log(self) -> OrderLog:
        return log_of(self.repository, self.environ)

    def orders(self) -> list[Order]:
        log = self.log()
        log.read_on()
        return list(log.orders.values())

    def git(self, *argv: str) -> str:
        return git(self.repository.worktree, *argv)


def outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, files: Mapping[str, str] | None = None
) -> Outside:
    """Return a repository whose user has these triggers."""
    home = tmp_path / "home"
    alone(monkeypatch, home)
    place = home / ".config/redfirst/config.toml"
    place.parent.mkdir(parents=True)
    place.write_text(config)
    repository = make_repository(tmp_path / "project", {"app.py": "one\n", **(files or {})})
    return Outside(repository, {"HOME": str(home), "HOOK": "secret", "SHOP": SECRET})
