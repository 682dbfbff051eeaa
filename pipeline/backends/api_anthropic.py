"""Models behind Anthropic's messages API, for `api_models`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anthropic import AsyncAnthropic
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from pipeline.backends.api_settings import thinking

if TYPE_CHECKING:
    import httpx2

    from pipeline.config.agents import Effort


def messages(name: str, address: str, client: httpx2.AsyncClient, effort: Effort | None) -> AnthropicModel:
    """Return the model *name*, asked through the messages API."""
    sdk = AsyncAnthropic(api_key="placeholder", base_url=address, http_client=client)
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=sdk), settings=thinking(effort))
