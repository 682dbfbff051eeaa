"""`gc` removes what nobody needs, each thing with a proof; what is unknown, dirty or live stays (check 23)."""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from landing.finished import make_fleet

from pipeline.repo import Repository
from pipeline.run.lease import FileLease
from pipeline.run.store import claim_ref, state_of_run

if TYPE_CHECKING:
    from collections.abc import Generator

    from landing.finished import Fleet

pytestmark = pytest.mark.slow


def ways(fleet: Fleet, *argv: str) -> dict[str, tuple[str, str]]:
    """Return what becomes of each thing, and why, by what it is."""
    document = fleet.project.document("gc", "--older-than", "0s", *argv)
    return {line["what"]: (line["status"], line["why"]) for line in document["things"]}


def checkout(fleet: Fleet, run: str) -> Path:
    """Return where the private checkout of a run is."""
    there = Repository.find(fleet.worktrees[run])
    return state_of_run(fleet.project.home / "state" / "redfirst", there, run)


@pytest.mark.broad
def test_what_has_landed_goes_and_nothing_else(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 1)
    fleet.run(1)
    fleet.project.write({"other.txt": "of others\n"})
    fleet.project.commit("other work")
    worktree = fleet.worktrees["run-GAL-1"]
    left = checkout(fleet, "run-GAL-1")
    left.mkdir()  # of a driver that was killed before it had put it away
    status, why = ways(fleet)[str(worktree)]
    assert (status, why) == ("kept", "run-GAL-1: its commits are not on main")
    fleet.land()
    assert {status for status, _ in ways(fleet).values()} == {"would_remove"}
    status, why = ways(fleet, "--older-than", "1d")[str(worktree)]
    assert status == "kept"
    assert re.fullmatch(r"kept until [0-9]{4}-[0-9-]{5} [0-9:]{5} \(--older-than\), run-GAL-1 has ended", why), why
    assert worktree.is_dir()
    evidence = fleet.project.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/redfirst/runs")
    assert ways(fleet, "--apply")[str(worktree)][0] == "removed"
    assert not worktree.exists()
    assert not left.exists()
    assert fleet.project.git("branch", "--list", "--format=%(refname:short)").split() == ["main", "work"]
    assert fleet.project.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/redfirst") == evidence
    assert ways(fleet) == {}
    assert fleet.project.git("status", "--porcelain") == ""
    assert fleet.project.document("verify", "main~1")["status"] == "verified"


def test_a_ref_goes_in_the_same_call_as_the_worktree_of_its_run(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 1)
    fleet.run(1)
    fleet.land()
    key = fleet.project.git("for-each-ref", "--format=%(refname)", "refs/redfirst/runs")
    gone = ways(fleet, "--apply", "--refs")
    assert (gone[str(fleet.worktrees["run-GAL-1"])][0], gone[key][0]) == ("removed", "removed"), gone
    assert fleet.project.git("for-each-ref", "refs/redfirst/runs") == ""


@contextmanager
def driven(folder: Path) -> Generator[None]:
    """Hold the lease of a run, as its driver does."""
    lease = FileLease.take(folder)
    try:
        yield
    finally:
        lease.release()


def waiting(fleet: Fleet, number: int, *, abandoned: bool = True) -> str:
    """Return a run that waits for a person, or that one has given up."""
    fleet.run(number, "--approve", "plan", outcome="parked")
    run = f"run-GAL-{number}"
    if abandoned:
        assert fleet.project.document("abandon", run)["outcome"] == "cancelled"
    return run


def own_work(fleet: Fleet) -> dict[str, str]:
    """Return worktrees with a person's work: not committed, a commit of their own, one that has not landed."""
    fleet.run(1)
    fleet.run(2)
    fleet.project.write({"other.txt": "of others\n"})
    fleet.project.commit("other work")
    assert fleet.land()["ok"]
    fleet.run(3)
    dirty, more = fleet.worktrees["run-GAL-1"], fleet.worktrees["run-GAL-2"]
    (dirty / "mine.txt").write_text("mine\n")
    fleet.project.git("update-index", "--skip-worktree", "f3.sum", cwd=dirty)  # git says nothing of it then
    (dirty / "f3.sum").write_text("f3 n = n * 7\n")
    (more / "f2.sum").write_text("f2 n = n * 2\nh2 n = n * 9\n")
    fleet.project.git("commit", "--quiet", "--all", "--message", "mine", cwd=more)
    return {
        str(dirty): "not committed: f3.sum, mine.txt",
        str(more): "gal-2-reject-empty-names has commits that no run made, or that did not land",
        str(fleet.worktrees["run-GAL-3"]): "run-GAL-3: its commits are not on main",
    }


def at_work(fleet: Fleet, live: str) -> dict[str, str]:
    """Return what a run has that is driven: its worktree, its checkout, its claim, which other worktrees see."""
    whose = (str(fleet.worktrees[live]), str(checkout(fleet, live)), claim_ref("GAL-4"))
    return dict.fromkeys(whose, f"{live} is driven now")


def strangers(fleet: Fleet, live: str, precious: Path) -> dict[str, str]:
    """Return what looks like a run's: a link to what is precious, somebody's folder, somebody's ref."""
    linked = checkout(fleet, waiting(fleet, 5))
    precious.mkdir()
    (precious / "file").write_text("precious\n")
    linked.symlink_to(precious)
    folder = checkout(fleet, live).parent / "somebody"
    folder.mkdir()
    (folder / "file").write_text("somebody's\n")
    ref = "refs/redfirst/publish/elsewhere/run-GAL-1"
    fleet.project.git("update-ref", ref, "main")
    return {
        str(linked): "it is a link",
        str(folder): "no run that is here has made it, so look at it",
        ref: "its run is not here",
    }


def unsure(fleet: Fleet, moved: Path) -> dict[str, str]:
    """Return worktrees of runs that were given up: one whose ref lacks a file, a locked one, one that was moved."""
    lacking, locked, old = (waiting(fleet, number) for number in (6, 7, 8))
    (fleet.worktrees[lacking] / ".workflow" / lacking / "note.md").write_text("a person's note\n")
    fleet.project.git("worktree", "lock", str(fleet.worktrees[locked]))
    fleet.project.git("worktree", "move", str(fleet.worktrees[old]), str(moved))
    return {
        str(fleet.worktrees[lacking]): f"{lacking}: its ref lacks note.md",
        str(fleet.worktrees[locked]): "it is locked",
        str(moved): "somebody has moved it",
    }


@pytest.mark.broad
def test_check_23_on_twelve_traps_nothing_is_lost(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 9)
    project = fleet.project
    traps = own_work(fleet)
    live = waiting(fleet, 4, abandoned=False)
    traps |= at_work(fleet, live) | strangers(fleet, live, tmp_path / "precious") | unsure(fleet, tmp_path / "moved")
    begun = tmp_path / "project-gal-99"  # by a driver that died before its run began
    project.git("worktree", "add", "--quiet", "-b", "gal-99", str(begun))
    owner = {"branch": "gal-99", "tip": project.git("rev-parse", "main"), "folder": str(begun)}
    (project.root / ".git/worktrees/project-gal-99/redfirst.json").write_text(json.dumps(owner))
    own = tmp_path / "own"
    project.git("worktree", "add", "--quiet", "-b", "own", str(own))  # of which nothing is said
    goes = fleet.worktrees[waiting(fleet, 9)]
    unread = project.git("rev-parse", "main:sums.project")  # what no run writes as a claim
    project.git("update-ref", claim_ref("GAL-99"), unread)
    before, refs = snapshot(tmp_path), project.git("for-each-ref").splitlines()
    with driven(fleet.worktrees[live] / ".workflow" / live):
        found = ways(fleet)
        assert (snapshot(tmp_path), project.git("for-each-ref").splitlines()) == (before, refs)
        assert ways(fleet, "--apply").keys() == found.keys()
    assert len(traps) >= 12
    assert {what: found.get(what) for what in traps} == {what: ("kept", why) for what, why in traps.items()}
    assert found[claim_ref("GAL-99")][0] == "kept"
    assert str(own) not in found
    gone = {what for what, (status, _) in found.items() if status == "would_remove"}
    assert gone == {str(goes), str(begun), str(fleet.worktrees["run-GAL-5"])}
    lost = before.keys() - snapshot(tmp_path).keys()
    assert {
        path
        for path in lost
        if not path.startswith((f"{goes.name}/", "project-gal-5/", "project-gal-99/", "project/.git/"))
    } == set()
    assert set(refs) - set(project.git("for-each-ref").splitlines()) == {
        line for line in refs if line.endswith(("/gal-5-reject-empty-names", "/gal-9-reject-empty-names", "/gal-99"))
    }
    assert ways(fleet)[str(checkout(fleet, live) / "pool")][0] == "would_remove"


def snapshot(top: Path) -> dict[str, bytes]:
    """Return each file below a folder, but for what git and the program keep of what they looked at."""
    found: dict[str, bytes] = {}
    for at, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name not in {"objects", "logs", "cache"}]
        for name in names:
            path = Path(at) / name
            if name not in {"index", "lock"} and not path.is_symlink():
                found[str(path.relative_to(top))] = path.read_bytes()
    return found


@pytest.mark.broad
def test_records_go_only_where_the_ref_has_them_and_refs_only_where_they_are_asked_for(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 1)
    project = fleet.project
    project.git("switch", "--quiet", "work")
    fleet.run(1, worktree=False)
    folder = project.root / ".workflow" / "run-GAL-1"
    key = project.git("for-each-ref", "--format=%(refname)", "refs/redfirst/runs")
    assert ways(fleet)[str(folder)] == ("kept", "its commits are not on main")
    assert fleet.land()["ok"]
    (folder / "plan.md").write_text("another plan\n")
    assert ways(fleet)[str(folder)] == ("kept", "its ref lacks plan.md")
    kept = project.git("cat-file", "-p", f"{key}:run/plan.md")
    (folder / "plan.md").write_text(f"{kept}\n")
    (young,) = project.document("gc", "--older-than", "1d")["things"]
    assert (young["what"], young["status"]) == (str(folder), "kept")
    assert re.fullmatch(r"kept until [0-9-]{10} [0-9:]{5} \(--older-than\), run-GAL-1 has ended", young["why"])
    assert ways(fleet, "--refs")[key][0] == "would_remove"
    said = project.redfirst("gc", "--older-than", "0s", "--refs").stdout
    assert said.endswith("would be removed: redfirst gc --apply --older-than 0s --refs\n"), said
    assert ways(fleet, "--apply")[str(folder)][0] == "removed"
    assert not folder.exists()
    assert project.document("verify", "main~1")["status"] == "verified"  # by the ref alone
    assert ways(fleet, "--refs") == {key: ("kept", "its run is not here: only this ref has its evidence")}
    leftovers = [one for one in project.document("doctor")["checks"] if one["id"] == "leftovers"]
    assert [one["status"] for one in leftovers] == ["ok"], leftovers  # evidence is no leftover
    wrong = project.document("gc", "--older-than", "soon")
    assert "write a number with s, m, h or d" in wrong["error"]["message"]
