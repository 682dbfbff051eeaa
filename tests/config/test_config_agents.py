"""How a role's agent is put together: its own table over the general one, spares, what widens, what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from config.test_config_layers import read, refused

from pipeline.config.agents import Backend, Effort
from pipeline.config.layers import Flags
from pipeline.config.load import require_agents
from pipeline.config.trust import widening_of
from pipeline.errors import UserError
from pipeline.judge.policy.roles import Network
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("backend", "network"),
    [("command", "none"), ("scripted", "none"), ("human", "none"), ("claude", "model"), ("codex", "model")],
)
def test_each_backend_has_its_own_default_network(tmp_path: Path, backend: str, network: str) -> None:
    agent = read(tmp_path, user=f'[agents]\nbackend = "{backend}"\n').config.agent(Role.MAKE)
    assert agent.reaches is Network(network)


@pytest.mark.parametrize(
    ("table", "service"),
    [
        ('backend = "claude"', "anthropic"),
        ('backend = "codex"', "openai"),
        ('backend = "acp"\nprofile = "gemini"', "google"),
        ('backend = "acp"\nprofile = "opencode"', None),
        ('backend = "api"', None),
        ('backend = "claude"\nprovider = "bedrock-gate"', "bedrock-gate"),
    ],
)
def test_a_product_has_its_own_service_unless_another_is_said(tmp_path: Path, table: str, service: str | None) -> None:
    assert read(tmp_path, user=f"[agents]\n{table}\n").config.agent(Role.CHECK).service == service


SPARES = """\
[agents]
backend = "claude"
model = "large"
effort = "high"
timeout_s = 77
fallback = ["other", "again"]
[agents.env]
WHERE = "claude"
[spares.other]
backend = "codex"
model = "some-model"
[spares.again]
model = "small"
"""


def test_a_spare_of_another_product_takes_over_nothing_of_the_first_one(tmp_path: Path) -> None:
    first, other, again = read(tmp_path, user=SPARES).config.candidates(Role.MAKE)
    assert (first.backend, first.model, first.service) == (Backend.CLAUDE, "large", "anthropic")
    assert (other.backend, other.model, other.service) == (Backend.CODEX, "some-model", "openai")
    assert (other.env, other.effort, other.timeout_s, other.fallback) == ({}, Effort.HIGH, 77, ())
    assert (again.backend, again.model, again.env) == (Backend.CLAUDE, "small", {"WHERE": "claude"})


def test_a_spare_that_nobody_described_is_refused_with_those_that_are(tmp_path: Path) -> None:
    error = refused(tmp_path, user='[agents.make]\nfallback = ["sparre"]\n[spares.spare]\nbackend = "codex"\n')
    assert error.pointer == "/agents/make/fallback"
    assert "there is no [spares.sparre]" in error.message
    assert error.details["accepted"] == ["spare"]


def test_a_spare_that_cannot_play_the_role_is_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, user='[agents.make]\nfallback = ["off"]\n[spares.off]\nbackend = "off"\n')
    assert '"off" plays simplify only' in error.message


@pytest.mark.parametrize(
    ("table", "missing"),
    [
        ('backend = "acp"', "profile"),
        ('backend = "acp"\nprofile = "custom"', "argv"),
        ('backend = "claude"\nfallback = ["next"]\n[spares.next]\nbackend = "command"', "argv"),
    ],
)
def test_what_an_agent_lacks_is_said_before_a_run(tmp_path: Path, table: str, missing: str) -> None:
    with pytest.raises(UserError) as caught:
        require_agents(read(tmp_path, user=f"[agents]\n{table}\n"), [Role.MAKE])
    assert caught.value.details["missing"] == missing
    assert any("redfirst init" in action for action in caught.value.actions)
    assert any("redfirst demo" in action for action in caught.value.actions)


def test_where_the_repository_is_configured_nobody_is_sent_to_init(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        require_agents(read(tmp_path, repository='[agents]\nbackend = "command"\n'), [Role.MAKE])
    assert caught.value.actions == ("redfirst config show",)


@pytest.mark.parametrize("model", ["-p", "--dangerously", "a b", "", "x\ny"])
def test_a_model_is_never_an_option(tmp_path: Path, model: str) -> None:
    escaped = model.replace("\n", "\\n")
    assert refused(tmp_path, user=f'[agents]\nmodel = "{escaped}"\n').pointer == "/agents/model"


@pytest.mark.parametrize(
    ("path", "value", "widens"),
    [
        (("agents", "backend"), "claude", True),
        (("agents", "make", "backend"), "api", True),
        (("spares", "one", "backend"), "codex", True),
        (("agents", "backend"), "human", False),
        (("agents", "backend"), "scripted", False),
        (("agents", "login"), True, True),
        (("agents", "login"), False, False),
        (("spares", "one", "argv"), ["bot"], True),
        (("spares", "one", "env", "A"), "b", True),
        (("agents", "model"), "large", False),
        (("budget", "cost_usd"), 3.0, False),
        (("prices", "some-model", "input"), 0.0, True),
    ],
)
def test_what_a_repository_may_not_say_without_trust(path: tuple[str, ...], value: object, *, widens: bool) -> None:
    assert bool(widening_of({path: value})) is widens


@pytest.mark.parametrize("line", ["cost_usd = 0", "cost_usd = -1", "tokens = 0", "cost_usd = inf", 'tokens = "9"'])
def test_a_limit_that_holds_nothing_is_refused(tmp_path: Path, line: str) -> None:
    refused(tmp_path, user=f"[budget]\n{line}\n")


def test_a_price_is_set_on_the_command_line_by_its_two_keys(tmp_path: Path) -> None:
    flags = Flags.parse(['prices."gpt-5.1".input=3', 'prices."gpt-5.1".output=15.5'])
    prices = read(tmp_path, flags=flags).config.prices
    assert {name: (price.input, price.output) for name, price in prices.items()} == {"gpt-5.1": (3.0, 15.5)}


def test_one_of_two_keys_that_need_each_other_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="output"):
        read(tmp_path, flags=Flags.parse(['prices."m-1".input=3']))


@pytest.mark.parametrize("backend", ["human", "builtin"])
def test_what_runs_nothing_reaches_nothing(tmp_path: Path, backend: str) -> None:
    text = f'[agents]\nnetwork = "open"\n[agents.pm]\nbackend = "{backend}"\n'
    assert read(tmp_path, user=text).config.agent(Role.PM).reaches is Network.NONE
