"""Opens a model with the SDK of its dialect, connected by a socket to the gateway and nothing else.

Only this package's `api` modules import the SDKs, and only when an agent of `backend = "api"` is asked.
"""

from __future__ import annotations

import os
import socket
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

import httpx2

from pipeline.backends.api_settings import GATEWAY_FIRST_S
from pipeline.config.agents import Effort
from pipeline.config.providers import Api

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from pathlib import Path

    from pydantic_ai.models import Model

    from pipeline.backends.protocol import AgentJob, Service
    from pipeline.process import Gateway

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
                yield _model(service, name, client, Effort(job.effort) if job.effort else None)


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


def dialect_of(service: Service) -> Api:
    """Return the dialect of a service: the first that it lists."""
    return service.provider.api[0]


def _model(service: Service, name: str, client: httpx2.AsyncClient, effort: Effort | None) -> Model:
    # Each SDK costs about as much as all of redfirst: only the one that is spoken is imported.
    match dialect_of(service):
        case Api.ANTHROPIC:
            from pipeline.backends import api_anthropic  # noqa: PLC0415

            return api_anthropic.messages(name, ADDRESS, client, effort)
        case Api.GOOGLE:
            from pipeline.backends import api_google  # noqa: PLC0415

            return api_google.gemini(name, ADDRESS, client, effort)
        case Api.RESPONSES:
            from pipeline.backends import api_openai  # noqa: PLC0415

            return api_openai.responses(name, ADDRESS, client, service, effort)
        case Api.CHAT:
            from pipeline.backends import api_openai  # noqa: PLC0415

            return api_openai.chat(name, ADDRESS, client, service, effort)
