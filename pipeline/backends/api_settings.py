"""The settings of every request of the `api` backend (time-out, cache, effort), the same for all services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic_ai.settings import ModelSettings

if TYPE_CHECKING:
    from pipeline.backends.protocol import Service
    from pipeline.config.agents import Effort

GATEWAY_FIRST_S: Final = 10
"""The gateway's own limit for one request is to come first: it says what happened."""


def common(service: Service) -> ModelSettings:
    """Return limits and caching; the loop tries again itself."""
    return ModelSettings(max_retries=0, timeout=service.provider.timeout_s + GATEWAY_FIRST_S, cache=True)


def thinking(effort: Effort | None) -> ModelSettings:
    """Return how much a model is to think."""
    return ModelSettings(thinking=effort.value) if effort is not None else ModelSettings()
