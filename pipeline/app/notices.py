"""Sends events to the sinks of `[notify]`: each at least once and in order, and never at the expense of a run.

One process at a time sends for a repository. An event that a sink does not take holds up the later ones of that sink
alone. After five tries within an hour it is given up, and can be sent again by hand. How far a sink was told is kept on
disk, and written after an event was sent: a crash sends that event once more, and loses none.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field, ValidationError

from pipeline.app.events import AllEvents, Event, Wanted, full, orders_origin, wanted
from pipeline.app.run_config import trusted_config
from pipeline.app.webhooks import signature
from pipeline.characters import visible
from pipeline.config.model import Form, Sink
from pipeline.config.user_folders import state_folder
from pipeline.data_types import Frozen, Timestamp
from pipeline.errors import UserError
from pipeline.matrix.engine.journal import Clock, stamp, utc_now
from pipeline.outcomes import Reason
from pipeline.progress import counted
from pipeline.queue.slots import LocalSlots
from pipeline.repo import GitError, Repository
from pipeline.run.files import disk, write_atomic
from pipeline.run.store import repository_name
from pipeline.sandbox.redaction import redacted_text, secrets_of
from pipeline.search_path import without_the_repository

if TYPE_CHECKING:
    from pathlib import Path


GAPS_S: Final = (60, 240, 900, 2400)
"""Seconds between the tries of an event: an hour in all."""
_LOOKS_S: Final = 1.0
_LAST_S: Final = 5.0
"""Seconds for which a command waits at its end for what is still being sent."""
AGAIN: Final = "redfirst notify --again"
MOST_GIVEN_UP: Final = 1000
"""So many events that were given up are remembered for a sink, the newest."""


class SinkLine(Frozen):
    """How a sink stands: `waits` events are to be sent to it, and `why` the next one was not taken."""

    name: str
    sent: int = 0
    waits: int = 0
    given_up: int = 0
    why: str = ""


class NotifyDocument(Frozen):
    """What `notify --json` prints."""

    schema_: Literal["redfirst.notify/1"] = Field(default="redfirst.notify/1", alias="schema")
    sinks: tuple[SinkLine, ...]


def folder_of(repository: Repository, environ: Mapping[str, str]) -> Path:
    """Return where the cursors of a repository's sinks are."""
    return state_folder(environ) / "repos" / repository_name(repository) / "notices"


@dataclass
class _Told:
    """One sink, how far it was told, and the events that wait for it."""

    name: str
    sink: Sink
    path: Path
    cursor: Cursor
    waiting: deque[Event] = field(default_factory=deque[Event])
    sent: int = 0

    def keep(self, cursor: Cursor) -> None:
        """Write down how far it was told."""
        write_cursor(self.path, cursor)
        self.cursor = cursor

    def is_due(self, now: datetime) -> bool:
        """Return whether the next event may be tried now; a clock that was put back holds up nothing."""
        if self.cursor.tried_at is None:
            return True
        since = now - datetime.fromisoformat(self.cursor.tried_at).astimezone(UTC)
        gap = timedelta(seconds=GAPS_S[min(self.cursor.tries, len(GAPS_S)) - 1])
        return since >= gap or since < timedelta(0)

    @property
    def line(self) -> SinkLine:
        """Return how it stands, as a document tells it."""
        waits, lost = len(self.waiting), len(self.cursor.given_up)
        return SinkLine(name=self.name, sent=self.sent, waits=waits, given_up=lost, why=self.cursor.why)


class Notices:
    """Sends the events of a repository. Only who holds the lock (`sending`) may use it.

    Args:
        repository: Seen from where somebody stands; no other thread asks it.
        sinks: By name.
        environ: The user's environment.
        say: Is told what a person should know.
        since: A sink that was never told of anything is told from then on.
        again: What was given up is sent once more, and tried at once.
        clock: Tells the time.

    Raises:
        UserError: the types of a sink fit no event.
    """

    def __init__(
        self,
        repository: Repository,
        sinks: Mapping[str, Sink],
        environ: Mapping[str, str],
        say: Callable[[str], None],
        *,
        since: str,
        again: bool = False,
        clock: Clock = utc_now,
    ) -> None:
        self._repository = repository
        self._environ = environ
        self._say = say
        self._clock = clock
        self._again = again
        self._events = AllEvents(repository, Wanted(), say)
        self._told = [self._open(name, sink, since) for name, sink in sinks.items()]

    @property
    def document(self) -> NotifyDocument:
        """Return how each sink stands."""
        return NotifyDocument(sinks=tuple(told.line for told in self._told))

    def send(self) -> None:
        """Send what is there and due."""
        found = self._events.read_on()
        for told in self._told:
            what = wanted(told.sink.types, None)
            there = {one.id: one for one in found if what.has(one)}
            lost = told.cursor.given_up if self._again else ()
            if gone := set(lost) - there.keys():
                told.keep(told.cursor.model_copy(update={"given_up": tuple(one for one in lost if one in there)}))
                self._say(f"{told.name} is sent no more, since no journal has them: {', '.join(sorted(gone))}")
            told.waiting += [one for one in there.values() if one.id in lost or not told.cursor.has(one)]
        for told in self._told:
            while told.waiting and told.is_due(self._clock()):
                self._try(told)

    def _try(self, told: _Told) -> None:
        event, now = told.waiting[0], self._clock()
        try:
            send(told.sink, event, self._environ, self._repository.worktree, now)
        except UnsentError as error:
            refused = told.cursor.after_failure(now, str(error))
            is_lost = refused.tries > len(GAPS_S)
            if is_lost or refused.tries == 1:
                then = f"It is given up; to send it again: {AGAIN}" if is_lost else "It is tried again within an hour"
                self._say(f"{told.name} did not take {event.id}: {error}. {then}")
            if not is_lost:
                told.keep(refused)
                return
            told.cursor = refused
        else:
            is_lost = False
            told.sent += 1
        told.waiting.popleft()
        told.keep(told.cursor.past(event, given_up=is_lost))

    def _open(self, name: str, sink: Sink, since: str) -> _Told:
        wanted(sink.types, None)
        told = _Told(name, sink, folder_of(self._repository, self._environ) / f"{name}.json", Cursor(since=since))
        try:
            found = read_cursor(told.path)
        except (OSError, ValueError) as error:
            self._say(f"{error}. It is made anew: {name} is told of what happens from now on")
            found = Cursor(since=stamp(self._clock()))
        told.keep(found or told.cursor)
        if self._again:
            told.keep(told.cursor.model_copy(update={"tries": 0, "tried_at": None}))
        return told


@contextmanager
def sending(folder: Path) -> Generator[bool]:
    """Hold the lock under which events of a repository are sent; yield whether nobody else has it."""
    lock = LocalSlots(folder).take({"lock": 1}, "")
    try:
        yield lock is not None
    finally:
        if lock is not None:
            lock.give_back()


def send_example(
    repository: Repository, sinks: Mapping[str, Sink], name: str, environ: Mapping[str, str]
) -> NotifyDocument:
    """Send an example event to a sink, whatever its types are; nothing is remembered of it.

    Raises:
        UserError: there is no sink of that name, or it did not take the event, and why.
    """
    if name not in sinks:
        raise UserError(f"There is no [notify.{name}]. There are: {', '.join(sinks)}.", Reason.USAGE)
    origin, now = orders_origin(repository), utc_now()
    event = Event(
        id=origin.id_of(0),
        source=f"/redfirst/{origin.project}",
        type=full("run.finished"),
        time=stamp(now),
        subject="run-EXAMPLE-1",
        workflow="issue",
        workflowversion="example",
        data={"outcome": "completed", "reason": "done"},
    )
    try:
        send(sinks[name], event, environ, repository.worktree, now)
    except UnsentError as error:
        raise UserError(f"{name} did not take the example: {error}.", Reason.ENVIRONMENT) from None
    return NotifyDocument(sinks=(SinkLine(name=name, sent=1),))


def serve(notices: Notices, ended: threading.Event) -> None:
    """Send events as they come, until *ended* is set; then what is there, once."""
    while True:
        is_last = ended.wait(_LOOKS_S)
        notices.send()
        if is_last:
            return


@contextmanager
def beside(repository: Repository, environ: Mapping[str, str], say: Callable[[str], None]) -> Generator[None]:
    """Send events while the body runs, in a thread that holds up nothing; where somebody else sends, wait for that.

    A configuration that cannot be used is no concern of this: the body says so.
    """
    ended = threading.Event()
    since = stamp(utc_now())

    def serve_in_turn() -> None:
        own = Repository(repository.worktree, repository.git_dir, repository.common_dir)  # one for each thread
        try:
            sinks = trusted_config(own, environ, "notify").notify
            while sinks:
                with sending(folder_of(own, environ)) as is_ours:
                    if is_ours:
                        serve(Notices(own, sinks, environ, say, since=since), ended)
                if ended.wait(_LOOKS_S):
                    return
        except (UserError, GitError, OSError) as error:
            if not isinstance(error, UserError) or error.reason not in {Reason.CONFIG, Reason.UNTRUSTED}:
                say(f"nobody is notified any more: {error}")

    thread = threading.Thread(target=serve_in_turn, name="notify", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_LAST_S)


# --- how far each sink was told ---------------------------------------------------------------------------------------


class Cursor(Frozen):
    """How far a sink was told.

    Args:
        since: Earlier events are none of the sink's.
        told: The greatest number and time of the events of each journal that it is done with.
        tries: How often the next event was tried, the last time at `tried_at`; `why` it was not taken then.
        given_up: The ids of events that it did not take.
    """

    document: Literal["redfirst.notices/1"] = Field(default="redfirst.notices/1", alias="schema")
    since: Timestamp
    told: Mapping[str, tuple[int, Timestamp]] = {}
    tries: int = 0
    tried_at: Timestamp | None = None
    why: str = ""
    given_up: tuple[str, ...] = ()

    def has(self, event: Event) -> bool:
        """Return whether the sink is done with an event.

        A journal may be made anew under its old name. Then its numbers begin again, and the times go on.
        """
        journal, number = _place(event)
        told = self.told.get(journal)
        if told is None:
            return event.time < self.since
        return number <= told[0] and event.time <= told[1]

    def past(self, event: Event, *, given_up: bool = False) -> Cursor:
        """Return the cursor once the sink is done with an event."""
        journal, number = _place(event)
        others = tuple(one for one in self.given_up if one != event.id)
        before = self.told.get(journal, (0, event.time))
        latest = event.time if number <= before[0] else max(event.time, before[1])  # a clock may go back
        now = self.told if self.has(event) else {**self.told, journal: (number, latest)}
        done = {"told": now, "tries": 0, "tried_at": None, "why": self.why if given_up else ""}
        return self.model_copy(
            update={**done, "given_up": (*others, event.id)[-MOST_GIVEN_UP:] if given_up else others}
        )

    def after_failure(self, now: datetime, why: str) -> Cursor:
        """Return the cursor once the next event was tried in vain."""
        return self.model_copy(update={"tries": self.tries + 1, "tried_at": stamp(now), "why": why})


def _place(event: Event) -> tuple[str, int]:
    journal, _, number = event.id.rpartition("/")
    return journal, int(number)


def read_cursor(path: Path) -> Cursor | None:
    """Return a cursor as it is on disk, None where none is.

    Raises:
        ValueError: it is damaged.
        OSError: it cannot be read.
    """
    try:
        return Cursor.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise ValueError(f"{path} is damaged") from error


def write_cursor(path: Path, cursor: Cursor) -> None:
    """Write a cursor: a crash leaves the old one or the new one.

    Raises:
        UserError: the disk does not take it.
    """
    with disk(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(path, cursor.model_dump_json(by_alias=True, indent=1) + "\n", mode=0o600)


def fault_of(repository: Repository, name: str, sink: Sink, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return what is wrong with a sink, in words, with what mends it; None where nothing is known to be."""
    try:
        wanted(sink.types, None)
        kept = read_cursor(folder_of(repository, environ) / f"{name}.json")
    except UserError as error:
        return f"{name}: {error.message}", "redfirst schema event"
    except (OSError, ValueError) as error:
        return f"{name}: {error}", "redfirst notify --once"
    if kept is not None and kept.given_up:
        return f"{name}: {counted(len(kept.given_up), 'event')} given up, the last one since {kept.why}", AGAIN
    if kept is not None and kept.why:
        return f"{name}: the next event is tried again, since {kept.why}", f"redfirst notify --test {name}"
    return None


_COMMAND_S: Final = 60.0
"""Seconds that a command may take for an event."""
_REQUEST_S: Final = 10.0
_LONGEST: Final = 200
_TAIL: Final = 4096
_FIELD: Final = re.compile(r"\{(type|subject|project|text)\}")
_CLOSED: Final = ("outcome", "reason", "gate", "point", "then", "signal", "status")
"""The keys of events whose values are words of ours: what an agent or a person wrote is no part of a text."""


class UnsentError(Exception):
    """A sink did not take an event; the message says why, and has no secret."""


def send(sink: Sink, event: Event, environ: Mapping[str, str], folder: Path, now: datetime) -> None:
    """Send an event.

    Args:
        sink: To whom.
        event: What happened.
        environ: The user's environment, with the sink's secrets.
        folder: Where a command is started.
        now: The time that a signature says.

    Raises:
        UnsentError: the sink did not take it.
    """
    try:
        if sink.command is not None:
            _run([_with_fields(word, event) for word in sink.command], event, environ, folder)
        else:
            _post(sink, event, environ, now)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UnsentError(_short(str(getattr(error, "reason", None) or error) or type(error).__name__)) from error


def text_of(event: Event) -> str:
    """Return an event as a few words for a person, without anything that an agent wrote."""
    short = event.type.removeprefix("redfirst.").removesuffix(".v1")
    said = [str(event.data[key]) for key in _CLOSED if event.data.get(key)]
    return short.replace(".", " ") + (f": {', '.join(said)}" if said else "")


def _with_fields(word: str, event: Event) -> str:
    project = visible(event.source.rpartition("/")[2])
    values = {"type": event.type, "subject": event.subject, "project": project, "text": text_of(event)}
    return _FIELD.sub(lambda match: values[match[1]], word)


def _short(text: str) -> str:
    return visible(" ".join(text.split()))[:_LONGEST]


# --- a command -------------------------------------------------------------------------------------------------------


def _run(argv: list[str], event: Event, environ: Mapping[str, str], folder: Path) -> None:
    path = without_the_repository(environ.get("PATH", os.defpath), folder)
    with tempfile.TemporaryFile() as told:  # what the command starts may hold a pipe open
        try:
            done = subprocess.run(
                argv,
                cwd=folder,
                env={**environ, "PATH": path},
                input=f"{event}\n".encode(),
                stdout=subprocess.DEVNULL,
                stderr=told,
                timeout=_COMMAND_S,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise UnsentError(f"the command took more than {_COMMAND_S:g} s") from None
        if done.returncode != 0:
            told.seek(max(0, os.fstat(told.fileno()).st_size - _TAIL))
            text = redacted_text(told.read().decode(errors="replace"), secrets_of(environ), shapes=True)
            said = _short(text[-_LONGEST:])
            raise UnsentError(f"the command ended with {done.returncode}{f': {said}' if said else ''}")


# --- an address ------------------------------------------------------------------------------------------------------


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the answer of a sink does not choose where the user's events go."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Return no further request."""


def _post(sink: Sink, event: Event, environ: Mapping[str, str], now: datetime) -> None:
    if sink.form is Form.SLACK:
        subject = f"{visible(event.source.rpartition('/')[2])}/{event.subject}"
        text = f"{subject}: {text_of(event)}".replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        body, kind = json.dumps({"text": text}).encode(), "application/json"
    else:
        body, kind = str(event).encode(), "application/cloudevents+json"
    name = f"msg_{hashlib.sha256(str(event).encode()).hexdigest()[:32]}"
    moment = str(int(now.timestamp()))
    headers = {"Content-Type": kind, "User-Agent": "redfirst", "webhook-id": name, "webhook-timestamp": moment}
    if sink.secret_env is not None:
        try:
            headers["webhook-signature"] = signature(_variable(sink.secret_env, environ), name, moment, body)
        except ValueError:
            why = f"the variable {sink.secret_env} has no base64, with or without whsec_"
            raise UnsentError(why) from None
    request = urllib.request.Request(_address(sink, environ), body, headers, method="POST")  # noqa: S310  (`Url`)
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=_REQUEST_S):
            return
    except urllib.error.HTTPError as error:
        error.close()
        raise UnsentError(f"the address answers {error.code}") from None


def _address(sink: Sink, environ: Mapping[str, str]) -> str:
    if sink.url_env is None:
        return str(sink.url)
    try:
        return str(Sink(url=_variable(sink.url_env, environ)).url)
    except ValidationError:
        raise UnsentError(f"the variable {sink.url_env} has no address like https://host/path") from None


def _variable(name: str, environ: Mapping[str, str]) -> str:
    if not (value := environ.get(name)):
        raise UnsentError(f"the variable {name} is not set")
    return value
