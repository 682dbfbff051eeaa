"""SIGINT and SIGTERM, and who may drive what: one driver a run, one run an issue, many runs a repository."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from crashes import Bell, Result, processes_of, repeated_dispatches, spawn
from crashes import problems as left_by
from kit import FILES, HONEST, ISSUE, PLAN_SIMPLE, README, make_project

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from kit import Entry, Project

pytestmark = pytest.mark.slow

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


@pytest.mark.broad
def test_a_second_driver_of_a_run_is_told_that_it_is_locked(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    bell = Bell(project.home)
    project.use_script(ringing(project, bell, 0, f"read line < {bell.folder}/answer"))
    os.mkfifo(bell.folder / "answer", 0o666)
    with spawn(project, "run", "GAL-1", "--json", *bell.flags) as driver:
        bell.wait(driver)
        for command in (("resume", "GAL-1"), ("abandon", "GAL-1"), ("approve", "GAL-1")):
            document = project.document(*command)
            assert (document["_code"], document["error"]["kind"]) == (75, "locked"), command
            assert "redfirst show run-GAL-1 --log --follow" in document["error"]["safe_next_actions"]
        again = project.document("run", "GAL-1")
        assert (again["_code"], again["error"]["kind"]) == (75, "claimed_elsewhere")
        with (bell.folder / "answer").open("w", encoding="utf-8") as answer:
            answer.write("go on\n")
        assert stopped(driver)["outcome"] == "completed"
    assert left_by(project) == []


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
def test_two_worktrees_that_run_one_issue_at_once_are_one_run_and_one_refusal(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script(HONEST)
    other = linked(project, "other")
    documents = run_all(project, [(project.root, "GAL-1"), (other, "GAL-1")])
    assert sorted(document["_code"] for document in documents) == [0, 75]
    refused = next(document for document in documents if document["_code"] == 75)
    assert "claimed_elsewhere" in {refused.get("reason"), refused.get("error", {}).get("kind")}
    assert "done" in {document.get("reason") for document in documents}
    assert project.git("for-each-ref", "refs/redfirst/claims", "refs/redfirst/publish") == ""
    for where in (project.root, other):
        assert project.git("status", "--porcelain", cwd=where) == ""


@pytest.mark.broad
def test_two_drivers_that_begin_one_run_at_once_in_one_worktree_never_drive_it_both(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script(HONEST)
    documents = run_all(project, [(project.root, "GAL-1")] * 3)
    codes = sorted(document["_code"] for document in documents)
    assert codes == [0, 75, 75], [document["_stderr"] for document in documents]
    assert left_by(project) == []


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
