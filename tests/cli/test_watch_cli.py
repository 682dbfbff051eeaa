"""`redfirst watch`: what is to be seen of a run that another process drives, on a terminal and in a pipe."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from kit import REDFIRST, make_project
from runs.real import begin, event
from terminal import INTERRUPT, OnTerminal

from pipeline.app.live_view import live_view
from pipeline.characters import columns
from pipeline.progress import Activity
from pipeline.repo import Repository
from pipeline.run.activity_file import write_now
from pipeline.run.lease import FileLease
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

COLOUR = re.compile(r"\x1b\[(?:\d+;)*[349]\d(?:;\d+)*m")
MOVES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HOSTILE = "\x1b]0;owned\x07 \u202egnp.exe [bold]loud[/bold]"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def frames(text: str) -> list[str]:
    """Return what was drawn, one picture after the other, as plain lines."""
    plain = MOVES.sub("", text.replace("\r\n", "\n").replace("\r", ""))
    return ["run-" + part for part in plain.split("run-GAL-1  ")[1:]]


def test_check_07_watch_fits_80_columns_without_colour_and_ends_with_the_driver(project: Project) -> None:
    run = begin(Repository.find(project.root), "run-GAL-1")
    run.decide(event(Signal.OK))
    lease = FileLease.take(run.folder)
    env = {**project.environment(), "NO_COLOR": "1"}
    seen = OnTerminal.start([str(REDFIRST), "watch"], project.root, env)
    try:
        seen.wait_for(lambda text: "running, issue (phase 2)" in text)
        run.decide(event(Signal.CLAIMED, note=HOSTILE))
        seen.wait_for(lambda text: "> 3 Plan" in text and "usually 4 Review plan" in text)
        seen.wait_for(lambda text: "\\x1b]0" in text)
        words = Activity("@make", 0.0, datetime.now(UTC), lambda: ("reads app.py", HOSTILE, "x" * 200))
        write_now(run.folder, run.journal.epoch, [words])
        seen.wait_for(lambda text: "| reads app.py" in text and "| \\x1b]0" in text and "| xxx" in text)
    finally:
        lease.release()
    assert seen.end() == 0
    assert COLOUR.findall(seen.text) == []
    assert [line for line in frames(seen.text)[-1].splitlines() if columns(line) > 80] == []
    assert "interrupted, plan (phase 3)" in frames(seen.text)[-1]
    assert "\x1b]0;" not in seen.text


@pytest.mark.broad
def test_ctrl_c_ends_the_watching_and_not_the_run(project: Project) -> None:
    run = begin(Repository.find(project.root), "run-GAL-1")
    lease = FileLease.take(run.folder)
    seen = OnTerminal.start([str(REDFIRST), "watch", "GAL-1"], project.root, project.environment())
    seen.wait_for(lambda text: "running" in text)
    seen.type(INTERRUPT)
    assert seen.end() == 0
    assert FileLease.is_held(run.folder)
    lease.release()


@pytest.mark.broad
def test_in_a_pipe_it_is_what_happened_line_by_line(project: Project) -> None:
    begin(Repository.find(project.root), "run-GAL-1").decide(event(Signal.OK))
    done = project.redfirst("watch")
    assert (done.returncode, done.stdout) == (0, project.redfirst("show", "--log").stdout)


def test_what_was_gone_back_to_is_ahead_again(project: Project) -> None:
    run = begin(Repository.find(project.root), "run-GAL-1")
    for signal in (Signal.OK, Signal.CLAIMED, Signal.DRAFTED, Signal.NEEDS_WORK):
        run.decide(event(signal))
    found = live_view(run.folder)
    assert [(one.phase.number, one.stands, one.visits) for one in found.phases[:5]] == [
        ("1", "done", 1),
        ("2", "done", 1),
        ("3", "now", 1),
        ("4", "ahead", 1),
        ("5", "ahead", 0),
    ]
