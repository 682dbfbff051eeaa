"""Models behind OpenAI's two APIs, also of compatible services, for `api_models`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from openai import AsyncOpenAI
from pydantic_ai.models.openai import (
    OpenAIChatModel,
    OpenAIChatModelSettings,
    OpenAIResponsesModel,
    OpenAIResponsesModelSettings,
)
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

if TYPE_CHECKING:
    import httpx2

    from pipeline.backends.protocol import Service
    from pipeline.config.agents import Effort

# Effort is said in OpenAI's own word: the SDK's general one reaches only the models that it knows by name.
_OPENAI: Final = "api.openai.com"


def chat(
    name: str, address: str, client: httpx2.AsyncClient, service: Service, effort: Effort | None
) -> OpenAIChatModel:
    """Return the model *name*, asked through chat completions."""
    settings = OpenAIChatModelSettings()
    if effort is not None:
        settings["openai_reasoning_effort"] = effort.value
    return OpenAIChatModel(name, provider=_provider(address, client, service), settings=settings)


def responses(
    name: str, address: str, client: httpx2.AsyncClient, service: Service, effort: Effort | None
) -> OpenAIResponsesModel:
    """Return the model *name*, asked through responses, which the service is told not to store."""
    settings = OpenAIResponsesModelSettings(openai_store=False)
    if effort is not None:
        settings["openai_reasoning_effort"] = effort.value
    return OpenAIResponsesModel(name, provider=_provider(address, client, service), settings=settings)


def _provider(address: str, client: httpx2.AsyncClient, service: Service) -> OpenAIProvider | OpenAICompatibleProvider:
    """Return the provider for OpenAI itself or for a compatible service, which refuses some settings."""
    sdk = AsyncOpenAI(api_key="placeholder", base_url=f"{address}/v1", http_client=client)
    if urlsplit(service.provider.url).hostname == _OPENAI:
        return OpenAIProvider(openai_client=sdk)
    return OpenAICompatibleProvider(service.name, openai_client=sdk)
