"""Loads the configuration by merging its layers: defaults < repository < user < `REDFIRST_*` < flags (contract 4).

The layer decides between two values of one key. A role's own key beats the general one in `[agents]` whatever their
layers: what is said for all is a default, and a default for all never overrides what is said for one. The
variables of `env` are keys of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from pipeline.config import keys, layers, user_folders
from pipeline.config.agents import PLAYS, AgentConfig, Backend, Profile
from pipeline.config.layers import Flags
from pipeline.config.problems import pointer
from pipeline.config.sources import Layer, Origin, RepositoryFile, parse_repository, parse_user
from pipeline.config.triggers import fault_of
from pipeline.config.trust import Widening, widening_of
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.testing.languages.table import LANGUAGES
from pipeline.vocabulary import ISSUE_ROLES, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.config.keys import KeyPath
    from pipeline.config.model import Config

_NEEDS: Final[Mapping[Backend, str]] = {
    Backend.COMMAND: "argv",
    Backend.SCRIPTED: "script",
    Backend.ACP: "profile",
}


_DEFAULT: Final = Origin(Layer.DEFAULT)
_YOURS: Final = "your own configuration alone: it says what"
_PLACES: Final[tuple[tuple[KeyPath, frozenset[Layer], str], ...]] = (
    (("mcp",), frozenset({Layer.USER}), f"{_YOURS} agents of other programs may run in your name"),
    (("fleet",), frozenset({Layer.USER}), f"{_YOURS} where your runs are kept, and who may go on with them"),
    (
        ("limits", "work"),
        frozenset(Layer) - {Layer.REPOSITORY},
        f"{_YOURS} your machine does for all its repositories",
    ),
    (
        ("tracker",),
        frozenset({Layer.REPOSITORY}),
        "the repository's own file alone: its issues are where a commit has them",
    ),
)
"""The keys that not every layer may set, with the layers that may."""


@dataclass(frozen=True)
class Loaded:
    """The loaded configuration, the origin of every dotted key, and the repository's values that need trust."""

    config: Config
    origins: Mapping[str, Origin]
    widening: tuple[Widening, ...] = ()

    def values(self) -> dict[str, object]:
        """Return every value by dotted key, as JSON; values that a role or provider inherits are left out."""
        flat = keys.flatten(self.config.model_dump(mode="json"))
        return {keys.dotted(path): value for path, value in flat.items() if not _is_inherited(path, value)}


def load(
    worktree: Path,
    *,
    environ: Mapping[str, str],
    repo_file: RepositoryFile | None = None,
    flags: Flags | None = None,
    user_content: bytes | None = None,
) -> Loaded:
    """Return the configuration that holds in *worktree*; whether the repository is trusted is checked by `trust`.

    Args:
        worktree: The top of the user's worktree; relative paths of the repository's file start here.
        environ: The environment: `REDFIRST_*`, `XDG_CONFIG_HOME`, `HOME`.
        repo_file: What `sources.repository_file` found.
        flags: What the command line says.
        user_content: What the user's file is about to be; by default what is in it.

    Raises:
        UserError: reason `config`: an unknown key, or a value that is not accepted, with its place.
    """
    home = user_folders.home(environ)
    repository = parse_repository(repo_file, worktree) if repo_file else None
    user = parse_user(user_folders.config_folder(environ) / "config.toml", user_content)

    merged: dict[KeyPath, tuple[object, Origin]] = {}
    if repository:
        merged.update(_well_placed(layers.from_document(repository, home)))
    if user:
        merged.update(_well_placed(layers.from_document(user, home)))
    merged.update(_well_placed(layers.from_environment(environ, home)))
    backends = {role: merged.get(("agents", role, "backend")) for role in Role}
    off = [role for role, found in backends.items() if found is not None and found[0] == Backend.OFF]
    merged.update(_well_placed(layers.from_flags(flags or Flags(), home, off)))

    values = {path: value for path, (value, _) in merged.items()}
    origins = {keys.dotted(path): origin for path, (_, origin) in merged.items()}
    config = layers.validated(keys.nest(values), lambda path: origins[keys.dotted(path)])
    loaded = Loaded(config, origins, widening_of(keys.flatten(repository.table)) if repository else ())
    _refuse_contradictions(loaded)
    return replace(loaded, origins={key: _origin(loaded, key) for key in loaded.values()})


def without_effect(loaded: Loaded) -> tuple[str, ...]:
    """Return a line for each flag for all roles that a role's own key overrides."""
    said: list[str] = []
    for key, origin in loaded.origins.items():
        path = keys.from_dotted(key)
        if origin.layer is not Layer.FLAG or path[0] != "agents" or path[1] in keys.ROLES:
            continue
        for role in Role:
            name = keys.dotted(path[1:])
            own = _origin(loaded, f"agents.{role}.{name}")
            if own.layer is not Layer.DEFAULT:
                said.append(f"{origin.source} has no effect on @{role}, which has its own {name} ({own})")
    return tuple(said)


def require_agents(loaded: Loaded, roles: Iterable[Role] = ISSUE_ROLES) -> None:
    """Refuse to go on when the agent of one of *roles* is not configured.

    Raises:
        UserError: reason `config`: the backend lacks its program, its script or its model.
    """
    for role in roles:
        for agent in loaded.config.candidates(role):
            if key := _missing(agent):
                raise UserError(
                    not_configured(agent.backend, key, role),
                    Reason.CONFIG,
                    pointer=pointer(("agents", role, key)),
                    details={"role": role.value, "backend": agent.backend.value, "missing": key},
                    actions=_to_begin(loaded),
                )


def _to_begin(loaded: Loaded) -> tuple[str, ...]:
    """Return what to type where an agent is not configured: `init` writes no second configuration."""
    if any(origin.layer is Layer.REPOSITORY for origin in loaded.origins.values()):
        return ("redfirst config show",)
    return (
        "redfirst init   # writes a configuration for the agents that are installed here",
        "redfirst demo   # shows the whole way with scripted agents",
    )


def not_configured(backend: str, key: str, role: Role | None = None) -> str:
    """Return the message about a backend that lacks a key, for *role* or for several roles."""
    of_role, or_there = (f" for {role}", f" or [agents.{role}]") if role is not None else ("", "")
    return (
        f'No agent is configured{of_role}: the backend "{backend}" needs {key}. Set it in [agents]{or_there} of your '
        "redfirst.toml, or do the work of a role yourself: --agent ROLE=human."
    )


def _missing(agent: AgentConfig) -> str | None:
    key = _NEEDS.get(agent.backend)
    if agent.backend is Backend.ACP and agent.profile is Profile.CUSTOM:
        key = "argv"
    return key if key is not None and not getattr(agent, key) else None


def _is_inherited(path: KeyPath, value: object) -> bool:
    return value is None and (
        path[0] in {"providers", "spares", "notify", "triggers"} or (path[0] == "agents" and path[1] in keys.ROLES)
    )


def _origin(loaded: Loaded, key: str) -> Origin:
    return loaded.origins.get(key, _DEFAULT)


def _refuse_contradictions(loaded: Loaded) -> None:
    config = loaded.config
    for role in Role:
        _refuse_unknown_spares(loaded, role)
        for agent in config.candidates(role):
            if role not in PLAYS[agent.backend]:
                raise _not_its_part(loaded, role, agent.backend)
    for name in LANGUAGES:
        _refuse_variables(loaded, name)
    for name, sink in config.notify.items():
        if sink.fault:
            key = f"notify.{name}"
            raise _refusal(_origin_below(loaded, key), key, f"[{key}] {sink.fault}.")
    for name, trigger in config.triggers.items():
        if (fault := fault_of(trigger)) is not None:
            key = f"triggers.{name}.{fault[0]}"
            raise _refusal(_origin_below(loaded, f"triggers.{name}"), key, f"{key} {fault[1]}")


def _origin_below(loaded: Loaded, table: str) -> Origin:
    """Return where the first key of a table comes from."""
    return next((origin for key, origin in loaded.origins.items() if key.startswith(f"{table}.")), _DEFAULT)


def _refusal(
    origin: Origin, key: str, what: str, *, details: dict[str, object] | None = None, actions: tuple[str, ...] = ()
) -> UserError:
    """Return the error of a key that cannot be as *origin* has it."""
    place = pointer(keys.from_dotted(key))
    return UserError(
        f"{origin}: {what}", Reason.CONFIG, path=origin.source, pointer=place, details=details, actions=actions
    )


def _refuse_variables(loaded: Loaded, name: str) -> None:
    """Refuse variables of tests that would be lost or do harm: only the environment behind a command is taken over."""
    table = loaded.config.toolchains.settings_of(name)
    found = {f"toolchains.{name}.env.{one}": f"{one!r} {why}." for one in table.env if (why := _fault_of(one))}
    if dropped := set_by(table.command or ("",)):
        found[f"toolchains.{name}.command"] = (
            f"the variables of this command ({', '.join(dropped)}) would not reach the tests. Leave them out of it, "
            f"and set each in [toolchains.{name}] env, a table of names and values."
        )
    for key, what in found.items():
        action = f"redfirst config set toolchains.{name}.env.NAME VALUE"
        raise _refusal(_origin(loaded, key), key, f"{key}: {what}", actions=(action,))


def _well_placed(layer: layers.FlatLayer) -> layers.FlatLayer:
    """Return a layer unchanged, after a check that it sets no key which counts elsewhere.

    Raises:
        UserError: it does.
    """
    for path, (_, origin) in layer.items():
        for above, counts_in, where in _PLACES:
            if path[: len(above)] == above and origin.layer not in counts_in:
                message = f"{origin}: {keys.dotted(path)} counts in {where}."
                raise UserError(message, Reason.CONFIG, path=origin.source, pointer=pointer(path))
    return layer


def _refuse_unknown_spares(loaded: Loaded, role: Role) -> None:
    known = list(loaded.config.spares)
    for name in loaded.config.agent(role).fallback:
        if name not in known:
            key = _key_of(loaded, role, "fallback")
            raise _refusal(
                _origin(loaded, key),
                key,
                f"{key}: there is no [spares.{name}]. Spares: {', '.join(known) or 'none'}. Add a table "
                f"[spares.{name}] with at least its backend.",
                details={"role": role.value, "spare": name, "accepted": known},
            )


def _key_of(loaded: Loaded, role: Role, name: str) -> str:
    own = f"agents.{role}.{name}"
    return own if own in loaded.origins else f"agents.{name}"


def _not_its_part(loaded: Loaded, role: Role, backend: Backend) -> UserError:
    key = _key_of(loaded, role, "backend")
    accepted = [name.value for name, roles in PLAYS.items() if role in roles]
    return _refusal(
        _origin(loaded, key),
        key,
        f'{key}: the backend "{backend}" plays {", ".join(sorted(PLAYS[backend]))} only. '
        f"Available for {role}: {', '.join(accepted)}.",
        details={"role": role.value, "backend": backend.value, "accepted": accepted},
    )


# --- variables of tests -----------------------------------------------------------------------------------------------
# What comes before the test runner in a configured command is never part of a measurement: variables that are set there
# would not reach a test.

_VARIABLE: Final = r"[A-Za-z_]\w*"
_ASSIGNMENT: Final = re.compile(rf"({_VARIABLE})=", re.ASCII)
_OURS: Final = re.compile(
    r"PATH|HOME|TMPDIR|TMP|TEMP|USER|SHELL|LD_\w+|REDFIRST_\w+|GIT_\w+"
    r"|PYTHON(PATH|HASHSEED|PYCACHEPREFIX|NOUSERSITE|DONTWRITEBYTECODE|HOME)|NO_COLOR|COVERAGE_FILE"
    r"|HYPOTHESIS_STORAGE_DIRECTORY|PYTEST_(DEBUG_TEMPROOT|PLUGINS)"
    r"|CARGO_(HOME|TARGET_DIR|NET_OFFLINE|INCREMENTAL|TERM_\w+)|RUST(_LIB)?_BACKTRACE"
    r"|GO(CACHE|TMPDIR|FLAGS|ENV|TOOLCHAIN|PROXY|SUMDB|VCS|MODCACHE|ROOT|WORK|TRACEBACK)"
    r"|NODE_OPTIONS|npm_config_\w+|(NODE_DISABLE|DISABLE_V8)_COMPILE_CACHE|(TSX|BABEL)_DISABLE_CACHE",
    re.ASCII,
)
"""The variables that a measurement sets, or that would send what it reads and writes elsewhere."""
_SETTERS: Final = frozenset({"env", "cross-env"})
"""Programs that take variables before the program that they start."""
_LOADERS: Final = frozenset({"doppler", "dotenv", "dotenvx", "env-cmd", "envdir"})
"""Programs that set what a file or a service holds."""
_ENV_FILE: Final = "--env-file"
"""The option of uv that names such a file."""
_COMMAND_LINE: Final = frozenset({"-c", "-lc", "--command", "--run"})
"""Options of shells behind which a whole command line comes."""


def _fault_of(name: str) -> str | None:
    """Return why a variable of this name cannot be set for tests, None if it can."""
    if not re.fullmatch(_VARIABLE, name, re.ASCII):
        return "is no name of a variable"
    return "is set by redfirst where tests are measured: leave it out" if _OURS.fullmatch(name) else None


def set_by(command: Sequence[str]) -> tuple[str, ...]:
    """Return what sets variables in a command: their names, else the program or the option that reads them.

    A variable counts where a program may be named: `-k a=b` of a runner is none.
    """
    program = PurePosixPath(command[0]).name
    found = [command[0]] if program in _LOADERS else []
    if program == "uv" and any(word.partition("=")[0] == _ENV_FILE for word in command):
        found.append(_ENV_FILE)
    may_set = True
    for word in command:
        for part in word.split() if may_set else (word,):
            assigned = _ASSIGNMENT.match(part)
            if assigned is not None and may_set:
                found.append(assigned[1])
            elif not part.startswith("-"):
                may_set = PurePosixPath(part).name in _SETTERS
        may_set = may_set or word in _COMMAND_LINE
    return tuple(dict.fromkeys(found))
