"""Finds the model service that the configuration names for a role, and the user's credential for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from pipeline.agents.gateway.route import proxy_for
from pipeline.config.agents import AgentConfig, Backend
from pipeline.config.problems import did_you_mean, pointer
from pipeline.config.providers import BUILTIN, Provider, ProviderTable
from pipeline.errors import UserError
from pipeline.judge.policy.roles import Network
from pipeline.outcomes import Reason
from pipeline.vocabulary import ISSUE_ROLES, Role

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.config.model import Config

_WITH_LOGINS: Final = frozenset({Backend.CLAUDE, Backend.CODEX, Backend.ACP})
_CREDENTIAL: Final = re.compile(r"[!-~]{8,}")
"""Acceptable credentials; a shorter one could not be masked without spoiling answers."""


def require_providers(config: Config, environ: Mapping[str, str], roles: Sequence[Role] = ISSUE_ROLES) -> None:
    """Check before a run that every agent with network `model` has its provider and credential.

    Raises:
        UserError: one is missing; the message says what to write.
    """
    for role in roles:
        for agent in config.candidates(role):
            if agent.reaches is Network.MODEL:
                name, provider = provider_of(config, role, agent)
                credential_of(provider, name, environ, or_login=agent.backend in _WITH_LOGINS)
                proxy_for(provider.url, environ)


def provider_of(config: Config, role: Role, agent: AgentConfig) -> tuple[str, Provider]:
    """Return the service of an agent of *role*: its name in the configuration, and its settings.

    Raises:
        UserError: it is not said, not known, or described in part only.
    """
    name = agent.service
    known = sorted({*BUILTIN, *config.providers})
    if name is None:
        raise UserError(
            f'network = "model" of {role} needs a provider: the service that answers. '
            f'Write provider = "{known[0]}" in [agents] or [agents.{role}]; known: {", ".join(known)}.',
            Reason.CONFIG,
            pointer=pointer(("agents", role, "provider")),
            details={"role": role.value, "missing": "provider", "accepted": known},
        )
    if name not in known:
        near = did_you_mean(name, known)
        raise UserError(
            f'The provider "{name}" of {role} is not known.'
            + (f' Did you mean "{near}"?' if near else "")
            + f" Known: {', '.join(known)}; describe another one in [providers.{name}].",
            Reason.CONFIG,
            pointer=pointer(("agents", role, "provider")),
            details={"role": role.value, "accepted": known, "did_you_mean": near},
        )
    table = config.providers.get(name, ProviderTable()).over(BUILTIN.get(name, ProviderTable()))
    if table.url is None:
        raise UserError(
            f"[providers.{name}] does not say url.",
            Reason.CONFIG,
            pointer=pointer(("providers", name, "url")),
            details={"provider": name, "missing": ["url"]},
        )
    return name, Provider.model_validate(table.model_dump(exclude_none=True))


def credential_of(
    provider: Provider, name: str, environ: Mapping[str, str], *, or_login: bool = False
) -> SecretStr | None:
    """Return the user's credential for *provider*, named *name* in the configuration; None if it needs none.

    Args:
        provider: The service.
        name: What the configuration calls it.
        environ: Where the credential is.
        or_login: Whether the agent can use a login of its own, which is said where there is no credential.

    Raises:
        UserError: its variable is not set, or holds what cannot be a credential.
    """
    variable, key = provider.credential_env, f"providers.{name}.credential_env"
    if variable is None:
        return None
    value = environ.get(variable, "")
    if not value:
        problem = f"which is not set. Set it, or name another variable in {key}"
        problem += '. Or log in with the product, and give network = "open" and login = true' if or_login else ""
    elif not _CREDENTIAL.fullmatch(value):
        problem = f"which holds no credential: at least 8 characters, no blanks ({key})"
    else:
        return SecretStr(value)
    raise UserError(
        f"The credential for the model provider {name} is taken from the variable {variable}, {problem}.",
        Reason.CONFIG,
        path=variable,
        pointer=pointer(("providers", name, "credential_env")),
        details={"provider": name, "variable": variable},
    )
