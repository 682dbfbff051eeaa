"""Every command that the program advises is executed where it is printed, and does what it says (`next_table`).

That nothing which the source can print is forgotten is held by `tests/house/test_next_lines_known.py`. The place has
a space in its path.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from crashes import KILLED, die_at
from e2e.next_table import TABLE
from e2e.shapes import TRACKER, answers
from kit import ISSUE, README, make_project
from next_lines import Scene, actions_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

OLD = "nothing: greet 0 = 0\n"
FILES = {"greet.sum": "greet n = n\n", "greet.check": OLD, "sums.project": "", **TRACKER}
HONEST = answers(FILES, {"greet.check": f"{OLD}two: greet 2 = 4\n"}, {"greet.sum": "greet n = n * 2\n"})
FAST = '[agents.simplify]\nbackend = "off"\n'
SECOND = {
    "TODO/GAL-2.md": ISSUE.replace("GAL-1", "GAL-2"),
    "TODO/README.md": f"{README}- [ ] [GAL-2](GAL-2.md) Reject empty names\n",
}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A project of sums with an honest script, in a folder with a space in its name."""
    place = tmp_path / "a place"
    place.mkdir()
    project = make_project(place, FILES)
    project.env["TESTS_LANGUAGE"] = "languages.sums"
    project.use_script(HONEST * 2, FAST)
    return Scene(project, place)


def parked(scene: Scene, *flags: str, reason: str = "approval") -> dict[str, Any]:
    document = scene.project.run(*flags)
    assert document.get("reason") == reason, document
    return document


def test_at_a_gate(scene: Scene) -> None:
    project = scene.project
    document = parked(scene, "--approve", "plan")
    shown = project.document("show", "GAL-1")
    assert actions_of(document) == actions_of(shown)
    scene.each(actions_of(document), TABLE["gate plan"].lines)
    scene.each([one["command"] for one in document["at_gate"]["answers"]], TABLE["answers at gate plan"].lines)
    scene.each(actions_of(project.document("resume", "GAL-1")), TABLE["resume at a gate"].lines)
    other = project.document("approve", "GAL-1", "--gate", "commit")
    scene.each(actions_of(other), TABLE["another gate is approved"].lines)


def test_at_the_last_gate(scene: Scene) -> None:
    scene.project.use_script(HONEST, FAST)
    document = parked(scene, "--approve", "commit")
    scene.each([one["command"] for one in document["at_gate"]["answers"]], TABLE["answers at gate commit"].lines)


def test_from_the_main_checkout(scene: Scene) -> None:
    project = scene.project
    document = parked(scene, "--worktree", "--approve", "plan")
    scene.each(actions_of(document), TABLE["gate plan of a linked worktree"].lines)
    scene.each(actions_of(project.document("run", "GAL-1")), TABLE["claimed in a linked worktree"].lines)
    there = scene.place / "project-gal-1"
    assert project.document("approve", "GAL-1")["outcome"] == "completed"
    done = project.document("show", "GAL-1")
    scene.each(actions_of(done), TABLE["completed in a linked worktree"].lines)
    scene.each(actions_of(project.document("show", "GAL-1")), TABLE["completed in a linked worktree"].lines)
    again = project.document("run", "GAL-1", "--worktree")
    scene.each(actions_of(again), TABLE["done in a linked worktree"].lines)
    assert there.is_dir()


def test_a_branch_whose_name_the_shell_would_read(scene: Scene) -> None:
    scene.project.git("switch", "--quiet", "--create", "a;$b&c")
    done = parked(scene, reason="done")
    scene.each(actions_of(done), TABLE["completed on an odd branch"].lines)


def test_landing(scene: Scene) -> None:
    project = scene.project
    assert parked(scene, "--worktree", reason="done")["outcome"] == "completed"

    def told() -> list[str]:
        return actions_of(project.document("show", "GAL-1"))[2:]

    project.git("switch", "--quiet", "main")
    scene.each(told(), TABLE["landing where the base is checked out"].lines)
    project.write({"greet.sum": "greet n = n + 1\n"})
    assert told() == [], "git would refuse to overwrite it"
    project.git("checkout", "greet.sum")
    project.write({"other.sum": "other n = n\n"})
    project.commit()
    scene.each(told(), TABLE["landing where the base has moved"].lines)
    project.write({"greet.sum": "greet n = n + 1\n"})
    project.commit()
    assert told() == [], "it would conflict"
    project.git("reset", "--quiet", "--hard", "main~2")
    project.git("merge", "--quiet", "gal-1-reject-empty-names")
    assert told() == []
    assert project.document("show", "GAL-1")["landed"] is True


def test_a_worktree_that_is_gone(scene: Scene) -> None:
    project = scene.project
    parked(scene, "--worktree", "--approve", "plan")
    there = scene.place / "project-gal-1"
    shutil.rmtree(there)
    for words in (["show", "GAL-1"], ["run", "GAL-1"]):
        scene.each(actions_of(project.document(*words)), TABLE["the claim's worktree is gone"].lines)
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


def test_abandoned(scene: Scene) -> None:
    parked(scene, "--approve", "plan")
    scene.each(actions_of(scene.project.document("abandon", "GAL-1")), TABLE["abandoned"].lines)
    scene.each(actions_of(scene.project.document("resume", "GAL-1")), TABLE["an abandoned run is approved"].lines)


def test_failed(scene: Scene) -> None:
    untidy = {**HONEST[0], "report": {**HONEST[0]["report"], "approach": "Should greet raise?"}}
    scene.project.use_script([untidy] * 6, FAST)
    document = parked(scene, reason="loops_exhausted")
    scene.each(actions_of(document), TABLE["loops exhausted"].lines)


def test_the_budget_is_used_up(scene: Scene) -> None:
    document = parked(scene, "--set", "limits.dispatches=2", reason="budget")
    scene.each(actions_of(document), TABLE["budget"].lines)


def test_an_agent_cannot_be_used(scene: Scene) -> None:
    scene.project.use_script([{"when": {"kind": "plan"}, "exit": 3}] * 6, FAST)
    document = parked(scene, reason="agent_unusable")
    scene.each(actions_of(document), TABLE["agent unusable"].lines)


def test_the_driver_died(scene: Scene) -> None:
    assert die_at(scene.project, "after journal dispatch_started", 1, "run", "GAL-1") == KILLED
    scene.each(actions_of(scene.project.document("show", "GAL-1")), TABLE["driver died"].lines)
    scene.each(actions_of(scene.project.document("approve", "GAL-1")), TABLE["no gate"].lines)
    scene.project.git("worktree", "add", "-q", "-b", "other", "../other", "main")
    claimed = scene.project.document("run", "GAL-1", "--worktree")
    scene.each(actions_of(claimed), TABLE["claimed by a run whose driver died"].lines)


def test_the_branch_or_a_file_changed(scene: Scene) -> None:
    project = scene.project
    parked(scene, "--approve", "commit")
    project.write({"greet.sum": "greet n = n + 5\n"})
    changed = project.document("approve", "GAL-1")
    scene.each(actions_of(changed), TABLE["worktree changed"].lines)
    project.git("commit", "--quiet", "--message", "mine", "--only", "greet.sum")
    moved = project.document("resume", "GAL-1")
    scene.each(actions_of(moved), TABLE["branch moved"].lines)


def test_no_baseline(scene: Scene) -> None:
    scene.project.write({"greet.check": "no check at all\n"})
    scene.project.commit()
    scene.each(actions_of(parked(scene, reason="baseline_impossible")), TABLE["baseline impossible"].lines)


def test_no_run(scene: Scene) -> None:
    assert "Start one: redfirst run ISSUE" in scene.project.redfirst("runs").stdout
    scene.each(actions_of(scene.project.document("show")), TABLE["no runs"].lines)


def test_a_second_run_in_one_worktree(scene: Scene) -> None:
    project = scene.project
    project.write(SECOND)
    project.commit()
    project.git("branch", "--force", "main")
    parked(scene, "--approve", "plan")
    scene.each(actions_of(project.document("run", "GAL-2")), TABLE["a second run in one worktree"].lines)


def _detached(project: Project) -> None:
    project.git("switch", "--quiet", "--detach")


def _odd_branch(project: Project) -> None:
    project.git("switch", "--quiet", "--create", "a\N{NO-BREAK SPACE}b")


def _unborn(project: Project) -> None:
    project.git("switch", "--quiet", "--orphan", "unborn")
    project.write(FILES)


def _no_base(project: Project) -> None:
    project.git("branch", "--quiet", "--move", "main", "trunk")


def _dirty(project: Project) -> None:
    project.write({"greet.sum": "greet n = n + 0\n", "new.txt": "mine\n"})


def _dirty_and_made(project: Project) -> None:
    project.write({"greet.sum": "greet n = n + 0\n", ".venv/pyvenv.cfg": ""})


def _issue(old: str, new: str) -> Callable[[Project], None]:
    def prepare(project: Project) -> None:
        assert old in ISSUE
        project.write({"TODO/GAL-1.md": ISSUE.replace(old, new)})
        project.commit()

    return prepare


def _no_tracker(project: Project) -> None:
    project.git("rm", "--quiet", "-r", "TODO")
    project.commit()


def _no_identity(project: Project) -> None:
    for key in ("user.email", "user.name"):
        project.git("config", "--unset", key)
    project.git("config", "user.useConfigOnly", "true")


def _committed_workflow(project: Project) -> None:
    project.write({".workflow/notes.txt": "mine\n"})
    project.git("add", "--force", ".workflow")
    project.commit()


def _odd_claim(project: Project) -> None:
    blob = project.git("hash-object", "-w", "greet.sum")
    project.git("update-ref", "refs/redfirst/claims/GAL-1", blob)


def _nothing(project: Project) -> None:
    pass


REFUSALS: dict[str, tuple[Callable[[Project], None], list[str]]] = {
    "detached": (_detached, ["run", "GAL-1"]),
    "a branch with a space": (_odd_branch, ["run", "GAL-1"]),
    "no commit": (_unborn, ["run", "GAL-1"]),
    "on the base": (lambda project: (project.git("switch", "--quiet", "main"), None)[1], ["run", "GAL-1"]),
    "no base": (_no_base, ["run", "GAL-1"]),
    "no base for a worktree": (_no_base, ["run", "GAL-1", "--worktree"]),
    "no such base": (_nothing, ["run", "GAL-1", "--base", "nonsense"]),
    "dirty": (_dirty, ["run", "GAL-1"]),
    "dirty with what tools made": (_dirty_and_made, ["run", "GAL-1"]),
    "a blocked issue": (_issue("depends-on: []", "depends-on: [GAL-9]"), ["run", "GAL-1"]),
    "no tracker": (_no_tracker, ["run", "GAL-1"]),
    "a broken tracker": (_issue("status: Todo", "status: Soon"), ["run", "GAL-1"]),
    "no such issue": (_nothing, ["run", "GAL-9"]),
    "an issue that is not there": (_nothing, ["issue", "show", "GAL-9"]),
    "no id": (_nothing, ["run", "GAL/1"]),
    "no identity": (_no_identity, ["run", "GAL-1"]),
    ".workflow is committed": (_committed_workflow, ["run", "GAL-1"]),
    "a wrong word": (_nothing, ["run", "--no-such-flag"]),
    "no such diagram": (_nothing, ["routes", "--diagram", "phase7"]),
    "no such schema": (_nothing, ["schema", "nonsense"]),
    "wrong signals": (_nothing, ["simulate", "--signals", "greet.sum"]),
    "a claim that cannot be read": (_odd_claim, ["run", "GAL-1"]),
    "an unknown flag key": (_nothing, ["run", "GAL-1", "--set", "nonsense=1"]),
    "no role to explain": (_nothing, ["agents", "explain"]),
    "an unknown key": (_nothing, ["config", "get", "nonsense"]),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_where_a_command_is_refused(scene: Scene, name: str) -> None:
    prepare, words = REFUSALS[name]
    prepare(scene.project)
    scene.each(actions_of(scene.project.document(*words)), TABLE[name].lines)


def test_in_a_bare_repository(scene: Scene) -> None:
    bare = scene.place / "bare.git"
    scene.project.git("clone", "--quiet", "--bare", str(scene.project.root), str(bare))
    scene.project.git("branch", "mine", cwd=bare)
    scene.project.root = bare
    scene.each(actions_of(scene.project.document("run", "GAL-1")), TABLE["bare"].lines)


UNMET = {"TODO/GAL-1.md": ISSUE.replace("depends-on: []", "depends-on: [GAL-2]"), **SECOND}


def _unmet(project: Project) -> None:
    project.write(UNMET)


REJECTIONS: dict[str, Callable[[Project], object]] = {
    "rejected: dirty": _dirty,
    "rejected: detached": _detached,
    "rejected: on the base": lambda project: project.git("switch", "--quiet", "main"),
    "rejected: branch moved": lambda project: project.git("commit", "--quiet", "--allow-empty", "--message", "mine"),
    "rejected: no tracker": _no_tracker,
    "rejected: broken tracker": _issue("status: Todo", "status: Soon"),
    "rejected: missing dependency": _issue("depends-on: []", "depends-on: [GAL-9]"),
    "rejected: unmet dependency": _unmet,
}


@pytest.mark.parametrize("name", REJECTIONS)
def test_where_a_run_is_rejected_that_had_begun(scene: Scene, name: str) -> None:
    assert die_at(scene.project, "after journal run_started", 1, "run", "GAL-1") == KILLED
    REJECTIONS[name](scene.project)
    document = scene.project.document("resume", "GAL-1")
    assert f"{document.get('outcome')}/{document.get('reason')}" == TABLE[name].stands, document
    scene.each(actions_of(document), TABLE[name].lines)
