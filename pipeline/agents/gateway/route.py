"""Connects to the model service, directly or through the proxy of the user's environment (HTTPS_PROXY, NO_PROXY)."""

from __future__ import annotations

import base64
import re
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import anyio
import h11
from anyio.streams.tls import TLSStream
from pydantic import SecretStr

from pipeline.agents.gateway.rules import Refusal
from pipeline.agents.gateway.wire import Service
from pipeline.errors import UserError
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anyio.abc import ByteStream

_CONNECT_S: Final = 30.0
_PORTS: Final = {"http": 80, "https": 443}
_UNREACHABLE: Final = Refusal(502, "upstream", "The model service cannot be reached.", again=True)


@dataclass(frozen=True)
class Proxy:
    """The HTTP proxy that connections go through; `login` is `user:password`."""

    host: str
    port: int
    tls: bool = False
    login: SecretStr | None = None


def proxy_for(url: str, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy that the user's environment names for *url*; None if it is to be reached directly.

    Plain http stays on this machine, so only https ever goes through one.

    Raises:
        UserError: what the variable holds is no address of an HTTP proxy.
    """
    parts = urlsplit(url)
    name = next((name for name in ("https_proxy", "HTTPS_PROXY") if environ.get(name)), None)
    if name is None or parts.scheme != "https":
        return None
    spared = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    return None if _is_spared(parts.hostname or "", parts.port or 443, spared) else _proxy(name, environ[name])


def _is_spared(host: str, port: int, spared: str) -> bool:
    """Return whether *host* is in the NO_PROXY list: a name includes its subdomains, `*` is all."""
    for entry in spared.replace(",", " ").lower().split():
        name, _, only = entry.rpartition(":") if re.search(r"[^:]:\d+$", entry) else (entry, "", "")
        name = name.removeprefix("*.").removeprefix(".").strip("[]")
        if entry == "*" or ((host == name or host.endswith(f".{name}")) and only in {"", str(port)}):
            return True
    return False


def _proxy(name: str, address: str) -> Proxy:
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        usual = _PORTS[parts.scheme]
        port = parts.port or usual
    except (ValueError, KeyError):
        parts, port = None, 0
    if parts is None or not parts.hostname:
        raise UserError(
            f"The variable {name} holds no address of an HTTP proxy such as http://proxy.example.org:3128. Mend it, "
            "or name the model service's host in NO_PROXY.",
            Reason.CONFIG,
            path=name,
        )
    login = None if parts.username is None else SecretStr(f"{unquote(parts.username)}:{unquote(parts.password or '')}")
    return Proxy(parts.hostname, port, parts.scheme == "https", login)


@dataclass(frozen=True)
class Route:
    """The route to one service.

    Args:
        host: Where it is.
        port: Where it listens.
        tls: How its certificate is checked; None where it speaks plain http.
        proxy: What is asked for the connection; only with `tls`.
    """

    host: str
    port: int
    tls: ssl.SSLContext | None
    proxy: Proxy | None = None

    async def connect(self) -> ByteStream | Refusal:
        """Return a new connection to the service, or the refusal if it fails."""
        try:
            with anyio.fail_after(_CONNECT_S):
                if self.tls is None:
                    return await anyio.connect_tcp(self.host, self.port)
                raw = await self._tunnel(self.proxy) if self.proxy else await anyio.connect_tcp(self.host, self.port)
                return raw if isinstance(raw, Refusal) else await _secured(raw, self.host, self.tls)
        except ssl.SSLCertVerificationError:
            return Refusal(502, "certificate", "The certificate of the model service is not to be trusted.")
        except (OSError, anyio.BrokenResourceError, anyio.EndOfStream):
            return _UNREACHABLE

    async def _tunnel(self, proxy: Proxy) -> ByteStream | Refusal:
        try:
            stream: ByteStream = await anyio.connect_tcp(proxy.host, proxy.port)
            if proxy.tls:
                stream = await _secured(stream, proxy.host, ssl.create_default_context())
        except ssl.SSLError:
            return Refusal(502, "proxy", "The certificate of the proxy is not to be trusted.")
        except OSError:
            return Refusal(502, "proxy", "The proxy cannot be reached.", again=True)
        try:
            status = await self._ask(Service(stream), proxy)
        except BaseException:
            await anyio.aclose_forcefully(stream)
            raise
        if status is not None and 200 <= status < 300:  # noqa: PLR2004
            return stream
        await anyio.aclose_forcefully(stream)
        said = "gives no proper answer" if status is None else f"answers {status}"
        return Refusal(502, "proxy", f"The proxy {said} to the request for a connection to the model service.")

    async def _ask(self, proxy_end: Service, proxy: Proxy) -> int | None:
        host = f"[{self.host}]" if ":" in self.host else self.host
        authority = f"{host}:{self.port}".encode()
        headers = [(b"host", authority)]
        if proxy.login is not None:
            login = base64.b64encode(proxy.login.get_secret_value().encode())
            headers.append((b"proxy-authorization", b"Basic " + login))
        await proxy_end.send(h11.Request(method="CONNECT", target=authority, headers=headers))
        await proxy_end.send(h11.EndOfMessage())
        response = await proxy_end.response()
        return None if response is None else response.status_code


async def _secured(raw: ByteStream, host: str, tls: ssl.SSLContext) -> ByteStream:
    try:
        # Without the closing word of TLS an answer is still known to be whole, by its HTTP framing.
        return await TLSStream.wrap(raw, hostname=host, ssl_context=tls, standard_compatible=False)
    except BaseException:
        await anyio.aclose_forcefully(raw)
        raise
