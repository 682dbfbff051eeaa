"""What of a repository no run can work with: the run, its dry run and the self-check say the same, before anything."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from kit import FILES, HONEST, MAKE, PLAN, Project, make_project

from pipeline.repo import REFETCH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def _project(tmp_path: Path) -> Project:
    project = make_project(tmp_path)
    project.use_script(HONEST)
    return project


def _rebase(project: Project) -> None:
    project.git("branch", "other")
    for branch in ("other", "work"):
        project.git("switch", "--quiet", branch)
        (project.root / "greet.py").write_text(f"{branch} = 1\n")
        project.git("commit", "--quiet", "--all", "-m", branch)
    subprocess.run(
        ["git", "rebase", "other"], cwd=project.root, env=project.environment(), capture_output=True, check=False
    )


def _bisect(project: Project) -> None:
    project.git("commit", "--quiet", "--allow-empty", "-m", "next")
    project.git("bisect", "start", "HEAD", "main")


def _merge(project: Project) -> None:
    project.git("switch", "--quiet", "-c", "other")
    project.git("commit", "--quiet", "--allow-empty", "-m", "other")
    project.git("switch", "--quiet", "work")
    project.git("merge", "--quiet", "--no-ff", "--no-commit", "other")


def _hidden(flag: str) -> Callable[[Project], None]:
    def hide(project: Project) -> None:
        project.git("update-index", flag, "greet.py")
        (project.root / "greet.py").write_text("LOCAL = 'mine'\n")

    return hide


def _filtered(project: Project) -> None:
    project.git("config", "filter.lfs.process", "git-lfs-that-is-not-here filter-process")
    project.git("config", "filter.lfs.required", "true")
    (project.root / ".git/info/attributes").write_text("greet.py filter=lfs\n")


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_rebase, "git rebase --abort"),
        (_bisect, "git bisect reset"),
        (_merge, "git merge --abort"),
        (_hidden("--skip-worktree"), "git update-index --no-skip-worktree --no-assume-unchanged greet.py"),
        (_hidden("--assume-unchanged"), "git update-index --no-skip-worktree --no-assume-unchanged greet.py"),
        (_filtered, "greet.py needs git-lfs-that-is-not-here"),
    ],
    ids=["rebase", "bisect", "merge", "skip-worktree", "assume-unchanged", "filter"],
)
def test_all_three_say_what_is_wrong_and_what_to_do(
    tmp_path: Path, spoil: Callable[[Project], None], said: str
) -> None:
    project = _project(tmp_path)
    spoil(project)
    for command, code in ((("run", "GAL-1"), 2), (("run", "GAL-1", "--dry-run"), 0), (("doctor",), 2)):
        done = project.redfirst(*command)
        assert done.returncode == code, done.stdout + done.stderr
        assert said in " ".join((done.stdout + done.stderr).split())
    assert not list((project.root / ".workflow").glob("run-*"))


@pytest.mark.broad
def test_a_file_that_is_marked_and_not_changed_is_no_fault(tmp_path: Path) -> None:
    project = _project(tmp_path)
    project.git("update-index", "--skip-worktree", "greet.py")
    assert "git hides" not in project.redfirst("run", "GAL-1", "--dry-run").stdout


@pytest.mark.broad
def test_a_partial_clone_whose_remote_is_gone_says_how_the_rest_is_fetched(tmp_path: Path) -> None:
    project = _project(tmp_path)
    project.git("config", "uploadpack.allowFilter", "true")
    project.git("config", "uploadpack.allowAnySHA1InWant", "true")
    clone, away = tmp_path / "clone", tmp_path / "away"
    url = f"file://{project.root}"
    project.git("clone", "--quiet", "--filter=blob:none", "--sparse", url, str(clone))
    upstream, project.root = project.root, clone
    project.git("switch", "--quiet", "-c", "mine")
    upstream.rename(away)
    done = project.redfirst("run", "GAL-1", "--base", "work", "--dry-run")
    assert REFETCH in done.stdout
    assert REFETCH in project.redfirst("doctor").stdout
    away.rename(upstream)
    project.git(*REFETCH.split()[1:])
    upstream.rename(away)
    assert REFETCH not in project.redfirst("run", "GAL-1", "--base", "work", "--dry-run").stdout


@pytest.mark.broad
@pytest.mark.parametrize(
    "files", [{"Makefile": "test:\n\ttrue\n", "main.c": "int main;\n"}, {"notes.md": "none yet\n"}]
)
def test_where_no_runner_is_known_nobody_is_paid_and_all_are_named(tmp_path: Path, files: dict[str, str]) -> None:
    tracker = {name: text for name, text in FILES.items() if name.startswith("TODO/")}
    project = make_project(tmp_path, {**tracker, **files})
    project.use_script(HONEST)
    told = project.run()
    assert (told["_code"], told["error"]["kind"]) == (2, "baseline_impossible")
    assert "pytest: pyproject.toml" in told["error"]["message"]
    assert "No test runner" in project.redfirst("run", "GAL-1", "--dry-run").stdout
    assert "No test runner" in " ".join(project.redfirst("doctor").stdout.split())
    assert not list((project.root / ".workflow").glob("run-*"))
    chosen = project.redfirst("run", "GAL-1", "--dry-run", "--set", 'toolchains.use=["pytest"]').stdout
    assert "It would not begin" not in chosen


def test_sources_without_a_test_are_a_beginning(tmp_path: Path) -> None:
    tracker = {name: text for name, text in FILES.items() if name.startswith("TODO/")}
    project = make_project(tmp_path, {**tracker, "greet.py": FILES["greet.py"]})
    project.use_script(HONEST)
    assert "It would not begin" not in project.redfirst("run", "GAL-1", "--dry-run").stdout


@pytest.mark.broad
def test_an_object_format_with_longer_names_is_as_good(tmp_path: Path) -> None:
    root, home = tmp_path / "project", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    project = Project(root, home)
    project.git("init", "--quiet", "--object-format=sha256", "--initial-branch=main")
    project.git("config", "user.name", "Ada")
    project.git("config", "user.email", "ada@example.org")
    project.write(FILES)
    project.commit("init")
    project.git("switch", "--quiet", "--create", "work")
    project.use_script(HONEST)
    assert project.run()["outcome"] == "completed"
    assert project.redfirst("verify", "GAL-1").returncode == 0


@pytest.mark.broad
def test_a_private_file_where_a_plan_writes_is_told_with_the_draft(tmp_path: Path) -> None:
    project = _project(tmp_path)
    (project.root / ".git/info/exclude").write_text("names.py\n")
    (project.root / "names.py").write_text("SECRET = 1\n")
    new = {"path": "names.py", "action": "create", "why": "a place for names"}
    plan = {**PLAN, "report": {**PLAN["report"], "files": [*PLAN["report"]["files"], new]}}
    project.use_script([plan, *HONEST])
    assert project.run()["outcome"] == "completed"
    lines = [line["data"] for line in project.journal() if line["kind"] == "decision"]
    refused = [line for line in lines if line["event"]["signal"] == "HYGIENE"]
    assert len(refused) == 1
    assert "H021" in refused[0]["event"]["note"]
    assert "git check-ignore -v -- names.py" in refused[0]["event"]["note"]
    assert (project.root / "names.py").read_text() == "SECRET = 1\n"


@pytest.mark.broad
@pytest.mark.parametrize(
    ("path", "told"),
    [
        (
            "app/greet.py",
            "H023: app/greet.py lies behind app, which is a symbolic link; files are changed where",
        ),
        ("Greet.py", "H024: Greet.py: Greet.py and greet.py are one name where upper and lower case are the same"),
    ],
)
def test_a_place_that_nobody_could_write_is_told_with_the_draft(path: str, told: str, tmp_path: Path) -> None:
    project = _project(tmp_path)
    (project.root / "app").symlink_to(".")
    project.commit("a link")
    new = {"path": path, "action": "create", "why": "a place for names"}
    plan = {**PLAN, "report": {**PLAN["report"], "files": [*PLAN["report"]["files"], new]}}
    project.use_script([plan, *HONEST])
    assert project.run()["outcome"] == "completed"
    lines = [line["data"] for line in project.journal() if line["kind"] == "decision"]
    (refused,) = [line["event"]["note"] for line in lines if line["event"]["signal"] == "HYGIENE"]
    assert refused.startswith(told)


@pytest.mark.broad
def test_what_is_in_a_submodule_is_left_to_its_own_repository(tmp_path: Path) -> None:
    project = _project(tmp_path)
    (project.root / "vendor").mkdir()
    project.git("update-index", "--add", "--cacheinfo", f"160000,{project.git('rev-parse', 'HEAD')},vendor")
    project.commit("a submodule")
    new = {"path": "vendor/names.py", "action": "create", "why": "a place for names"}
    plan = {**PLAN, "report": {**PLAN["report"], "files": [*PLAN["report"]["files"], new]}}
    at = HONEST.index(MAKE)
    made = {**MAKE, "files": {**MAKE["files"], "vendor/names.py": "NAMES = []\n"}}
    project.use_script([plan, *HONEST[:at], made, *HONEST[at:]])
    assert project.run()["outcome"] == "completed"
    events = [line["data"]["event"] for line in project.journal() if line["kind"] == "decision"]
    (drafted,) = [event["note"] for event in events if event["signal"] == "HYGIENE"]
    assert drafted.startswith("H025: vendor/names.py: vendor is a submodule")
    (refused,) = [event["note"] for event in events if event["signal"] == "VIOLATION"]
    assert "'vendor' is a submodule" in refused
    assert "160000 commit" in project.git("ls-tree", "work", "vendor")


@pytest.mark.broad
@pytest.mark.parametrize("kind", ["ignored", "a file", "with files of other tools"])
def test_what_is_wrong_with_the_tracker_is_told_by_all_three(tmp_path: Path, kind: str) -> None:
    project = _project(tmp_path)
    if kind == "with files of other tools":
        project.write({"TODO/a b.md": "text\n", "TODO/notes.md": "text\n", "TODO/T-1.md": "---\nid: T-1\n---\n"})
        project.commit()
        listed = project.redfirst("issue", "list")
        assert (listed.returncode, "GAL-1" in listed.stdout) == (0, True)
        assert "TODO/a b.md is not listed" in listed.stderr
        assert "TODO/a b.md is not listed" in project.redfirst("issue", "ready").stderr
        assert "It would not begin" not in project.redfirst("run", "GAL-1", "--dry-run").stdout
        assert project.run()["outcome"] == "completed"
        return
    project.git("rm", "-r", "--quiet", "--cached", "TODO")
    if kind == "ignored":
        project.write({".gitignore": "TODO/\n"})
        said, shown = "git ignores TODO/GAL-1.md (.gitignore:1:TODO/)", "git ignores"
    else:
        shutil.rmtree(project.root / "TODO")
        project.write({"TODO": "* a list\n"})
        said, shown = "TODO is a file", "TODO is a file"
    project.commit()
    assert said in project.redfirst("run", "GAL-1", "--dry-run").stdout
    refused = project.redfirst("run", "GAL-1")
    assert (refused.returncode, said in refused.stderr) == (2, True)
    assert shown in project.redfirst("doctor").stdout
