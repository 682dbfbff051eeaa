"""Who is asked, with which model: tiers, retries, spares, and circuits that are open for a while."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.agents.dispatch.agent_choice import Choice, Circuits, Turns, choices, retries_of
from pipeline.config.model import Config, Outage
from pipeline.errors import UserError
from pipeline.reset_times import as_text
from pipeline.run.info import DispatchRecord
from pipeline.vocabulary import Role

TIERS = {"small": "s-1", "medium": "m-1", "large": "l-1"}


def config(**agents: Any) -> Config:
    providers = {"mine": {"url": "http://127.0.0.1:9", "api": ["chat"], "models": TIERS}}
    spares = {"next": {"backend": "codex", "model": "c-1"}}
    return Config.model_validate({"agents": agents, "providers": providers, "spares": spares})


def models(**agents: Any) -> list[str | None]:
    retries = agents.pop("retries", 0)
    return [choice.model for choice in choices(config(**agents), Role.MAKE, retries=retries)]


@pytest.mark.parametrize(
    ("retries", "expected"), [(0, "s-1"), (1, "m-1"), (2, "l-1"), (3, "l-1")], ids=["first", "one", "two", "three"]
)
def test_each_retry_goes_one_tier_up(retries: int, expected: str) -> None:
    assert models(backend="api", provider="mine", model="small", retries=retries) == [expected]


def test_without_a_word_the_medium_tier_is_asked() -> None:
    assert models(backend="api", provider="mine") == ["m-1"]


def test_claude_knows_its_own_tiers() -> None:
    assert models(backend="claude", model="large") == ["opus"]
    assert models(backend="claude") == ["sonnet"]


def test_a_tier_that_nobody_named_is_no_reason_to_fail_a_retry() -> None:
    some = Config.model_validate(
        {
            "agents": {"backend": "api", "provider": "mine", "model": "small"},
            "providers": {"mine": {"url": "http://127.0.0.1:9", "models": {"small": "s-1"}}},
        }
    )
    assert [choice.model for choice in choices(some, Role.MAKE, retries=2)] == ["s-1"]


def test_a_tier_without_a_model_is_refused_with_where_to_write_it() -> None:
    with pytest.raises(UserError, match=r"\[providers\.openai\.models\] medium") as caught:
        models(backend="codex")
    assert caught.value.pointer == "/agents/make/model"


@pytest.mark.parametrize(("backend", "provider"), [("claude", "openai"), ("codex", "anthropic"), ("codex", "mine")])
def test_a_service_of_another_dialect_is_refused_before_it_is_asked(backend: str, provider: str) -> None:
    with pytest.raises(UserError, match=f"the provider {provider} of make speaks") as caught:
        models(backend=backend, provider=provider, model="x")
    assert caught.value.pointer == "/agents/make/provider"


def test_a_backend_without_a_model_has_none() -> None:
    assert models(backend="command", argv=["x"]) == [None]
    assert models(backend="human") == [None]


def test_spares_come_after_in_order() -> None:
    names = [str(choice) for choice in choices(config(backend="claude", fallback=["next"]), Role.MAKE)]
    assert names == ["claude anthropic sonnet", "codex openai c-1"]


def test_an_acp_agent_is_known_by_its_profile() -> None:
    found = choices(config(backend="acp", profile="opencode", provider="mine"), Role.MAKE)[0]
    assert (found.product, found.circuit) == ("acp/opencode", "mine")


@pytest.mark.parametrize(
    ("kind", "attempt", "reask", "retries"),
    [
        ("implement", 1, None, 0),
        ("implement", 2, None, 1),
        ("write-tests", 3, "no", 2),
        ("review-plan", 2, None, 0),
        ("review-plan", 2, "not JSON", 1),
        ("judge", 5, None, 0),
    ],
)
def test_a_second_review_is_no_retry(kind: str, attempt: int, reask: str | None, retries: int) -> None:
    record = DispatchRecord(
        dispatch="001-x-make",
        number=1,
        step="implement",
        visit=1,
        resumes=0,
        role=Role.MAKE,
        kind=kind,
        question=None,
        task=None,
        attempt=attempt,
        reask=reask,
        base_tree="0",
        backend="api",
    )
    assert retries_of(record) == retries


def two() -> tuple[Choice, ...]:
    return choices(config(backend="claude", fallback=["next"]), Role.MAKE)


def test_what_failed_a_moment_ago_is_passed_over_while_there_is_a_spare() -> None:
    now = [0.0]
    circuits = Circuits(60, clock=lambda: now[0])
    first, second = two()
    assert list(circuits.order(two())) == [first, second]
    circuits.failed(first)
    assert list(circuits.order(two())) == [second]
    now[0] = 61
    assert list(circuits.order(two())) == [first, second]


# --- limits that end -------------------------------------------------------------------------------------------------


class Service:
    """Plays time and services: each pause passes, and an agent of a limited service fails until its limit ends."""

    def __init__(self, config: Config, limits: dict[str, float], *, lies: int = 0) -> None:
        self.now = datetime(2026, 11, 28, 12, tzinfo=UTC)
        self.ends = {name: self.now + timedelta(seconds=seconds) for name, seconds in limits.items()}
        self.lies = lies
        self.circuits = Circuits(300, clock=lambda: 0.0, now=lambda: self.now)
        self.turns = Turns(choices(config, Role.MAKE), self.circuits, config.outage)

    def asked(self) -> list[tuple[str, float]]:
        """Return who is asked and after how long, until somebody answers or nobody is asked any more."""
        found: list[tuple[str, float]] = []
        for turn in self.turns:
            self.now += timedelta(seconds=turn.pause_s)
            name = turn.choice.circuit
            found.append((name, turn.pause_s))
            if name in self.ends and (self.now < self.ends[name] or self.lies > 0):
                self.lies -= self.now >= self.ends[name]
                self.circuits.failed(turn.choice, as_text(max(self.ends[name], self.now)))
            elif name in self.ends:
                self.circuits.worked(turn.choice)
                break
            else:
                self.circuits.failed(turn.choice)
        return found


def outage(*fallback: str, backoff_s: tuple[float, ...] = (5, 30), wait_s: float = 21_600) -> Config:
    said = config(backend="api", provider="mine", fallback=list(fallback))
    return said.model_copy(update={"outage": Outage(backoff_s=backoff_s, wait_s=wait_s)})


def test_a_limit_is_waited_for_instead_of_being_asked_in_vain() -> None:
    assert Service(outage(), {"mine": 7200}).asked() == [("mine", 0), ("mine", 7200)]
    assert Service(outage(), {"mine": 20}).asked() == [("mine", 0), ("mine", 20)]
    assert Service(outage(), {"mine": 3}).asked() == [("mine", 0), ("mine", 5)]


def test_a_spare_is_asked_before_anybody_waits_and_the_first_limit_that_ends_counts() -> None:
    assert Service(outage("next"), {"mine": 7200, "openai": 3600}).asked() == [
        ("mine", 0),
        ("openai", 0),
        ("openai", 3600),
    ]
    down = [("openai", 0), ("openai", 5), ("openai", 30)]
    assert Service(outage("next"), {"mine": 7200}).asked() == [("mine", 0), *down, ("mine", 7165)]


def test_who_is_limited_is_passed_over_until_then_and_waited_for_all_the_same() -> None:
    played = Service(outage("next"), {"mine": 7200, "openai": 3600})
    assert played.asked()[-1] == ("openai", 3600)
    played.ends["openai"] = played.now + timedelta(hours=5)
    assert played.asked() == [("openai", 0), ("mine", 3600)]


def test_nobody_waits_longer_than_the_configuration_says() -> None:
    assert Service(outage(wait_s=7199), {"mine": 7200}).asked() == [("mine", 0)]
    assert Service(outage(wait_s=0), {"mine": 3}).asked() == [("mine", 0)]
    assert Service(outage(wait_s=0), {}).asked() == [("mine", 0), ("mine", 5), ("mine", 30)]


@given(st.integers(0, 10**6), st.floats(0, 30_000), st.lists(st.floats(0, 60), max_size=3), st.integers(0, 10**6))
def test_a_service_that_keeps_saying_now_is_asked_a_few_times_and_not_for_ever(
    limit_s: int, wait_s: float, backoff_s: list[float], lies: int
) -> None:
    asked = Service(outage(backoff_s=tuple(backoff_s), wait_s=wait_s), {"mine": limit_s}, lies=lies).asked()
    assert len(asked) <= 20
    assert sum(pause for _, pause in asked) <= wait_s + sum(backoff_s)
