"""Times of a schedule come once each: on the nights when clocks change, and for a worker that was not there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from triggered.outside import Outside, outside

from pipeline.app.triggers import MOST_AT_ONCE, times
from pipeline.app.work import RepositoryWork
from pipeline.config.triggers import Source, TriggerTable
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.queue import order_lines

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.queue.orders import Order

pytestmark = pytest.mark.slow

BERLIN = ZoneInfo("Europe/Berlin")
NIGHTLY = """
[triggers.nightly]
source = "schedule"
cron = "30 2 * * *"
timezone = "Europe/Berlin"
gates = ["commit"]
recipe = "solo"
"""


def issues(count: int) -> dict[str, str]:
    head = "---\nid: {0}\ntitle: T\nstatus: Todo\nparent: null\nlabels: []\ndepends-on: []\n---\n# {0}: T\n"
    return {f"TODO/GAL-{number}.md": head.format(f"GAL-{number}") for number in range(1, count + 1)}


def schedule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *extra: str, count: int = 6) -> Outside:
    return outside(tmp_path, monkeypatch, NIGHTLY + "\n".join(extra), issues(count))


def look(here: Outside, at: datetime) -> list[Order]:
    """Let a worker look at everything; return all orders."""
    log = here.log()
    RepositoryWork(here.repository, here.environ, clock=lambda: at).look(log)
    return list(log.orders.values())


def berlin(*moment: int, fold: int = 0) -> datetime:
    year, month, day, hour, minute = moment
    return datetime(year, month, day, hour, minute, tzinfo=BERLIN, fold=fold).astimezone(UTC)


def minutes(begin: datetime, hours: int, step: int) -> list[datetime]:
    return [begin + timedelta(minutes=number) for number in range(0, 60 * hours, step)]


def test_27_both_nights_have_one_time_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = schedule(tmp_path, monkeypatch)
    assert look(here, berlin(2026, 3, 28, 22, 0)) == []
    spring = [look(here, now) for now in minutes(berlin(2026, 3, 28, 23, 0), 6, 45)]  # 2:30 is left out
    assert [one.placed.key for one in spring[-1]] == ["nightly@2026-03-29T01:00+00:00"]
    assert look(here, berlin(2026, 10, 24, 22, 0)) != []
    before = len(look(here, berlin(2026, 10, 24, 22, 1)))
    autumn = [look(here, now) for now in minutes(berlin(2026, 10, 24, 23, 0), 6, 45)]  # 2:30 comes twice
    assert [one.placed.key for one in autumn[-1][before:]] == ["nightly@2026-10-25T00:30+00:00"]


def test_27_who_begins_between_the_two_waits_a_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = schedule(tmp_path, monkeypatch)
    look(here, berlin(2026, 10, 25, 2, 45))
    for now in minutes(berlin(2026, 10, 25, 2, 10, fold=1), 20, 120):
        assert look(here, now) == []
    assert len(look(here, berlin(2026, 10, 26, 2, 30))) == 1


@pytest.mark.parametrize(
    ("catch_up", "keys"),
    [
        ("none", []),
        ("last", ["nightly@2026-06-04T00:30+00:00"]),
        ("all", [f"nightly@2026-06-0{day}T00:30+00:00" for day in (2, 3, 4)]),
    ],
)
def test_28_three_days_without_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, catch_up: str, keys: list[str]
) -> None:
    here = schedule(tmp_path, monkeypatch, f'catch_up = "{catch_up}"')
    look(here, berlin(2026, 6, 1, 12, 0))
    for _ in range(2):
        assert [one.placed.key for one in look(here, berlin(2026, 6, 4, 12, 0))] == keys
    order = look(here, berlin(2026, 6, 5, 2, 31))[-1]
    assert (order.placed.key, order.placed.via) == ("nightly@2026-06-05T00:30+00:00", "nightly")
    assert order.placed.options.argv() == ("--approve=commit", "--recipe=solo")


def test_a_time_orders_so_many_issues_that_nobody_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = schedule(tmp_path, monkeypatch, "ready = 2", count=5)
    look(here, berlin(2026, 6, 1, 12, 0))
    assert [one.what for one in look(here, berlin(2026, 6, 2, 3, 0))] == ["GAL-1", "GAL-2"]
    orders = look(here, berlin(2026, 6, 3, 3, 0))
    assert [one.what for one in orders] == ["GAL-1", "GAL-2", "GAL-3", "GAL-4"]
    assert [one.placed.key[-8:] for one in orders[2:]] == ["30+00:00", "+00:00#2"]
    assert [one.what for one in look(here, berlin(2026, 6, 4, 3, 0))][4:] == ["GAL-5"]


def test_a_time_at_which_nothing_was_ready_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = schedule(tmp_path, monkeypatch, count=1)
    look(here, berlin(2026, 6, 1, 12, 0))
    assert len(look(here, berlin(2026, 6, 2, 3, 0))) == 1
    assert len(look(here, berlin(2026, 6, 3, 3, 0))) == 1
    here.git("switch", "-q", "main")
    (here.repository.worktree / "TODO/GAL-2.md").write_text(issues(2)["TODO/GAL-2.md"])
    here.git("add", "-A")
    here.git("commit", "-q", "-m", "more")
    assert len(look(here, berlin(2026, 6, 3, 9, 0))) == 1
    assert len(look(here, berlin(2026, 6, 4, 3, 0))) == 2


def test_failures_pause_a_schedule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = schedule(tmp_path, monkeypatch)
    look(here, berlin(2026, 6, 1, 12, 0))
    for day in (2, 3, 4):
        placed = look(here, berlin(2026, 6, day, 3, 0))
        with here.log().locked() as log:
            log.add(order_lines.OrderEnded(order=placed[-1].id, outcome="failed", reason="escape"))
    assert len(look(here, berlin(2026, 6, 5, 3, 0))) == 3
    monkeypatch.setenv("REDFIRST_TRIGGERS__NIGHTLY__ENABLED", "false")
    here.environ = {**here.environ, "REDFIRST_TRIGGERS__NIGHTLY__ENABLED": "false"}
    assert len(look(here, berlin(2026, 6, 6, 3, 0))) == 3


def test_a_schedule_of_a_repository_counts_after_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = outside(tmp_path, monkeypatch, "", {**issues(1), "redfirst.toml": NIGHTLY})
    look(here, berlin(2026, 6, 1, 12, 0))
    with pytest.raises(UserError) as caught:
        look(here, berlin(2026, 6, 2, 3, 0))
    assert caught.value.reason is Reason.UNTRUSTED
    here.environ = {**here.environ, "REDFIRST_TRUST": "1"}
    assert len(look(here, berlin(2026, 6, 2, 3, 0))) == 1


CRONS = ["30 2 * * *", "0,30 2,3 * * *", "*/20 * * * *", "15 1-4 * * SUN", "59 23 L * *"]


@given(
    cron=st.sampled_from(CRONS),
    zone=st.sampled_from(["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "UTC"]),
    begin=st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    steps=st.lists(st.integers(1, 500), max_size=20),
)
def test_however_often_one_looks_the_same_times_come(cron: str, zone: str, begin: datetime, steps: list[int]) -> None:
    trigger = TriggerTable(source=Source.SCHEDULE, cron=cron, timezone=zone)
    begin = begin.replace(second=0, microsecond=0)
    since, found = begin, list[datetime]()
    for step in steps:
        now = since + timedelta(minutes=step)
        found += times(trigger, since, now)
        since = now
    whole = times(trigger, begin, since)
    assert found == sorted(set(found))
    assert found[-MOST_AT_ONCE:] == whole
