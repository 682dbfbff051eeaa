"""The HTTP server at the one address that a box can reach (`process.Gateway`)."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import anyio
import h11

from pipeline.agents.gateway.exchange import Exchange, Line, RequestLog, Upstream
from pipeline.agents.gateway.failing_service import PATIENCE, Ending, Halt, Patience, Trouble, Watch
from pipeline.agents.gateway.rules import Refusal, is_greeting, judge_request
from pipeline.agents.gateway.spending import Account, Allowance, GatewayUse, Meter
from pipeline.agents.gateway.usage import Reading, consumes, cost_of
from pipeline.agents.gateway.wire import Caller, accept, stream_of

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from pydantic import SecretStr

    from pipeline.agents.gateway.route import Proxy
    from pipeline.config.providers import PriceTable, Provider

_CONNECTIONS: Final = 64
"""The most open connections, so that an agent cannot use up the driver's descriptors; more wait in the kernel."""
_HEAD_S: Final = 30.0


class ModelGateway:
    """The gateway of one dispatch to one model service; it adds the credential, which the agent never sees.

    Args:
        provider: The service, what may be asked of it, and how much.
        credential: What the service wants of the user, checked by `providers.credential_of`; None if nothing.
        log: Where requests are written down (`log.RequestLog`).
        name: What the configuration calls the service.
        allowance: How much the dispatch may take.
        prices: The configuration's own prices, by model.
        patience: How long the service may do nothing but fail.
        proxy: What is asked for connections, if not the service itself.
        tls: How certificates are checked; the system's way if None.
    """

    def __init__(
        self,
        provider: Provider,
        credential: SecretStr | None,
        log: Path,
        *,
        name: str = "",
        allowance: Allowance = Allowance(),  # noqa: B008  (frozen)
        prices: Mapping[str, PriceTable] = MappingProxyType({}),
        patience: Patience = PATIENCE,
        proxy: Proxy | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._provider = provider
        self._upstream = Upstream(provider, credential, tls, proxy)
        self._account = Account(allowance, lambda model, took: cost_of(name, model, took, prices, url=provider.url))
        self._meter = Meter(provider, self._account)
        self._watch = Watch(f"{name} ({provider.url})" if name else provider.url, provider.credential_env, patience)
        self._used_up: Refusal | None = None
        self._log = RequestLog(log)

    @property
    def use(self) -> GatewayUse:
        """Return the requests, bytes and spending counted so far."""
        return self._meter.use

    @property
    def halt(self) -> Halt | None:
        """Return why the dispatch should be stopped; None if it may go on."""
        return self._watch.halt

    @property
    def failing(self) -> Halt | None:
        """Return why requests fail, if none has succeeded since: the likely reason when an agent gave up."""
        return self._watch.failing

    async def halted(self) -> Halt:
        """Wait until the dispatch should be stopped, and return why."""
        return await self._watch.halted()

    @asynccontextmanager
    async def serve(self, listener: socket.socket) -> AsyncGenerator[None]:
        """Answer connections to *listener*, and close all of them at the end.

        Args:
            listener: A listening socket, of TCP or of a socket file.

        Raises:
            OSError: the log cannot be written.
        """
        failure: Exception | None = None
        listener.setblocking(False)
        with listener:
            async with anyio.create_task_group() as group:
                group.start_soon(self._accept, listener)
                try:
                    yield
                except Exception as error:  # noqa: BLE001  (raised again below, as it is: the group would wrap it)
                    failure = error
                group.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _accept(self, listener: socket.socket) -> None:
        slots = anyio.Semaphore(_CONNECTIONS)

        async def attend(connection: socket.socket) -> None:
            if (stream := await stream_of(connection)) is not None:
                async with stream:
                    await self._attend(Caller(stream))
            slots.release()

        async with anyio.create_task_group() as group:
            while True:
                await slots.acquire()
                group.start_soon(attend, await accept(listener))

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
        """Forward a request; return the refusal if it was not forwarded completely."""
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
        if refusal := self._stopped() or self._meter.begin(admitted.length or 0):
            return refusal
        learn = self._learn if consumes(admitted.method, admitted.path) else None
        try:
            return await Exchange(caller, self._upstream, self._meter, line, learn).run(admitted)
        finally:
            self._meter.end()
            self._halt_when_used_up()

    def _stopped(self) -> Refusal | None:
        """Return the refusal of all further requests after a stop, None if there is none."""
        self._used_up = self._used_up or self._account.used_up()
        self._halt_when_used_up()
        if self._used_up is None and self.halt is not None:
            return Refusal(403, "halted", f"This dispatch is being stopped: {self.halt.why}")
        return self._used_up

    def _halt_when_used_up(self) -> None:
        # What runs side by side may still come to its end.
        if self._used_up is not None and not self._meter.running:
            self._watch.stop(Halt(Trouble(self._used_up.rule), self._used_up.why))

    def _learn(self, line: Line, ending: Ending, reading: Reading) -> None:
        """Record the tokens of an answer, and the state of the service that it shows."""
        if ending.status is not None and HTTPStatus.OK <= ending.status < HTTPStatus.MULTIPLE_CHOICES:
            line.answered, line.model, line.tokens = True, reading.model, reading.tokens
            line.cost_usd = self._account.settle(reading)
        self._watch.see(ending, time.monotonic())
