"""Events as they come to a browser: soon, each once, and never at the cost of anybody else."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import anyio
import pytest
from console.hostile import TEXTS
from console.served import Stream, listening, opened, session_of
from runs.real import begin, event, make_repository

from pipeline.app.events import Event
from pipeline.faces.console.live import Hub, Reader
from pipeline.progress import Activity
from pipeline.run.activity_file import write_now
from pipeline.run.lease import FileLease
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.repo import Repository

pytestmark = pytest.mark.slow


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path / "project")


def an_event(number: int) -> Event:
    return Event(
        id=f"shop-1/run-A/{number}",
        source="/redfirst/shop",
        type="redfirst.run.started.v1",
        time="2026-11-20T14:00:00.000Z",
        subject="run-A",
        workflow="w",
        workflowversion="1",
        data={},
    )


def test_an_event_is_there_within_half_a_second_and_after_a_break_none_is_missing_or_double(
    repository: Repository,
) -> None:
    run = begin(repository, "run-GAL-1")
    with listening(repository.worktree) as access:
        session = session_of(access)
        stream = Stream(access, session)
        time.sleep(0.5)  # the poller has looked for runs once
        first, took = "", 1.0
        for _ in range(20):  # one of them comes in time, however busy the machine is
            began = time.monotonic()
            run.decide(event(Signal.OK))
            kind, first, data = stream.next()
            took = time.monotonic() - began
            assert (kind, '"signal":"OK"' in data) == ("event", True)
            if took < 0.5:
                break
        assert took < 0.5
        stream.close()
        run.decide(event(Signal.CLAIMED))
        again = Stream(access, session, last=first)
        run.decide(event(Signal.DRAFTED))
        told = [again.next() for _ in range(2)]
        again.close()
        assert ['"CLAIMED"' in told[0][2], '"DRAFTED"' in told[1][2]] == [True, True]
        lost = Stream(access, session, last="nobody/knows/7")
        assert lost.next()[0] == "reset"
        lost.close()


@pytest.mark.broad
def test_of_five_streams_of_a_session_the_oldest_ends(repository: Repository) -> None:
    begin(repository, "run-GAL-1")
    with listening(repository.worktree) as access:
        session, other = session_of(access), session_of(access)
        elsewhere = Stream(access, other)
        streams = [Stream(access, session) for _ in range(5)]
        assert streams[0].next()[0] == "bye"
        assert streams[0].answer.read() == b""
        run = begin(repository, "run-GAL-2")
        run.decide(event(Signal.OK))
        assert [one.next()[0] for one in (*streams[1:], elsewhere)] == ["event"] * 5
        for one in (*streams, elsewhere):
            one.close()


@pytest.mark.anyio
async def test_a_slow_reader_is_cut_and_comes_back_to_where_it_was(repository: Repository) -> None:
    hub, slow, quick = Hub(repository), Reader("s", None), Reader("s", None)
    for reader in (slow, quick):
        assert hub.begin(reader, None)
    for number in range(1, 400):
        hub.hand_on(an_event(number))
        quick.waiting.clear()
    assert (slow.scope.cancel_called, quick.scope.cancel_called) == (True, False)
    taken = slow.waiting[0].id
    hub.end(slow)
    back = Reader("s", None)
    assert hub.begin(back, taken)
    assert [one.id for one in back.waiting] == [f"shop-1/run-A/{number}" for number in range(2, 400)][:200]
    await anyio.lowlevel.checkpoint()


def test_nothing_is_read_while_nobody_listens(repository: Repository) -> None:
    run = begin(repository, "run-GAL-1")
    lease = FileLease.take(run.folder)
    with listening(repository.worktree, read_only=True):  # which sees to no gates, either
        before = (run.folder / "journal.jsonl").stat().st_atime_ns
        time.sleep(0.5)
        assert (run.folder / "journal.jsonl").stat().st_atime_ns == before
    lease.release()


@pytest.mark.anyio
async def test_what_happens_after_a_page_has_read_is_told_to_that_page(repository: Repository) -> None:
    hub, page = Hub(repository), Reader("s", None)
    seen = hub.last
    hub.hand_on(an_event(1))
    assert hub.begin(page, seen)
    assert [one.id for one in page.waiting] == ["shop-1/run-A/1"]
    await anyio.lowlevel.checkpoint()


def test_the_words_of_a_working_agent_are_shown_and_do_nothing(repository: Repository) -> None:
    run = begin(repository, "run-GAL-1")
    run.decide(event(Signal.OK))
    lease = FileLease.take(run.folder)
    said = ("reads app.py", *(text for text in TEXTS if len(text) < 200))
    write_now(run.folder, run.journal.epoch, [Activity("@make", 0.0, datetime.now(UTC), lambda: said)])
    with opened(repository.worktree) as browser:
        page = browser.get("/runs/run-GAL-1").text
    lease.release()
    shown = page.partition('<ul class="said"')[2].partition("</ul>")[0]
    assert shown.count("<li>") == len(said)
    assert "<li>reads app.py</li>" in shown
    assert set(re.findall(r"<(\w+)", shown)) == {"li", "span"}, "marks of hidden characters are ours, and nothing else"
