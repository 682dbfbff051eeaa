"""One request to the model service and its answer, piece by piece and both ways at once."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import anyio
import h11

from pipeline.config.providers import CredentialHeader
from pipeline.gateway.masking import Mask, MaskedStream
from pipeline.gateway.rules import Admitted, Refusal, passed_back
from pipeline.gateway.wire import Caller, End, Service

if TYPE_CHECKING:
    from anyio.abc import ByteStream
    from pydantic import SecretStr

    from pipeline.config.providers import Provider
    from pipeline.gateway.limits import Meter
    from pipeline.gateway.log import Line

_CONNECT_S: Final = 30.0
_BROKEN: Final = Refusal(502, "upstream", "The model service broke off or sent no proper answer.", again=True)


class Upstream:
    """The configured service: where it is, and what every request to it carries.

    Args:
        provider: Its configuration.
        credential: What it wants of the user.
        tls: How certificates are checked; the system's way if None.
    """

    def __init__(self, provider: Provider, credential: SecretStr, tls: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(provider.url)
        self._host, self._base = parts.hostname or "", parts.path
        self._tls = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        self._port = parts.port or (443 if self._tls else 80)
        self._authority = parts.netloc
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._credential = _credential_header(provider.header, credential)
        self.mask = Mask(credential)

    async def connect(self) -> ByteStream | Refusal:
        """Return a fresh connection to the service."""
        try:
            with anyio.fail_after(_CONNECT_S):
                if self._tls is None:
                    return await anyio.connect_tcp(self._host, self._port)
                # Without the closing word of TLS an answer is still known to be whole, by its HTTP framing.
                return await anyio.connect_tcp(
                    self._host, self._port, ssl_context=self._tls, tls_standard_compatible=False
                )
        except ssl.SSLCertVerificationError:
            return Refusal(502, "certificate", "The certificate of the model service is not to be trusted.")
        except (OSError, anyio.BrokenResourceError, anyio.EndOfStream):
            return Refusal(502, "upstream", "The model service cannot be reached.", again=True)

    def head(self, request: Admitted) -> h11.Request:
        """Return the head that the service gets."""
        return h11.Request(
            method=request.method,
            target=self._base + request.target,
            headers=[
                (b"host", self._authority.encode()),
                self._credential,
                (b"accept-encoding", b"identity"),
                (b"connection", b"close"),
                *request.headers,
            ],
        )


def _credential_header(header: CredentialHeader, credential: SecretStr) -> tuple[bytes, bytes]:
    secret = credential.get_secret_value().encode()
    match header:
        case CredentialHeader.BEARER:
            return b"authorization", b"Bearer " + secret
        case CredentialHeader.X_API_KEY | CredentialHeader.X_GOOG_API_KEY:
            return header.value.encode(), secret


@dataclass
class Exchange:
    """Carries one admitted request; `refusal` is what stopped it, if anything did."""

    caller: Caller
    service: Service
    upstream: Upstream
    meter: Meter
    line: Line
    refusal: Refusal | None = None

    async def run(self, request: Admitted) -> Refusal | None:
        """Carry the request there and the answer back; return what refused it or cut it off.

        When the caller hangs up, the service is hung up on.
        """
        await self.caller.ask_for_body()
        async with anyio.create_task_group() as group:
            group.start_soon(self._upward, request, group.cancel_scope)
            self.refusal = await self._downward() or self.refusal
            group.cancel_scope.cancel()
        return self.refusal

    async def _upward(self, request: Admitted, scope: anyio.CancelScope) -> None:
        self.refusal = await self._send(request)
        if self.refusal is None:
            await self.caller.hung_up()
        scope.cancel()

    async def _send(self, request: Admitted) -> Refusal | None:
        # A service may answer and hang up before it has read everything; its answer still counts, so whether what is
        # sent arrives does not matter here.
        await self.service.send(self.upstream.head(request))
        while isinstance(piece := await self.caller.piece(), bytes):
            if refusal := self.meter.sent(len(piece)):
                return refusal
            self.line.bytes_up += len(piece)
            await self.service.send(h11.Data(data=piece))
        if piece is End.MALFORMED:
            return Refusal(400, "malformed", "The body of the request is malformed.")
        if piece is End.DONE:
            await self.service.send(h11.EndOfMessage())
        return None

    async def _downward(self) -> Refusal | None:
        response = await self.service.response()
        if response is None:
            return _BROKEN
        headers = passed_back(response.headers, self.upstream.origin)
        if isinstance(headers, Refusal):
            return headers
        cover = self.upstream.mask.cover
        self.line.status = response.status_code
        if not await self.caller.answer(
            response.status_code, tuple((cover(name), cover(value)) for name, value in headers)
        ):
            return None
        body = MaskedStream(self.upstream.mask)
        while isinstance(piece := await self.service.piece(), bytes):
            if refusal := self.meter.received(len(piece)):
                return refusal
            self.line.bytes_down += len(piece)
            if (text := body.feed(piece)) and not await self.caller.send(h11.Data(data=text)):
                return None
        if piece is not End.DONE:
            return _BROKEN
        if not (rest := body.rest()) or await self.caller.send(h11.Data(data=rest)):
            await self.caller.send(h11.EndOfMessage())
        return None
