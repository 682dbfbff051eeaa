"""The configuration as frozen values (contract 4). Every key has a default; an unknown key is an error.

Nothing here performs I/O. `load` fills these models from the layers; `Config.agent` says how one role is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from pipeline.config.closed import Closed, Seconds
from pipeline.config.providers import ProviderName, ProviderTable
from pipeline.policy.roles import Network
from pipeline.routing.matrix import BOUNDS, MAX_FIX_TASKS, MAX_TASKS
from pipeline.routing.vocabulary import Loop, Role

Argv = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
"""One command: its program and its words; no shell reads it."""


class SandboxMode(StrEnum):
    """`auto`: the strongest box that works here; a name: this one only; `none`: no box, as journal and summary say."""

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    NONE = "none"


class SandboxKind(StrEnum):
    """The boxes there are, the strongest first, for `minimum_sandbox`."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    NONE = "none"

    def is_less_than(self, other: SandboxKind) -> bool:
        """Return whether this box keeps less than the other."""
        order = list(SandboxKind)
        return order.index(self) > order.index(other)


class Backend(StrEnum):
    """How an agent is run. `AVAILABLE` says which of them this version has, and for whom."""

    COMMAND = "command"
    SCRIPTED = "scripted"
    HUMAN = "human"
    CLAUDE = "claude"
    CODEX = "codex"
    ACP = "acp"
    API = "api"
    BUILTIN = "builtin"
    OFF = "off"


AVAILABLE: Final[Mapping[Backend, frozenset[Role]]] = {
    Backend.COMMAND: frozenset(Role),
    Backend.SCRIPTED: frozenset(Role),
    Backend.BUILTIN: frozenset({Role.PM}),
    Backend.OFF: frozenset({Role.SIMPLIFY}),
}
"""The roles that each backend of this version can play; a backend that is missing here comes later."""


class OnBlockers(StrEnum):
    """What an exhausted final review does with open blockers."""

    COMMIT = "commit"
    PARK = "park"


class Keep(StrEnum):
    """Where a failed run leaves its work: on the run's ref, or as the seed's wip commit on the branch."""

    REF = "ref"
    WIP = "wip"


class AgentConfig(Closed):
    """How one role is run, complete. Relative paths are already resolved."""

    backend: Backend = Backend.COMMAND
    argv: Annotated[tuple[str, ...], Field(description="The program, for `command`")] = ()
    script: Annotated[str | None, Field(description="The answers, for `scripted`")] = None
    read: Annotated[tuple[str, ...], Field(description="Extra read-only folders in the box")] = ()
    env: Annotated[Mapping[str, str], Field(description="Extra variables in the box")] = {}
    network: Network = Network.NONE
    provider: Annotated[ProviderName | None, Field(description="The model service that network model opens")] = None
    timeout_s: Annotated[Seconds, Field(description="One dispatch, in seconds")] = 900


class AgentOverride(Closed):
    """What a role says for itself; None leaves the word to `[agents]`."""

    backend: Backend | None = None
    argv: Argv | None = None
    script: str | None = None
    read: tuple[str, ...] | None = None
    env: Mapping[str, str] = {}
    network: Network | None = None
    provider: ProviderName | None = None
    timeout_s: Seconds | None = None


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


def _limit(loop: Loop) -> int:
    limit = BOUNDS[loop].limit
    if limit is None:
        raise ValueError(f"{loop} is unbounded and cannot be configured")
    return limit


Reviews = Annotated[int, Field(ge=1, description="Reviews: 3 reviews are 2 retries")]
Times = Annotated[int, Field(ge=0, description="How often the paid edge may be taken")]


class Limits(Closed):
    """`[limits]`: the purses of matrix 2; the defaults are the matrix's own."""

    plan_review: Reviews = _limit(Loop.PLAN_REVIEW)
    split_review: Reviews = _limit(Loop.SPLIT_REVIEW)
    final_review: Reviews = _limit(Loop.FINAL_REVIEW)
    hygiene: Times = _limit(Loop.HYGIENE)
    plan_rework: Times = _limit(Loop.PLAN_REWORK)
    split_rework: Times = _limit(Loop.SPLIT_REWORK)
    test_rewrite: Times = _limit(Loop.TEST_REWRITE)
    test_diagnosis: Times = _limit(Loop.TEST_DIAGNOSIS)
    test_design: Times = _limit(Loop.TEST_DESIGN)
    make_retry: Times = _limit(Loop.MAKE_RETRY)
    scope_amend: Times = _limit(Loop.SCOPE_AMEND)
    seam: Times = _limit(Loop.SEAM)
    cosmetic: Times = _limit(Loop.COSMETIC)
    reask: Times = _limit(Loop.REASK)
    dispatches: Annotated[int, Field(ge=1, description="Per run, plus 10 for each task")] = _limit(Loop.DISPATCHES)
    max_tasks: Annotated[int, Field(ge=1, description="Tasks of one split")] = MAX_TASKS
    max_fix_tasks: Annotated[int, Field(ge=1, description="Fix tasks of one review cycle")] = MAX_FIX_TASKS


class FinalReview(Closed):
    """`[final_review]`."""

    on_blockers: OnBlockers = OnBlockers.COMMIT


class Failure(Closed):
    """`[failure]`."""

    keep: Keep = Keep.REF


class StubFirst(Closed):
    """`[stub_first]`: the toolchains in which new symbols are scaffolded before their tests."""

    pytest: bool = False
    cargo: bool = True


class Budget(Closed):
    """`[budget]`: what a run may cost; None = no limit but that of the dispatches."""

    cost_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


class Toolchain(Closed):
    """`[toolchains.NAME]`: how the tests of a language are run."""

    command: Annotated[Argv | None, Field(description="None: found by the toolchain")] = None
    setup: Annotated[Argv | None, Field(description="Runs once, in the private checkout")] = None
    timeout_s: Annotated[Seconds, Field(description="One whole test run, in seconds")] = 900
    test_timeout_s: Annotated[Seconds, Field(description="One test, in seconds")] = 60


class Toolchains(Closed):
    """`[toolchains]`."""

    pytest: Toolchain = Toolchain()


class Checks(Closed):
    """`[checks]`: formatters on changed files, and measured commands. `{files}` stands for the changed files."""

    fix: tuple[Argv, ...] = ()
    commands: tuple[Argv, ...] = ()


class Config(Closed):
    """Everything that can be set."""

    sandbox: SandboxMode = SandboxMode.AUTO
    minimum_sandbox: Annotated[
        SandboxKind | None,
        Field(
            description="Refuse to run in less; None follows `sandbox`: none for none, else any box that proved itself"
        ),
    ] = None
    base: Annotated[str | None, Field(description="The base branch; None: main, else master")] = None
    agents: Agents = Agents()
    providers: Annotated[
        Mapping[ProviderName, ProviderTable], Field(description="Model services beside the built-in ones")
    ] = {}
    limits: Limits = Limits()
    final_review: FinalReview = FinalReview()
    failure: Failure = Failure()
    stub_first: StubFirst = StubFirst()
    budget: Budget = Budget()
    toolchains: Toolchains = Toolchains()
    checks: Checks = Checks()

    @property
    def required_sandbox(self) -> SandboxKind:
        """Return the weakest box that may be used."""
        if self.minimum_sandbox is not None:
            return self.minimum_sandbox
        return SandboxKind.NONE if self.sandbox is SandboxMode.NONE else SandboxKind.LANDLOCK

    def agent(self, role: Role) -> AgentConfig:
        """Return how *role* is run: its own table over `[agents]`, `env` variable by variable.

        Between layers `load` has already decided: a general key of a higher layer has removed the role's key of a
        lower one.
        """
        general, own = self.agents, self.agents.override(role)
        merged: dict[str, object] = {name: getattr(general, name) for name in AgentConfig.model_fields}
        merged.update(own.model_dump(exclude_none=True))
        merged["env"] = {**general.env, **own.env}
        return AgentConfig.model_validate(merged)
