"""From the configuration to a gateway: which service a role may use, and the user's credential for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from pipeline.config.model import Backend
from pipeline.config.problems import did_you_mean, pointer
from pipeline.config.providers import BUILTIN, Provider, ProviderTable
from pipeline.errors import UserError
from pipeline.gateway.proxy import ModelGateway
from pipeline.policy.roles import Network
from pipeline.routing.vocabulary import Reason, Role

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeline.config.model import Config

_CREDENTIAL: Final = re.compile(r"[!-~]{8,}")
"""Shorter ones could not be taken out of an answer without spoiling it."""
_NO_PROCESS: Final = frozenset({Backend.BUILTIN, Backend.OFF})


def gateway_for(config: Config, role: Role, environ: Mapping[str, str], log: Path) -> ModelGateway | None:
    """Return what answers an agent of *role*; None if it may not reach a model this way.

    Args:
        config: The configuration, trusted.
        role: Who asks.
        environ: Where the credential is.
        log: The file of the dispatch in which requests are written down.

    Raises:
        UserError: the provider is not said, not described, or its credential is not there.
    """
    agent = config.agent(role)
    if agent.network is not Network.MODEL or agent.backend in _NO_PROCESS:
        return None
    provider = provider_of(config, role)
    return ModelGateway(provider, credential_of(provider, agent.provider or "", environ), log)


def require_providers(config: Config, environ: Mapping[str, str]) -> None:
    """Return when every role with network `model` has its provider and credential: better now than in the run.

    Raises:
        UserError: one is missing; the message says what to write.
    """
    for role in Role:
        agent = config.agent(role)
        if agent.network is Network.MODEL and agent.backend not in _NO_PROCESS:
            credential_of(provider_of(config, role), agent.provider or "", environ)


def provider_of(config: Config, role: Role) -> Provider:
    """Return the service of *role*, complete.

    Raises:
        UserError: it is not said, not known, or described in part only.
    """
    name = config.agent(role).provider
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
    described = {
        **BUILTIN.get(name, ProviderTable()).model_dump(exclude_none=True),
        **config.providers.get(name, ProviderTable()).model_dump(exclude_none=True),
    }
    missing = [key for key, field in Provider.model_fields.items() if field.is_required() and key not in described]
    if missing:
        raise UserError(
            f"[providers.{name}] does not say {', '.join(missing)}.",
            Reason.CONFIG,
            pointer=pointer(("providers", name, missing[0])),
            details={"provider": name, "missing": missing},
        )
    return Provider.model_validate(described)


def credential_of(provider: Provider, name: str, environ: Mapping[str, str]) -> SecretStr:
    """Return the credential of the user for *provider*, which the configuration calls *name*.

    Raises:
        UserError: its variable is not set, or holds what cannot be a credential.
    """
    variable, key = provider.credential_env, f"providers.{name}.credential_env"
    value = environ.get(variable, "")
    if not value:
        problem = f"which is not set. Set it, or name another variable in {key}"
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
