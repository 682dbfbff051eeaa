"""Chooses the agent of a dispatch with its model and service, and says who is asked when a service is out of reach.

Nothing is inherited in silence: what a product would take from its own settings is said here for every dispatch.

A circuit is open for a while after a service failed for good: the dispatches that follow go to a spare at once instead
of waiting for the same failure each. With no spare there is nothing to go to, and the service is asked all the same.
A limit of an account is something else: it ends at a moment that is known, and nothing is gained by asking before.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pipeline.agents.backends.protocol import Service
from pipeline.agents.gateway.providers import provider_of
from pipeline.agents.gateway.spending import Allowance
from pipeline.config.agents import TAKES_MODEL, AgentConfig, Backend, Profile
from pipeline.config.problems import pointer
from pipeline.config.providers import Api, Tier
from pipeline.errors import UserError
from pipeline.judge.policy.roles import Network
from pipeline.outcomes import Reason
from pipeline.reset_times import as_moment, as_text
from pipeline.run.info import DispatchRecord, Reserved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pipeline.config.model import Config, Outage
    from pipeline.vocabulary import Role

_CLAUDE: Final[Mapping[Tier, str]] = {Tier.SMALL: "haiku", Tier.MEDIUM: "sonnet", Tier.LARGE: "opus"}
"""The product's own model names, which outlast single models."""

_SPEAKS: Final[Mapping[Backend, Api]] = {Backend.CLAUDE: Api.ANTHROPIC, Backend.CODEX: Api.RESPONSES}
"""The API dialect of each product; acp's profiles name theirs, and `api` speaks all."""

_WORK: Final = frozenset({"plan", "plan-and-tasks", "split", "write-tests", "stub", "seam", "implement", "build"})
"""The kinds whose second attempt means that the first was not good enough; a second review is no retry."""


@dataclass(frozen=True)
class Choice:
    """An agent with its service and model. `model` is None where the backend takes none."""

    agent: AgentConfig
    service: Service | None = None
    model: str | None = None

    @property
    def product(self) -> str:
        """Return the product's name; only the same product can continue a conversation."""
        profile = f"/{self.agent.profile}" if self.agent.backend is Backend.ACP else ""
        return f"{self.agent.backend}{profile}"

    @property
    def circuit(self) -> str:
        """Return the name of what fails together: the service, else the product with a service of its own."""
        return self.service.name if self.service is not None else self.product

    def __str__(self) -> str:
        words = (self.product, self.service.name if self.service else None, self.model, self.agent.effort)
        return " ".join(word for word in words if word is not None)


def choices(config: Config, role: Role, *, retries: int = 0) -> tuple[Choice, ...]:
    """Return the agents to ask, in order: the role's own, then its spares.

    Args:
        config: The configuration, complete.
        role: Who is asked.
        retries: How many answers to this request were not good enough; each moves a tier up.

    Raises:
        UserError: the service or the model is not said.
    """
    return tuple(_choice(config, role, agent, retries) for agent in config.candidates(role))


def retries_of(record: DispatchRecord) -> int:
    """Return how many earlier answers to this request were rejected."""
    return record.attempt - 1 if record.kind in _WORK else int(record.reask is not None)


def _choice(config: Config, role: Role, agent: AgentConfig, retries: int) -> Choice:
    service = None
    if agent.reaches is Network.MODEL:
        name, provider = provider_of(config, role, agent)
        service = Service(name, provider)
        _require_dialect(role, agent, service)
    return Choice(agent, service, _model(role, agent, service, retries) if agent.backend in TAKES_MODEL else None)


def _require_dialect(role: Role, agent: AgentConfig, service: Service) -> None:
    spoken = _SPEAKS.get(agent.backend)
    if spoken is not None and spoken not in service.provider.api:
        raise UserError(
            f"{agent.backend} speaks {spoken}; the provider {service.name} of {role} speaks "
            f"{', '.join(service.provider.api)}. Give {role} another provider, or say its api in "
            f"[providers.{service.name}].",
            Reason.CONFIG,
            pointer=pointer(("agents", role, "provider")),
            details={"role": role.value, "provider": service.name, "api": list(service.provider.api)},
        )


def _model(role: Role, agent: AgentConfig, service: Service | None, retries: int) -> str | None:
    wanted = agent.model or Tier.MEDIUM.value
    if wanted not in set(Tier):
        return wanted
    known = dict(_CLAUDE) if _is_claude(agent) else dict[Tier, str]()
    known |= service.provider.models if service is not None else {}
    tiers = [Tier(wanted)]
    for _ in range(retries):
        tiers.append(tiers[-1].above)
    found = next((known[tier] for tier in reversed(tiers) if tier in known), None)
    if found is not None or (agent.model is None and agent.profile is Profile.CUSTOM):
        return found
    raise _unknown(role, agent, service, wanted)


def _is_claude(agent: AgentConfig) -> bool:
    return agent.backend is Backend.CLAUDE or (agent.backend is Backend.ACP and agent.profile is Profile.CLAUDE)


def _unknown(role: Role, agent: AgentConfig, service: Service | None, tier: str) -> UserError:
    where = f"[providers.{service.name}.models] {tier} = ..." if service is not None else f"[agents.{role}] model = ..."
    asked = f'model = "{tier}"' if agent.model is not None else "no model"
    return UserError(
        f"{role} has {asked}, and nothing says which model of the service that is. Write its name: "
        f'[agents] model = "NAME", or {where}',
        Reason.CONFIG,
        pointer=pointer(("agents", role, "model")),
        details={"role": role.value, "tier": tier, "provider": service.name if service is not None else None},
    )


def allowance_of(record: DispatchRecord, choice: Choice) -> Allowance:
    """Return what the dispatch may spend on models: what was reserved for it, and the agent's number of answers."""
    share = record.reserved or Reserved()
    return Allowance(share.tokens, share.cost_usd, choice.agent.max_steps)


_PACE_S: Final = 1.0
"""A limit that has ended by what was said, and has not: so long is waited at least, and twice as long each time."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Circuits:
    """Circuit breakers: which services failed a moment ago, and which limit an account until when.

    Args:
        open_s: How long a circuit stays open, in seconds.
        clock: Seconds that only grow.
        now: Tells the time, by which limits end.
    """

    open_s: float
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = _now
    _failed: dict[str, float] = field(default_factory=dict[str, float], init=False)
    _limits: dict[str, datetime] = field(default_factory=dict[str, datetime], init=False)

    def order(self, choices: Sequence[Choice]) -> Iterable[Choice]:
        """Return the choices whose circuit is closed; all of them if none is."""
        return [choice for choice in choices if not self._is_open(choice.circuit)] or choices

    def failed(self, choice: Choice, not_before: str | None = None) -> None:
        """Open the circuit of a choice that failed, and keep when it may be asked again."""
        self._failed[choice.circuit] = self.clock()
        self._limits.pop(choice.circuit, None)
        if not_before is not None:
            self._limits[choice.circuit] = as_moment(not_before)

    def worked(self, choice: Choice) -> None:
        """Close the circuit of a choice that worked."""
        self._failed.pop(choice.circuit, None)
        self._limits.pop(choice.circuit, None)

    def limit(self, choice: Choice) -> datetime | None:
        """Return when the limit of a choice ends; None where none is known."""
        return self._limits.get(choice.circuit)

    def text_of(self, choice: Choice) -> str | None:
        """Return the same as records have it."""
        limit = self.limit(choice)
        return None if limit is None else as_text(limit)

    def limited_s(self, choice: Choice) -> float:
        """Return for how many seconds a choice is limited yet."""
        limit = self.limit(choice)
        return 0.0 if limit is None else max((limit - self.now()).total_seconds(), 0.0)

    def _is_open(self, circuit: str) -> bool:
        since, limit = self._failed.get(circuit), self._limits.get(circuit)
        failed = since is not None and self.clock() - since < self.open_s
        return failed or (limit is not None and limit > self.now())


@dataclass(frozen=True)
class Turn:
    """An agent that is asked next.

    Args:
        choice: Who.
        pause_s: How many seconds are waited before.
        until: When the limit ends that is waited for; None where something else went wrong.
    """

    choice: Choice
    pause_s: float = 0.0
    until: datetime | None = None


@dataclass
class Turns:
    """Says who is asked when, as long as nobody answers.

    Each agent is asked again after each pause of the configuration, then the next one. Who is limited for longer than
    such a pause is left alone; when all have been asked, the limit that ends first is waited for.

    Args:
        choices: All agents, in order.
        circuits: What is known of their services; told of each failure by whoever asks.
        outage: How long is waited.
    """

    choices: Sequence[Choice]
    circuits: Circuits
    outage: Outage

    def __iter__(self) -> Iterator[Turn]:
        for choice in self.circuits.order(self.choices):
            yield Turn(choice)
            for pause_s in self.outage.backoff_s:
                if self.circuits.limited_s(choice) > min(pause_s, self.outage.wait_s):
                    break
                yield Turn(choice, pause_s)
        yield from self._limited()

    def _limited(self) -> Iterator[Turn]:
        waited_s, pace_s = 0.0, _PACE_S
        while (choice := self.first) is not None:
            pause_s = max(self.circuits.limited_s(choice), pace_s)
            if waited_s + pause_s > self.outage.wait_s:
                return
            waited_s, pace_s = waited_s + pause_s, pace_s * 2
            yield Turn(choice, pause_s, self.circuits.limit(choice))

    @property
    def first(self) -> Choice | None:
        """Return whose limit ends first; None where no limit is known."""
        limited = [(limit, nth) for nth, one in enumerate(self.choices) if (limit := self.circuits.limit(one))]
        return self.choices[min(limited)[1]] if limited else None
