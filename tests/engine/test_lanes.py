"""The loop drives several lanes at once: begun together, decided one by one, stopped and taken up again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import anyio
import pytest
from engine.choir import Choir, Piece

from pipeline.errors import UserError
from pipeline.matrix.engine.journal import Journal
from pipeline.matrix.engine.journal_kinds import RunStarted
from pipeline.matrix.engine.loop import drive
from pipeline.matrix.engine.protocols import TRUNK, Decision, Event
from pipeline.matrix.engine.run import MachineRun
from pipeline.outcomes import Outcome, Reason
from pipeline.run.folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

ChoirRun = MachineRun[Piece, Event, Decision]


def load(folder: Path) -> ChoirRun:
    store = RunFolder(folder)
    run: ChoirRun = MachineRun(store, Journal.open(store), Choir("alto", "bass"), program="choir 1")
    run.recover()
    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / ".workflow" / "run-mass"
    path.mkdir(parents=True)
    load(path).journal.append(RunStarted(run_id=path.name))
    return path


def sing(folder: Path, voices: dict[str, Callable[[], Awaitable[str]]]) -> list[str]:
    """Drive the run; each voice reports what it comes to. Return what was decided, in order."""
    run, heard = load(folder), list[str]()

    async def step(state: Piece, lane: str) -> Event:
        if lane == TRUNK:
            return Event(signal="entered" if state.visits == 1 else "bowed")
        return Event(signal=await voices[lane](), lane=lane)

    def tell(_: Decision, event: Event) -> None:
        heard.append(f"{event.lane} {event.signal}")

    async def whole() -> None:
        with anyio.fail_after(60):
            await drive(run, step, tell, ends_all=lambda event: event.signal == "fire")

    anyio.run(whole)
    return heard


def test_the_steps_of_lanes_run_side_by_side_and_each_event_is_decided_once(folder: Path) -> None:
    entered = anyio.Event()

    async def alto() -> str:
        await entered.wait()
        return "sung"

    async def bass() -> str:
        entered.set()  # alto waits for this: it can end only where both have begun
        return "sung"

    assert sing(folder, {"alto": alto, "bass": bass}) == ["trunk entered", "bass sung", "alto sung", "trunk bowed"]
    said = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    assert [line["data"].get("lane") for line in said if line["kind"] == "decision"] == [None, "bass", "alto", None]
    assert load(folder).state.reason is Reason.DONE, "it is folded from the journal"


def test_what_parks_the_run_waits_for_steps_that_have_begun(folder: Path) -> None:
    parked = anyio.Event()

    async def alto() -> str:
        parked.set()
        return "hoarse"

    async def bass() -> str:
        await parked.wait()
        await anyio.lowlevel.checkpoint()
        return "sung"

    assert sing(folder, {"alto": alto, "bass": bass}) == ["trunk entered", "bass sung", "alto hoarse"]
    run = load(folder)
    assert (run.state.outcome, list(run.state.lanes)) == (Outcome.PARKED, [TRUNK, "alto"])
    run.resume()
    asked: list[str] = []

    async def alto_again() -> str:
        asked.append("alto")
        return "sung"

    assert sing(folder, {"alto": alto_again}) == ["alto sung", "trunk bowed"]
    assert asked == ["alto"], "what had ended is not asked again"


def test_what_ends_all_stops_what_the_other_lanes_do(folder: Path) -> None:
    stopped: list[str] = []

    async def alto() -> str:
        return "fire"

    async def bass() -> str:
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append("bass")
        return "sung"

    assert sing(folder, {"alto": alto, "bass": bass}) == ["trunk entered", "alto fire"]
    assert stopped == ["bass"]
    assert load(folder).state.reason is Reason.ESCAPE


def test_a_line_that_names_another_lane_than_its_event_is_refused(folder: Path) -> None:
    async def sung() -> str:
        return "sung"

    sing(folder, {"alto": sung, "bass": sung})
    journal = folder / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    of_bass = next(line for line in lines if line["data"].get("lane") == "bass")
    of_bass["data"]["lane"] = "alto"
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UserError, match="was decided otherwise"):
        load(folder)
