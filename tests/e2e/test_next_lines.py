"""What is advised at a gate, and of a run that has ended or stopped, is executed where it is printed (`next_table`).

The place has a space in its path.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crashes import KILLED, die_at
from e2e.next_scene import FAST, HONEST, SECOND, make_scene
from e2e.next_table import TABLE
from next_lines import actions_of

if TYPE_CHECKING:
    from kit import Project
    from next_lines import Scene

pytestmark = pytest.mark.slow


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return make_scene(tmp_path, HONEST * 2)


def parked(scene: Scene, *flags: str, reason: str = "approval") -> dict[str, Any]:
    document = scene.project.run(*flags)
    assert document.get("reason") == reason, document
    return document


@pytest.mark.broad
def test_at_a_gate(scene: Scene) -> None:
    project = scene.project
    document = parked(scene, "--approve", "plan")
    shown = project.document("show", "GAL-1")
    assert actions_of(document) == actions_of(shown)
    scene.each(actions_of(document), TABLE["gate plan"].lines)
    scene.each([one["command"] for one in document["at_gate"]["answers"]], TABLE["answers at gate plan"].lines)
    scene.each(actions_of(project.document("resume", "GAL-1")), TABLE["resume at a gate"].lines)
    plan = project.run_folder() / "plan.md"
    drafted = plan.read_text(encoding="utf-8")
    plan.unlink()
    scene.each(actions_of(project.document("approve")), TABLE["a draft is removed"].lines)
    plan.write_text("# No plan\n", encoding="utf-8")
    scene.each(actions_of(project.document("approve")), TABLE["a draft that cannot be used"].lines)
    plan.write_text(drafted, encoding="utf-8")
    other = project.document("approve", "GAL-1", "--gate", "commit")
    scene.each(actions_of(other), TABLE["another gate is approved"].lines)


@pytest.mark.broad
def test_at_the_last_gate(scene: Scene) -> None:
    scene.project.use_script(HONEST, FAST)
    document = parked(scene, "--approve", "commit")
    scene.each([one["command"] for one in document["at_gate"]["answers"]], TABLE["answers at gate commit"].lines)
    with (scene.project.run_folder() / "plan.md").open("a", encoding="utf-8") as plan:
        plan.write("\nAlso zero.\n")
    edited = scene.project.document("show")["edits_without_effect"]
    scene.each([edit["instead"] for edit in edited], TABLE["an edit after its gate"].lines)


@pytest.mark.broad
def test_with_changes_that_are_in_the_way(scene: Scene) -> None:
    parked(scene, "--approve", "split")
    scene.project.write({"greet.sum": "greet n = n + 5\n"})
    refused = scene.project.document("approve")
    scene.each(actions_of(refused), TABLE["in the way"].lines)
    scene.within(refused["error"]["message"], TABLE["what puts it away"].lines)


@pytest.mark.broad
def test_from_the_main_checkout(scene: Scene) -> None:
    project = scene.project
    project.write({"redfirst.toml": 'base = "trunk"\n'})
    document = parked(scene, "--worktree", "--approve", "plan")
    assert f"redfirst.toml of {project.root} does not count there: it is not committed" in document["_stderr"]
    (project.root / "redfirst.toml").unlink()
    scene.each(actions_of(document), TABLE["gate plan of a linked worktree"].lines)
    scene.each(actions_of(project.document("approve")), TABLE["a gate that waits in a linked worktree"].lines)
    rejected = project.document("reject", "--feedback", "no")
    scene.each(actions_of(rejected), TABLE["a gate that waits there, rejected"].lines)
    scene.each(actions_of(project.document("run", "GAL-1")), TABLE["claimed in a linked worktree"].lines)
    project.git("switch", "--quiet", "main")
    assert tuple(actions_of(project.document("run", "GAL-1"))) == tuple(TABLE["claimed in a linked worktree"].lines)
    project.git("switch", "--quiet", "work")
    listed = project.redfirst("issue", "show", "GAL-1").stderr
    scene.within(listed, TABLE["a list of issues that are claimed"].lines)
    there = scene.place / "project-gal-1"
    assert project.document("approve", "GAL-1")["outcome"] == "completed"
    done = project.document("show", "GAL-1")
    scene.each(actions_of(done), TABLE["completed in a linked worktree"].lines)
    scene.each(actions_of(project.document("show", "GAL-1")), TABLE["completed in a linked worktree"].lines)
    seen = json.loads(project.redfirst("show", "GAL-1", "--json", cwd=there).stdout)
    scene.each(actions_of(seen)[2:], TABLE["landing, seen from the worktree that was made"].lines, cwd=there)
    again = project.document("run", "GAL-1", "--worktree")
    scene.each(actions_of(again), TABLE["done in a linked worktree"].lines)
    assert there.is_dir()


@pytest.mark.broad
def test_a_branch_whose_name_the_shell_would_read(scene: Scene) -> None:
    scene.project.git("switch", "--quiet", "--create", "a;$b&c")
    done = parked(scene, reason="done")
    scene.each(actions_of(done), TABLE["completed on an odd branch"].lines)


@pytest.mark.broad
def test_landing_of_a_branch_without_a_worktree(scene: Scene) -> None:
    project = scene.project
    project.git("worktree", "add", "-q", "--detach", "../other", "main")
    other = scene.place / "other"
    assert parked(scene, reason="done")["outcome"] == "completed"
    assert project.document("show", "GAL-1")["landed"] is False
    assert "landed on" not in project.redfirst("show", "GAL-1").stdout

    def told(cwd: Path | None = None) -> list[str]:
        return actions_of(json.loads(project.redfirst("show", "GAL-1", "--json", cwd=cwd).stdout))[2:]

    (other / "other.sum").write_text("other n = n\n", encoding="utf-8")
    for line in ("add -A", "commit -qm other", "update-ref refs/heads/main HEAD"):
        project.git("-C", str(other), *line.split())
    scene.each(told(), TABLE["landing where the base has moved and is checked out nowhere"].lines)
    scene.each(told(other), TABLE["landing there, seen from elsewhere"].lines, cwd=other)
    project.write({"new.txt": "mine\n"})
    scene.each(told(), TABLE["landing that git would not switch for"].lines)
    (project.root / "new.txt").unlink()
    project.git("fetch", "--quiet", ".", "+work:main")
    assert (told(), project.document("show", "GAL-1")["landed"]) == ([], True)
    assert ", landed on main\n" in project.redfirst("show", "GAL-1").stdout


@pytest.mark.broad
def test_landing(scene: Scene) -> None:
    project = scene.project
    assert parked(scene, "--worktree", reason="done")["outcome"] == "completed"

    def told() -> list[str]:
        return actions_of(project.document("show", "GAL-1"))[2:]

    project.git("switch", "--quiet", "main")
    scene.each(told(), TABLE["landing where the base is checked out"].lines)
    there = scene.place / "project-gal-1"
    seen = json.loads(project.redfirst("show", "GAL-1", "--json", cwd=there).stdout)
    scene.each(actions_of(seen)[2:], TABLE["landing where the base is elsewhere"].lines, cwd=there)
    project.write({"greet.sum": "greet n = n + 1\n"})
    scene.each(told(), TABLE["landing that git would refuse"].lines)
    project.git("checkout", "greet.sum")
    project.write({"other.sum": "other n = n\n"})
    project.commit()
    scene.each(told(), TABLE["landing where the base has moved"].lines)
    project.write({"greet.sum": "greet n = n + 1\n"})
    project.commit()
    scene.each(told(), TABLE["landing that would conflict"].lines)
    project.git("reset", "--quiet", "--hard", "main~2")
    project.git("merge", "--quiet", "gal-1-reject-empty-names")
    (removed,) = told()
    command, _, kept = removed.partition("   # its record stays in ")
    assert command == f"git worktree remove '{there}' && git branch -D gal-1-reject-empty-names"
    assert "# run-GAL-1: " in project.git("show", f"{kept}:run/summary.md")
    assert project.document("show", "GAL-1")["landed"] is True


@pytest.mark.broad
def test_a_result_for_the_branch_of_a_run_that_waits_is_not_put_there(scene: Scene) -> None:
    project = scene.project
    project.write(SECOND)
    project.commit("a second issue")
    parked(scene, "--approve", "commit")
    scene.project.use_script(HONEST, FAST)
    second = project.run("--worktree", "--base", "work", issue="GAL-2")
    assert second["reason"] == "done", second
    assert "run-GAL-1 is at work on work, too: what this run makes lands there once that one is" in second["_stderr"]
    scene.each(actions_of(second)[2:], TABLE["landing on the branch of another run"].lines)
    landed = project.document("land", "GAL-2")
    assert (landed["_code"], landed["runs"][0]["status"]) == (4, "waits"), landed
    scene.each(landed["runs"][0]["safe_next_actions"], TABLE["land on the branch of another run"].lines)
    shown = project.redfirst("show", "GAL-2").stdout
    assert "finish it first" in shown
    assert project.document("abandon", "GAL-1")["reason"] == "abandoned"
    assert "finish it first" not in project.redfirst("show", "GAL-2").stdout
    assert any(line.startswith("git merge") for line in actions_of(project.document("show", "GAL-2")))


@pytest.mark.broad
def test_a_worktree_that_is_gone(scene: Scene) -> None:
    project = scene.project
    parked(scene, "--worktree", "--approve", "plan")
    there = scene.place / "project-gal-1"
    with scene.put_back():
        abandoned = project.document("abandon", "GAL-1")
        scene.each(actions_of(abandoned), TABLE["abandoned in a linked worktree"].lines)
        seen = json.loads(project.redfirst("show", "GAL-1", "--json", cwd=there).stdout)
        scene.each(actions_of(seen)[3:], TABLE["abandoned, seen from the worktree that was made"].lines, cwd=there)
    with scene.put_back():
        (there / "new.txt").write_text("mine\n", encoding="utf-8")
        (there / ".git-ignored").write_text("mine\n", encoding="utf-8")
        exclude = Path(
            project.git("-C", str(there), "rev-parse", "--path-format=absolute", "--git-path", "info/exclude")
        )
        exclude.write_text(".git-ignored\n", encoding="utf-8")
        project.git("-C", str(there), "commit", "--quiet", "--allow-empty", "--message", "mine")
        abandoned = project.document("abandon", "GAL-1")
        assert len(actions_of(abandoned)) == 3
        why = "gal-1-reject-empty-names has commits that main does not have; not committed: .git-ignored, new.txt"
        assert f"stay: {why}" in abandoned["_stderr"]
    shutil.rmtree(there)
    for words in (["show", "GAL-1"], ["run", "GAL-1"]):
        scene.each(actions_of(project.document(*words)), TABLE["the claim's worktree is gone"].lines)
    scene.within(project.redfirst("issue", "show", "GAL-1").stderr, TABLE["the claim's worktree is gone"].lines)
    scene.each([advice_of_doctor(project, "leftovers")], TABLE["the claim of a run that is gone"].lines)
    project.git("worktree", "lock", "--reason", "on a disk", str(there))
    locked = project.document("abandon", "GAL-1")
    scene.in_turn(actions_of(locked), TABLE["the claim's worktree is locked"].lines)


def test_ended(scene: Scene) -> None:
    project = scene.project
    done = project.run()
    scene.each(actions_of(done), TABLE["completed"].lines)
    scene.each(actions_of(project.document("approve", "GAL-1")), TABLE["an ended run is approved"].lines)
    scene.each(actions_of(project.document("abandon", "GAL-1")), TABLE["an ended run is abandoned"].lines)
    scene.each(actions_of(project.document("show", "run-GAL-9")), TABLE["unknown run"].lines)
    scene.each(actions_of(project.document("diff", "--task", "9")), TABLE["no such task"].lines)
    record = project.run_folder() / "run.json"
    kept = record.read_text(encoding="utf-8")
    record.write_text(kept.replace(json.loads(kept)["start_tree"], "1" * 40), encoding="utf-8")
    scene.each(actions_of(project.document("diff", "GAL-1")), TABLE["the objects of a run are gone"].lines)
    record.write_text(kept, encoding="utf-8")
    shutil.rmtree(project.run_folder())
    assert advice_of_doctor(project, "leftovers") == "", "`verify` reads the evidence of a run that ended in its ref"
    project.git("update-ref", project.git("for-each-ref", "--format=%(refname)", "refs/redfirst/runs"), "HEAD")
    scene.each([advice_of_doctor(project, "leftovers")], TABLE["the ref of a run that is gone"].lines)


def advice_of_doctor(project: Project, check: str) -> str:
    (advice,) = (each["advice"] for each in project.document("doctor")["checks"] if each["id"] == check)
    return str(advice)


@pytest.mark.broad
def test_an_answer_that_was_not_measured_yet_stays_when_the_run_is_given_up(scene: Scene) -> None:
    project = scene.project
    assert die_at(project, "after journal dispatch_finished", 5, "run", "GAL-1") == KILLED
    test = "+two: greet 2 = 4"
    assert test in project.redfirst("diff", "GAL-1").stdout
    assert project.document("abandon", "GAL-1")["reason"] == "abandoned"
    assert test in (project.run_folder() / "work.patch").read_text(encoding="utf-8")
    project.git("gc", "--quiet", "--prune=now")
    assert test in project.redfirst("diff", "GAL-1").stdout


@pytest.mark.broad
def test_an_issue_that_is_edited_while_a_run_has_it_is_said_not_to_count(scene: Scene) -> None:
    project = scene.project
    parked(scene, "--approve", "split")
    issue = project.root / "TODO" / "GAL-1.md"
    issue.write_text(issue.read_text(encoding="utf-8").replace("raises ValueError", "raises TypeError"), "utf-8")
    told = " ".join(project.document("approve", "GAL-1")["_stderr"].split())
    assert "TODO/GAL-1.md: you changed it after the run began, and that does not count: run-GAL-1 goes by the" in told
    assert "left as it is" not in told


@pytest.mark.broad
def test_abandoned(scene: Scene) -> None:
    parked(scene, "--approve", "plan")
    scene.each(actions_of(scene.project.document("abandon", "GAL-1")), TABLE["abandoned"].lines)
    scene.each(actions_of(scene.project.document("resume", "GAL-1")), TABLE["an abandoned run is approved"].lines)


@pytest.mark.broad
def test_failed(scene: Scene) -> None:
    report = HONEST[0]["report"]
    drafts = [{**report, "approach": f"Draft {number}. Should greet raise?"} for number in range(6)]  # no two the same
    scene.project.use_script([{**HONEST[0], "report": draft} for draft in drafts], FAST)
    document = parked(scene, reason="loops_exhausted")
    scene.each(actions_of(document), TABLE["loops exhausted"].lines)


@pytest.mark.broad
def test_the_budget_is_used_up(scene: Scene) -> None:
    document = parked(scene, "--set", "limits.dispatches=2", reason="budget")
    scene.each(actions_of(document), TABLE["budget"].lines)


@pytest.mark.broad
def test_an_agent_cannot_be_used(scene: Scene) -> None:
    scene.project.use_script([{"when": {"kind": "plan"}, "exit": 3}] * 6, FAST)
    document = parked(scene, reason="agent_unusable")
    scene.each(actions_of(document), TABLE["agent unusable"].lines)


@pytest.mark.broad
def test_the_driver_died(scene: Scene) -> None:
    assert die_at(scene.project, "after journal dispatch_started", 1, "run", "GAL-1") == KILLED
    scene.project.git("worktree", "add", "-q", "-b", "other", "../other", "main")
    scene.each(actions_of(scene.project.document("show", "GAL-1")), TABLE["driver died"].lines)
    scene.each(actions_of(scene.project.document("approve", "GAL-1")), TABLE["no gate"].lines)
    claimed = scene.project.document("run", "GAL-1", "--worktree")
    scene.each(actions_of(claimed), TABLE["claimed by a run whose driver died"].lines)


@pytest.mark.broad
def test_the_branch_or_a_file_changed(scene: Scene) -> None:
    project = scene.project
    parked(scene, "--approve", "commit")
    project.write({"greet.sum": "greet n = n + 5\n"})
    changed = project.document("approve", "GAL-1")
    scene.each(actions_of(changed), TABLE["worktree changed"].lines)
    scene.within(changed["note"], TABLE["what puts away what publication would overwrite"].lines)
    with scene.put_back():  # what is put away comes back, where the run has not changed the same lines
        project.git("stash", "push", "--include-untracked", "--", "greet.sum")
        assert project.document("resume", "GAL-1")["outcome"] == "completed"
    project.git("commit", "--quiet", "--message", "mine", "--only", "greet.sum")
    moved = project.document("resume", "GAL-1")
    scene.each(actions_of(moved), TABLE["branch moved"].lines)


@pytest.mark.broad
def test_no_baseline(scene: Scene) -> None:
    scene.project.write({"greet.check": "no check at all\n"})
    scene.project.commit()
    with scene.put_back():
        rejected = parked(scene, "--worktree", "--base", "work", reason="baseline_impossible")
        scene.each(actions_of(rejected), TABLE["rejected in a worktree that was made for it"].lines)
    scene.each(actions_of(parked(scene, reason="baseline_impossible")), TABLE["baseline impossible"].lines)


@pytest.mark.broad
def test_no_run(scene: Scene) -> None:
    assert "Start one: redfirst run ISSUE" in scene.project.redfirst("runs").stdout
    scene.each(actions_of(scene.project.document("show")), TABLE["no runs"].lines)


@pytest.mark.broad
def test_a_second_run_in_one_worktree(scene: Scene) -> None:
    project = scene.project
    project.write(SECOND)
    project.commit()
    project.git("branch", "--force", "main")
    parked(scene, "--approve", "commit", "--approve", "plan")
    kept = json.loads((project.run_folder() / "run.json").read_text(encoding="utf-8"))
    assert kept["gates"] == ["commit", "plan"], "what is given twice adds up"
    scene.each(actions_of(project.document("run", "GAL-2")), TABLE["a second run in one worktree"].lines)
