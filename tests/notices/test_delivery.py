"""Sinks are told of each event at least once and in order (docs/how-to/notices.md)."""

from __future__ import annotations

import base64
import hmac
import json
import os
import shutil
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cli import stories
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from notices.listener import Listener, listening
from runs.real import BEGAN, alone, begin, event, git, make_repository

from pipeline.app.events import AllEvents, Wanted
from pipeline.app.notices import Notices, UnsentError, fault_of, folder_of, read_cursor, send, write_cursor
from pipeline.config.model import Form, Sink
from pipeline.matrix.engine.journal import stamp
from pipeline.queue.orders import OrderLog, log_of
from pipeline.queue.orders import Wanted as Ordered
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from pipeline.app.events import Event
    from pipeline.repo import Repository

pytestmark = pytest.mark.slow
SECRET = base64.b64encode(b"a key of 24 bytes, as is").decode()


class Told:
    """A sink of a repository, and a clock that goes on when it is told to."""

    def __init__(self, repository: Repository, sink: Sink, since: datetime = BEGAN) -> None:
        self.repository, self.sink, self.since = repository, sink, stamp(since)
        self.now = BEGAN + timedelta(days=1)
        self.said: list[str] = []
        self.path = folder_of(repository, os.environ) / "there.json"
        self.notices = self.anew()

    def anew(self, *, again: bool = False) -> Notices:
        """Go on as another process would."""
        sinks, now = {"there": self.sink}, lambda: self.now
        self.notices = Notices(
            self.repository, sinks, os.environ, self.said.append, since=self.since, again=again, clock=now
        )
        return self.notices

    def send(self, minutes: int = 0) -> None:
        self.notices.send()
        self.now += timedelta(minutes=minutes)

    def fault(self) -> str:
        return " -> ".join(fault_of(self.repository, "there", self.sink, os.environ) or ())


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    alone(monkeypatch, tmp_path / "home")
    return make_repository(tmp_path / "project")


@pytest.fixture
def listener() -> Generator[Listener]:
    with listening() as found:
        yield found


def events_of(repository: Repository) -> list[Event]:
    return AllEvents(repository, Wanted(), pytest.fail).read_on()


def test_05_a_sink_that_was_down_an_hour_gets_all_events_once_it_is_up_in_order(
    repository: Repository, listener: Listener
) -> None:
    told = Told(repository, Sink(url=listener.url))
    stories.finished(repository)
    listener.status = 503
    for minute in range(60):
        if minute == 30:
            told.anew()
        told.send(minutes=1)
    assert listener.refused == 4, "the gaps grow"
    assert "the next event is tried again, since the address answers 503" in told.fault()
    listener.status = 204
    told.send()
    told.send()
    assert listener.bodies == list(map(str, events_of(repository)))
    assert told.notices.document.sinks[0].sent == len(listener.bodies)
    assert told.fault() == ""


def test_after_five_tries_in_an_hour_an_event_is_given_up_and_can_be_sent_again(
    repository: Repository, listener: Listener
) -> None:
    told = Told(repository, Sink(url=listener.url))
    run = stories.finished(repository)
    first, *others = events_of(repository)
    listener.status = 500
    for _ in range(61):
        told.send(minutes=1)
    assert listener.refused == 6, "five times the first one, then the second one"
    assert told.said[1].endswith("answers 500. It is given up; to send it again: redfirst notify --again")
    assert (
        told.fault() == "there: 1 event given up, the last one since the address answers 500 -> redfirst notify --again"
    )
    listener.status = 204
    told.send()
    assert listener.bodies == list(map(str, others))
    told.anew(again=True).send()
    assert listener.bodies[len(others) :] == [str(first)]
    assert told.fault() == ""
    kept = read_cursor(told.path)
    assert kept is not None
    write_cursor(told.path, kept.model_copy(update={"given_up": (first.id,)}))
    shutil.rmtree(run.folder)
    told.anew(again=True).send()
    assert told.said[-1] == f"there is sent no more, since no journal has them: {first.id}"
    assert told.fault() == ""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15, deadline=None)
@given(steps=st.lists(st.tuples(st.booleans(), st.integers(min_value=0, max_value=90), st.booleans()), max_size=12))
def test_whenever_a_sink_is_down_each_event_is_sent_once_and_in_order_waits_or_was_given_up(
    repository: Repository, listener: Listener, steps: list[tuple[bool, int, bool]]
) -> None:
    if not (repository.worktree / ".workflow").exists():
        stories.finished(repository)
    shutil.rmtree(folder_of(repository, os.environ), ignore_errors=True)
    listener.taken.clear()
    told = Told(repository, Sink(url=listener.url, types=("dispatch.*", "run.*")))
    wanted = [one for one in events_of(repository) if ".dispatch." in one.type or ".run." in one.type]
    for is_up, minutes, anew in steps:
        listener.status = 204 if is_up else 503
        if anew:
            told.anew()
        told.send(minutes)
    kept = read_cursor(told.path)
    assert kept is not None
    waits = [one for one in wanted if not kept.has(one)]
    sent = [one for one in wanted if one.id not in kept.given_up and one not in waits]
    assert listener.bodies == list(map(str, sent))
    assert waits == wanted[len(wanted) - len(waits) :]


def test_a_new_sink_is_told_of_what_comes_and_a_damaged_cursor_is_made_anew_and_that_is_said(
    repository: Repository, listener: Listener
) -> None:
    stories.finished(repository)
    told = Told(repository, Sink(url=listener.url), since=BEGAN + timedelta(days=1))
    told.send()
    told.since = stamp(BEGAN)
    for damage in (b"", b"{", told.path.read_bytes()[:-9], b"\xff" * 100, b'{"schema": "other"}'):
        told.path.write_bytes(damage)
        assert "is damaged" in told.fault()
        told.anew().send()
        assert told.said.pop() == f"{told.path} is damaged. It is made anew: there is told of what happens from now on"
        told.anew().send()
    assert (listener.bodies, told.said) == ([], [])


def test_a_journal_that_was_made_anew_under_its_old_name_is_told_from_its_beginning(
    repository: Repository, listener: Listener
) -> None:
    told = Told(repository, Sink(url=listener.url))
    first = begin(repository)
    first.decide(event(Signal.OK))
    told.send()
    before = len(listener.bodies)
    shutil.rmtree(first.folder)
    second = begin(repository)
    (line,) = second.journal.lines
    later = stamp(datetime.fromisoformat(line.at) + timedelta(hours=1))
    (second.folder / "journal.jsonl").write_text(str(line).replace(line.at, later))
    told.anew().send()
    assert listener.bodies[before:] == list(map(str, events_of(repository))) != []


def test_where_a_clock_goes_back_each_event_is_sent_once_in_the_order_in_which_it_was_written(
    repository: Repository, listener: Listener
) -> None:
    told = Told(repository, Sink(url=listener.url))

    def order(*minutes: int) -> None:
        for minute in minutes:
            now = BEGAN + timedelta(minutes=minute)
            with OrderLog(log_of(repository, os.environ).folder, clock=lambda now=now: now).locked() as log:
                log.place(Ordered(via="cli", issue=f"GAL-{minute}"))
        told.send()
        told.anew().send()

    order(10, 11, 5, 6)
    order(7, 12)
    assert [json.loads(body)["data"]["issue"] for body in listener.bodies] == [
        f"GAL-{minute}" for minute in (10, 11, 5, 6, 7, 12)
    ]


def example(repository: Repository) -> Event:
    begin(repository).decide(event(Signal.BASELINE_IMPOSSIBLE, note="<!channel> $(touch owned)"))
    return events_of(repository)[-1]


def failure(sink: Sink, told: Event, folder: Path, **more: str) -> str:
    try:
        send(sink, told, {**os.environ, **more}, folder, BEGAN)
    except UnsentError as error:
        return str(error)
    return ""


def test_a_request_is_signed_and_never_goes_elsewhere(repository: Repository, listener: Listener) -> None:
    told = example(repository)
    sink = Sink(url=f"{listener.url}/hooks/a", secret_env="HOOK")
    for secret in (f"whsec_{SECRET}", SECRET):
        assert failure(sink, told, repository.worktree, HOOK=secret) == ""
        path, headers, body = listener.taken[-1]
        signed = f"{headers['webhook-id']}.{int(BEGAN.timestamp())}.".encode() + body
        wanted = base64.b64encode(hmac.digest(base64.b64decode(SECRET), signed, "sha256")).decode()
        assert (path, headers["webhook-signature"]) == ("/hooks/a", f"v1,{wanted}")
        assert body.decode() == str(told)
    assert len({headers["webhook-id"] for _, headers, _ in listener.taken}) == 1, "sent again it has the same id"
    listener.status = 302
    assert failure(sink, told, repository.worktree, HOOK=SECRET) == "the address answers 302"
    assert len(listener.taken) == 2


@pytest.mark.parametrize(
    ("sink", "value", "said"),
    [
        (Sink(url="http://127.0.0.1:9", secret_env="HOOK"), "", "the variable HOOK is not set"),
        (Sink(url="http://127.0.0.1:9", secret_env="HOOK"), "hush!", "the variable HOOK has no base64"),
        (Sink(url_env="HOOK"), "", "the variable HOOK is not set"),
        (Sink(url_env="HOOK"), "ftp://hush!", "the variable HOOK has no address like"),
        (Sink(url_env="HOOK"), "http://127.0.0.1:1/hush", "refused"),
        (Sink(command=("no-such-program",)), "", "No such file or directory: 'no-such-program'"),
        (Sink(command=("sh", "-c", "echo $TOKEN >&2; exit 3")), "", "the command ended with 3"),
        (Sink(command=("sh", "-c", "echo one >&2; echo no\x1b[1m way >&2; exit 3")), "", "with 3: one no\\x1b[1m way"),
    ],
)
def test_why_nothing_was_sent_is_said_without_a_secret(
    repository: Repository, sink: Sink, value: str, said: str
) -> None:
    found = failure(sink, example(repository), repository.worktree, HOOK=value, TOKEN="hush-hush-hush")
    assert said in found
    assert "hush" not in found


def test_a_service_like_slack_gets_a_text_of_our_own_words_alone(repository: Repository, listener: Listener) -> None:
    told = example(repository).model_copy(update={"source": "/redfirst/<!here> & co"})
    sink = Sink(url_env="PLACE", form=Form.SLACK)
    assert failure(sink, told, repository.worktree, PLACE=f"{listener.url}/T/B") == ""
    text = json.loads(listener.bodies[0])["text"]
    assert text == "&lt;!here&gt; &amp; co/run-GAL-39: run finished: rejected, baseline_impossible"


def test_a_command_has_the_event_on_stdin_and_its_fields_as_single_words(
    repository: Repository, tmp_path: Path
) -> None:
    told, out = example(repository), tmp_path / "out"
    write = f'cat > {out}; printf "%s|" "$PWD" "$@" >> {out}'
    command = ("sh", "-c", write, "-", "{subject}: {text} {other}", "{project} {{type}}")
    assert failure(Sink(command=command), told, repository.worktree) == ""
    line, words = out.read_text().splitlines()
    assert line == str(told)
    first, second = "run-GAL-39: run finished: rejected, baseline_impossible {other}", f"project {{{told.type}}}"
    assert words == f"{repository.worktree}|{first}|{second}|"
    assert failure(Sink(command=("true",)), told, repository.worktree) == "", "who does not read is told all the same"
    (repository.worktree / "tool").write_text("#!/bin/sh\ntouch owned\n")
    (repository.worktree / "tool").chmod(0o755)
    git(repository.worktree, "add", "tool")
    path = f"{repository.worktree}:{os.environ['PATH']}"
    assert "No such file" in failure(Sink(command=("tool",)), told, repository.worktree, PATH=path)
