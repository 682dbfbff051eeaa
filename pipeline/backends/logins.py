"""Reads the secrets in a login that is shown to an agent, so that they can be redacted from its output."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, cast

from pipeline.backends import claude, codex
from pipeline.backends.acp_profiles import PRODUCTS
from pipeline.config.agents import Backend, Profile
from pipeline.errors import UserError
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.backends.homes import Place
    from pipeline.config.agents import AgentConfig

_VALUE: Final = re.compile(r"(?!https?://)[!-~]{16,}")
"""Tokens and keys; shorter values are names, dates or words of the format."""


def login_values(agent: AgentConfig, home: Path) -> frozenset[str]:
    """Return the tokens and keys of the login that *agent* is shown; empty if none is shown."""
    place = _place(agent) if agent.login else None
    if place is None:
        return frozenset()
    try:
        content: object = json.loads((home / place.folder / place.login).read_bytes())
    except (OSError, ValueError, RecursionError):
        return frozenset()
    return frozenset(text for text in _texts(content) if _VALUE.fullmatch(text))


def require_login(agent: AgentConfig, home: Path) -> None:
    """Check that the login exists that *agent* is to be shown.

    Raises:
        UserError: it is not.
    """
    place = _place(agent) if agent.login else None
    if place is not None and not (home / place.folder / place.login).is_file():
        file = home / place.folder / place.login
        raise UserError(
            f"login = true, and there is no login at {file}. Log in with the product itself, or leave login out and "
            'use network = "model" with a credential.',
            Reason.CONFIG,
            path=str(file),
        )


def _place(agent: AgentConfig) -> Place | None:
    match agent.backend, agent.profile:
        case Backend.CLAUDE, _:
            return claude.PLACE
        case Backend.CODEX, _:
            return codex.PLACE
        case Backend.ACP, Profile() as profile if profile in PRODUCTS:
            return PRODUCTS[profile].place
        case _:
            return None


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for entry in cast("dict[str, object]", value).values():
                yield from _texts(entry)
        case list():
            for entry in cast("list[object]", value):
                yield from _texts(entry)
        case _:
            return
