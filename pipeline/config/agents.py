"""`[agents]`, `[agents.ROLE]` and `[spares.NAME]`: how an agent is run.

Nothing here performs I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from pipeline.config.base_table import Seconds, Table
from pipeline.config.providers import ProviderName
from pipeline.policy.roles import Network
from pipeline.routing.vocabulary import Role

Argv = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
"""One command: its program and its words; no shell reads it."""


class Backend(StrEnum):
    """How an agent is run. `PLAYS` says for whom."""

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
"""What the box of each backend lets through unless the configuration says otherwise."""

TAKES_MODEL: Final = frozenset({Backend.CLAUDE, Backend.CODEX, Backend.ACP, Backend.API})
"""The backends that are told which model to ask."""


class Effort(StrEnum):
    """How much a model should think, for the products that let it be said."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Profile(StrEnum):
    """The agents that `acp` knows how to start; `custom` is any other, by its `argv`."""

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
    """How one role is run, complete. Relative paths are already resolved."""

    backend: Backend = Backend.COMMAND
    argv: Annotated[tuple[str, ...], Field(description="The program, for `command` and acp's `custom`")] = ()
    script: Annotated[str | None, Field(description="The answers, for `scripted`")] = None
    profile: Annotated[Profile | None, Field(description="Which agent, for `acp`")] = None
    model: Annotated[
        ModelName | None, Field(description="small, medium, large (see `models` of the provider), or a model's name")
    ] = None
    effort: Annotated[Effort | None, Field(description="How much it thinks; None: the model's own default")] = None
    read: Annotated[tuple[str, ...], Field(description="Extra read-only folders in the box")] = ()
    env: Annotated[Mapping[str, str], Field(description="Extra variables in the box")] = {}
    network: Annotated[Network | None, Field(description="None: the backend's default")] = None
    provider: Annotated[ProviderName | None, Field(description="The model service that network model opens")] = None
    login: Annotated[bool, Field(description="Show the product's login file in the box, read-only")] = False
    fallback: Annotated[
        tuple[SpareName, ...], Field(description="Which of [spares.NAME] is asked when this one is out of reach")
    ] = ()
    timeout_s: Annotated[Seconds | None, Field(description="One dispatch, in seconds; None: the role's own")] = None
    max_steps: Annotated[Steps, Field(description="Answers of the model in one dispatch")] = 300

    @property
    def service(self) -> str | None:
        """Return the name of the model service: the one that is said, else the product's own."""
        product = self.profile if self.backend is Backend.ACP else self.backend
        return self.provider or _SERVICE_OF.get(product or "")

    @property
    def reaches(self) -> Network:
        """Return what the box lets through; nothing where there is none."""
        if self.backend in _WITHOUT_A_BOX:
            return Network.NONE
        return self.network if self.network is not None else NETWORK_OF[self.backend]


class AgentOverride(Table):
    """What a role says for itself; None leaves the word to `[agents]`."""

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
    """@pm does not inherit its backend: `[agents] backend = "command"` must not make a model of a library call."""

    backend: Backend | None = Backend.BUILTIN


class Agents(AgentConfig):
    """`[agents]`: what every role inherits, and a table for each role."""

    orchestrator: AgentOverride = AgentOverride()
    check: AgentOverride = AgentOverride()
    simplify: AgentOverride = AgentOverride()
    test: AgentOverride = AgentOverride()
    make: AgentOverride = AgentOverride()
    pm: PmOverride = PmOverride()
    explore: AgentOverride = AgentOverride()

    def override(self, role: Role) -> AgentOverride:
        """Return the table of *role*."""
        match role:
            case Role.ORCHESTRATOR:
                return self.orchestrator
            case Role.CHECK:
                return self.check
            case Role.SIMPLIFY:
                return self.simplify
            case Role.TEST:
                return self.test
            case Role.MAKE:
                return self.make
            case Role.PM:
                return self.pm
            case Role.EXPLORE:
                return self.explore


def laid_over(general: AgentConfig, own: AgentOverride) -> AgentConfig:
    """Return *general* with what *own* says instead."""
    merged = general.model_dump() | own.model_dump(exclude_none=True)
    return AgentConfig.model_validate(merged | {"env": {**general.env, **own.env}})


def bare(agent: AgentConfig, spare: AgentOverride) -> AgentConfig:
    """Return what a spare starts from."""
    if spare.backend in {None, agent.backend} and spare.profile in {None, agent.profile}:
        return agent.model_copy(update={"fallback": ()})
    return AgentConfig(timeout_s=agent.timeout_s, max_steps=agent.max_steps, effort=agent.effort)
