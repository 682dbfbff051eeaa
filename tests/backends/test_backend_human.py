"""A person as a backend: the desk, the hand-in, and that nothing of theirs is lost."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from dispatch.one_view import open_view

from pipeline.agents.backends import BACKENDS
from pipeline.agents.backends.desk import Desk, desk_around, desks_of
from pipeline.agents.backends.protocol import AgentJob, AgentResult, Ended, Session
from pipeline.judge.policy.rights import ChangeKind
from pipeline.judge.reports.kinds import report_schema
from pipeline.judge.reports.taskfile import task_md
from pipeline.judge.reports.tasks import Task
from pipeline.process import Mount
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.vocabulary import Role

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from collections.abc import Callable

DONE = {"result": "COMPLETE"}


def fill(folder: Path) -> None:
    (folder / "app.py").write_text("a = 1\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "lib").mkdir()
    (folder / "lib/one.py").write_text("one\n")
    (folder / "outside").symlink_to("/etc")


@dataclass
class Slot:
    """One slot of a run: its desk stays from dispatch to dispatch, its view does not."""

    folder: Path
    base: Callable[[Path], None] = fill
    said: list[str] = field(default_factory=list[str])
    artifacts: dict[str, str] = field(default_factory=dict[str, str])
    number: int = 0

    def __post_init__(self) -> None:
        (self.folder / "sessions/3-make").mkdir(parents=True)

    @property
    def desk(self) -> Desk:
        return Desk(self.folder / "sessions/3-make.person")

    def job(self, **changes: Any) -> AgentJob:
        self.number += 1
        writable = bool(changes.pop("writable", True))
        self.view = open_view(
            self.base, self.folder / f"view-{self.number}", workspace=Path("/redfirst-view"), writable=writable
        )
        exchange = self.folder / f"try-{self.number}/.workflow/run-GAL-1/dispatches/003-implement-make/exchange"
        exchange.mkdir(parents=True)
        document = {
            "run_id": "run-GAL-1",
            "dispatch": "003-implement-make",
            "role": "make",
            "kind": "implement",
            "task": "1",
            "attempt": 1,
            "write": [{"path": "app.py", "action": "modify"}],
            "reask": changes.pop("reask", None),
            **changes.pop("facts", {}),
        }
        for name, text in self.artifacts.items():
            folder = exchange.parent / "artifacts" / name
            folder.mkdir(parents=True)
            (folder / f"{name}.md").write_text(text)
        mount = self.view.mount
        settings: dict[str, Any] = {
            "box": NoBox(),
            "document": json.dumps(document).encode(),
            "view": mount,
            "exchange": exchange,
            "prompt": f"Workspace: `{mount.source}`",
            "report_schema": report_schema("implement", Role.MAKE),
            "session": Session(Mount(self.folder / "sessions/3-make", Path("/redfirst-session"), writable=True)),
            "timeout_s": 60.0,
            "say": self.hear,
        }
        return AgentJob(**(settings | changes))

    def play(self, work: Callable[[Path], object] | None = None, report: object = None, **changes: Any) -> AgentResult:
        """Ask; a person does *work* at the desk once it is announced, and hands in."""
        job = self.job(**changes)
        answers: list[AgentResult] = []

        async def person() -> None:
            with anyio.fail_after(60):
                await self.announced.wait()
            if work is not None:
                work(self.desk.files)
            if report is not None:
                self.desk.put(self.desk.report, json.dumps(report))

        async def both() -> None:
            self.listen()
            async with anyio.create_task_group() as group:
                group.start_soon(person)
                answers.append(await BACKENDS["human"].run(job))

        anyio.run(both)
        return answers[0]

    def leave(self, work: Callable[[Path], object], **changes: Any) -> None:
        """Ask; the driver is stopped while the person is at work."""
        job = self.job(**changes)

        async def driver() -> None:
            self.listen()
            async with anyio.create_task_group() as group:
                group.start_soon(BACKENDS["human"].run, job)
                with anyio.fail_after(60):
                    await self.announced.wait()
                work(self.desk.files)
                group.cancel_scope.cancel()

        anyio.run(driver)

    def listen(self) -> None:
        self.said.clear()
        self.announced = anyio.Event()

    def hear(self, line: str) -> None:
        self.said.append(line)
        if "redfirst hand-in" in line:
            self.announced.set()

    def changes(self) -> dict[str, ChangeKind]:
        return {change.path: change.kind for change in self.view.survey().changes}


@pytest.fixture
def slot(tmp_path: Path) -> Slot:
    return Slot(tmp_path)


def nothing(_: Path) -> None:
    pass


def other(folder: Path) -> None:
    (folder / "app.py").write_text("b = 1\n")


def test_work_at_the_desk_comes_into_the_view_as_it_is(slot: Slot) -> None:
    def work(desk: Path) -> None:
        (desk / "app.py").write_text("a = 2\n")
        (desk / "run.sh").chmod(0o644)
        (desk / "lib/one.py").unlink()
        (desk / "lib").rmdir()
        (desk / "new/deep").mkdir(parents=True)
        (desk / "new/deep/tool").write_text("#!/bin/sh\n")
        (desk / "new/deep/tool").chmod(0o755)
        (desk / "link").symlink_to("/etc/passwd")

    result = slot.play(work, DONE)
    assert (result.ended, result.complaint, json.loads(result.report_file or b"")) == (Ended.OK, None, DONE)
    assert slot.changes() == {
        "app.py": ChangeKind.MODIFIED,
        "lib/one.py": ChangeKind.DELETED,
        "link": ChangeKind.SYMLINK,
        "new/deep/tool": ChangeKind.ADDED,
        "run.sh": ChangeKind.MODE,
    }
    assert (slot.view.host / "new/deep/tool").stat().st_mode & stat.S_IXUSR
    assert (slot.view.host / "link").readlink() == Path("/etc/passwd")
    assert not (slot.view.host / "lib").exists()
    assert b"changed app.py" in result.stdout
    assert result.usage.cost_usd == 0


def test_nothing_is_written_through_a_link_of_the_view(slot: Slot, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()

    def linked(folder: Path) -> None:
        (folder / "door").symlink_to(outside)
        (folder / "file").write_text("x")

    def work(desk: Path) -> None:
        (desk / "door").unlink()
        (desk / "door").mkdir()
        (desk / "door/planted").write_text("x")
        (desk / "file").unlink()
        (desk / "file").symlink_to(outside / "written")

    slot.base = linked
    assert slot.play(work, DONE).ended is Ended.OK
    assert list(outside.iterdir()) == []
    assert (slot.view.host / "door/planted").read_text() == "x"
    assert (slot.view.host / "file").is_symlink()


def test_the_person_reads_paths_that_are_theirs(slot: Slot) -> None:
    slot.play(nothing, DONE)
    prompt = slot.desk.prompt.read_text()
    assert "Workspace: `desk`" in prompt
    assert "You may change: app.py (modify)." in prompt
    assert "redfirst hand-in run-GAL-1" in prompt
    reports = json.loads(slot.desk.template.read_text())
    assert reports[0]["result"] == "COMPLETE"
    assert f"It has {len(reports)} reports: keep one, and drop the brackets." in prompt
    assert max(map(len, slot.said)) <= 80, slot.said
    assert stat.S_IMODE(slot.desk.folder.stat().st_mode) == 0o700


def test_a_role_that_changes_nothing_only_reports(slot: Slot) -> None:
    result = slot.play(lambda desk: (desk / "app.py").unlink(), {"verdict": "ACCEPTABLE"}, writable=False)
    assert result.complaint is None
    assert slot.changes() == {}
    assert any("are not taken over" in line for line in slot.said)


def test_a_stopped_driver_loses_nothing(slot: Slot) -> None:
    slot.leave(lambda desk: (desk / "app.py").write_text("half\n"))
    assert (slot.desk.files / "app.py").read_text() == "half\n"

    def rest(desk: Path) -> None:
        assert (desk / "app.py").read_text() == "half\n"
        (desk / "app.py").write_text("whole\n")

    assert slot.play(rest, DONE).complaint is None
    assert slot.view.read("app.py") == b"whole\n"


def test_a_hand_in_that_nobody_took_counts_when_the_same_is_asked_again(slot: Slot) -> None:
    slot.leave(lambda desk: (desk / "app.py").write_text("done\n"))
    slot.desk.put(slot.desk.report, json.dumps(DONE))
    job = slot.job()
    slot.said.clear()
    assert anyio.run(BACKENDS["human"].run, job).report_file == slot.desk.report.read_bytes()
    assert slot.said == ["003-implement-make: takes what was handed in"], "nobody is asked what they have answered"
    assert slot.view.read("app.py") == b"done\n"


def test_an_answer_that_did_not_count_is_given_again_at_the_same_desk(slot: Slot) -> None:
    slot.play(lambda desk: (desk / "other.py").write_text("x\n"), DONE)

    def again(desk: Path) -> None:
        assert not slot.desk.report.exists()
        (desk / "other.py").unlink()
        (desk / "app.py").write_text("a = 3\n")

    needs = "; to ask for it, answer INCOMPLETE or CANNOT_PROCEED with it in `needs`"
    told = {"reask": f"other.py: not yours{needs}", "prompt": f"It did not count: other.py: not yours{needs}."}
    result = slot.play(again, {"result": "COMPLETE", "summary": "now"}, **told)
    assert "`needs`" not in "".join(slot.said), "that is how an agent asks"
    assert slot.desk.prompt.read_text().endswith("other.py: not yours.")
    assert json.loads(result.report_file or b"")["summary"] == "now"
    assert slot.changes() == {"app.py": ChangeKind.MODIFIED}
    assert any("did not count: other.py" in line for line in slot.said)


def test_a_desk_that_was_laid_out_with_other_code_is_kept_aside(slot: Slot) -> None:
    slot.leave(lambda desk: (desk / "app.py").write_text("mine\n"))
    slot.desk.put(slot.desk.report, json.dumps(DONE))
    slot.base = other

    def work(desk: Path) -> None:
        assert (desk / "app.py").read_text() == "b = 1\n"
        assert not slot.desk.report.exists()

    slot.play(work, {"result": "COMPLETE", "summary": "other"})
    assert slot.changes() == {}
    assert (slot.desk.folder / "desk.old-1/app.py").read_text() == "mine\n"
    assert any("desk.old-1" in line for line in slot.said)


def test_what_an_agent_left_in_the_session_is_never_taken_for_a_desk(slot: Slot) -> None:
    planted = Desk(slot.folder / "sessions/3-make")
    planted.files.symlink_to("/etc")
    planted.put(planted.report, json.dumps(DONE))
    result = slot.play(nothing, {"result": "COMPLETE", "summary": "mine"})
    assert json.loads(result.report_file or b"")["summary"] == "mine"


def test_nobody_answers_in_time(slot: Slot) -> None:
    result = slot.play(nothing, timeout_s=0.3)
    assert (result.ended, result.exit_code) == (Ended.TIMED_OUT, None)
    assert result.complaint == "Nothing was handed in within 0.3 seconds."
    assert slot.desk.files.is_dir()


def test_what_is_no_file_is_said_and_not_waited_for(slot: Slot) -> None:
    result = slot.play(lambda desk: os.mkfifo(desk / "pipe"), DONE)
    assert result.complaint == "These are at the desk and cannot be taken over: pipe (no file, folder or link)."


def test_desks_are_found_by_where_one_stands_and_by_the_run(slot: Slot) -> None:
    slot.leave(nothing)
    run_folder = slot.folder / "try-1/.workflow/run-GAL-1"
    assert desk_around(slot.desk.files / "lib") == slot.desk
    assert desk_around(slot.folder) is None
    assert desks_of(run_folder, slot.folder) == [slot.desk]
    (run_folder / "dispatches/003-implement-make/result.json").touch()
    assert desks_of(run_folder, slot.folder) == []


def test_what_a_crash_left_of_a_desk_is_made_anew(slot: Slot) -> None:
    half = slot.desk.folder / "desk.new"
    half.mkdir(parents=True)
    (half / "app.py").touch()
    assert slot.play(lambda desk: (desk / "app.py").write_text("a = 2\n"), DONE).complaint is None
    assert slot.changes() == {"app.py": ChangeKind.MODIFIED}
    assert not half.exists()


def test_a_name_that_is_no_text_is_taken_over_as_it_is(slot: Slot) -> None:
    name = os.fsdecode(b"odd-\xff")
    result = slot.play(lambda desk: (desk / name).write_text("x"), DONE)
    assert b"changed odd-\xff" in result.stdout
    assert (slot.view.host / name).read_text() == "x"
    result = slot.play(lambda desk: os.mkfifo(desk / (name + "2")), DONE, reask="again")
    assert "odd-\\udcff2" in (result.complaint or "")


def test_the_criteria_that_are_to_be_answered_stand_in_the_template(tmp_path: Path) -> None:
    slot = Slot(tmp_path)
    asked = {"kind": "review-result", "role": "check", "to_answer": [{"task": "1", "id": "C2", "text": "b"}]}
    slot.play(None, {"verdict": "ACCEPTABLE"}, report_schema=report_schema("review-result", Role.CHECK), facts=asked)
    alone = "`--verdict ACCEPTABLE` alone says that each criterion is met, each open finding is resolved."
    assert alone in slot.desk.prompt.read_text()
    begun = json.loads(slot.desk.template.read_text())
    assert begun["criteria"] == [{"task": "1", "id": "C2", "met": None, "note": ""}]


def test_the_criteria_of_a_task_stand_in_the_template_of_its_tests(tmp_path: Path) -> None:
    slot = Slot(tmp_path)
    body = "# Task 1\n\n## Acceptance Criteria\n\n- [ ] C1: a\n- [ ] C2: b\n"
    slot.artifacts["task"] = task_md(Task(id="1", title="t", files=(), test_files=(), body=body))
    schema = report_schema("write-tests", Role.TEST)
    slot.play(None, DONE, report_schema=schema, facts={"kind": "write-tests", "role": "test"})
    ready, *others = json.loads(slot.desk.template.read_text())
    assert ready["criteria"] == [{"id": id_, "tests": [], "reason": ""} for id_ in ("C1", "C2")]
    assert not any("criteria" in each for each in others)


def test_the_findings_that_are_open_stand_in_the_template(tmp_path: Path) -> None:
    slot = Slot(tmp_path)
    slot.artifacts["open_findings"] = "# Open findings\n\n### plan-1-01 [HIGH] It fails\n"
    asked = {"kind": "review-plan", "role": "check"}
    slot.play(None, {"verdict": "ACCEPTABLE"}, report_schema=report_schema("review-plan", Role.CHECK), facts=asked)
    begun = json.loads(slot.desk.template.read_text())
    assert begun["prior"] == [{"id": "plan-1-01", "status": "", "note": ""}]
