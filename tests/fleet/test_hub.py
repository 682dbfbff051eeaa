"""A run is kept at the hub, goes on at another machine, and a driver that lost it publishes nothing."""

from __future__ import annotations

import os
import re
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest
from console.served import opened
from crashes import KILLED, Bell, die_at, spawn
from e2e.shapes import SUM_CODE, SUMS_HONEST
from fleet.machines import RUN, fleet
from waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.machines import Machine
    from kit import Entry

pytestmark = pytest.mark.slow

BRANCH = "refs/heads/gal-1-reject-empty-names"
MAKES = next(number for number, entry in enumerate(SUMS_HONEST) if entry["when"]["kind"] == "implement")


def run(machine: Machine, *argv: str) -> dict[str, Any]:
    return machine.redfirst("run", "GAL-1", "--worktree", *argv)


def taken(machine: Machine) -> dict[str, Any]:
    """Take the run over and go on with it; return what came of it."""
    return machine.redfirst("fleet", "take", RUN, "--resume")


def published_once(machine: Machine) -> None:
    """Check that the hub has the work, no claim any more, and a branch that was moved once."""
    refs = machine.refs()
    assert not [ref for ref in refs if "/claims/" in ref]
    code = machine.project.git("show", f"{refs[BRANCH]}:greet.sum", cwd=machine.hub)
    assert code == SUM_CODE["greet.sum"].strip()
    moves = (machine.hub / "logs" / BRANCH).read_text().splitlines()
    assert len(moves) == 1, moves


def kept_whole(machine: Machine, name: str) -> None:
    """Check that the hub has each decision of a run that ended at this machine."""
    (checkpoint,) = [oid for ref, oid in machine.refs().items() if "/checkpoints/" in ref and ref.endswith(name)]
    kept = machine.project.git("show", f"{checkpoint}:run/journal.jsonl").splitlines()
    assert kept == (machine.worktree / ".workflow" / RUN / "journal.jsonl").read_text().splitlines()
    count = int(machine.project.git("rev-list", "--count", f"main..{checkpoint}"))
    assert count > sum('"decision"' in line for line in kept), "one for each decision, and more"
    (told,) = [each for each in machine.redfirst("fleet", "runs")["runs"] if each["run"].endswith(name)]
    assert (told["issue"], told["state"], told["outcome"], told["lines"]) == ("GAL-1", None, "completed", len(kept))
    said = machine.project.redfirst("fleet", "runs").stdout
    assert re.search(rf"{name} +over: completed, last written by ", said), said
    assert told["run"] in machine.redfirst("fleet", "take", "run-GAL-2")["error"]["details"]["runs"]


def given_up(machine: Machine) -> None:
    """Check that a machine that lost its run to another one publishes nothing of it, and can give it up."""
    late = machine.redfirst("resume", RUN, cwd=machine.worktree)
    assert (late["_code"], late["error"]["kind"]) == (75, "superseded"), late
    assert machine.project.git("rev-parse", BRANCH) == machine.project.git("rev-parse", "main")
    said = machine.redfirst("show", RUN)
    assert said["elsewhere"], "it has heard of it"
    assert said["safe_next_actions"][0].endswith("redfirst fleet runs")
    assert machine.redfirst("stop", RUN)["error"]["kind"] == "superseded"
    assert [one["status"] for one in machine.redfirst("runs")["runs"]] == ["elsewhere"]
    assert [one["next"] for one in machine.redfirst()["lines"] if one["about"] == "run"] == [
        f"redfirst fleet take {RUN}"
    ]
    ended = machine.redfirst("abandon", RUN, cwd=machine.worktree)
    assert ended["outcome"] == "cancelled", ended
    assert ended["safe_next_actions"][0].endswith("redfirst fleet runs"), "nobody begins it anew"
    assert machine.project.git("for-each-ref", "refs/redfirst/claims") == ""


def lands_what_is_taken(machine: Machine) -> None:
    """Check that a machine which lost its run can take what came of it, and land that."""
    told = machine.redfirst("fleet", "take", "gal-1")
    assert told["next"].endswith(f"redfirst land {RUN}"), told
    assert machine.project.git("rev-parse", BRANCH) == machine.refs()[BRANCH]
    assert machine.project.git("status", "--porcelain", cwd=machine.worktree) == ""
    landed = machine.redfirst("land", "GAL-1")
    assert landed["_code"] == 0, str(landed)
    assert machine.project.git("rev-parse", "main") == machine.refs()[BRANCH]


@pytest.mark.broad
def test_each_decision_is_kept_and_branch_and_claim_move_with_the_last(tmp_path: Path) -> None:
    one, _ = fleet(tmp_path)
    done = run(one)
    assert done.get("outcome") == "completed", done
    published_once(one)
    kept_whole(one, RUN)
    assert checkpoints_left(one, "--older-than", "1h", "--apply") == ["kept"]
    assert checkpoints_left(one, "--older-than", "0s", "--apply") == ["removed"]
    assert [*one.refs()] == [BRANCH, "refs/heads/main"], "what is published stays"


def checkpoints_left(machine: Machine, *argv: str) -> list[str]:
    """Return what `gc` says of each checkpoint."""
    return [one["status"] for one in machine.redfirst("gc", "--refs", *argv)["things"] if one["kind"] == "checkpoint"]


@pytest.mark.broad
@pytest.mark.parametrize("instant", ["after git push", "after journal dispatch_finished", "before git push"])
def test_33_a_run_whose_machine_is_gone_goes_on_elsewhere_to_the_same_code(tmp_path: Path, instant: str) -> None:
    one, two = fleet(tmp_path)
    assert die_at(one.project, instant, 4, "run", "GAL-1", "--worktree") == KILLED
    done = taken(two)
    assert done.get("outcome") == "completed", done
    published_once(two)
    kinds = [line["kind"] for line in two.journal()]
    assert kinds.count("run_resumed") == 1
    given_up(one)
    lands_what_is_taken(one)
    published_once(two)


@pytest.mark.broad
def test_what_was_published_is_not_published_again_where_its_machine_died_before_it_moved_its_branch(
    tmp_path: Path,
) -> None:
    one, two = fleet(tmp_path)
    assert die_at(one.project, "after journal publish_moving", 2, "run", "GAL-1", "--worktree") == KILLED
    done = taken(two)
    assert done.get("outcome") == "completed", done
    published_once(two)


def frozen(tmp_path: Path, one: Machine, bell: Bell) -> list[Entry]:
    """Let @make of this machine ring, and answer when a file is there."""
    go = tmp_path / "go"
    waits = f"echo > {bell.folder}/fifo; while ! test -e {go}; do sleep 0.05; done"
    script = [*SUMS_HONEST]
    script[MAKES] = {**script[MAKES], "run": ["sh", "-c", waits]}
    one.project.script(script, "script.yaml")
    return script


def test_34_a_driver_that_was_frozen_publishes_nothing(tmp_path: Path) -> None:
    one, two = fleet(tmp_path)
    bell = Bell(tmp_path)
    frozen(tmp_path, one, bell)
    driver = spawn(one.project, "run", "GAL-1", "--worktree", "--json")
    try:
        bell.wait(driver)
        os.kill(driver.pid, signal.SIGSTOP)
        done = taken(two)
        assert done.get("outcome") == "completed", done
        (tmp_path / "go").touch()
        os.kill(driver.pid, signal.SIGCONT)  # what it writes from now on is nobody's
        out, said = driver.communicate(timeout=120)
    finally:
        driver.kill()  # one that is frozen would stay
        (tmp_path / "go").touch()
    assert driver.returncode == 75, said
    assert '"superseded"' in out
    assert [line["kind"] for line in two.journal()].count("run_resumed") == 1
    given_up(one)
    published_once(two)


@pytest.mark.broad
def test_of_two_machines_that_take_a_run_one_goes_on(tmp_path: Path) -> None:
    one, two, three = fleet(tmp_path, [SUMS_HONEST] * 3)
    assert die_at(one.project, "after journal dispatch_finished", 4, "run", "GAL-1", "--worktree") == KILLED
    for machine in (two, three):
        assert machine.redfirst("fleet", "take", RUN)["_code"] == 0
    found: list[dict[str, Any]] = []

    def goes_on(machine: Machine) -> None:
        found.append(machine.redfirst("resume", RUN, cwd=machine.worktree))

    both = [threading.Thread(target=goes_on, args=(machine,)) for machine in (two, three)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert sorted(each["_code"] for each in found) == [0, 75], found
    published_once(two)


def test_a_run_of_another_machine_is_not_begun_again_and_an_answer_elsewhere_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three = fleet(tmp_path, [SUMS_HONEST] * 3)
    assert run(one, "--approve", "plan")["reason"] == "approval"
    (told,) = two.redfirst("fleet", "runs")["runs"]
    assert (told["state"], told["outcome"], told["here"]) == ("parked", "parked", None)
    refused = run(three)
    assert (refused["_code"], refused["reason"]) == (75, "claimed_elsewhere"), refused
    assert told["run"] in refused["note"]
    assert three.project.git("for-each-ref", "refs/redfirst/claims") == ""
    assert checkpoints_left(three, "--older-than", "0s", "--apply") == [], "a run that was refused is kept nowhere"
    monkeypatch.setattr("pipeline.faces.console.pages._PAUSE_S", 0.1)
    for name, value in two.project.environment().items():
        monkeypatch.setenv(name, value)
    with opened(two.main) as browser:
        page = browser.get("/").text
        assert "Waits for you" in page
        assert f"redfirst fleet take {told['run']}" in page
        one.hub.rename(one.hub.with_name("away"))
        wait_until(lambda: "out of reach" in browser.get("/").text, "the console says that what it shows is old")
        assert f"redfirst fleet take {told['run']}" in browser.get("/").text
        one.hub.with_name("away").rename(one.hub)
    taken = two.redfirst("fleet", "take", told["run"])
    assert taken["next"].endswith(f" && redfirst show {RUN}"), "it waits for a person"
    done = two.redfirst("approve", RUN, cwd=two.worktree)
    assert done.get("outcome") == "completed", done
    kept_whole(two, told["run"])
    assert one.project.git("for-each-ref", "refs/redfirst/claims") != ""
    late = one.redfirst("approve", RUN, cwd=one.worktree)
    assert (late["_code"], late["error"]["kind"]) == (75, "superseded")
    assert one.project.git("for-each-ref", "refs/redfirst/claims") == "", "no worker here goes on with it"
    again = one.redfirst("fleet", "take", told["run"])
    assert again["set_aside"] is not None, "what this machine wrote beside is kept"
    assert one.redfirst("show", RUN, cwd=one.worktree)["outcome"] == "completed"
    published_once(two)


@pytest.mark.broad
def test_35_a_hub_that_is_away_is_waited_for_and_nothing_is_lost(tmp_path: Path) -> None:
    one, _ = fleet(tmp_path)
    away = one.hub.with_name("away")
    one.hub.rename(away)
    parked = run(one)
    assert (parked["_code"], parked["error"]["kind"]) == (75, "hub_unavailable"), parked
    assert "it is tried again" in parked["_stderr"]
    away.rename(one.hub)
    done = one.redfirst("resume", RUN, cwd=one.worktree)
    assert done.get("outcome") == "completed", done
    published_once(one)


@pytest.mark.broad
def test_35_a_hub_that_comes_back_in_time_holds_nothing_up(tmp_path: Path) -> None:
    one, _ = fleet(tmp_path)
    bell = Bell(tmp_path)
    frozen(tmp_path, one, bell)
    driver = spawn(one.project, "run", "GAL-1", "--worktree", "--json")
    bell.wait(driver)
    away = one.hub.with_name("away")
    one.hub.rename(away)
    (tmp_path / "go").touch()
    said = ""
    assert driver.stderr is not None
    while "the hub is out of reach" not in said:
        said += driver.stderr.readline()
    away.rename(one.hub)
    driver.communicate(timeout=120)
    assert driver.returncode == 0
    published_once(one)


@pytest.mark.broad
def test_a_branch_that_somebody_moved_at_the_hub_stays_as_it_is(tmp_path: Path) -> None:
    one, two = fleet(tmp_path)
    assert run(one, "--approve", "plan")["reason"] == "approval"
    other = one.project.git("commit-tree", "main^{tree}", "-m", "somebody's")
    one.project.git("push", "--quiet", str(one.hub), f"{other}:{BRANCH}")
    parked = one.redfirst("approve", RUN, cwd=one.worktree)
    assert parked["reason"] == "branch_moved", parked
    assert other[:12] in parked["note"]
    assert one.refs()[BRANCH] == other
    assert one.project.git("rev-parse", BRANCH) == one.project.git("rev-parse", "main")
    one.project.git("push", "--quiet", "--delete", str(one.hub), BRANCH)
    done = taken(two)
    assert done.get("outcome") == "completed", f"the commits that were to be published came with the run: {done}"


@pytest.mark.broad
def test_what_no_run_has_written_is_named_and_nothing_of_it_is_taken(tmp_path: Path) -> None:
    one, two = fleet(tmp_path)
    assert run(one, "--approve", "plan")["reason"] == "approval"
    ref = next(ref for ref in one.refs() if "/checkpoints/" in ref)
    one.project.git("push", "--quiet", str(one.hub), f"main:{ref}x")
    found = two.redfirst("fleet", "runs")
    assert len(found["runs"]) == 1
    assert "run-GAL-1x" in found["unreadable"][0]
    refused = two.redfirst("fleet", "take", f"{RUN}x")
    assert refused["_code"] == 2
    assert "none that a run has written" in refused["error"]["message"]
    assert not two.worktree.exists()


def test_without_a_hub_the_commands_say_how_one_is_named(tmp_path: Path) -> None:
    (one,) = fleet(tmp_path, [[]])
    one.project.configure('sandbox = "none"\n')
    told = one.redfirst("fleet", "runs")["error"]
    assert told["safe_next_actions"] == ["redfirst config set --user fleet.hub URL"], told
    (one.main / "redfirst.toml").write_text('[fleet]\nhub = "https://elsewhere.example/x.git"\n')
    told = one.redfirst("fleet", "runs")["error"]
    assert "your own configuration alone" in told["message"]


@pytest.mark.broad
def test_runs_of_a_repository_without_the_remote_are_kept_nowhere_else(tmp_path: Path) -> None:
    one, _ = fleet(tmp_path)
    one.project.git("remote", "remove", "origin")
    before = one.refs()
    done = run(one, "--base", "main")
    assert done.get("outcome") == "completed", done
    assert "no remote of this repository is the hub" in done["_stderr"]
    assert one.refs() == before
    told = one.redfirst("fleet", "runs")["error"]
    assert told["safe_next_actions"] == [f"git remote add hub {one.hub}"]


def test_a_password_in_the_url_is_refused_and_not_repeated(tmp_path: Path) -> None:
    (one,) = fleet(tmp_path, [[]])
    one.project.configure('[fleet]\nhub = "https://ada:geheim@example.org/hub.git"\n')
    told = one.redfirst("fleet", "runs")["error"]
    assert "a password does not belong here" in told["message"]
    assert "geheim" not in str(told)


def test_doctor_says_whether_the_hub_answers(tmp_path: Path) -> None:
    (one,) = fleet(tmp_path, [[]])
    checks = {check["id"]: check for check in one.redfirst("doctor")["checks"]}
    assert checks["hub"]["status"] == "ok"
    one.hub.rename(tmp_path / "away")
    checks = {check["id"]: check for check in one.redfirst("doctor")["checks"]}
    assert checks["hub"]["status"] == "fail"
    assert "out of reach" in checks["hub"]["message"]
