"""Models behind Google's Gemini API, for `api_models`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.genai.types import HttpRetryOptions
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider

from pipeline.backends.api_settings import thinking

if TYPE_CHECKING:
    import httpx2

    from pipeline.config.agents import Effort


def gemini(name: str, address: str, client: httpx2.AsyncClient, effort: Effort | None) -> GoogleModel:
    """Return the model *name*, asked through the Gemini API."""
    provider = GoogleProvider(
        api_key="placeholder",
        base_url=address,
        http_client=client,
        retry_options=HttpRetryOptions(attempts=1),
    )
    return GoogleModel(name, provider=provider, settings=thinking(effort))
