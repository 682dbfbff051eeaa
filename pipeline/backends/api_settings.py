"""The settings of every request of the `api` backend (time-out, cache, effort), the same for all services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic_ai.settings import ModelSettings

if TYPE_CHECKING:
    from pipeline.backends.protocol import Service
    from pipeline.config.agents import Effort

GATEWAY_FIRST_S: Final = 10
"""The seconds by which our time-out exceeds the gateway's, which explains what happened."""


def common(service: Service) -> ModelSettings:
    """Return the time-out and cache settings; retries are off, as the loop retries itself."""
    return ModelSettings(max_retries=0, timeout=service.provider.timeout_s + GATEWAY_FIRST_S, cache=True)


def thinking(effort: Effort | None) -> ModelSettings:
    """Return the setting for how much a model thinks."""
    return ModelSettings(thinking=effort.value) if effort is not None else ModelSettings()
