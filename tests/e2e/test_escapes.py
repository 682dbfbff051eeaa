"""Whole runs in which something outside the view changes: by an agent that got out, or by the user who works on."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest
from crashes import Bell, spawn
from e2e.misbehaviour import scene, shell
from kit import AFTER_MAKE, FILES, HONEST, MAKE, PLAN, TASK, TESTS, UNTIL_TESTS, make_project

from pipeline.pids import ProcessId
from pipeline.repo import Repository
from pipeline.run.store import keep_key, publish_ref

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kit import Entry, Project

pytestmark = pytest.mark.slow


class Pause:
    """An agent that waits in its box until the test has done something meanwhile."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.bell = Bell(project.home)
        self.go_on = self.bell.folder / "go"

    def entry(self, entry: Entry) -> Entry:
        """Return *entry* played by an agent that rings, and goes on when it may."""
        wait = f"echo > {self.bell.folder}/fifo; while [ ! -e {self.go_on} ]; do sleep 0.05; done"
        return {**entry, "run": ["sh", "-c", wait]}

    def run(self, meanwhile: Callable[[Project], object]) -> dict[str, Any]:
        """Return the document of a run during whose first dispatch *meanwhile* happens."""
        with spawn(self.project, "run", "GAL-1", "--json", *self.bell.flags) as driver:
            self.bell.wait(driver)
            meanwhile(self.project)
            self.go_on.touch()
            out, said = driver.communicate()
        document: dict[str, Any] = json.loads(out)
        return {**document, "_code": driver.returncode, "_stderr": said}


def evidence(project: Project, dispatch: str = "001-plan-orchestrator") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.run_folder() / "dispatches" / dispatch / "escape.json").read_text())
    return found


def goes_on_working(project: Project) -> None:
    """Do what people do while they wait."""
    (project.root / "notes.txt").write_text("mine\n")
    (project.root / "more.py").write_text("mine = 1\n")
    project.git("add", "more.py")
    project.git("stash")
    project.git("stash", "pop")
    project.git("branch", "idea")
    project.git("tag", "--message", "v1", "v1")
    project.git("config", "user.name", "Grace")
    project.git("config", "branch.work.description", "x")
    project.git("remote", "add", "other", str(project.root))
    project.git("fetch", "--quiet", "other")
    project.git("pack-refs", "--all", "--prune")
    project.git("gc", "--quiet")
    project.git("worktree", "add", "--quiet", "-b", "side", str(project.home / "side"), "main")


@pytest.mark.broad
def test_a_user_who_goes_on_working_is_no_escape(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    pause = Pause(project)
    project.use_script([pause.entry(PLAN), *HONEST[1:]])
    document = pause.run(goes_on_working)
    assert (document.get("outcome"), document["_code"]) == ("completed", 0), document["_stderr"]
    assert (project.root / "notes.txt").read_text() == "mine\n"
    assert project.git("status", "--porcelain").splitlines() == ["A  more.py", "?? notes.txt"]


@pytest.mark.broad
def test_a_hook_that_appears_ends_the_run_and_loses_nothing(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    start = project.git("rev-parse", "HEAD")
    pause = Pause(project)
    project.use_script([pause.entry(PLAN)])

    def install(where: Project) -> None:
        hook = where.root / ".git" / "hooks" / "pre-commit"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\nexit 0\n")
        hook.chmod(0o755)

    failed = pause.run(install)
    assert (failed["outcome"], failed["reason"], failed["_code"]) == ("failed", "escape", 6), failed
    assert project.untouched_since(start)
    (part,) = evidence(project)["parts"]
    assert (part["part"], part["path"], part["before"]) == ("hooks", str(project.root / ".git/hooks/pre-commit"), "")
    explained = project.redfirst("explain", "GAL-1", "-v").stdout
    summary = (project.run_folder() / "summary.md").read_text()
    for told in (explained, summary):
        assert "hooks/pre-commit" in told
        assert "If it was you" in told
        assert "redfirst run GAL-1" in told
    project.use_script(HONEST)
    again = project.run()
    assert (again["run_id"], again["_code"]) == ("run-GAL-1@2", 0), again["_stderr"]


PLANTS = {
    "replace refs": "git -C ROOT replace HEAD $(git -C ROOT commit-tree -m x HEAD^{tree})",
    "alternates": "echo /elsewhere > ROOT/.git/objects/info/alternates",
    "config": "git -C ROOT config core.fsmonitor 'touch HOST/marker'",
    "hooks": "echo 'touch HOST/marker' > ROOT/.husky/_/pre-commit",
    "info": "echo '* filter=evil' > ROOT/.git/info/attributes",
    "private checkout": "for tree in HOME_/state/redfirst/runs/*/*/tree; do echo POISON > $tree/greet.py; done",
    "refs of the run": "git -C ROOT update-ref REF HEAD",
}


@pytest.mark.parametrize("part", PLANTS)
@pytest.mark.broad(but_first=1)
def test_an_agent_without_a_box_is_caught_with_evidence(part: str, tmp_path: Path) -> None:
    it = scene(tmp_path)
    it.project.git("config", "core.hooksPath", ".husky/_")
    it.project.write({".husky/_/pre-commit": "#!/bin/sh\n", ".husky/_/.gitignore": "*\n"})
    plant = PLANTS[part].replace("ROOT", str(it.project.root)).replace("HOST", str(it.host))
    plant = plant.replace("HOME_", str(it.project.home))
    keep_key(it.project.root)  # refs of the run go by this name: made later, it would be another one
    plant = plant.replace("REF", publish_ref(Repository.find(it.project.root), "run-GAL-1"))
    it.project.use_script([{**PLAN, "run": shell(f"unset GIT_DIR; {plant}")}, *HONEST], 'sandbox = "none"')
    failed = it.project.run()
    assert (failed.get("outcome"), failed.get("reason"), failed["_code"]) == ("failed", "escape", 6), failed["_stderr"]
    assert {found["part"] for found in evidence(it.project)["parts"]} == {part}
    decision = next(line["data"] for line in it.project.journal() if line["data"].get("row") == "any/ESCAPE")
    assert "dispatches/001-plan-orchestrator/escape.json" in decision["evidence"]
    it.assert_explained("any/ESCAPE", part, "escape.json")
    assert [path.name for path in it.host.iterdir()] == ["secret.txt"]
    assert it.result("001-plan-orchestrator")["tree"] is None


# --- what git obeys in the tree itself -------------------------------------------------------------------------------


@pytest.mark.broad
def test_nobody_writes_into_the_users_hooks_though_the_task_names_them_and_who_writes_tests_adds_no_module(
    tmp_path: Path,
) -> None:
    beside = {"src/app.py": "X = 1\n", "src/tests/README": "not collected\n"}
    project = make_project(tmp_path, {**FILES, **beside, "tools/hooks/README": "hooks\n"})
    project.git("config", "core.hooksPath", "tools/hooks")
    project.git("config", "include.path", "../.gitconfig")
    files = [*TASK["files"], {"path": "tools/hooks/pre-commit", "action": "create"}]
    files.append({"path": ".gitconfig", "action": "create"})
    split = {"when": {"kind": "split"}, "report": {"tasks": [{**TASK, "files": files}]}}
    plants = {"tools/hooks/pre-commit": "#!/bin/sh\ntouch x\n", ".gitconfig": "[alias]\n\tst = !touch x\n"}
    planted = {**MAKE, "files": {**MAKE["files"], **plants}}
    more = {
        "src/test_backdoor.py": "X = 1\n",
        "src/tests/helper.py": "X = 1\n",
        "tests/sitecustomize.py": "X = 1\n",
        "tests/evil.pth": "import os\n",
        "tests/conftest.py": "collect_ignore_glob = ['*']\n",
    }
    added = {**TESTS, "files": {**TESTS["files"], **more, "tests/helper.py": "X = 1\n"}}
    script = [*UNTIL_TESTS[:3], split, UNTIL_TESTS[4], added, TESTS, planted, MAKE, *AFTER_MAKE]
    project.use_script(script, 'sandbox = "none"\n')
    document = project.run()
    assert document["_code"] == 0, document["_stderr"]
    lines = [line["data"] for line in project.journal() if line["kind"] == "change_rejected"]
    of_test, of_make = ({one["path"]: one["rule"] for one in line["violations"]} for line in lines)
    assert of_make == dict.fromkeys(plants, "obeyed-by-git")
    assert of_test == {
        "src/test_backdoor.py": "outside-task",
        "src/tests/helper.py": "outside-task",
        "tests/sitecustomize.py": "control-file",
        "tests/evil.pth": "control-file",
        "tests/conftest.py": "control-file",
    }
    assert "tests/helper.py" in project.files_at("work")
    assert not {*more, *plants} & set(project.files_at("work"))


# --- what a crash leaves ---------------------------------------------------------------------------------------------


@pytest.mark.broad
def test_an_agent_that_outlived_its_driver_is_dead_before_it_is_asked_again(tmp_path: Path) -> None:
    """Driver and supervisor are killed at once; only the mark in the agent's environment is left."""
    project = make_project(tmp_path)
    bell = Bell(project.home)
    note = project.home / "agent"
    stay = f"{sys.executable} -c 'import time; time.sleep(600)' & echo $! > {note}; echo > {bell.folder}/fifo; wait"
    project.use_script([{**PLAN, "run": ["sh", "-c", stay]}, *HONEST], 'sandbox = "none"')
    record = project.run_folder() / "dispatches" / "001-plan-orchestrator" / "process.json"
    with spawn(project, "run", "GAL-1", *bell.flags) as driver:
        bell.wait(driver)
        supervisor = json.loads(record.read_text())
        agent = ProcessId.of(int(note.read_text()))
        assert agent is not None
        os.kill(supervisor["pid"], signal.SIGSTOP)
        driver.kill()
        driver.communicate()
        os.kill(supervisor["pid"], signal.SIGKILL)
    assert agent.is_alive(), "nobody was left to end it"
    project.use_script(HONEST, 'sandbox = "none"')
    done = project.redfirst("resume", "GAL-1")
    assert done.returncode == 0, done.stderr
    assert not agent.is_alive()
    assert list(project.run_folder().glob("dispatches/*/process.json")) == []
