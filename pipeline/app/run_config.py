"""Resolves the configuration that counts for what the user asked: layers, trust, limits, hashes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence  # noqa: TC003  (dataclasses read it)
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.agents.backends import BACKENDS
from pipeline.agents.backends.products import require_login
from pipeline.agents.dispatch.agent_choice import choices
from pipeline.agents.gateway.providers import require_providers
from pipeline.agents.gateway.usage import Tokens, cost_of
from pipeline.app.installed import hinted
from pipeline.app.trust_requests import widening_in
from pipeline.config import trust
from pipeline.config.agents import Backend
from pipeline.config.layers import Flags
from pipeline.config.load import Loaded, load, require_agents
from pipeline.config.sources import LARGEST, RepositoryFile, repository_file, same_words
from pipeline.config.user_folders import home
from pipeline.errors import UserError
from pipeline.judge.policy.roles import Network
from pipeline.matrix.routing.matrix import BOUNDS, MATRIX
from pipeline.matrix.routing.state import PARALLEL
from pipeline.outcomes import Reason
from pipeline.run.files import to_json
from pipeline.vocabulary import ISSUE_ROLES, Loop, Role

if TYPE_CHECKING:
    from pipeline.config.model import Config
    from pipeline.config.tables import BudgetPart
    from pipeline.matrix.recipes.model import Recipe
    from pipeline.repo import Repository
    from pipeline.run.info import Trigger


_TELL_NOTHING: Final = frozenset({Backend.COMMAND, Backend.ACP, Backend.API})


def pairs(given: Sequence[str]) -> dict[str, str]:
    """Return inputs by name, of texts NAME=VALUE.

    Raises:
        UserError: one has no `=`, or a name is there twice.
    """
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"{text!r} is no input: write NAME=VALUE.", Reason.USAGE)
        if name in found:
            raise UserError(f"The input {name!r} is given twice.", Reason.USAGE)
        found[name] = value
    return found


def issue_input(recipe: Recipe) -> str | None:
    """Return the name of the input that is an issue, None where a recipe asks for none."""
    return next((one.name for one in recipe.inputs if one.type == "issue"), None)


@dataclass(frozen=True)
class RunOptions:
    """What the user asked `run` for."""

    issue: str
    base: str | None = None
    gates: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    recipe: str = ""
    """Empty where none is named: that of `[recipes]` counts."""
    inputs: tuple[str, ...] = ()
    previous: str | None = None
    """An earlier run of the issue, of which this one is given the work."""
    trigger: Trigger = "cli"
    order: str | None = None
    """The order of the queue that it is driven for."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def given(self, recipe: Recipe) -> dict[str, str]:
        """Return what is given of a recipe's inputs: the issue is the one that it asks for, if it does.

        Raises:
            UserError: an input is no NAME=VALUE, or is given twice.
        """
        name = issue_input(recipe)
        own = {name: self.issue} if name is not None and self.issue else {}
        return {**pairs(self.inputs), **own}

    @property
    def flags(self) -> Flags:
        """Return what the command line says of the configuration, with paths that mean the same in any folder.

        Raises:
            UserError: one of them has no `=`.
        """
        return Flags.parse(self.values, self.agents).anchored(home(self.environ))


def refuse_recursion(environ: Mapping[str, str]) -> None:
    """Refuse to run below one of our own agents.

    Raises:
        UserError: REDFIRST_DEPTH says so.
    """
    if environ.get("REDFIRST_DEPTH", "0") not in {"", "0"}:
        raise UserError("redfirst does not run inside one of its own agents (REDFIRST_DEPTH is set).", Reason.USAGE)


def load_config(repository: Repository, commit: str, flags: Flags, environ: Mapping[str, str]) -> Loaded:
    """Return the configuration as it counts for a run that starts at *commit*.

    Raises:
        UserError: it is broken, or cannot be used (`require_usable`).
    """
    loaded = read_config(repository, commit, flags, environ)
    require_usable(repository, loaded, environ)
    return loaded


def read_config(repository: Repository, commit: str, flags: Flags, environ: Mapping[str, str]) -> Loaded:
    """Return the same, while nobody has looked whether it may be used.

    Raises:
        UserError: it is broken.
    """
    repo_file = repository_file(repository.worktree, lambda name: repository.blob(f"{commit}:{name}", LARGEST))
    return load(repository.worktree, environ=environ, repo_file=repo_file, flags=flags)


def trusted_config(repository: Repository, environ: Mapping[str, str], table: str | None = None) -> Config:
    """Return the configuration as it counts where somebody stands, once the user trusts what is about to be used.

    Args:
        repository: Seen from where somebody stands.
        environ: Their environment.
        table: The table that is about to be used; None: all that the repository asks for.

    Raises:
        UserError: it is broken, or not trusted.
    """
    loaded = read_config(repository, repository.resolve("HEAD") or "", Flags(), environ)
    if table is None or any(item.key.startswith(f"{table}.") for item in loaded.widening):
        trust.require_trust(widening_in(repository, loaded, environ), repository.common_dir, environ)
    return loaded.config


def require_usable(
    repository: Repository, loaded: Loaded, environ: Mapping[str, str], roles: Sequence[Role] = ISSUE_ROLES
) -> None:
    """Return when agents can be asked as the configuration says.

    Raises:
        UserError: it widens without trust, or names a model service whose credential is not there.
    """
    widening = widening_in(repository, loaded, environ)
    trust.require_trust(widening, repository.common_dir, environ)
    try:
        require_agents(loaded, roles)
    except UserError as error:
        raise hinted(error, environ) from None
    require_providers(loaded.config, environ, roles)
    for role in roles:
        choices(loaded.config, role)  # a model that nobody named is said now, and not after the plan is paid for
    _require_figures(loaded.config, roles)


def changed_file(repository: Repository, commit: str) -> str | None:
    """Return the file in which the repository configures us, if it says something else now than at *commit*."""
    then = repository_file(repository.worktree, lambda name: repository.blob(f"{commit}:{name}", LARGEST))
    return None if then is None or same_words(then, repository.worktree) else then.name


def _require_figures(config: Config, roles: Sequence[Role]) -> None:
    """Refuse a budget of an agent that nobody measures: a limit that nobody keeps is worse than none.

    Raises:
        UserError: reason `config`.
    """
    tables = (config.budget.roles, config.budget.phases)
    parts = [getattr(table, name) for table in tables for name in type(table).model_fields]
    limited: list[BudgetPart] = [config.budget, *parts]
    if all(part.cost_usd is None and part.tokens is None for part in limited):
        return
    for role in roles:
        for agent in config.candidates(role):
            if agent.reaches is Network.OPEN and agent.backend in _TELL_NOTHING:
                raise UserError(
                    f"[budget] cannot be kept for {role}: with network open nobody sees what {agent.backend} asks of a "
                    "model. Use network model for it, or leave the budget out. limits.dispatches bounds a run, too.",
                    Reason.CONFIG,
                    pointer=f"/agents/{role}/network",
                )
    if any(part.cost_usd is not None for part in limited):
        for role in roles:
            _require_prices(config, role)


def _require_prices(config: Config, role: Role) -> None:
    for choice in choices(config, role):
        if choice.service is None or choice.model is None or choice.agent.backend is Backend.CLAUDE:
            continue  # what is not asked through the gateway has figures of its own, or was refused above
        name, provider = choice.service.name, choice.service.provider
        if cost_of(name, choice.model, Tokens(1, 1), config.prices, url=provider.url) is None:
            raise UserError(
                f"[budget] cost_usd cannot be kept for {role}: what the model {choice.model} of {name} costs is not "
                f'known. Write [prices."{choice.model}"] with input and output, in USD for a million tokens, or limit '
                "budget.tokens instead.",
                Reason.CONFIG,
                pointer=f"/prices/{choice.model}",
                details={"role": role.value, "model": choice.model, "provider": name},
            )


def require_programs(config: Config, environ: Mapping[str, str], roles: Sequence[Role] = ISSUE_ROLES) -> None:
    """Return when every agent's program or script is there: better now than after the plan is paid for.

    Raises:
        UserError: one is not.
    """
    for role in roles:
        for agent in config.candidates(role):
            backend = BACKENDS.get(agent.backend.value)
            if backend is not None:
                backend.require(agent, environ.get("PATH", os.defpath))
                require_login(agent, home(environ))


def limits_of(config: Config) -> dict[str, int]:
    """Return the configured limits by loop, and how many tasks may be worked on side by side."""
    values = {**config.limits.model_dump(), Loop.QUESTIONS.value: config.gates.questions}
    return {name: int(limit) for name, limit in values.items() if name in {*Loop, PARALLEL}}


def config_hash(dumped: object) -> str:
    """Return the hash of a configuration."""
    return hashlib.sha256(to_json(dumped, pretty=False).encode()).hexdigest()


def matrix_hash() -> str:
    """Return the hash of the routing matrix that decides in this version."""
    return hashlib.sha256(repr((MATRIX, BOUNDS)).encode()).hexdigest()


def file_at_head(repository: Repository) -> RepositoryFile | None:
    """Return the repository's file as HEAD has it; an untracked one as it lies in the worktree.

    Raises:
        UserError: the repository configures us in two files.
    """
    return repository_file(repository.worktree, lambda name: repository.blob(f"HEAD:{name}", LARGEST))


def uncounted(repository: Repository, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return a note where the repository's file says something else in the worktree than in HEAD, which counts.

    A second one says what is wrong with it there.

    Raises:
        UserError: the repository configures us in two files.
    """
    found = file_at_head(repository)
    if found is None or not found.tracked or same_words(found, repository.worktree):
        return ()
    note = f"uncommitted changes of {found.name} do not count: it is read as HEAD has it"
    try:
        theirs = repository_file(repository.worktree, lambda _: None)
        load(repository.worktree, environ=environ, repo_file=theirs)
    except UserError as error:
        return note, f"once they are committed no run begins: {'; '.join(error.message.splitlines())}"
    return (note,)
