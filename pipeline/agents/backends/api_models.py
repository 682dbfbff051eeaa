"""Opens a model with the SDK of its dialect, connected by a socket to the gateway and nothing else.

Only this package's `api` modules import the SDKs, and only when an agent of `backend = "api"` is asked.
"""

from __future__ import annotations

import os
import socket
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx2
from pydantic_ai.settings import ModelSettings

from pipeline.config.providers import Api

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from pathlib import Path

    from pydantic_ai.models import Model

    from pipeline.agents.backends.protocol import AgentJob, Service
    from pipeline.config.agents import Effort
    from pipeline.process import Gateway

GATEWAY_FIRST_S: Final = 10
"""The seconds by which our time-out exceeds the gateway's, which explains what happened."""
ADDRESS: Final = "http://redfirst"
"""A host that is never looked up: every connection goes to the socket, and the gateway adds the real path."""


@asynccontextmanager
async def opened_model(job: AgentJob, service: Service, gateway: Gateway, name: str) -> AsyncGenerator[Model]:
    """Serve the gateway on a socket of this dispatch, and yield the model *name* behind it."""
    with _listening(job.exchange / "model") as (listener, address):
        async with gateway.serve(listener):
            transport = httpx2.AsyncHTTPTransport(uds=address)
            limit = service.provider.timeout_s + GATEWAY_FIRST_S
            async with httpx2.AsyncClient(transport=transport, trust_env=False, timeout=limit) as client:
                yield _model(service, name, client, job.agent.effort)


@contextmanager
def _listening(folder: Path) -> Generator[tuple[socket.socket, str]]:
    """Yield a listening socket that only this user can reach, and its address."""
    folder.mkdir(mode=0o700)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # An address has 107 bytes at most, and the path of an exchange folder may have more.
        address = f"/proc/self/fd/{descriptor}/socket"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen()
            yield listener, address
    finally:
        os.close(descriptor)


def common_settings(service: Service) -> ModelSettings:
    """Return the time-out and cache settings of every request; retries are off, as the loop retries itself."""
    return ModelSettings(max_retries=0, timeout=service.provider.timeout_s + GATEWAY_FIRST_S, cache=True)


# Each SDK costs about as much as all of redfirst: only the one that is spoken is imported.


def _model(service: Service, name: str, client: httpx2.AsyncClient, effort: Effort | None) -> Model:
    thinking = ModelSettings(thinking=effort.value) if effort is not None else ModelSettings()
    match service.provider.api[0]:  # the first that it lists
        case Api.ANTHROPIC:
            from anthropic import AsyncAnthropic  # noqa: PLC0415
            from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
            from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

            sdk = AsyncAnthropic(api_key="placeholder", base_url=ADDRESS, http_client=client)
            return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=sdk), settings=thinking)
        case Api.GOOGLE:
            from google.genai.types import HttpRetryOptions  # noqa: PLC0415
            from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415
            from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415

            retries = HttpRetryOptions(attempts=1)
            provider = GoogleProvider(
                api_key="placeholder", base_url=ADDRESS, http_client=client, retry_options=retries
            )
            return GoogleModel(name, provider=provider, settings=thinking)
        case Api.RESPONSES | Api.CHAT as dialect:
            return _openai(service, dialect, name, client, effort)


def _openai(service: Service, dialect: Api, name: str, client: httpx2.AsyncClient, effort: Effort | None) -> Model:
    """Return a model of OpenAI itself or of a compatible service, which refuses some settings."""
    from openai import AsyncOpenAI  # noqa: PLC0415
    from pydantic_ai.models import openai  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415

    sdk = AsyncOpenAI(api_key="placeholder", base_url=f"{ADDRESS}/v1", http_client=client)
    is_openai = urlsplit(service.provider.url).hostname == "api.openai.com"
    provider = (
        OpenAIProvider(openai_client=sdk) if is_openai else OpenAICompatibleProvider(service.name, openai_client=sdk)
    )
    # Effort is said in OpenAI's own word: the SDK's general one reaches only the models that it knows by name.
    if dialect is Api.CHAT:
        chat = openai.OpenAIChatModelSettings()
        if effort is not None:
            chat["openai_reasoning_effort"] = effort.value
        return openai.OpenAIChatModel(name, provider=provider, settings=chat)
    settings = openai.OpenAIResponsesModelSettings(openai_store=False)
    if effort is not None:
        settings["openai_reasoning_effort"] = effort.value
    return openai.OpenAIResponsesModel(name, provider=provider, settings=settings)
