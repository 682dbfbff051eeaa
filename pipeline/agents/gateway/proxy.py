"""The HTTP server at the one address that a box can reach (`process.Gateway`), and what it forwards.

A request goes to the model service and its answer back piece by piece, both ways at once. Each request is logged as one
line of JSON: never a header, a body or a query.
"""

from __future__ import annotations

import json
import re
import ssl
import time
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import anyio
import h11

from pipeline.agents.gateway import rules
from pipeline.agents.gateway.failing_service import PATIENCE, Ending, Halt, Patience, Trouble, Watch
from pipeline.agents.gateway.route import Proxy, Route
from pipeline.agents.gateway.spending import USED_UP, Account, Allowance, GatewayUse, Meter
from pipeline.agents.gateway.usage import Reading, Tokens, UsageReader, consumes, cost_of
from pipeline.agents.gateway.wire import Caller, End, Service, accept, stream_of
from pipeline.config.providers import CredentialHeader, Provider
from pipeline.reset_times import MOST, after

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
    from pathlib import Path

    from pydantic import SecretStr

    from pipeline.config.providers import PriceTable


_BROKEN: Final = rules.Refusal(502, "upstream", "The model service broke off or sent no proper answer.", again=True)


class Upstream:
    """The configured model service: its address, and the headers of every request to it.

    Args:
        provider: Its configuration.
        credential: What it wants of the user; None if nothing.
        tls: How certificates are checked; the system's way if None.
        proxy: What is asked for a connection, if not the service itself.
    """

    def __init__(
        self,
        provider: Provider,
        credential: SecretStr | None,
        tls: ssl.SSLContext | None = None,
        proxy: Proxy | None = None,
    ) -> None:
        parts = urlsplit(provider.url)
        secured = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        port = parts.port or (443 if secured else 80)
        self.route = Route(parts.hostname or "", port, secured, proxy)
        self._base, self._authority = parts.path, parts.netloc
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._credential = _credential_headers(provider.header, credential)
        self.mask = rules.Mask(credential)

    def head(self, request: rules.Admitted) -> h11.Request:
        """Return the request head that the service gets."""
        return h11.Request(
            method=request.method,
            target=self._base + request.target,
            headers=[
                (b"host", self._authority.encode()),
                *self._credential,
                (b"accept-encoding", b"identity"),
                (b"connection", b"close"),
                *request.headers,
            ],
        )


def _credential_headers(header: CredentialHeader, credential: SecretStr | None) -> tuple[tuple[bytes, bytes], ...]:
    if credential is None:
        return ()
    secret = credential.get_secret_value().encode()
    match header:
        case CredentialHeader.BEARER:
            return ((b"authorization", b"Bearer " + secret),)
        case CredentialHeader.X_API_KEY | CredentialHeader.X_GOOG_API_KEY:
            return ((header.value.encode(), secret),)


@dataclass
class Exchange:
    """Forwards one admitted request.

    Args:
        caller: Who asks.
        upstream: Who is asked.
        meter: Counts what passes.
        line: What the log will say of it.
        learn: Is told once how it ended, and what the answer says of itself, before the caller can know that it ended:
            what an answer took counts before there is another request.
    """

    caller: Caller
    upstream: Upstream
    meter: Meter
    line: Line
    learn: Callable[[Line, Ending, Reading], None] | None = None
    refusal: rules.Refusal | None = field(default=None, init=False)
    _usage: UsageReader = field(default_factory=UsageReader, init=False)
    _whole: bool = field(default=False, init=False)
    _retry_after_s: float | None = field(default=None, init=False)
    _not_before: datetime | None = field(default=None, init=False)

    async def run(self, request: rules.Admitted) -> rules.Refusal | None:
        """Forward the request and the answer; return the refusal that stopped it, None if it went through.

        When the caller hangs up, the service is hung up on.
        """
        try:
            with anyio.move_on_after(self.meter.provider.timeout_s) as limit:
                connection = await self.upstream.route.connect()
                if isinstance(connection, rules.Refusal):
                    self.refusal = connection
                    return connection
                async with connection:
                    await self._both_ways(Service(connection), request)
            if limit.cancelled_caught:
                self.refusal = self.meter.late()
            return self.refusal
        finally:
            self._tell()

    def _tell(self) -> None:
        learn, self.learn = self.learn, None
        if learn is not None:
            reading = self._usage.reading(whole=self._whole)
            # An agent may hang up as soon as it has heard the last word.
            whole = self._whole or reading.complete
            ending = Ending(
                self.line.status, whole, reading.failed, self.refusal, self._retry_after_s, self._not_before
            )
            learn(self.line, ending, reading)

    async def _both_ways(self, service: Service, request: rules.Admitted) -> None:
        await self.caller.ask_for_body()
        async with anyio.create_task_group() as group:
            group.start_soon(self._upward, service, request, group.cancel_scope)
            self.refusal = await self._downward(service) or self.refusal
            group.cancel_scope.cancel()

    async def _upward(self, service: Service, request: rules.Admitted, scope: anyio.CancelScope) -> None:
        self.refusal = await self._send(service, request)
        if self.refusal is None:
            await self.caller.hung_up()
        scope.cancel()

    async def _send(self, service: Service, request: rules.Admitted) -> rules.Refusal | None:
        # A service may answer and hang up before it has read everything; its answer still counts, so whether what is
        # sent arrives does not matter here.
        await service.send(self.upstream.head(request))
        while isinstance(piece := await self.caller.piece(), bytes):
            if refusal := self.meter.sent(len(piece)):
                return refusal
            self.line.bytes_up += len(piece)
            await service.send(h11.Data(data=piece))
        if piece is End.MALFORMED:
            return rules.Refusal(400, "malformed", "The body of the request is malformed.")
        if piece is End.DONE:
            await service.send(h11.EndOfMessage())
        return None

    async def _downward(self, service: Service) -> rules.Refusal | None:
        response = await service.response()
        if response is None:
            return _BROKEN
        headers = rules.answer_headers(response.headers, self.upstream.origin)
        if isinstance(headers, rules.Refusal):
            return headers
        cover = self.upstream.mask.cover
        self.line.status = response.status_code
        self._learn_limit(response.headers)
        if not await self.caller.answer(
            response.status_code, tuple((cover(name), cover(value)) for name, value in headers)
        ):
            return None
        body = rules.MaskedStream(self.upstream.mask)
        while isinstance(piece := await service.piece(), bytes):
            if refusal := self.meter.received(len(piece)):
                return refusal
            self.line.bytes_down += len(piece)
            if not (text := body.feed(piece)):
                continue
            self._usage.feed(text)
            if not await self.caller.send(h11.Data(data=text)):
                return None
        if piece is not End.DONE:
            return _BROKEN
        self._whole, rest = True, body.rest()
        self._usage.feed(rest)
        self._tell()
        if not rest or await self.caller.send(h11.Data(data=rest)):
            await self.caller.send(h11.EndOfMessage())
        return None

    def _learn_limit(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Take from the head of an answer when the service may be asked again."""
        said = {name: value.decode("latin-1") for name, value in headers}
        now = datetime.now(UTC)
        seconds = seconds_of(said.get(b"retry-after", ""), said.get(b"date", ""), now=now)
        self._retry_after_s, self._not_before = seconds, None if seconds is None else after(seconds, now)


_LINES: Final = 20_000
"""The most lines of a log: an agent that is refused endlessly must not fill the disk."""
_PATH: Final = 300


@dataclass
class Line:
    """The log entry of one request. `status` is None if nothing was answered; `method` and `path` if unreadable.

    What a model has answered, and only that, has `model`, `tokens` and `cost_usd` as well: null where it is not known.
    """

    time: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    method: str | None = None
    path: str | None = None
    status: int | None = None
    bytes_up: int = 0
    bytes_down: int = 0
    seconds: float = 0.0
    refused: str | None = None
    answered: bool = False
    model: str | None = None
    tokens: Tokens | None = None
    cost_usd: float | None = None


class RequestLog:
    """The request log of a dispatch, a file that is appended to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left = _LINES

    def write(self, line: Line) -> None:
        """Append *line*; the agent's text in it is escaped and cut.

        Raises:
            OSError: the file cannot be written.
        """
        if self._left <= 0:
            return
        self._left -= 1
        record = asdict(line) | {"path": line.path[:_PATH] if line.path else line.path}
        if not record.pop("answered"):
            del record["model"], record["tokens"], record["cost_usd"]
        if self._left == 0:
            record["note"] = "this log is full"
        with self._path.open("a", encoding="ascii") as file:
            file.write(json.dumps(record) + "\n")


_SECONDS: Final = re.compile(r"[0-9]{1,18}(\.[0-9]{1,9})?")


def seconds_of(header: str, sent: str, *, now: datetime) -> float | None:
    """Return the seconds that a `Retry-After` header asks for, at most a month; None where it cannot be read.

    Args:
        header: Its value.
        sent: The `Date` header beside it: a date is counted by the clock of who wrote it.
        now: The time, where there is none.
    """
    if _SECONDS.fullmatch(header.strip()):
        return min(float(header), MOST.total_seconds())
    moment = _date(header)
    if moment is None:
        return None
    return min(max((moment - (_date(sent) or now)).total_seconds(), 0.0), MOST.total_seconds())


def _date(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


_CONNECTIONS: Final = 64
"""The most open connections, so that an agent cannot use up the driver's descriptors; more wait in the kernel."""
_HEAD_S: Final = 30.0


class ModelGateway:
    """The gateway of one dispatch to one model service; it adds the credential, which the agent never sees.

    Args:
        provider: The service, what may be asked of it, and how much.
        credential: What the service wants of the user, checked by `providers.credential_of`; None if nothing.
        log: Where requests are written down (`RequestLog`).
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
        self._used_up: rules.Refusal | None = None
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
                if refusal.status == USED_UP:  # nothing that is asked after it could be answered
                    self._used_up = self._used_up or refusal
                    self._halt_when_used_up()
                if caller.answered:
                    return  # what is cut off must not look complete
                line.status = refusal.status
                await caller.refuse(refusal)
        finally:
            line.seconds = round(time.monotonic() - began, 3)
            self._log.write(line)
        await caller.linger()

    async def _serve(self, caller: Caller, request: h11.Request | rules.Refusal, line: Line) -> rules.Refusal | None:
        """Forward a request; return the refusal if it was not forwarded completely."""
        if isinstance(request, rules.Refusal):
            return request
        line.method = request.method.decode()
        line.path = self._upstream.mask.cover(request.target.partition(b"?")[0]).decode()
        if rules.is_greeting(request):
            line.status = 200
            if await caller.answer(200, ((b"content-length", b"0"), (b"connection", b"close"))):
                await caller.send(h11.EndOfMessage())
            return None
        admitted = rules.judge_request(request, self._provider.paths)
        if isinstance(admitted, rules.Refusal):
            return admitted
        if refusal := self._stopped() or self._meter.begin(admitted.length or 0):
            return refusal
        learn = self._learn if consumes(admitted.method, admitted.path) else None
        try:
            return await Exchange(caller, self._upstream, self._meter, line, learn).run(admitted)
        finally:
            self._meter.end()
            self._halt_when_used_up()

    def _stopped(self) -> rules.Refusal | None:
        """Return the refusal of all further requests after a stop, None if there is none."""
        self._used_up = self._used_up or self._account.used_up()
        self._halt_when_used_up()
        if self._used_up is None and self.halt is not None:
            return rules.Refusal(403, "halted", f"This dispatch is being stopped: {self.halt.why}")
        return self._used_up

    def _halt_when_used_up(self) -> None:
        # What runs side by side may still come to its end.
        if self._used_up is not None and not self._meter.running:
            trouble = Trouble.BUDGET if self._used_up.rule == Trouble.BUDGET else Trouble.STEPS
            self._watch.stop(Halt(trouble, self._used_up.why))

    def _learn(self, line: Line, ending: Ending, reading: Reading) -> None:
        """Record the tokens of an answer, and the state of the service that it shows."""
        if ending.status is not None and HTTPStatus.OK <= ending.status < HTTPStatus.MULTIPLE_CHOICES:
            line.answered, line.model, line.tokens = True, reading.model, reading.tokens
            line.cost_usd = self._account.settle(reading)
        self._watch.see(ending, time.monotonic())
