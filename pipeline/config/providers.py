"""Table `[providers.NAME]`: model services that network `model` can open, and the built-in ones.

Where a user's credential goes is decided here and nowhere else, so every key widens (`trust`). Nothing here performs
I/O; `pipeline.agents.gateway` puts tables together and reads the credential.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from pipeline.config.tables import Seconds, Table

_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*)"
)
_PORTS: Final = 65535
_MODEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")
"""Valid model names; none starts like an option, for it becomes a word of a command line."""


class CredentialHeader(StrEnum):
    """The header in which a service expects its credential."""

    BEARER = "authorization: bearer"
    X_API_KEY = "x-api-key"
    X_GOOG_API_KEY = "x-goog-api-key"


class Tier(StrEnum):
    """The capability of a model, as small, medium or large; a provider's `models` maps each to a model."""

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"

    @property
    def above(self) -> Tier:
        """Return the next tier up; for the largest itself."""
        tiers = list(Tier)
        return tiers[min(tiers.index(self) + 1, len(tiers) - 1)]


class Api(StrEnum):
    """The API dialects of model services."""

    ANTHROPIC = "anthropic"
    RESPONSES = "responses"
    CHAT = "chat"
    GOOGLE = "google"


Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class PriceTable(Table):
    """`[prices."MODEL"]`: USD for a million tokens; cached input without a price costs as much as input."""

    input: Annotated[Usd, Field(description="A million input tokens, in USD")]
    output: Annotated[Usd, Field(description="A million output tokens, in USD")]
    cache_read: Annotated[Usd | None, Field(description="A million tokens from the cache; else as input")] = None
    cache_write: Annotated[Usd | None, Field(description="A million tokens into the cache; else as input")] = None


def _service_url(text: str) -> str:
    found = _URL.fullmatch(text)
    if found is None or int(found["port"] or 0) > _PORTS:
        raise PydanticCustomError("url", "must be like https://api.example.com, without user, query or fragment")
    if found["scheme"] == "http" and not is_loopback(found["host"]):
        raise PydanticCustomError("url", "must begin with https://; plain http is for this machine only (127.0.0.1)")
    return text


def is_loopback(host: str) -> bool:
    """Return whether *host*, as written in a URL, is this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _model_names(models: Mapping[Tier, str]) -> Mapping[Tier, str]:
    if not all(map(_MODEL.fullmatch, models.values())):
        raise PydanticCustomError("model", "each must be a model's name such as large-4.5, without blanks")
    return models


ProviderName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+([_-][a-z0-9]+)*$")]
Url = Annotated[str, AfterValidator(_service_url)]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Z_][A-Z0-9_]*$")]
"""The name of an environment variable, upper case only, so that a credential written here by mistake is refused."""
Endpoint = Annotated[
    str, StringConstraints(pattern=r"^(GET|POST) ((/[A-Za-z0-9_~:@+,=-][A-Za-z0-9._~:@+,=-]*)+(/\*)?|/\*)$")
]
"""A method and a path; `/*` at the end stands for everything below it. Not a bare prefix: `/v1/messages` alone would
open `/v1/messages/batches`, where the account's other work lies."""
Endpoints = Annotated[tuple[Endpoint, ...], Field(min_length=1)]
Apis = Annotated[tuple[Api, ...], Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]


class Provider(Table):
    """The complete settings of a model service. The caps hold for one dispatch, `timeout_s` for one request.

    `credential_env` is None where the service wants no credential, as most do that run on this machine.
    """

    url: Url
    credential_env: Variable | None = None
    api: Apis = (Api.CHAT,)
    header: CredentialHeader = Field(default_factory=lambda known: HEADER_OF[known["api"][0]])
    paths: Endpoints = Field(default_factory=lambda known: _paths_of(known["api"]))
    models: Annotated[Mapping[Tier, str], AfterValidator(_model_names)] = {}
    max_requests: Count = 1000
    max_request_bytes: Count = 500_000_000
    max_response_bytes: Count = 200_000_000
    timeout_s: Seconds = 600


class ProviderTable(Table):
    """The configured settings of a service; unset ones are those of the built-in service, or defaults."""

    url: Annotated[Url | None, Field(description="https; plain http only for this machine")] = None
    credential_env: Annotated[
        Variable | None, Field(description="The variable that holds your credential; none where none is wanted")
    ] = None
    api: Annotated[
        Apis | None, Field(description="Dialects, the best first: anthropic, responses, chat, google; else chat")
    ] = None
    header: Annotated[CredentialHeader | None, Field(description="The header that carries it; else as of `api`")] = None
    paths: Annotated[
        Endpoints | None, Field(description='What may be asked: "POST /v1/messages", "GET /v1/*"; else as of `api`')
    ] = None
    models: Annotated[
        Mapping[Tier, str],
        AfterValidator(_model_names),
        Field(description="The names of the small, the medium and the large model"),
    ] = {}
    max_requests: Annotated[Count | None, Field(description="Requests of one dispatch")] = None
    max_request_bytes: Annotated[Count | None, Field(description="Bytes that one dispatch may send")] = None
    max_response_bytes: Annotated[Count | None, Field(description="Bytes that one dispatch may receive")] = None
    timeout_s: Annotated[Seconds | None, Field(description="Seconds of one request")] = None

    def over(self, below: ProviderTable) -> ProviderTable:
        """Return *below* overridden by this table; `models` is merged by model."""
        said = below.model_dump(exclude_none=True) | self.model_dump(exclude_none=True)
        return ProviderTable.model_validate(said | {"models": {**below.models, **self.models}})


HEADER_OF: Final[Mapping[Api, CredentialHeader]] = {
    Api.ANTHROPIC: CredentialHeader.X_API_KEY,
    Api.RESPONSES: CredentialHeader.BEARER,
    Api.CHAT: CredentialHeader.BEARER,
    Api.GOOGLE: CredentialHeader.X_GOOG_API_KEY,
}
"""The credential's header in each dialect."""

PATHS_OF: Final[Mapping[Api, Endpoints]] = {
    Api.ANTHROPIC: ("POST /v1/messages", "POST /v1/messages/count_tokens", "GET /v1/models", "GET /v1/models/*"),
    Api.RESPONSES: ("POST /v1/responses", "POST /v1/responses/compact", "GET /v1/models", "GET /v1/models/*"),
    Api.CHAT: ("POST /v1/chat/completions", "GET /v1/models", "GET /v1/models/*"),
    Api.GOOGLE: ("POST /v1beta/models/*", "GET /v1beta/models", "GET /v1beta/models/*"),
}
"""The endpoints that may be requested in each dialect."""


def _paths_of(apis: Apis) -> Endpoints:
    return tuple(dict.fromkeys(path for api in apis for path in PATHS_OF[api]))


BUILTIN: Final[Mapping[str, ProviderTable]] = {
    "anthropic": ProviderTable(
        url="https://api.anthropic.com", credential_env="ANTHROPIC_API_KEY", api=(Api.ANTHROPIC,)
    ),
    "openai": ProviderTable(
        url="https://api.openai.com", credential_env="OPENAI_API_KEY", api=(Api.RESPONSES, Api.CHAT)
    ),
    "google": ProviderTable(
        url="https://generativelanguage.googleapis.com", credential_env="GEMINI_API_KEY", api=(Api.GOOGLE,)
    ),
    "openrouter": ProviderTable(url="https://openrouter.ai/api", credential_env="OPENROUTER_API_KEY", api=(Api.CHAT,)),
    "ollama": ProviderTable(url="http://127.0.0.1:11434", api=(Api.CHAT,)),
}
"""The built-in services; a table of the same name overrides single keys of them."""
