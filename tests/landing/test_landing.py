"""Finished runs land on their base: each picked onto what those before made of it, and measured there again."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest
from landing.finished import make_fleet
from terminals import answered

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_a_finished_run_lands_where_the_base_moved_and_what_it_left_goes(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 2)
    run = fleet.run(1)
    fleet.project.git("commit", "--quiet", "--allow-empty", "--message", "mine", cwd=fleet.worktrees["run-GAL-1"])
    fleet.project.write({"other.txt": "of somebody else\n"})
    fleet.project.commit("other work")
    before = fleet.project.git("rev-parse", "main")
    told = fleet.land()
    assert (told["_code"], [line["status"] for line in told["runs"]]) == (0, ["landed"]), told
    (line,) = told["runs"]
    assert fleet.project.git("rev-list", "--reverse", f"{before}..main").splitlines() == line["commits"]
    assert fleet.project.git("status", "--porcelain") == ""
    assert (fleet.project.root / "f1.sum").read_text() == "f1 n = n * 2\nh1 n = n\n"
    assert line["why"] == ["gal-1-reject-empty-names has 1 commit more, which no run made: not landed"]
    fleet.project.git("reset", "--quiet", "--hard", "HEAD~1", cwd=fleet.worktrees["run-GAL-1"])
    copied = fleet.project.git("log", "-1", "--format=%(trailers:key=Rebased-From,valueonly)", line["commits"][0])
    assert copied == run["commits"][0]
    assert fleet.boxes() == ["- [x] [GAL-1](GAL-1.md) Reject empty names", "- [ ] [GAL-2](GAL-2.md) Reject empty names"]
    again = fleet.land("GAL-1")
    assert [(line["status"], line["why"]) for line in again["runs"]] == [("already", ["main has its commits already"])]
    assert fleet.project.git("rev-parse", "main") == told["after"] == again["after"]
    shown = fleet.show("GAL-1")
    assert (shown["landed"], shown["landed_on"]) == (True, "main")
    swept = fleet.project.document("gc", "--apply", "--older-than", "0s")["things"]
    assert [(line["what"], line["status"]) for line in swept] == [(str(fleet.worktrees["run-GAL-1"]), "removed")]
    assert not fleet.worktrees["run-GAL-1"].exists()
    for _ in range(2):  # read from its ref, then as it was kept
        (line,) = fleet.project.document("runs")["runs"]
        assert (line["name"], line["outcome"], line["landed"], line["removed"]) == (
            *("run-GAL-1", "completed"),
            *("main", True),
        )
        assert "landed on main, folder removed" in fleet.project.redfirst("runs").stdout
    assert fleet.project.git("branch", "--list", "--format=%(refname:short)").split() == ["main", "work"]


def test_on_a_terminal_it_lists_and_asks_first_and_says_how_to_clean_up(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 1)
    fleet.run(1)
    before = fleet.project.git("rev-parse", "main")
    root, env = fleet.project.root, fleet.project.environment()
    code, text = answered("land", cwd=root, env=env, asks="[y/N]", says="n")
    assert (code, fleet.project.git("rev-parse", "main")) == (2, before), text
    assert "run-GAL-1: goes on main; its tests were not run there" in " ".join(text.split())
    assert "Nothing was landed." in text
    code, text = answered("land", cwd=root, env=env, asks="[y/N]", says="y")
    assert code == 0, text
    assert fleet.project.git("rev-parse", "main") != before
    assert re.search(r"next:\s+git -C", text), text
    (advice,) = (line.strip() for line in text.splitlines() if line.strip().startswith("git -C "))
    assert advice.count(str(fleet.worktrees["run-GAL-1"])) == 1
    subprocess.run(["sh", "-c", advice], cwd=root, env=env, check=True, capture_output=True)
    assert not fleet.worktrees["run-GAL-1"].exists()


@pytest.mark.broad
def test_a_terminal_is_not_asked_with_yes(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 1)
    fleet.run(1)
    code, text = answered(
        "land", "--yes", cwd=fleet.project.root, env=fleet.project.environment(), asks="[y/N]", says="n"
    )
    assert (code, "[y/N]" in text) == (0, False), text
    assert fleet.project.git("log", "-1", "--format=%s", "main") != "init"


@pytest.mark.broad
def test_what_conflicts_is_ordered_again_with_its_patch_once(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 2)
    project = fleet.project
    fleet.run(1)
    fleet.run(2, file="f1", name="h1", factor=3)  # lines that stand side by side
    tried = fleet.land("--dry-run")
    assert [line["status"] for line in tried["runs"]] == ["would_land", "refused"]
    assert project.git("rev-parse", "main") == tried["before"] == tried["after"]
    told = fleet.land()
    assert told["_code"] == 7
    assert [(line["run"], line["status"], line["found"], line["then"]) for line in told["runs"]] == [
        ("run-GAL-1", "landed", "verified", "land"),
        ("run-GAL-2", "refused", "conflict", "order_again"),
    ]
    (refused,) = fleet.journal("run-GAL-2", "landing_refused")
    assert refused["found"] == "conflict"
    assert [why.partition(" was changed by ")[0] for why in refused["why"]] == ["f1.check", "f1.sum"]
    events = project.redfirst("events", "--type", "landing.*").stdout
    assert [json.loads(line)["type"] for line in events.splitlines()] == [
        "redfirst.landing.done.v1",
        "redfirst.landing.refused.v1",
    ]
    work, by_hand = told["runs"][1]["safe_next_actions"]
    assert by_hand == "redfirst run GAL-2 --worktree --base main --previous run-GAL-2"
    (order,) = project.document("queue", "list")["orders"]
    assert order["order"] == told["runs"][1]["order"] == refused["order"]
    fleet.prepare(2, file="f1", name="h1", factor=3)
    done = project.redfirst(*shlex.split(work)[1:])
    assert done.returncode == 0, done.stdout + done.stderr
    again = fleet.show("GAL-2")
    assert (again["run_id"], again["outcome"]) == ("run-GAL-2@2", "completed")
    fleet.worktrees["run-GAL-2@2"] = fleet.folder(again)
    given = fleet.artifact("run-GAL-2@2", "previous.patch")
    assert given.startswith("# run-GAL-2 was not landed on main: conflict\n# f1.check was changed by ")
    assert "+h1 n = n * 3\n" in given
    prompt = next((fleet.worktrees["run-GAL-2@2"] / ".workflow/run-GAL-2@2/dispatches").glob("001-*/prompt.md"))
    assert "previous.patch" in prompt.read_text(encoding="utf-8")
    landed = fleet.land()
    assert [(line["run"], line["status"]) for line in landed["runs"]] == [("run-GAL-2@2", "landed")]
    assert fleet.boxes() == [f"- [x] [GAL-{n}](GAL-{n}.md) Reject empty names" for n in (1, 2)]
    assert fleet.land()["runs"] == []
    last = fleet.land("run-GAL-2")
    assert [(line["found"], line["then"]) for line in last["runs"]] == [("conflict", "tell")]
    for action in last["runs"][0]["safe_next_actions"]:
        assert project.redfirst(*shlex.split(action)[1:]).returncode in {0, 7}, action


@pytest.mark.broad
def test_check_20_eight_runs_of_which_two_conflict_become_six_on_the_base_and_two_orders(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 8)
    for number in range(1, 7):
        fleet.run(number)
    fleet.run(7, file="f1", name="h1", factor=5)
    fleet.run(8, file="f2", name="h2", factor=5)
    told = fleet.land()
    ways = {line["run"]: line["status"] for line in told["runs"]}
    assert ways == {f"run-GAL-{n}": "landed" if n < 7 else "refused" for n in range(1, 9)}
    assert [line["then"] for line in told["runs"]] == ["land"] * 6 + ["order_again"] * 2
    verified = fleet.project.document("verify", f"{told['before']}..main")
    assert (verified["status"], verified["ok"]) == ("verified", True)
    assert sum(commit["status"] == "verified" for commit in verified["commits"]) == 6
    # check 21: adjacent lines, of which each run has set one
    assert fleet.boxes() == [
        f"- [{'x' if n < 7 else ' '}] [GAL-{n}](GAL-{n}.md) Reject empty names" for n in range(1, 9)
    ]
    for n in range(1, 9):
        status = fleet.project.git("show", f"main:TODO/GAL-{n}.md").splitlines()[3]
        assert status == ("status: Done" if n < 7 else "status: Todo")
    assert fleet.project.git("status", "--porcelain") == ""
    listed = {line["name"]: line["landed"] for line in fleet.project.document("runs")["runs"]}
    assert listed == {f"run-GAL-{n}": "main" if n < 7 else None for n in range(1, 9)}


@pytest.mark.broad
def test_what_an_issue_depends_on_lands_first_and_what_waits_is_said(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 3, depends={1: 2})
    fleet.run(2)
    fleet.run(3)
    fleet.project.git("switch", "--quiet", "--create", "next", "gal-2-reject-empty-names")
    fleet.run(1, "--base", "next")
    fleet.project.git("switch", "--quiet", "main")
    waits = fleet.land("GAL-1", "--onto", "main")
    assert (waits["_code"], waits["runs"][0]["status"]) == (4, "waits")
    assert waits["runs"][0]["why"] == ["GAL-1 depends on GAL-2, not Done on main"]
    again = waits["runs"][0]["safe_next_actions"][0]
    project = fleet.project
    refused = project.document("land")
    assert "several bases" in refused["error"]["message"]
    assert [
        fleet.project.redfirst(*shlex.split(line)[1:], "--dry-run").returncode
        for line in refused["error"]["safe_next_actions"]
    ] == [0, 0]
    assert project.redfirst("issue", "status", "GAL-3", "done").returncode == 0
    project.commit("GAL-3 is done by hand")
    told = fleet.land("--onto", "main")
    assert [(line["run"], line["status"]) for line in told["runs"]] == [
        ("run-GAL-3", "passed_over"),
        ("run-GAL-2", "landed"),
    ]
    by_name = told["runs"][0]["safe_next_actions"][0]
    assert project.document(*shlex.split(by_name)[1:])["runs"][0]["status"] == "landed"
    assert project.document(*shlex.split(again)[1:])["runs"][0]["status"] == "landed"
    assert fleet.boxes() == [f"- [x] [GAL-{n}](GAL-{n}.md) Reject empty names" for n in (1, 2, 3)]
    nowhere = project.document("land", "--onto", "nowhere")
    (action,) = nowhere["error"]["safe_next_actions"]
    assert project.git(*shlex.split(action)[1:])
    unfinished = project.document("land", "GAL-9")
    assert unfinished["error"]["kind"] == "usage"


@pytest.mark.broad
def test_a_result_that_is_no_longer_red_or_breaks_others_is_refused_with_the_tests(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 2)
    fleet.run(1)
    fleet.run(2)
    fleet.project.write({"f3.sum": "g3 n = n\n", "g.check": "of_one: f1 3 = 3\n"})
    fleet.project.commit("what breaks when f1 doubles")
    fleet.project.write({"f2.sum": "f2 n = n + n\nh2 n = n\n"})
    fleet.project.commit("what makes f2 double by other words")
    fleet.project.git("tag", "before")
    told = fleet.land()
    one, two = told["runs"]
    assert (one["found"], one["then"]) == ("regression", "order_again")
    assert one["why"] == ["task 1: g.check::of_one: passed before and fails now, twice each"]
    assert (two["status"], two["found"]) == ("refused", "conflict")
    assert fleet.project.git("rev-parse", "main", "before").splitlines()[0] == told["before"] == told["after"]
    assert "[[quarantine]]" in one["safe_next_actions"][-1]
    fleet.project.write({"g.check": "of_one: f1 3 = 6\n"})
    fleet.project.commit("what f1 is to do")
    (line,) = fleet.project.document("land", "run-GAL-1")["runs"]
    assert line["status"] == "landed", line
    orders = {order["order"]: order["state"] for order in fleet.project.document("queue", "list")["orders"]}
    assert orders == {one["order"]: "dropped", two["order"]: "queued"}, "nobody does again what has landed"


@pytest.mark.broad
def test_a_person_in_the_way_is_told_where(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 1)
    fleet.run(1)
    mine = fleet.project.root / "f1.sum"
    mine.write_text("f1 n = n * 7\n", encoding="utf-8")
    told = fleet.land()
    (line,) = told["runs"]
    assert (told["_code"], line["status"], line["found"], line["then"]) == (4, "waits", "in_the_way", "tell")
    look, again = map(shlex.split, line["safe_next_actions"])
    assert fleet.project.git(*look[1:]).endswith('(use "git add" and/or "git commit -a")')
    assert mine.read_text(encoding="utf-8") == "f1 n = n * 7\n"
    fleet.project.git("checkout", "--quiet", "f1.sum")
    assert fleet.project.document(*again[1:])["runs"][0]["status"] == "landed"
    assert [each["found"] for each in fleet.journal("run-GAL-1", "landing_refused")] == ["in_the_way"]


@pytest.mark.broad
def test_a_finished_run_is_told_while_a_newer_one_of_its_issue_is_open_and_lands_by_the_issue_after_it(
    tmp_path: Path,
) -> None:
    fleet = make_fleet(tmp_path, 1)
    fleet.run(1)
    fleet.run(1, "--previous", "run-GAL-1", "--set", "limits.dispatches=2", outcome="parked")
    (line,) = fleet.land()["runs"]
    assert (line["run"], line["status"]) == ("run-GAL-1", "passed_over")
    assert line["why"] == ["run-GAL-1@2 of the same issue began later, and is not finished"]
    assert fleet.project.redfirst("abandon", "run-GAL-1@2").returncode == 0
    fleet.project.write({"other.txt": "of others\n"})
    fleet.project.commit("what a landing has to be put on")
    (line,) = fleet.land("GAL-1")["runs"]
    assert (line["run"], line["status"]) == ("run-GAL-1", "landed")
    nothing = fleet.land()
    assert (nothing["runs"], nothing["dry_run"]) == ([], False)
    assert fleet.project.redfirst("issue", "status", "GAL-1", "todo").returncode == 0
    fleet.project.commit("it is to be done again")
    fleet.run(1, "--approve", "plan", outcome="parked")


def test_what_landed_on_a_branch_that_is_gone_holds_nothing_up_and_its_worktree_goes(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 2)
    project = fleet.project
    project.git("branch", "feature")
    fleet.run(1, "--base", "feature")
    assert fleet.land("GAL-1")["onto"] == "feature"
    fleet.run(2)
    project.write({"other.txt": "of others\n"})
    project.commit("main goes on")
    project.git("merge", "--quiet", "--no-edit", "feature")
    project.git("branch", "--delete", "feature")
    told = fleet.land()
    assert [(line["run"], line["status"]) for line in told["runs"]] == [("run-GAL-2", "landed")], told
    left = project.redfirst("gc", "--older-than", "0d").stdout
    assert f"{fleet.worktrees['run-GAL-1']}" in left.partition("stays")[0], left


def test_an_issue_that_cannot_be_edited_on_the_base_is_to_be_mended_and_not_done_again(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 1)
    fleet.run(1)
    issue = fleet.project.root / "TODO/GAL-1.md"
    text = issue.read_text(encoding="utf-8")
    issue.write_text(f"{text}\n```\nnever closed\n", encoding="utf-8")
    fleet.project.commit("a note")
    for told in (fleet.land("--dry-run"), fleet.land()):
        (line,) = told["runs"]
        assert (told["_code"], line["status"], line["found"]) == (4, "waits", "in_the_way"), line
        assert line["why"][0].endswith("Mend that there, then land it again")
    assert fleet.project.document("queue", "list")["orders"] == []
    issue.write_text(text, encoding="utf-8")
    fleet.project.commit("mended")
    assert fleet.land()["runs"][0]["status"] == "landed"


def test_what_its_user_threw_away_lands_only_by_name(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 2)
    project = fleet.project
    project.git("branch", "feature")
    fleet.run(1, "--base", "feature")
    project.git("branch", "--delete", "--force", "feature")
    project.git("switch", "--quiet", "--create", "shop")
    fleet.run(2, worktree=False)
    project.git("switch", "--quiet", "main")
    project.git("branch", "--delete", "--force", "shop")
    (gone,) = (told := fleet.land())["runs"][:1]
    assert (gone["status"], gone["why"]) == ("passed_over", ["its base feature is gone"])
    assert gone["safe_next_actions"] == ["redfirst land run-GAL-1 --onto BRANCH"]
    (thrown,) = told["runs"][1:]
    assert (thrown["status"], thrown["why"]) == ("passed_over", ["its branch shop does not have its commits any more"])
    assert told["before"] == told["after"]
    assert project.document(*shlex.split(thrown["safe_next_actions"][0])[1:])["runs"][0]["status"] == "landed"
    assert fleet.land("GAL-1", "--onto", "main")["runs"][0]["status"] == "landed"


@pytest.mark.broad
def test_a_base_whose_checkout_only_git_there_knows_is_not_moved_under_it(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 1)
    fleet.project.git("init", "--quiet", "--separate-git-dir", str(tmp_path / "apart"))
    fleet.run(1)
    before = fleet.project.git("rev-parse", "main")
    told = json.loads(fleet.project.redfirst("land", "GAL-1", "--json", cwd=fleet.worktrees["run-GAL-1"]).stdout)
    assert (told["runs"][0]["status"], told["runs"][0]["found"]) == ("waits", "in_the_way"), told
    assert "land from there" in told["runs"][0]["why"][0]
    assert (fleet.project.git("rev-parse", "main"), fleet.project.git("status", "--porcelain")) == (before, "")
    assert fleet.land("GAL-1")["runs"][0]["status"] == "landed"
    assert fleet.project.git("status", "--porcelain") == ""


def test_a_landing_that_was_killed_before_it_was_written_down_is_written_down_by_the_next(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 1)
    fleet.run(1)
    assert fleet.land()["ok"]
    journal = fleet.worktrees["run-GAL-1"] / ".workflow/run-GAL-1/journal.jsonl"
    *before, landed = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    assert '"landed"' in landed
    journal.write_text("".join(before), encoding="utf-8")
    assert [line["status"] for line in fleet.land()["runs"]] == ["landed"]
    assert len(fleet.journal("run-GAL-1", "landed")) == 1
    assert fleet.land()["runs"] == []
