"""Chooses the agent of a dispatch with its model and service, and the spares for an outage.

Nothing is inherited in silence: what a product would take from its own settings is said here for every dispatch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.backends.protocol import Service
from pipeline.config.agents import TAKES_MODEL, Backend, Profile
from pipeline.config.problems import pointer
from pipeline.config.providers import Api, Tier
from pipeline.errors import UserError
from pipeline.gateway.providers import asks_a_service, provider_of
from pipeline.gateway.spending import Allowance
from pipeline.outcomes import Reason
from pipeline.runs.info import Reserved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.config.agents import AgentConfig
    from pipeline.config.model import Config
    from pipeline.routing.vocabulary import Role
    from pipeline.runs.info import DispatchRecord

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
    if asks_a_service(agent):
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
