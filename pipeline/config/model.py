"""The configuration as frozen values (contract 4). Every key has a default; an unknown key is an error.

Nothing here performs I/O. `load` fills these models from the layers; `Config.agent` says how one role is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, create_model, field_validator

from pipeline.config.agents import AgentConfig, AgentOverride, Agents, Argv, SpareName, inherited_by, overridden
from pipeline.config.commits import Commits
from pipeline.config.providers import PriceTable, ProviderName, ProviderTable, Url, Variable
from pipeline.config.tables import Budget, Fleet, Gates, Limits, Probes, Seconds, Table
from pipeline.config.triggers import TriggerName, TriggerTable
from pipeline.judge.evidence.quarantine import Quarantined
from pipeline.judge.policy.paths import TRACKER, tracker_fault
from pipeline.judge.reports.fields import RelPath
from pipeline.matrix.scheduling.patterns import EVERYTHING, fault
from pipeline.testing.languages.table import LANGUAGES, SEVERAL

if TYPE_CHECKING:
    from pipeline.vocabulary import Role

    ToolchainName = str
else:
    ToolchainName = StrEnum("ToolchainName", {name.upper(): name for name in LANGUAGES})
    ToolchainName.__doc__ = "The toolchains there are, in the order in which they are looked for."


class BoxMode(StrEnum):
    """How agents and tests are isolated.

    `auto`: the strongest box that works here; a name: this one only; `none`: no box, as journal and summary say.
    """

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    NONE = "none"


class OnBlockers(StrEnum):
    """What follows when the final review is used up and blockers are open."""

    COMMIT = "commit"
    PARK = "park"


class Proofs(StrEnum):
    """Whether a production finding of the final review counts as more than MEDIUM without a proof that holds."""

    OPTIONAL = "optional"
    REQUIRED = "required"


class Keep(StrEnum):
    """Where a failed run leaves its work: on the run's ref, or as a wip commit on the branch."""

    REF = "ref"
    WIP = "wip"


class FinalReview(Table):
    """`[final_review]`: what follows on open blockers, and whether a finding on the code has to be proved."""

    on_blockers: Annotated[
        OnBlockers, Field(description="With open blockers: commit and record them, or wait for you")
    ] = OnBlockers.COMMIT
    proofs: Annotated[
        Proofs, Field(description="required: a finding on the code is MEDIUM at most without a proof that holds")
    ] = Proofs.OPTIONAL


class Solo(Table):
    """`[solo]`: what the one writer of the recipe `solo` may change."""

    area: Annotated[
        tuple[str, ...],
        Field(
            min_length=1, description="Path patterns; a file that controls tests or builds counts only by its own name"
        ),
    ] = (EVERYTHING,)

    @field_validator("area")
    @classmethod
    def _sound(cls, area: tuple[str, ...]) -> tuple[str, ...]:
        for text in area:
            if (why := fault(text)) is not None:
                raise ValueError(f"{text!r}: {why}")
        return area


class Recipes(Table):
    """`[recipes]`: the recipe of a run of an issue that names none."""

    default: Annotated[str, Field(min_length=1, description="The recipe of an issue that names none")] = "issue"
    labels: Annotated[
        Mapping[str, str],
        Field(description="The recipe by a label of the issue, before the default; the first label counts"),
    ] = {}


class Tracker(Table):
    """`[tracker]`: where the issues are. Only the repository's own file may set it."""

    folder: Annotated[str, Field(description="The folder of the issues, at the top of the repository")] = TRACKER

    @field_validator("folder")
    @classmethod
    def _sound(cls, folder: str) -> str:
        if (why := tracker_fault(folder)) is not None:
            raise ValueError(why)
        return folder


class Failure(Table):
    """`[failure]`: where a failed run leaves its work."""

    keep: Annotated[
        Keep, Field(description="Work of a failed run: on its ref only, or as a wip commit on the branch")
    ] = Keep.REF


class Outage(Table):
    """`[outage]`: how long a model service that is out of reach is waited for, before and after a spare is asked."""

    backoff_s: Annotated[
        tuple[Annotated[float, Field(ge=0, le=86_400)], ...],
        Field(description="Waits before the same agent is asked again, in seconds"),
    ] = (5, 30)
    circuit_s: Annotated[
        float,
        Field(ge=0, le=86_400, description="Seconds for which a failed service is passed over, if there is a spare"),
    ] = 300
    wait_s: Annotated[
        float,
        Field(ge=0, le=2_678_400, description="Seconds to wait for a limit that says when it ends; 0 parks at once"),
    ] = 21_600


class _StubFirst(Table):
    """`[stub_first]`: the toolchains in which new symbols are stubbed before their tests are written."""

    def holds_for(self, name: str) -> bool:
        """Return whether stubs come first for a toolchain.

        Raises:
            KeyError: there is none of that name.
        """
        if name not in LANGUAGES:
            raise KeyError(name)
        return getattr(self, name)


Folders = Annotated[tuple[Literal["."] | RelPath, ...], Field(min_length=1)]
"""The folders of several projects; `.` is the top of the repository."""


class Toolchain(Table):
    """`[toolchains.NAME]`: how the tests of a language are run."""

    folder: Annotated[
        RelPath | Literal["."] | Folders | None,
        Field(description="The project's folder, or a list; else the top, and projects found below it"),
    ] = None
    command: Annotated[Argv | None, Field(description="The command that runs tests; else it is found")] = None
    setup: Annotated[Argv | None, Field(description="A command that runs once in the run's checkout, on the host")] = (
        None
    )
    env: Annotated[Mapping[str, str], Field(description="Variables of the tests, and of agents who run them")] = {}
    timeout_s: Annotated[Seconds, Field(description="One whole test run, in seconds")] = 900
    test_timeout_s: Annotated[Seconds, Field(description="One test, in seconds")] = 60


class _Toolchains(Table):
    """`[toolchains]`: the toolchains in use, and a table for each."""

    use: Annotated[
        tuple[ToolchainName, ...] | None,
        Field(min_length=1, description="The toolchains in use; else each that recognises the project"),
    ] = None
    outside: Annotated[
        bool, Field(description="Tests that fail or are skipped in the box run once more outside, on this machine")
    ] = False
    may_differ: Annotated[
        int, Field(ge=0, description="As many tests may fail in the box alone; with more a run parks")
    ] = 3

    def settings_of(self, name: str) -> Toolchain:
        """Return the table of a toolchain; for several (`pytest+cargo`) one with the sum of their time limits.

        Raises:
            KeyError: there is none of that name.
        """
        tables = [self._one(part) for part in name.split(SEVERAL)]
        if len(tables) == 1:
            return tables[0]
        return Toolchain(
            timeout_s=sum(table.timeout_s for table in tables),
            test_timeout_s=max(table.test_timeout_s for table in tables),
        )

    def is_configured(self, name: str) -> bool:
        """Return whether the user configured this toolchain: by listing its name, or by saying how its tests are run.

        Raises:
            KeyError: there is none of that name.
        """
        table = self._one(name)
        said = bool(table.env) or any(value is not None for value in (table.folder, table.command, table.setup))
        return said or (self.use is not None and name in self.use)

    def _one(self, name: str) -> Toolchain:
        if name not in LANGUAGES:
            raise KeyError(name)
        return getattr(self, name)


if TYPE_CHECKING:  # a type checker cannot see what is made from a table
    StubFirst = _StubFirst
    Toolchains = _Toolchains
else:
    StubFirst = create_model(
        "StubFirst",
        __base__=_StubFirst,
        __module__=__name__,
        __doc__=_StubFirst.__doc__,
        **{
            name: (Annotated[bool, Field(description=f"Stubs come first in {name}")], language.stub_first)
            for name, language in LANGUAGES.items()
        },
    )
    Toolchains = create_model(
        "Toolchains",
        __base__=_Toolchains,
        __module__=__name__,
        __doc__=_Toolchains.__doc__,
        **{name: (Toolchain, Toolchain()) for name in LANGUAGES},
    )


class Checks(Table):
    """`[checks]`: commands that format changed files, and commands that are measured.

    `{files}` stands for the changed files.
    """

    fix: Annotated[tuple[Argv, ...], Field(description="Commands over changed files, before they are measured")] = ()
    commands: Annotated[
        tuple[Argv, ...], Field(description="Commands whose new failures are findings of the final review")
    ] = ()


class Mcp(Table):
    """`[mcp]`: what agents of other programs may do (`redfirst mcp`). Only the user's own file may set it."""

    allow: Annotated[
        tuple[str, ...] | None,
        Field(description="Recipes that agents of other programs may run; else built-in ones that only read"),
    ] = None


SinkName = ProviderName


class Form(StrEnum):
    """What is sent to an address: the event itself, or a line of text as services like Slack take it."""

    EVENT = "event"
    SLACK = "slack"


class Sink(Table):
    """`[notify.NAME]`: a command or an address that is told of events. It has one of `command`, `url`, `url_env`.

    Each value of it starts a program of the user's, or sends something away, as `[otel]` does: so all widen (`trust`).
    """

    types: Annotated[
        tuple[str, ...], Field(description='Patterns of types of events, such as "run.*"; none means all')
    ] = ()
    command: Annotated[
        Argv | None,
        Field(description="A command with the event on stdin; {type}, {subject}, {project} and {text} are filled in"),
    ] = None
    url: Annotated[Url | None, Field(description="An address that is sent each event as a POST request")] = None
    url_env: Annotated[
        Variable | None, Field(description="The variable that holds the address, where that is a secret")
    ] = None
    form: Annotated[
        Form, Field(description="The body of the request: the event, or `text` as services like Slack take it")
    ] = Form.EVENT
    secret_env: Annotated[
        Variable | None, Field(description="The variable that holds the key of a Standard Webhooks signature")
    ] = None

    @property
    def fault(self) -> str:
        """Return what keeps it from being told anything; empty where nothing does."""
        if sum(each is not None for each in (self.command, self.url, self.url_env)) != 1:
            return "needs exactly one of command, url and url_env"
        if self.command is not None and (self.secret_env is not None or self.form is not Form.EVENT):
            return "has a command, for which form and secret_env mean nothing"
        return ""


class Otel(Table):
    """`[otel]`: where the traces of runs are sent."""

    endpoint: Annotated[
        Url | None, Field(description="A collector that takes OTLP over HTTP; else the variables OTEL_EXPORTER_OTLP_*")
    ] = None


class Config(Table):
    """The whole configuration."""

    sandbox: Annotated[BoxMode, Field(description="The strongest box that works, this one only, or none")] = (
        BoxMode.AUTO
    )
    base: Annotated[
        str | None, Field(description="The base branch; else main, else master, else what origin/HEAD names")
    ] = None
    tracker: Tracker = Tracker()
    agents: Agents = Agents()
    providers: Annotated[
        Mapping[ProviderName, ProviderTable], Field(description="Model services beside the built-in ones")
    ] = {}
    spares: Annotated[
        Mapping[SpareName, AgentOverride], Field(description="Agents to fall back on, over the role's own settings")
    ] = {}
    prices: Annotated[
        Mapping[str, PriceTable], Field(description="USD for a million tokens, by model, before the known prices")
    ] = {}
    limits: Limits = Limits()
    gates: Gates = Gates()
    final_review: FinalReview = FinalReview()
    failure: Failure = Failure()
    solo: Solo = Solo()
    recipes: Recipes = Recipes()
    outage: Outage = Outage()
    stub_first: StubFirst = StubFirst()
    budget: Budget = Budget()
    toolchains: Toolchains = Toolchains()
    checks: Checks = Checks()
    commits: Commits = Commits()
    probes: Probes = Probes()
    mcp: Mcp = Mcp()
    fleet: Fleet = Fleet()
    notify: Annotated[Mapping[SinkName, Sink], Field(description="Commands and addresses that are told of events")] = {}
    otel: Otel = Otel()
    triggers: Annotated[
        Mapping[TriggerName, TriggerTable], Field(description="What orders runs from outside, and at which times")
    ] = {}
    quarantine: Annotated[
        tuple[Quarantined, ...], Field(description="Tests that do not count for now, each with an owner and an end")
    ] = ()

    def agent(self, role: Role) -> AgentConfig:
        """Return the settings of *role*: its own table over `[agents]`; `env` is merged by variable."""
        general = AgentConfig.model_validate({name: getattr(self.agents, name) for name in AgentConfig.model_fields})
        return overridden(general, self.agents.override(role))

    def candidates(self, role: Role) -> tuple[AgentConfig, ...]:
        """Return the agents to ask, in order: the role's own, then the spares that it falls back on.

        A spare with another backend or profile takes over nothing that belongs to a product: its program, its model,
        its service.

        Raises:
            KeyError: there is no spare of that name; `load` refuses such a configuration.
        """
        first = self.agent(role)
        return (
            first,
            *(overridden(inherited_by(first, self.spares[name]), self.spares[name]) for name in first.fallback),
        )
