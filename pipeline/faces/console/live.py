"""Sends events to every open page: one poller reads all journals, and each reader has a bounded queue.

A reader that is too slow is cut, and comes back with the id of the last event that it got.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread
from starlette.responses import Response

from pipeline.app.events import Event, Origin, by_time, event_of, origin_of
from pipeline.errors import UserError
from pipeline.repo import GitError, Repository
from pipeline.run.folder import Tail
from pipeline.run.runs_of_repository import Roster

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


POLL_S: Final = 0.15
_LOOK_S: Final = 1.0
"""Seconds between two looks for runs that were begun."""
_KEPT: Final = 2000
"""Events that who comes back may still be given."""
_QUEUE: Final = 200
PER_SESSION: Final = 4
"""Streams of one session: a browser opens six connections to one name."""
_BEAT_S: Final = 15.0
HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),
]


@dataclass(eq=False)
class Reader:
    """One page that listens.

    Args:
        session: Whose it is.
        run: The run that it wants, None for all.
    """

    session: str
    run: str | None
    waiting: deque[Event] = field(default_factory=deque["Event"])
    filled: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    pushed_out: bool = False

    def cut(self) -> None:
        """End it for a younger one of the same session."""
        self.pushed_out = True
        self.scope.cancel()

    def give(self, event: Event) -> None:
        """Let it have an event; cut it where it has not taken those before."""
        if self.run is not None and event.id.rpartition("/")[0] != self.run:
            return
        if len(self.waiting) >= _QUEUE:
            self.scope.cancel()
            return
        self.waiting.append(event)
        self.filled.set()


class Hub:
    """Reads the journals of all runs of a repository while anybody listens, and hands on what comes."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._tails: dict[tuple[str, str], tuple[Tail, Origin]] = {}
        self._looked = float("-inf")
        self._kept: deque[Event] = deque(maxlen=_KEPT)
        self._readers: list[Reader] = []
        self._wanted = anyio.Event()
        self._looking = anyio.Lock()

    def _new(self) -> list[Event]:
        """Return the events since the last time, by time; a run that cannot be read has none."""
        if time.monotonic() - self._looked >= _LOOK_S:
            self._look_for_runs()
        found: list[Event] = []
        for tail, origin in self._tails.values():
            try:
                lines = tail.lines()
            except (UserError, OSError):
                continue
            found += [event for line in lines if (event := event_of(line, origin)) is not None]
        return by_time(found)

    def _look_for_runs(self) -> None:
        self._looked = time.monotonic()
        try:
            runs = Roster(self._repository).runs
        except (UserError, GitError, OSError):  # a worktree that is just being made or removed
            return
        for place in runs:
            name = (str(place.worktree.path), place.name)
            if name not in self._tails:
                self._tails[name] = (Tail(place.folder), origin_of(self._repository, place))

    @property
    def last(self) -> str:
        """Return the id of the last event, empty where there is none."""
        return self._kept[-1].id if self._kept else ""

    async def poll(self) -> None:
        """Read on for ever, as long as somebody listens."""
        while True:
            if not self._readers:
                self._wanted = anyio.Event()
                await self._wanted.wait()
            await self.look()
            await anyio.sleep(POLL_S)

    async def look(self) -> None:
        """Read what is new, and hand it on."""
        async with self._looking:
            for event in await to_thread.run_sync(self._new):
                self.hand_on(event)

    def hand_on(self, event: Event) -> None:
        """Let every reader have an event."""
        self._kept.append(event)
        for reader in self._readers:
            reader.give(event)

    def begin(self, reader: Reader, since: str | None) -> bool:
        """Let a reader have what came after an event, and what comes; return whether that event is known.

        "" stands before the first event; who names no event has seen all of them.
        Of a session's readers the oldest is cut where there are too many.
        """
        own = [one for one in self._readers if one.session == reader.session and not one.pushed_out]
        for old in own[: max(0, len(own) + 1 - PER_SESSION)]:
            old.cut()
        self._readers.append(reader)
        self._wanted.set()
        known = [event.id for event in self._kept]
        if since is None or since == self.last:
            return True
        if since and since not in known:
            return False
        for event in list(self._kept)[known.index(since) + 1 if since else 0 :]:
            reader.give(event)
        return True

    def end(self, reader: Reader) -> None:
        """Forget a reader."""
        self._readers.remove(reader)


class Stream(Response):
    """An answer that goes on for as long as its reader listens: server-sent events."""

    def __init__(self, hub: Hub, reader: Reader, since: str | None) -> None:
        super().__init__()
        self._hub, self._reader, self._since = hub, reader, since

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the reader goes, or is cut."""
        del scope
        await self._hub.look()  # what has happened until now is no news
        known = self._hub.begin(self._reader, self._since)
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await _say(send, "retry: 1000\n\n" if known else "retry: 1000\nevent: reset\ndata:\n\n")
            async with anyio.create_task_group() as group:
                group.start_soon(self._until_gone, receive, group.cancel_scope)
                with self._reader.scope:
                    await self._hand_on(send)
                group.cancel_scope.cancel()
            if self._reader.pushed_out:
                await _say(send, "event: bye\ndata:\n\n", last=True)
        finally:
            self._hub.end(self._reader)

    async def _hand_on(self, send: Send) -> None:
        reader = self._reader
        while True:
            while reader.waiting:
                event = reader.waiting.popleft()
                await _say(send, f"event: event\nid: {event.id}\ndata: {event}\n\n")
            reader.filled = anyio.Event()
            with anyio.move_on_after(_BEAT_S) as waited:
                await reader.filled.wait()
            if waited.cancelled_caught:
                await _say(send, ":\n\n")

    async def _until_gone(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()


async def _say(send: Send, text: str, *, last: bool = False) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": not last})
