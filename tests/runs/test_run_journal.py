"""The journal and the run that is folded from it: what a crash, a full disk or a tampering hand leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs.real import (
    alone,
    begin,
    dispatch,
    event,
    journal_lines,
    load,
    make_repository,
    start_dispatch,
    ticking,
    to_first_task,
    to_split,
    write_result,
)

from pipeline.errors import UserError
from pipeline.matrix.engine.journal import Journal
from pipeline.matrix.engine.journal_kinds import ArtifactWritten, ConfigChanged
from pipeline.matrix.engine.run import sha256_hex
from pipeline.matrix.routing.state import NewTask
from pipeline.outcomes import Outcome, Reason
from pipeline.run.folder import RunFolder
from pipeline.run.journal_kinds import ChangeAdmitted
from pipeline.run.run import Run
from pipeline.vocabulary import Loop, Role, Signal, Step

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    alone(monkeypatch, tmp_path / "home")
    return begin(make_repository(tmp_path / "project"))


def damage(run: Run, change: Callable[[list[str]], object]) -> None:
    path = run.folder / "journal.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    change(lines)
    path.write_text("".join(lines))


def rewrite(run: Run, number: int, change: Callable[[dict[str, Any]], object]) -> None:
    def edit(lines: list[str]) -> None:
        line = json.loads(lines[number])
        change(line)
        lines[number] = json.dumps(line) + "\n"

    damage(run, edit)


# --- the file ------------------------------------------------------------------------------------------------------


def test_a_line_carries_number_time_host_epoch_and_schema(run: Run) -> None:
    (line,) = journal_lines(run)
    assert line["schema"] == "redfirst.journal/1"
    assert (line["seq"], line["at"], line["epoch"], line["kind"]) == (1, "2026-11-20T14:00:01.000Z", 1, "run_started")
    assert line["host"] == os.uname().nodename
    assert line["data"]["sandbox"] == {"sandbox": "bubblewrap", "network": "none"}


def test_a_torn_last_line_is_read_over_and_cut_off_when_driving(run: Run) -> None:
    run.decide(event(Signal.OK))
    path = run.folder / "journal.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"schema":"redfirst.journal/1","seq":3,"at"')
    assert load(run).state.trunk.step is Step.ISSUE
    assert path.read_bytes() != whole
    driven = load(run, driving=True)
    assert path.read_bytes() == whole
    driven.decide(event(Signal.CLAIMED))
    assert [line["seq"] for line in journal_lines(run)] == [1, 2, 3]


def test_a_broken_line_in_the_middle_is_refused_with_its_number(run: Run) -> None:
    to_split(run)
    damage(run, lambda lines: lines.__setitem__(2, lines[2][:40] + "\n"))
    before = (run.folder / "journal.jsonl").read_bytes()
    with pytest.raises(UserError, match="damaged at line 3") as refused:
        load(run, driving=True)
    assert refused.value.pointer == "/2"
    assert (run.folder / "journal.jsonl").read_bytes() == before


def test_a_missing_line_is_refused(run: Run) -> None:
    to_split(run)
    damage(run, lambda lines: lines.pop(2))
    with pytest.raises(UserError, match=r"line 3 \(seq is 4\)"):
        load(run)


def test_an_unknown_kind_is_refused(run: Run) -> None:
    rewrite(run, 0, lambda line: line.__setitem__("kind", "gossip"))
    with pytest.raises(UserError, match="damaged at line 1"):
        load(run)


@settings(max_examples=30, deadline=None)
@given(data=st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.lists(st.text(max_size=9), max_size=3)))
def test_any_text_survives_the_journal(tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]) -> None:
    folder = RunFolder(tmp_path_factory.mktemp("journal"))
    said = {"path": "evidence/x.json", "sha256": "0", "data": data}
    written = Journal(folder, [], clock=ticking()).append(ArtifactWritten.model_validate(said))
    assert Journal.read(folder).lines == [written]
    assert json.loads(folder.journal())["data"] == said, "also what only a later version says"


def test_a_file_name_that_is_no_text_does_not_stop_the_journal(run: Run) -> None:
    run.journal.append(ChangeAdmitted(dispatch="001", paths=(os.fsdecode(b"caf\xe9"),)))
    run.journal.append(ArtifactWritten(path="next", sha256="0"))
    (line,) = load(run).journal.of(ChangeAdmitted)
    assert os.fsencode(line.data.paths[0]) == b"caf\xe9"


_FULL_DISK = """
import resource, sys
from pathlib import Path
from pipeline.errors import UserError
from pipeline.matrix.routing.state import Event
from pipeline.vocabulary import Signal
from pipeline.run.run import Run
run = Run.load(Path(sys.argv[1]), driving=True)
size = (run.folder / "journal.jsonl").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
try:
    run.decide(Event(signal=Signal.CLAIMED))
except UserError as error:
    print(error.reason.value, run.state.trunk.step.value)
try:
    run.write_artifact("plan.md", "x" * size * 2)
except UserError as error:
    print(error.reason.value, [p.name for p in run.folder.iterdir() if "plan.md" in p.name])
"""


def test_a_full_disk_leaves_the_journal_as_it_was(run: Run) -> None:
    run.decide(event(Signal.OK))
    before = (run.folder / "journal.jsonl").read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, str(run.folder)], capture_output=True, text=True, check=True, cwd=Path.cwd()
    )
    assert done.stdout.splitlines() == ["disk issue", "disk []"]
    assert (run.folder / "journal.jsonl").read_bytes() == before


# --- folding ---------------------------------------------------------------------------------------------------------


def test_folding_gives_the_state_that_driving_gave(run: Run) -> None:
    to_first_task(run, NewTask(id="1"), NewTask(id="2", depends_on=("1",)))
    dispatch(run, Role.TEST, "write-tests")
    run.decide(event(Signal.RED, tree=run.info.start_tree, note="1 test RED"))
    folded = load(run)
    assert folded.state == run.state
    assert folded.results == run.results
    assert folded.history == run.history
    assert [one.decision.row for one in folded.history][-1] == "write-tests/RED"
    assert folded.history[-1].before.trunk.step is Step.WRITE_TESTS
    assert folded.history[-1].after.trunk.step is Step.IMPLEMENT


@pytest.mark.parametrize("key", ["row", "action", "counters", "event"])
def test_a_tampered_decision_is_refused(run: Run, key: str) -> None:
    to_split(run)
    run.decide(event(Signal.HYGIENE))
    other = {
        "row": "split/DRAFTED",
        "action": {"do": "Goto", "to": "publish", "ask": None},
        "counters": {"hygiene@draft 2": 2},
        "event": {"signal": "DRAFTED", "tasks": [{"id": "1"}]},
    }
    rewrite(run, -1, lambda line: line["data"].__setitem__(key, other[key]))
    with pytest.raises(UserError, match="was decided otherwise at journal line 6") as refused:
        load(run)
    assert refused.value.actions == ("redfirst abandon run-GAL-39",)


def test_a_decision_that_the_matrix_does_not_know_is_refused(run: Run) -> None:
    run.decide(event(Signal.OK))
    rewrite(run, -1, lambda line: line["data"].__setitem__("event", {"signal": "GREEN"}))
    with pytest.raises(UserError, match="was decided otherwise"):
        load(run)


def test_run_json_that_is_gone_or_broken_is_told(run: Run) -> None:
    (run.folder / "run.json").write_text("{")
    with pytest.raises(UserError, match=r"run\.json"):
        load(run)
    (run.folder / "run.json").unlink()
    with pytest.raises(UserError, match=r"run\.json"):
        load(run)


def test_a_result_that_is_gone_is_told(run: Run) -> None:
    to_first_task(run)
    name = dispatch(run, Role.TEST, "write-tests")
    (run.folder / name).unlink()
    with pytest.raises(UserError, match="001-write-tests-test cannot be read"):
        load(run)


def test_raised_limits_hold_after_folding(run: Run) -> None:
    run.tell(ConfigChanged(limits={Loop.HYGIENE: 7}, config_hash="hash"))
    assert load(run).state.limits[Loop.HYGIENE] == 7


def test_abandoned_is_final(run: Run) -> None:
    run.abandon()
    assert (load(run).state.outcome, load(run).state.reason) == (Outcome.CANCELLED, Reason.ABANDONED)
    run.resume()
    assert load(run).state.outcome is Outcome.CANCELLED


def test_a_resumed_run_is_in_a_new_epoch_and_asks_again(run: Run) -> None:
    to_split(run)
    run.decide(event(Signal.UNAVAILABLE, role=Role.ORCHESTRATOR))
    assert run.state.outcome is Outcome.PARKED
    driver = load(run, driving=True)
    driver.resume(sandbox={"sandbox": "none", "network": "none"})
    driver.decide(event(Signal.DRAFTED, tasks=(NewTask(id="1"),)))
    assert [line["epoch"] for line in journal_lines(run)][-3:] == [1, 2, 2]
    assert load(run).state.trunk.step is Step.REVIEW_SPLIT
    assert load(run).journal.epoch == 2


# --- crashes ---------------------------------------------------------------------------------------------------------


def test_a_kill_between_result_and_journal_line_costs_nothing(run: Run) -> None:
    to_first_task(run)
    write_result(run, start_dispatch(run, Role.TEST, "write-tests"))
    assert load(run).results == {}
    driver = load(run, driving=True)
    assert list(driver.results) == ["001-write-tests-test"]
    assert [line["kind"] for line in journal_lines(run)][-2:] == ["dispatch_finished", "change_admitted"]
    assert load(run, driving=True).state.dispatches == 1


def test_a_kill_between_a_result_and_what_the_gate_said_is_made_good(run: Run) -> None:
    to_first_task(run)
    dispatch(run, Role.TEST, "write-tests")
    damage(run, lambda lines: lines.pop())
    load(run, driving=True)
    load(run, driving=True)
    assert [line["kind"] for line in journal_lines(run)][-2:] == ["dispatch_finished", "change_admitted"]


def test_an_unfinished_dispatch_is_not_finished_by_recovery(run: Run) -> None:
    to_first_task(run)
    start_dispatch(run, Role.TEST, "write-tests")
    driver = load(run, driving=True)
    assert driver.results == {}
    assert driver.state.dispatches == 1


def test_a_kill_between_a_decision_and_its_effects_is_made_good_once(run: Run) -> None:
    to_split(run)
    run.decide(event(Signal.UNAVAILABLE, role=Role.ORCHESTRATOR))
    damage(run, lambda lines: lines.pop())
    assert journal_lines(run)[-1]["kind"] == "decision"
    load(run, driving=True)
    load(run, driving=True)
    assert [line["kind"] for line in journal_lines(run)][-2:] == ["decision", "run_parked"]


def test_a_run_without_a_journal_begins_it_again(run: Run) -> None:
    (run.folder / "journal.jsonl").unlink()
    assert load(run, driving=True).state.trunk.step is Step.SANITY
    assert journal_lines(run)[0]["kind"] == "run_started"


_KILLED = """
import os, signal, sys
from pathlib import Path
from pipeline.matrix.routing.state import Event
from pipeline.vocabulary import Signal
from pipeline.run.run import Run
run = Run.load(Path(sys.argv[1]), driving=True)
run.decide(Event(signal=Signal.OK))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_decided_before_a_kill_is_on_disk(run: Run) -> None:
    done = subprocess.run([sys.executable, "-c", _KILLED, str(run.folder)], check=False, cwd=Path.cwd())
    assert done.returncode == -signal.SIGKILL
    assert load(run).state.trunk.step is Step.ISSUE


# --- artifacts -------------------------------------------------------------------------------------------------------


def test_an_artifact_is_written_and_journalled_once(run: Run) -> None:
    for _ in range(2):
        run.write_artifact("evidence/x.json", "{}")
        assert run.read("evidence/x.json") == b"{}"
    lines = [line for line in journal_lines(run) if line["kind"] == "artifact_written"]
    assert [line["data"] for line in lines] == [{"path": "evidence/x.json", "sha256": sha256_hex(b"{}")}]
    assert load(run).artifacts == {"evidence/x.json": sha256_hex(b"{}")}


def test_an_artifact_whose_line_a_crash_swallowed_is_journalled_when_written_again(run: Run) -> None:
    run.write_artifact("plan.md", "# Plan\n")
    damage(run, lambda lines: lines.pop())
    driver = Run.load(run.folder, driving=True)
    driver.write_artifact("plan.md", "# Plan\n")
    assert load(run).artifacts == {"plan.md": sha256_hex(b"# Plan\n")}


def test_an_artifact_that_somebody_changed_is_put_right_and_journalled(run: Run) -> None:
    run.write_artifact("plan.md", "ours\n")
    (run.folder / "plan.md").write_text("theirs\n")
    run.write_artifact("plan.md", "ours\n")
    assert (run.folder / "plan.md").read_text() == "ours\n"
    assert [line["kind"] for line in journal_lines(run)].count("artifact_written") == 2
