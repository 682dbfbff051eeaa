"""What a driver shows while it works: a line redrawn on a terminal, a heartbeat in a pipe, and no trace of either."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.lowlevel
import pytest
from crashes import spawn
from kit import FILES, REDFIRST, make_project
from terminal import INTERRUPT, OnTerminal, Screen, Terminal

from pipeline.app.live_view import PhaseShown, Status
from pipeline.characters import columns as columns_of
from pipeline.errors import UserError
from pipeline.faces.cli.status_line import Beating, Heartbeat, StatusLine, line_of, opened_display
from pipeline.matrix.routing.plain_words import PHASES
from pipeline.outcomes import Reason
from pipeline.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kit import Project

    from pipeline.app.live_view import Standing, Stands

SUITE = "the whole suite before any change, to compare with"
STATUS = Status(
    place="[7] implement",
    task="task 2 of 3",
    doing=("@make (codex medium)",),
    doing_s=125.4,
    run_s=3725.0,
    spent="12 of 50 dispatches, 41,203 of 2,000,000 tokens",
    left=("make retry 1 of 1",),
)
LINE = "[7] implement, task 2 of 3 | 2:05 @make (codex medium) | run 1:02:05"


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Fixed:
    """A run that stands still."""

    said: Status
    clock: Clock

    @property
    def place(self) -> tuple[str, str]:
        return self.said.place, self.said.task

    @property
    def doing(self) -> tuple[tuple[str, ...], float]:
        return self.said.doing, self.clock.now - 1000

    def status(self) -> Status:
        return self.said


def standing(status: Status = STATUS) -> Standing:
    return cast("Standing", Fixed(status, Clock()))


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (
            160,
            f"{LINE} | 12 of 50 dispatches, 41,203 of 2,000,000 tokens | make retry 1 of 1",
        ),
        (80, LINE),
        (40, "[7] implement 2/3 | 2:05 @make (codex me"),
        (10, "[7] implem"),
    ],
)
def test_the_line_is_as_wide_as_the_terminal(columns: int, line: str) -> None:
    assert line_of(STATUS, columns) == line


def test_what_is_done_is_shortened_between_words_for_the_time_and_the_dispatches() -> None:
    doing = ("the new tests over the old code again, traced, must fail",)
    status = replace(STATUS, place="[6] write-tests", task="", doing=doing, run_s=62)
    assert line_of(status, 80) == "[6] write-tests | 2:05 the new tests over... | run 1:02 | 12 of 50 dispatches"
    assert doing[0] in line_of(status, 120)


def test_wide_and_hidden_characters_take_their_place() -> None:
    status = replace(STATUS, doing=("漢字のモデル" * 20 + "\x1b[31m\u202e",))
    assert 70 < columns_of(line_of(status, 80)) <= 80
    assert " | 2:05 a\\x1b[2Jb | " in line_of(replace(STATUS, doing=("a\x1b[2Jb",)), 120)
    assert line_of(replace(STATUS, doing=("漢",)), 120, "ascii").isascii()


def test_a_pipe_hears_of_a_silence_less_and_less_often() -> None:
    clock, said = Clock(), list[tuple[float, str]]()
    beat = Heartbeat(lambda text: said.append((clock.now - 1000, text)), clock)
    run = cast("Standing", Fixed(STATUS, clock))
    beat("something happened")
    while clock.now < 1000 + 1300:
        beat.show(run)
        clock.now += 1
    assert [at for at, _ in said] == [0, 15, 30, *range(60, 601, 60), 900, 1200]
    assert said[1][1] == "    [7] implement, task 2 of 3, 15 s so far: @make (codex medium)"
    assert said[4][1] == "    [7] implement, task 2 of 3, 2 min 0 s so far: @make (codex medium)"
    beat("something else happened")
    clock.now += 14
    beat.show(run)
    assert said[-1][1] == "something else happened"


def test_what_is_done_is_known_while_it_is_done() -> None:
    clock, seen = Clock(), list[tuple[str, ...]]()
    progress = Progress(clock)
    progress.changed = lambda: seen.append(tuple(each.what for each in progress.activities))
    with progress.doing("one") as first:
        clock.now += 1.5
        with pytest.raises(ValueError, match="broken"), progress.doing("two"):
            raise ValueError("broken")
        assert str(first) == "1.5 s"
    assert seen == [("one",), ("one", "two"), ("one",), ()]


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    found = Terminal()
    yield found
    found.close()


def test_lines_are_said_above_and_nothing_is_left(terminal: Terminal) -> None:
    line = StatusLine(terminal.stream)
    line("one")
    line.show(standing())
    assert terminal.screen() == ["one", LINE]
    line("two, which is longer than the terminal is wide" + "!" * 60)
    line.show(standing(replace(STATUS, doing=())))
    line("three")
    assert len(terminal.screen()) == 5
    assert terminal.screen()[-2:] == ["three", "[7] implement, task 2 of 3 | 2:05 | run 1:02:05 | 12 of 50 dispatches"]
    line.erase()
    assert terminal.screen()[3:] == ["three", ""]


def test_phases_and_the_words_of_agents_stand_above_the_line_and_nothing_of_them_is_left(terminal: Terminal) -> None:
    stands: dict[int, Stands] = {0: "done", 1: "left_out", 2: "now"}
    phases = tuple(PhaseShown(phase, stands.get(at, "ahead"), 1) for at, phase in enumerate(PHASES))
    said = (("reads app.py", "漢" * 100, "\x1b[2J\u202e says"), ("one",))
    line, status = StatusLine(terminal.stream), replace(STATUS, phases=phases, said=said)
    line.show(standing(status))
    line("said above")
    first, way, *words, last = terminal.screen()
    assert (first, last) == ("said above", LINE)
    assert way == f"+ - > {'  . '.join(phase.words for phase in PHASES[2:])}"[:79].rstrip()
    assert words == ["  | reads app.py", f"  | {'漢' * 37}", "  | \\x1b[2J\\u202e says", "  | one"]
    assert all(columns_of(each) < 80 for each in terminal.screen())
    line.show(standing(replace(status, said=(("w",) * 9,) * 9)))
    assert len(terminal.screen()) == 1 + 24 // 3
    line.show(standing(replace(status, said=(), phases=())))
    assert terminal.screen() == ["said above", LINE]
    line.show(standing(status))
    line.erase()
    assert terminal.screen() == ["said above", ""]


def test_a_terminal_that_becomes_narrow_gets_a_short_line(terminal: Terminal) -> None:
    line = StatusLine(terminal.stream)
    line.show(standing())
    before = terminal.read()
    terminal.resize(40)
    line.show(standing())
    # the old line is two rows now, and the cursor is in the first column of the upper one
    upper, lower = before.removeprefix("\r\x1b[J").removesuffix("\r")[:40], before.removesuffix("\r")[44:]
    screen = Screen(40, [list(upper), list(lower)]).feed(terminal.read())
    assert screen.lines == ["[7] implement 2/3 | 2:05 @make (codex m"]


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {}, {"TERM": "xterm", "CI": "true"}])
def test_where_no_line_can_be_redrawn_there_is_a_heartbeat(terminal: Terminal, env: dict[str, str]) -> None:
    with opened_display(terminal.stream, env) as display:
        assert isinstance(display, Heartbeat)
        display("said")
        display.show(standing())
    with opened_display(terminal.stream, {"TERM": "xterm"}, plain=True) as display:
        assert isinstance(display, Heartbeat)
    assert terminal.read() == "said\r\n"


def test_a_line_ends_with_whatever_ended_the_driver(terminal: Terminal) -> None:
    def work() -> None:
        with opened_display(terminal.stream, {"TERM": "xterm"}) as display:
            display.show(standing())
            assert terminal.screen() != [""]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert terminal.screen() == [""]
    assert signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL


SUSPENDED = """
import os, signal, sys
from cli.test_status_line import standing
from pipeline.faces.cli.status_line import opened_display

child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(0, os.getpid())
    with opened_display() as display:
        display.show(standing())
        os.kill(os.getpid(), signal.SIGTSTP)
        display("it goes on")
        display.show(standing())
    os._exit(0)
_, status = os.waitpid(child, os.WUNTRACED)
print("suspended", os.WIFSTOPPED(status), flush=True)
os.killpg(child, signal.SIGCONT)
_, status = os.waitpid(child, 0)
print("ended", os.waitstatus_to_exitcode(status), flush=True)
"""


@pytest.mark.broad
@pytest.mark.slow
def test_ctrl_z_leaves_nothing_and_the_line_comes_back(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    program = OnTerminal.start([sys.executable, "-c", SUSPENDED], tmp_path, env)
    assert program.end() == 0, program.text
    before, _, after = program.text.partition("suspended")
    assert all("[7] implement" in text for text in (before, after))
    assert Screen(80).feed(program.text).lines == ["suspended True", "it goes on", "ended 0", ""]


# --- the real program ----------------------------------------------------------------------------------------------

WAITING = """import time


def test_waits():
    with open({fifo!r}, "w") as bell:
        bell.write("here")
    time.sleep(600)
"""


def waiting(tmp_path: Path) -> tuple[Project, Path]:
    """Return a project whose test says that it runs, and never ends."""
    fifo = tmp_path / "bell"
    os.mkfifo(fifo)
    project = make_project(tmp_path, {**FILES, "tests/test_waits.py": WAITING.format(fifo=str(fifo))})
    project.use_script([], 'sandbox = "none"\n')
    return project, fifo


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.broad(but_first=1)
def test_a_terminal_shows_what_is_measured_and_since_when(tmp_path: Path, columns: int) -> None:
    project, _ = waiting(tmp_path)
    program = OnTerminal.start([str(REDFIRST), "run", "GAL-1"], project.root, project.environment(), columns)
    program.wait_for(lambda text: re.search(r"\[1\] sanity \| \d:\d\d the whole suite", text) is not None)
    shown = project.redfirst("show").stdout
    assert re.search(rf"\n  now +{SUITE}, for [\d.]+ s, since \d\d:\d\d:\d\d UTC\n", shown)
    assert [line["what"] for line in project.document("show")["now"]] == [SUITE]
    program.type(INTERRUPT)
    assert program.end() == 130
    assert not [line for line in Screen(columns).feed(program.text).lines if " | " in line]
    assert not (project.run_folder() / "now.json").exists()
    assert "\n  now  " not in project.redfirst("show").stdout


@pytest.mark.broad
@pytest.mark.slow
def test_a_pipe_gets_lines_and_a_document_stays_one(tmp_path: Path) -> None:
    project, fifo = waiting(tmp_path)
    with spawn(project, "run", "GAL-1", "--json") as driver:
        fifo.read_text()
        driver.send_signal(signal.SIGINT)
        out, err = driver.communicate()
    document: dict[str, Any] = json.loads(out)
    assert document["exit_code"] == driver.returncode == 130
    assert document["seconds"] > 0
    assert document["spent"] == "0 dispatches, no model asked"
    assert f"    {SUITE} ...\n" in err
    assert "\x1b" not in err
    assert "\r" not in err


def test_a_measurement_without_a_run_breaks_its_silence_and_hands_on_what_comes_of_it() -> None:
    clock, told = Clock(), list[str]()
    beating = Beating("tdd", told.append, clock, each_s=0.001)

    async def measure(answer: str) -> str:
        beating("the tests over the base's code")
        clock.now += 61
        while len(told) < 2:
            await anyio.lowlevel.checkpoint()
        return answer

    async def refuse() -> None:
        raise UserError("it cannot", Reason.USAGE)

    assert anyio.run(beating.during, measure, "RED") == "RED"
    assert told == ["the tests over the base's code", "    tdd, 1 min 1 s so far: the tests over the base's code"]
    with pytest.raises(UserError, match="it cannot"):
        anyio.run(beating.during, refuse)
