"""Ctrl-C, SIGTERM and a closed terminal at each moment: 130, one line, nothing that reads like another failure.

The signal goes to the whole process group, as a terminal sends it. Where it comes is a program that waits for the test.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from crashes import Bell, Result, footprint, processes_of, repeated_dispatches, spawn
from crashes import problems as left_by
from kit import FILES, HONEST, ISSUE, PLAN_SIMPLE, README, REDFIRST, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = pytest.mark.slow

GO_ON = "redfirst resume run-GAL-1"


@dataclass(frozen=True)
class Halt:
    """A program that waits, once, in the midst of what redfirst asks of it: it says so, and goes on when told."""

    ready: Path
    go: Path

    @classmethod
    def of(cls, project: Project, name: str, pattern: str) -> Halt:
        """Put a program before the real one of that *name*, which waits where its arguments fit *pattern*."""
        folder = project.home / "bin"
        folder.mkdir()
        halt = cls(folder / "ready", folder / "go")
        for fifo in (halt.ready, halt.go):
            os.mkfifo(fifo)
        real = shutil.which(name, path=project.environment()["PATH"])
        (folder / name).write_text(
            f'#!/bin/sh\ncase "$*" in {pattern}) [ -e {folder}/rung ] || {{ : > {folder}/rung; echo > {halt.ready}; '
            f'read line < {halt.go}; }};; esac\nexec {real} "$@"\n'
        )
        (folder / name).chmod(0o755)
        project.env["PATH"] = f"{folder}:{project.environment()['PATH']}"
        return halt

    def wait(self, driver: subprocess.Popen[str]) -> None:
        """Return when it waits."""
        bell, end = os.open(self.ready, os.O_RDONLY | os.O_NONBLOCK), os.pidfd_open(driver.pid)
        try:
            ready, _, _ = select.select([bell, end], [], [], 120)
            assert ready == [bell], driver.communicate() if end in ready else "it never waited"
        finally:
            os.close(bell)
            os.close(end)

    def let_go(self) -> None:
        """Let it go on."""
        with self.go.open("w", encoding="utf-8") as told:
            told.write("go on\n")


def ended(driver: subprocess.Popen[str]) -> tuple[int, list[str], list[str]]:
    """Return the exit code and the lines of both streams."""
    out, err = driver.communicate(timeout=120)
    assert "Traceback" not in err
    return driver.returncode, out.splitlines(), list(filter(None, err.splitlines()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.broad(but_first=1)
def test_before_a_run_is_there_nothing_is_left_and_it_is_said_how_to_begin(
    tmp_path: Path, number: signal.Signals
) -> None:
    project = make_project(tmp_path)
    project.use_script(HONEST)
    before = footprint(project)
    halt = Halt.of(project, "git", "*ls-tree*")
    with spawn(project, "run", "GAL-1") as driver:
        halt.wait(driver)
        os.killpg(driver.pid, number)
        halt.let_go()
        code, out, err = ended(driver)
    assert (code, out) == (130, [])
    assert err == ["redfirst: Interrupted: no run was begun. Again: redfirst run GAL-1"]
    assert footprint(project) == before


BLOCKED = """import os
if os.path.exists("{folder}/fifo"):
    open("{folder}/fifo", "w").close()
    open("{folder}/never").read()
"""


@pytest.mark.broad
def test_ctrl_c_in_sanity_stops_the_tests_at_once_and_they_are_measured_again(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    bell = Bell(project.home)
    os.mkfifo(bell.folder / "never")
    project.write({"conftest.py": BLOCKED.format(folder=bell.folder)})
    project.commit()
    project.use_script(HONEST, extra='sandbox = "none"')
    with spawn(project, "run", "GAL-1") as driver:
        bell.wait(driver)
        os.killpg(driver.pid, signal.SIGINT)
        code, out, err = ended(driver)
    assert code == 130
    said = "nobody was being asked, and the step sanity begins again"
    assert out == [f"run-GAL-1: paused: {said}. Go on: {GO_ON}"]
    assert [line for line in err if re.search("stopp|interrupt|kill|lost|cancel", line, re.IGNORECASE)] == []
    assert processes_of(project) == {}
    assert project.document("show", "GAL-1")["reason"] == "interrupted"
    (bell.folder / "fifo").unlink()
    assert project.document("resume", "GAL-1")["outcome"] == "completed"
    assert left_by(project) == []


@pytest.mark.parametrize("command", [("run", "GAL-1"), ("doctor",)])
@pytest.mark.broad
def test_ctrl_c_while_an_interpreter_is_asked_is_no_broken_interpreter(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    project = make_project(tmp_path, {**FILES, ".gitignore": "/.venv/\n"})
    project.use_script(HONEST)
    made = project.root / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", made], check=True)
    halt = Halt.of(project, "python3", "*")
    (made / "bin" / "python").unlink()
    (halt.ready.parent / "python3").rename(made / "bin" / "python")
    with spawn(project, *command) as driver:
        halt.wait(driver)
        os.killpg(driver.pid, signal.SIGINT)
        halt.let_go()
        code, out, err = ended(driver)
    assert code == 130, (out, err)
    assert not re.search("interpreter|pytest|does not run", "\n".join([*out, *err])), (out, err)
    if command == ("doctor",):
        assert err == ["redfirst: Interrupted: nothing was changed. Again: redfirst doctor"]


@pytest.mark.parametrize(("pattern", "goes_out"), [("*commit-tree*", False), ("*read-tree*-m*-u*", True)])
@pytest.mark.broad
def test_publication_stops_before_anything_is_written_and_else_is_brought_to_its_end(
    tmp_path: Path, pattern: str, goes_out: bool
) -> None:
    project = make_project(tmp_path)
    project.use_script(HONEST)
    parked = project.run("--approve", "commit")
    assert parked["reason"] == "approval", parked["_stderr"]
    before = project.git("rev-parse", "work")
    halt = Halt.of(project, "git", pattern)
    with spawn(project, "approve", "GAL-1", "--json") as driver:
        halt.wait(driver)
        os.killpg(driver.pid, signal.SIGINT)
        halt.let_go()
        out, err = driver.communicate(timeout=120)
    document: dict[str, Any] = json.loads(out)
    if goes_out:
        assert (driver.returncode, document["outcome"]) == (0, "completed"), err
    else:
        assert (driver.returncode, document["reason"]) == (130, "interrupted"), err
        assert project.git("rev-parse", "work") == before
        assert project.git("for-each-ref", "refs/redfirst/publish") == ""
        assert project.document("resume", "GAL-1")["outcome"] == "completed"
    assert left_by(project) == []


# --- at a terminal -------------------------------------------------------------------------------------------------


def at_terminal(project: Project, *argv: str) -> tuple[int, int]:
    """Start redfirst as the leader of a terminal's foreground; return its process, and our end of the terminal."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(project.root)
        os.execve(REDFIRST, [str(REDFIRST), *argv], project.environment())  # noqa: S606
    return process, terminal


def read_until(terminal: int, words: str) -> str:
    """Return what the terminal shows until it shows *words*, or to its end."""
    shown = ""
    while words not in shown:
        assert select.select([terminal], [], [], 120)[0], f"{words!r} never came: {shown}"
        try:
            shown += os.read(terminal, 4096).decode(errors="replace")
        except OSError:  # it has closed
            break
    return shown


def ring_and_wait(project: Project, bell: Bell) -> None:
    """Let the first agent ring, and wait for ever."""
    project.use_script([bell.sleeper(HONEST[0]), *HONEST[1:]])


def await_bell(bell: Bell) -> None:
    with (bell.folder / "fifo").open(encoding="utf-8") as fifo:
        fifo.read()


def test_ctrl_c_twice_at_a_terminal_ends_the_dispatch_and_says_what_is_asked_again(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    bell = Bell(project.home)
    ring_and_wait(project, bell)
    process, terminal = at_terminal(project, "run", "GAL-1", *bell.flags)
    await_bell(bell)
    os.write(terminal, b"\x03")
    shown = read_until(terminal, "stops now")
    os.write(terminal, b"\x03")
    shown += read_until(terminal, "\0")
    _, status = os.waitpid(process, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 130, shown
    said = " ".join(shown.split())
    stopping = "it stops once 001-plan-orchestrator answered. A second Ctrl-C stops now: it is asked again later"
    end = f"run-GAL-1: paused: 001-plan-orchestrator had not answered and is asked again. Go on: {GO_ON}"
    assert said.endswith(end), said
    assert said.count(stopping) == 1
    assert said.count("paused") == 1
    assert processes_of(project) == {}


@pytest.mark.broad
def test_a_terminal_that_closes_stops_the_run_which_goes_on_elsewhere(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    bell = Bell(project.home)
    answer = bell.folder / "answer"
    os.mkfifo(answer, 0o666)
    run = ["sh", "-c", f"echo > {bell.folder}/fifo; read line < {answer}"]
    project.use_script([{**HONEST[0], "run": run}, *HONEST[1:]])
    process, terminal = at_terminal(project, "run", "GAL-1", *bell.flags)
    await_bell(bell)
    os.close(terminal)
    with answer.open("w", encoding="utf-8") as told:
        told.write("go on\n")
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert project.document("show", "GAL-1")["reason"] == "interrupted"
    assert (project.run_folder() / "dispatches" / "001-plan-orchestrator" / "result.json").exists()
    assert project.document("resume", "GAL-1")["outcome"] == "completed"
    assert left_by(project) == []


@pytest.mark.broad
def test_one_ctrl_c_leaves_a_desk_as_it_is_and_says_so(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script(HONEST)
    with spawn(project, "run", "GAL-1", "--agent", "orchestrator=human") as driver:
        assert driver.stderr is not None
        for line in driver.stderr:
            if "hand-in" in line:
                break
        os.killpg(driver.pid, signal.SIGINT)
        code, out, err = ended(driver)
    assert code == 130, err
    said = "the desk of 001-plan-orchestrator stays as it is"
    assert out == [f"run-GAL-1: paused: {said}. Go on: {GO_ON}"]
    told_before = "  Ctrl-C stops waiting; the desk stays, and resume goes on with it"
    assert [line for line in err if line != told_before and ("lost" in line or "stop" in line)] == []


@pytest.mark.broad(but_first=0)
def test_what_an_interrupted_demo_prints_goes_on_where_it_is_typed(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    halt = Halt.of(project, "git", "*ls-tree*")
    with spawn(project, "demo", str(tmp_path / "demo")) as driver:
        halt.wait(driver)
        os.killpg(driver.pid, signal.SIGINT)
        halt.let_go()
        code, out, _ = ended(driver)
    assert code == 130
    assert out[-1].startswith("Interrupted; no run was begun. Go on: cd ")
    command = out[-1].partition("Go on: ")[2].partition("; or remove")[0]
    done = subprocess.run(command, shell=True, env=project.environment(), capture_output=True, text=True, check=False)  # noqa: S602
    assert done.returncode == 0, done.stderr


# --- signals to the driver alone, and who may drive what --------------------------------------------------------------

FINISHED = "dispatches/001-plan-orchestrator/result.json"


def stopped(driver: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the document of a driver that is stopping."""
    out, said = driver.communicate(timeout=300)
    document: dict[str, Any] = json.loads(out)
    return {**document, "_stderr": said, "_code": driver.returncode}


def ringing(project: Project, bell: Bell, number: int, then: str) -> list[Entry]:
    """Return the honest answers; the agent of entry *number* rings and then runs *then*."""
    entries = [*HONEST]
    entries[number] = {**entries[number], "run": ["sh", "-c", f"echo > {bell.folder}/fifo; {then}"]}
    return entries


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.broad
def test_one_signal_lets_the_dispatch_finish_and_stops_before_the_next(tmp_path: Path, number: signal.Signals) -> None:
    project = make_project(tmp_path)
    bell = Bell(project.home)
    project.use_script(ringing(project, bell, 0, f"read line < {bell.folder}/answer"))
    os.mkfifo(bell.folder / "answer", 0o666)
    with spawn(project, "run", "GAL-1", "--json", *bell.flags) as driver:
        bell.wait(driver)
        driver.send_signal(number)
        said = await_line(driver, "it stops once")
        with (bell.folder / "answer").open("w", encoding="utf-8") as answer:
            answer.write("go on\n")
        document = stopped(driver)
    assert "001-plan-orchestrator" in said
    assert "A second Ctrl-C" in said
    assert (document["_code"], document["outcome"], document["reason"]) == (130, "cancelled", "interrupted")
    assert "redfirst resume run-GAL-1" in document["safe_next_actions"]
    assert (project.run_folder() / FINISHED).exists()
    assert project.rows()[-1] == "any/CANCELLED"
    assert document["usage"]["dispatches"] == 1
    assert processes_of(project) == {}
    finished = project.document("resume", "GAL-1")
    assert (finished["_code"], finished["outcome"]) == (0, "completed")
    assert (left_by(project), repeated_dispatches(project)) == ([], [])


def await_line(driver: subprocess.Popen[str], words: str) -> str:
    """Return the first line of the driver's progress that holds *words*."""
    assert driver.stderr is not None
    for line in driver.stderr:
        if words in line:
            return line
    pytest.fail(f"the driver never said {words!r}")


@pytest.mark.parametrize("sandbox", ["auto", "none"])
@pytest.mark.broad
def test_a_second_signal_kills_the_dispatch_and_all_its_processes(tmp_path: Path, sandbox: str) -> None:
    project = make_project(tmp_path)
    bell = Bell(project.home)
    entries = ringing(project, bell, 1, "sleep 600 & sleep 601")
    project.use_script([entries[0], entries[1], {**PLAN_SIMPLE, "sleep_s": 600}, *entries[3:]])
    flags = (*bell.flags, "--set", f"sandbox={sandbox}")
    with spawn(project, "run", "GAL-1", "--json", *flags) as driver:
        bell.wait(driver)
        assert [name for name in processes_of(project).values() if "601" in name]
        driver.send_signal(signal.SIGINT)
        await_line(driver, "it stops once")
        driver.send_signal(signal.SIGINT)
        document = stopped(driver)
    assert processes_of(project) == {}
    names = ("002-review-plan-check", "003-review-plan-simplify")
    assert document["note"] == "; ".join(f"{name} had not answered and is asked again" for name in names)
    assert (document["_code"], document["outcome"], document["reason"]) == (130, "cancelled", "interrupted")
    assert project.document("show", "GAL-1")["outcome"] == "cancelled"
    project.use_script(HONEST)
    finished = project.document("resume", "GAL-1", "--set", f"sandbox={sandbox}")
    assert (finished["_code"], finished["outcome"]) == (0, "completed"), finished
    assert (left_by(project), repeated_dispatches(project)) == ([], [])
    assert (project.run_folder() / "dispatches" / "002-review-plan-check.lost-1").is_dir()


@pytest.mark.broad
def test_ctrl_c_at_a_terminal_reaches_no_git_of_ours(tmp_path: Path) -> None:
    """The terminal signals the whole foreground group; only the driver may hear it, in a run as in a measurement."""
    project = make_project(tmp_path)
    project.use_script(HONEST)
    slow = tmp_path / "bin"
    slow.mkdir()
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    # a git that dawdles over the first tree that it writes
    rung = tmp_path / "rung"
    dawdle = f"[ -e {rung} ] || {{ : > {rung}; echo > {ready}; sleep 1; }}"
    (slow / "git").write_text(f'#!/bin/sh\ncase "$*" in *mktree*) {dawdle};; esac\nPATH="${{PATH#*:}}" exec git "$@"\n')
    (slow / "git").chmod(0o755)
    path = f"{slow}:{project.environment()['PATH']}"
    project.env["PATH"] = path
    with spawn(project, "run", "GAL-1", "--json") as driver:
        with ready.open(encoding="utf-8") as bell:
            bell.read()
        os.killpg(driver.pid, signal.SIGINT)
        document = stopped(driver)
    assert (document["_code"], document["outcome"]) == (130, "cancelled"), document["_stderr"]
    assert project.document("resume", "GAL-1")["outcome"] == "completed"


# --- who may drive what --------------------------------------------------------------------------------------------


def linked(project: Project, name: str) -> Path:
    """Return a new linked worktree of the project on a branch of its own."""
    folder = project.root.parent / name
    project.git("worktree", "add", "--quiet", "-b", name, str(folder), "main")
    return folder


def run_all(project: Project, orders: list[tuple[Path, str]]) -> list[dict[str, Any]]:
    """Run each issue in its worktree, all at once; return the documents."""

    def one(order: tuple[Path, str]) -> dict[str, Any]:
        where, issue = order
        done = project.redfirst("run", issue, "--json", cwd=where)
        document: dict[str, Any] = json.loads(done.stdout)
        return {**document, "_code": done.returncode, "_stderr": done.stderr}

    with ThreadPoolExecutor(max_workers=len(orders)) as pool:
        return list(pool.map(one, orders))


@pytest.mark.broad
def test_drivers_that_begin_one_issue_at_once_in_one_worktree_and_another_are_one_run_and_refusals(
    tmp_path: Path,
) -> None:
    project = make_project(tmp_path)
    project.use_script(HONEST)
    other = linked(project, "other")
    documents = run_all(project, [(project.root, "GAL-1"), (project.root, "GAL-1"), (other, "GAL-1")])
    done, *refused = sorted(documents, key=lambda document: document["_code"])
    assert (done["_code"], done["reason"]) == (0, "done"), done["_stderr"]
    assert [document["_code"] for document in refused] == [75, 75], [document["_stderr"] for document in refused]
    told = {document.get("reason") or document["error"]["kind"] for document in refused}
    assert told <= {"claimed_elsewhere", "locked"}
    assert project.git("for-each-ref", "refs/redfirst/claims", "refs/redfirst/publish") == ""
    for where in (project.root, other):
        assert project.git("status", "--porcelain", cwd=where) == ""


@pytest.mark.broad
def test_four_worktrees_run_four_issues_of_one_repository_at_once(tmp_path: Path) -> None:
    names = ("GAL-1", "GAL-2", "GAL-3", "GAL-4")
    files = {
        **FILES,
        "TODO/README.md": README + "".join(f"- [ ] [{n}]({n}.md) Reject empty names\n" for n in names[1:]),
        **{f"TODO/{name}.md": ISSUE.replace("GAL-1", name) for name in names},
    }
    project = make_project(tmp_path, files)
    project.use_script(HONEST)
    orders = [(linked(project, f"lane-{name.lower()}"), name) for name in names]
    documents = run_all(project, orders)
    assert [document["_code"] for document in documents] == [0, 0, 0, 0], [d["_stderr"] for d in documents]
    assert project.git("for-each-ref", "refs/redfirst/claims", "refs/redfirst/publish") == ""
    assert len(project.git("for-each-ref", "refs/redfirst/runs").splitlines()) == len(names)
    for (where, name), document in zip(orders, documents, strict=True):
        assert project.git("status", "--porcelain", cwd=where) == ""
        assert document["commits"][-1] == project.git("rev-parse", "HEAD", cwd=where)
        assert "status: Done" in (where / "TODO" / f"{name}.md").read_text()
    assert list((project.root / ".git").rglob("*.lock")) == []
    assert Result.of(project).commits == ()  # the worktree that the user stands in has not moved
