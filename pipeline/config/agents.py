"""Tables `[agents]`, `[agents.ROLE]` and `[spares.NAME]`: how an agent is run.

Nothing here performs I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from pipeline.config.providers import ProviderName
from pipeline.config.tables import Seconds, Table
from pipeline.judge.policy.roles import Network
from pipeline.vocabulary import Role

Argv = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
"""A command as a list of words, of which the first is the program; no shell reads it."""


class Backend(StrEnum):
    """The backend that runs an agent. `PLAYS` lists the roles each can play."""

    COMMAND = "command"
    SCRIPTED = "scripted"
    HUMAN = "human"
    CLAUDE = "claude"
    CODEX = "codex"
    ACP = "acp"
    API = "api"
    BUILTIN = "builtin"
    OFF = "off"


PLAYS: Final[Mapping[Backend, frozenset[Role]]] = {
    **dict.fromkeys(Backend, frozenset(Role)),
    Backend.BUILTIN: frozenset({Role.PM}),
    Backend.OFF: frozenset({Role.SIMPLIFY}),
}
"""The roles that each backend can play."""

NETWORK_OF: Final[Mapping[Backend, Network]] = {
    **dict.fromkeys(Backend, Network.NONE),
    **dict.fromkeys((Backend.CLAUDE, Backend.CODEX, Backend.ACP, Backend.API), Network.MODEL),
}
"""The network that each backend's box opens unless the configuration says otherwise."""

TAKES_MODEL: Final = frozenset({Backend.CLAUDE, Backend.CODEX, Backend.ACP, Backend.API})
"""The backends that are given the name of a model."""


class Effort(StrEnum):
    """How much a model should think, for products with such a setting."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Profile(StrEnum):
    """The agents that backend `acp` can start; `custom` is any other one, by its `argv`."""

    OPENCODE = "opencode"
    GEMINI = "gemini"
    CLAUDE = "claude"
    CODEX = "codex"
    CUSTOM = "custom"


_WITHOUT_A_BOX: Final = frozenset({Backend.BUILTIN, Backend.OFF, Backend.HUMAN})

_SERVICE_OF: Final[Mapping[str, str]] = {"claude": "anthropic", "codex": "openai", "gemini": "google"}

SpareName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+([_-][a-z0-9]+)*$")]
ModelName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}$")]
"""A model by its provider's name, or a tier. Never an option: it becomes a word of a command line."""
Steps = Annotated[int, Field(ge=1)]


class AgentConfig(Table):
    """The complete settings of how one role's agent is run. Relative paths are already resolved."""

    backend: Annotated[Backend, Field(description="What runs the agent")] = Backend.COMMAND
    argv: Annotated[tuple[str, ...], Field(description="The program, for `command` and acp's `custom`")] = ()
    script: Annotated[str | None, Field(description="The answers, for `scripted`")] = None
    profile: Annotated[Profile | None, Field(description="Which agent, for `acp`")] = None
    model: Annotated[
        ModelName | None, Field(description="small, medium, large (see `models` of the provider), or a model's name")
    ] = None
    effort: Annotated[Effort | None, Field(description="How much the model thinks; else its own default")] = None
    read: Annotated[tuple[str, ...], Field(description="Extra read-only folders in the box")] = ()
    env: Annotated[Mapping[str, str], Field(description="Extra variables in the box")] = {}
    network: Annotated[Network | None, Field(description="What the box opens; else the backend's default")] = None
    provider: Annotated[ProviderName | None, Field(description="The model service that network model opens")] = None
    login: Annotated[bool, Field(description="Show the product's login file in the box, read-only")] = False
    fallback: Annotated[
        tuple[SpareName, ...], Field(description="Spares, by their names, that are asked when this one is out of reach")
    ] = ()
    timeout_s: Annotated[Seconds | None, Field(description="Seconds of one dispatch; else the role's own")] = None
    max_steps: Annotated[Steps, Field(description="Answers of the model in one dispatch")] = 300

    @property
    def service(self) -> str | None:
        """Return the name of the model service: the configured provider, else the product's own, else None."""
        product = self.profile if self.backend is Backend.ACP else self.backend
        return self.provider or _SERVICE_OF.get(product or "")

    @property
    def reaches(self) -> Network:
        """Return the network that the box opens; none for a backend without a box."""
        if self.backend in _WITHOUT_A_BOX:
            return Network.NONE
        return self.network if self.network is not None else NETWORK_OF[self.backend]


class AgentOverride(Table):
    """The settings of a single role; None inherits from `[agents]`."""

    backend: Backend | None = None
    argv: Argv | None = None
    script: str | None = None
    profile: Profile | None = None
    model: ModelName | None = None
    effort: Effort | None = None
    read: tuple[str, ...] | None = None
    env: Mapping[str, str] = {}
    network: Network | None = None
    provider: ProviderName | None = None
    login: bool | None = None
    fallback: tuple[SpareName, ...] | None = None
    timeout_s: Seconds | None = None
    max_steps: Steps | None = None


class PmOverride(AgentOverride):
    """The settings of @pm, whose backend is not inherited: `[agents] backend = "command"` must not make it a model."""

    backend: Backend | None = Backend.BUILTIN


class Agents(AgentConfig):
    """`[agents]`: the settings that every role inherits, and a table for each role."""

    orchestrator: AgentOverride = AgentOverride()
    check: AgentOverride = AgentOverride()
    simplify: AgentOverride = AgentOverride()
    test: AgentOverride = AgentOverride()
    make: AgentOverride = AgentOverride()
    pm: PmOverride = PmOverride()
    explore: AgentOverride = AgentOverride()

    def override(self, role: Role) -> AgentOverride:
        """Return the table of *role*."""
        return getattr(self, role)


def overridden(general: AgentConfig, own: AgentOverride) -> AgentConfig:
    """Return the settings *general*, overridden by those that *own* sets."""
    merged = general.model_dump() | own.model_dump(exclude_none=True)
    return AgentConfig.model_validate(merged | {"env": {**general.env, **own.env}})


def inherited_by(agent: AgentConfig, spare: AgentOverride) -> AgentConfig:
    """Return the settings that a spare inherits from the agent it replaces."""
    if spare.backend in {None, agent.backend} and spare.profile in {None, agent.profile}:
        return agent.model_copy(update={"fallback": ()})
    return AgentConfig(timeout_s=agent.timeout_s, max_steps=agent.max_steps, effort=agent.effort)
