"""Resolves the configuration that counts for what the user asked: layers, trust, limits, hashes; sets a value of it.

A file is written after the whole configuration has been read with it (contract 4).
"""

from __future__ import annotations

import hashlib
import os
import stat
import tomllib
from collections.abc import Mapping, Sequence  # noqa: TC003  (dataclasses read it)
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.agents.backends import BACKENDS
from pipeline.agents.backends.products import require_login
from pipeline.agents.dispatch.agent_choice import choices
from pipeline.agents.gateway.providers import require_providers
from pipeline.agents.gateway.usage import Tokens, cost_of
from pipeline.app.init_config import hinted
from pipeline.app.trust_requests import widening_in
from pipeline.config import keys, sources, trust, user_folders
from pipeline.config.agents import Backend
from pipeline.config.editing import with_value
from pipeline.config.layers import Flags, key_path, typed_value
from pipeline.config.load import Loaded, load, require_agents
from pipeline.config.user_folders import home
from pipeline.errors import UserError
from pipeline.judge.policy.roles import Network
from pipeline.matrix.routing.matrix import BOUNDS, MATRIX
from pipeline.matrix.routing.state import PARALLEL
from pipeline.outcomes import Reason
from pipeline.run.files import to_json, write_atomic
from pipeline.vocabulary import ISSUE_ROLES, Loop, Role

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

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
    return load(repository.worktree, environ=environ, repo_file=file_at(repository, commit), flags=flags)


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
    then = file_at(repository, commit)
    return None if then is None or sources.same_words(then, repository.worktree) else then.name


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


def file_at(repository: Repository, commit: str) -> sources.RepositoryFile | None:
    """Return the repository's file as a commit has it; an untracked one as it lies in the worktree.

    Raises:
        UserError: the repository configures us in two files.
    """
    return sources.repository_file(
        repository.worktree, lambda name: repository.blob(f"{commit}:{name}", sources.LARGEST)
    )


def uncounted(repository: Repository, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return a note where the repository's file says something else in the worktree than in HEAD, which counts.

    A second one says what is wrong with it there.

    Raises:
        UserError: the repository configures us in two files.
    """
    found = file_at(repository, "HEAD")
    if found is None or not found.tracked or sources.same_words(found, repository.worktree):
        return ()
    note = f"uncommitted changes of {found.name} do not count: it is read as HEAD has it"
    try:
        theirs = sources.repository_file(repository.worktree, lambda _: None)
        load(repository.worktree, environ=environ, repo_file=theirs)
    except UserError as error:
        return note, f"once they are committed no run begins: {'; '.join(error.message.splitlines())}"
    return (note,)


@dataclass(frozen=True)
class SetValue:
    """What was set.

    Args:
        key: The key, with dots.
        value: Its value, as JSON has it.
        path: The file.
        needs_trust: Whether it counts only after `redfirst trust`.
        overruled_by: Where another layer says something else that counts instead; empty where none does.
    """

    key: str
    value: object
    path: Path
    needs_trust: bool
    overruled_by: str


def set_in_user_file(key: str, text: str, environ: Mapping[str, str], repository: Repository | None) -> SetValue:
    """Set a key in the user's own file.

    Raises:
        UserError: there is no such key, the configuration refuses the value, or the file cannot be written.
    """
    path = user_folders.config_folder(environ) / "config.toml"
    at = key_path(key)
    value = _value(at, key, text)
    content = _with(path, _text(path), at, value).encode()
    here = repository.worktree if repository is not None else path.parent
    file = sources.repository_file(repository.worktree, lambda _: None) if repository is not None else None
    loaded = load(here, environ=environ, repo_file=file, user_content=content)
    _write(path, content)
    return SetValue(key, value, path, needs_trust=False, overruled_by=_other(loaded, at, str(path)))


def set_in_repository(key: str, text: str, environ: Mapping[str, str], repository: Repository) -> SetValue:
    """Set a key in the repository's file, as it lies in the worktree: `redfirst.toml`, or our table in pyproject.toml.

    Raises:
        UserError: there is no such key, the configuration refuses the value, or the file cannot be written.
    """
    found = sources.repository_file(repository.worktree, lambda _: None)
    name = found.name if found is not None else sources.OWN_FILE
    path = repository.worktree / name
    if not path.resolve().is_relative_to(repository.worktree.resolve()):
        raise UserError(f"{name} is a link that leads out of the repository. Edit that file by hand.", Reason.CONFIG)
    at = key_path(key)
    value = _value(at, key, text)
    content = _with(
        path, _text(path), (*(sources.SHARED_TABLE if name == sources.SHARED_FILE else ()), *at), value
    ).encode()
    loaded = load(repository.worktree, environ=environ, repo_file=sources.RepositoryFile(name, content, tracked=False))
    widening = widening_in(repository, loaded, environ)
    asks = any(item.key == keys.dotted(at) for item in widening)
    _write(path, content)
    return SetValue(
        key,
        value,
        path,
        needs_trust=asks and not trust.is_trusted(widening, repository.common_dir, environ),
        overruled_by=_other(loaded, at, name),
    )


def add_to_user_file(
    table: keys.KeyPath, values: Mapping[str, object], environ: Mapping[str, str], here: Path, *, write: bool
) -> tuple[Path, str]:
    """Add a table to the user's own file, if *write*; return the file, and the text of the table.

    Raises:
        UserError: the table is there, the configuration refuses a value, or the file cannot be written.
    """
    path = user_folders.config_folder(environ) / "config.toml"
    known = sources.parse_user(path)
    if known is not None and any(key[: len(table)] == table for key in keys.flatten(known.table)):
        message = f"{path} has a [{keys.dotted(table)}] already. Nothing was written. Change it there."
        raise UserError(message, Reason.USAGE, path=str(path), actions=("redfirst config show",))
    text, alone = _text(path), ""
    for name, value in values.items():
        text, alone = (_with(path, each, (*table, name), value) for each in (text, alone))
    load(here, environ=environ, user_content=text.encode())
    if write:
        _write(path, text.encode())
    return path, alone


def _value(path: keys.KeyPath, key: str, text: str) -> object:
    return typed_value(path, text, sources.Origin(sources.Layer.FLAG, f"config set {key}"))


def _text(path: Path) -> str:
    try:
        return sources.file_content(path).decode()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}.", Reason.CONFIG, path=str(path)) from error


def _with(path: Path, text: str, key: keys.KeyPath, value: object) -> str:
    try:
        return with_value(text, key, value)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}.", Reason.CONFIG, path=str(path)) from error
    except ValueError as error:
        raise UserError(f"{path}: {error}. Edit the file by hand.", Reason.CONFIG, path=str(path)) from error


def _write(path: Path, content: bytes) -> None:
    target = path.resolve()  # who keeps the file elsewhere has a link here
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o644
    write_atomic(target, content, mode=mode)


def _other(loaded: Loaded, path: keys.KeyPath, file: str) -> str:
    """Return where the value that counts is written, if that is another file, a variable, or a general key."""
    general = (path[0], *path[2:]) if path[0] == "agents" and path[1] in keys.ROLES else path
    origin = loaded.origins.get(keys.dotted(path)) or loaded.origins.get(keys.dotted(general))
    return "" if origin is None or origin.source == file else str(origin)
