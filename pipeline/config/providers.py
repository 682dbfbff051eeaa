"""`[providers.NAME]`: the model services that network `model` can open, and those that need no table.

Where a user's credential goes is decided here and nowhere else, so every key widens (`trust`). Nothing here performs
I/O; `pipeline.gateway` puts tables together and reads the credential.
"""

from __future__ import annotations

import ipaddress
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from pipeline.config.closed import Closed, Seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*)"
)
_PORTS: Final = 65535


class CredentialHeader(StrEnum):
    """How the service wants its credential."""

    BEARER = "authorization: bearer"
    X_API_KEY = "x-api-key"
    X_GOOG_API_KEY = "x-goog-api-key"


def _service_url(text: str) -> str:
    found = _URL.fullmatch(text)
    if found is None or int(found["port"] or 0) > _PORTS:
        raise PydanticCustomError("url", "must be like https://api.example.com, without user, query or fragment")
    if found["scheme"] == "http" and not _is_loopback(found["host"]):
        raise PydanticCustomError("url", "must begin with https://; plain http is for this machine only (127.0.0.1)")
    return text


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


ProviderName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+([_-][a-z0-9]+)*$")]
Url = Annotated[str, AfterValidator(_service_url)]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Z_][A-Z0-9_]*$")]
"""Upper case only: a credential that was written here by mistake is then refused instead of being kept as a name."""
Endpoint = Annotated[
    str, StringConstraints(pattern=r"^(GET|POST) ((/[A-Za-z0-9_~:@+,=-][A-Za-z0-9._~:@+,=-]*)+(/\*)?|/\*)$")
]
"""A method and a path; `/*` at the end stands for everything below it. Not a bare prefix: `/v1/messages` alone would
open `/v1/messages/batches`, where the account's other work lies."""
Endpoints = Annotated[tuple[Endpoint, ...], Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]


class Provider(Closed):
    """A model service, complete. The caps hold for one dispatch, `timeout_s` for one request."""

    url: Url
    credential_env: Variable
    header: CredentialHeader
    paths: Endpoints
    max_requests: Count = 1000
    max_request_bytes: Count = 500_000_000
    max_response_bytes: Count = 200_000_000
    timeout_s: Seconds = 600


class ProviderTable(Closed):
    """What the configuration says of a service; the rest is that of the built-in one, or the default."""

    url: Annotated[Url | None, Field(description="https; plain http only for this machine")] = None
    credential_env: Annotated[Variable | None, Field(description="The variable that holds your credential")] = None
    header: Annotated[CredentialHeader | None, Field(description="The header that carries it")] = None
    paths: Annotated[Endpoints | None, Field(description='What may be asked: "POST /v1/messages", "GET /v1/*"')] = None
    max_requests: Annotated[Count | None, Field(description="Of one dispatch")] = None
    max_request_bytes: Annotated[Count | None, Field(description="Of one dispatch, all bodies sent")] = None
    max_response_bytes: Annotated[Count | None, Field(description="Of one dispatch, all bodies received")] = None
    timeout_s: Annotated[Seconds | None, Field(description="One request, in seconds")] = None


BUILTIN: Final[Mapping[str, ProviderTable]] = {
    "anthropic": ProviderTable(
        url="https://api.anthropic.com",
        credential_env="ANTHROPIC_API_KEY",
        header=CredentialHeader.X_API_KEY,
        paths=("POST /v1/messages", "POST /v1/messages/count_tokens", "GET /v1/models", "GET /v1/models/*"),
    ),
    "openai": ProviderTable(
        url="https://api.openai.com",
        credential_env="OPENAI_API_KEY",
        header=CredentialHeader.BEARER,
        paths=(
            "POST /v1/responses",
            "POST /v1/responses/compact",
            "POST /v1/chat/completions",
            "GET /v1/models",
            "GET /v1/models/*",
        ),
    ),
    "google": ProviderTable(
        url="https://generativelanguage.googleapis.com",
        credential_env="GEMINI_API_KEY",
        header=CredentialHeader.X_GOOG_API_KEY,
        paths=("POST /v1beta/models/*", "GET /v1beta/models", "GET /v1beta/models/*"),
    ),
}
"""The services that need no table of their own; a table of the same name changes single keys of them."""
