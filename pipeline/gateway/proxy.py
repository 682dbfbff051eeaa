"""The server that a box's one address leads to (`process.Gateway`)."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
import h11
from anyio.abc import SocketListener

from pipeline.gateway.exchange import Exchange, Upstream
from pipeline.gateway.limits import GatewayUse, Meter
from pipeline.gateway.log import Line, RequestLog
from pipeline.gateway.rules import Refusal, is_greeting, judge_request
from pipeline.gateway.wire import Caller, Service

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from anyio.abc import SocketStream
    from pydantic import SecretStr

    from pipeline.config.providers import Provider

_CONNECTIONS: Final = 64
"""More wait in the kernel: an agent must not use up the descriptors of the driver."""
_HEAD_S: Final = 30.0


class ModelGateway:
    """Carries the requests of one dispatch to one model service, with the credential that the agent never sees.

    Args:
        provider: The service, what may be asked of it, and how much.
        credential: What the service wants of the user; checked by `providers.credential_of`.
        log: Where requests are written down (`log.RequestLog`).
        tls: How certificates are checked; the system's way if None.
    """

    def __init__(
        self, provider: Provider, credential: SecretStr, log: Path, *, tls: ssl.SSLContext | None = None
    ) -> None:
        self._provider = provider
        self._upstream = Upstream(provider, credential, tls)
        self._meter = Meter(provider)
        self._log = RequestLog(log)

    @property
    def use(self) -> GatewayUse:
        """Return what was used until now."""
        return self._meter.use

    @asynccontextmanager
    async def serve(self, listener: socket.socket) -> AsyncGenerator[None]:
        """Answer what connects to *listener*, and close it at the end with every connection that is open then.

        Raises:
            OSError: the log cannot be written.
        """
        failure: Exception | None = None
        async with await SocketListener.from_socket(listener) as sockets, anyio.create_task_group() as group:
            group.start_soon(self._accept, sockets)
            try:
                yield
            except Exception as error:  # noqa: BLE001  (raised again below, as it is: the group would wrap it)
                failure = error
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _accept(self, sockets: SocketListener) -> None:
        slots = anyio.Semaphore(_CONNECTIONS)

        async def attend(stream: SocketStream) -> None:
            async with stream:
                await self._attend(Caller(stream))
            slots.release()

        async with anyio.create_task_group() as group:
            while True:
                await slots.acquire()
                group.start_soon(attend, await sockets.accept())

    async def _attend(self, caller: Caller) -> None:
        request = None
        with anyio.move_on_after(_HEAD_S):
            request = await caller.request()
        if request is None:
            return
        line, began = Line(), time.monotonic()
        try:
            refusal = await self._serve(caller, request, line)
            if refusal is not None:
                self._meter.refused += 1
                line.refused = refusal.rule
                if caller.answered:
                    return  # what is cut off must not look complete
                line.status = refusal.status
                await caller.refuse(refusal)
        finally:
            line.seconds = round(time.monotonic() - began, 3)
            self._log.write(line)
        await caller.linger()

    async def _serve(self, caller: Caller, request: h11.Request | Refusal, line: Line) -> Refusal | None:
        """Return why the request was not carried, or not to its end."""
        if isinstance(request, Refusal):
            return request
        line.method = request.method.decode()
        line.path = self._upstream.mask.cover(request.target.partition(b"?")[0]).decode()
        if is_greeting(request):
            line.status = 200
            if await caller.answer(200, ((b"content-length", b"0"), (b"connection", b"close"))):
                await caller.send(h11.EndOfMessage())
            return None
        admitted = judge_request(request, self._provider.paths)
        if isinstance(admitted, Refusal):
            return admitted
        if refusal := self._meter.begin(admitted.length or 0):
            return refusal
        try:
            with anyio.move_on_after(self._provider.timeout_s):
                connection = await self._upstream.connect()
                if isinstance(connection, Refusal):
                    return connection
                async with connection:
                    exchange = Exchange(caller, Service(connection), self._upstream, self._meter, line)
                    return await exchange.run(admitted)
            return self._meter.late()
        finally:
            self._meter.end()
