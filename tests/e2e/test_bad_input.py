"""What cannot be run is refused with a reason, a sentence that says what to do, and nothing written; disks, too."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crashes import KILLED, die_at, footprint, problems
from kit import HONEST, ISSUE, README, make_project

if TYPE_CHECKING:
    from collections.abc import Callable

    from kit import Project

pytestmark = pytest.mark.slow


def ready(tmp_path: Path) -> Project:
    """Return a project that could be run as it is."""
    project = make_project(tmp_path)
    project.use_script(HONEST)
    return project


def refused(
    project: Project, *argv: str, kind: str, says: str, code: int = 2, cwd: Path | None = None
) -> dict[str, Any]:
    """Assert that a command is refused with one JSON document and without a trace; return its error."""
    before = footprint(project, cwd)
    command, *rest = argv or ("run", "GAL-1")
    done = project.redfirst(command, "--json", *rest, cwd=cwd)
    document: dict[str, Any] = json.loads(done.stdout)
    error = document["error"]
    assert (done.returncode, document["ok"], error["kind"]) == (code, False, kind), (error, done.stderr)
    assert says in error["message"] or says in " ".join(error["safe_next_actions"]), error
    assert set(error) - {"also"} == {"kind", "message", "path", "pointer", "details", "safe_next_actions"}
    assert footprint(project, cwd) == before
    return error


# --- the repository ------------------------------------------------------------------------------------------------


def _detached(project: Project) -> None:
    project.git("checkout", "--quiet", "--detach")


def _on_base(project: Project) -> None:
    project.git("switch", "--quiet", "main")


def _no_base(project: Project) -> None:
    project.git("branch", "--quiet", "--move", "main", "trunk")


def _modified(project: Project) -> None:
    project.write({"greet.py": "# mine\n"})


def _untracked(project: Project) -> None:
    project.write({"notes.txt": "mine\n"})


def _staged(project: Project) -> None:
    project.write({"greet.py": "# mine\n"})
    project.git("add", "greet.py")


def _no_identity(project: Project) -> None:
    project.git("config", "--unset", "user.email")
    project.git("config", "user.useConfigOnly", "true")


def _broken_config(project: Project) -> None:
    (project.root / ".git" / "config").write_text("[core\n")


def _no_tracker(project: Project) -> None:
    project.git("rm", "--quiet", "-r", "TODO")
    project.commit()


def _tracker_is_a_file(project: Project) -> None:
    project.git("rm", "--quiet", "-r", "TODO")
    project.write({"TODO": "- everything\n"})
    project.commit()


def _issue(**changes: str) -> Callable[[Project], None]:
    def prepare(project: Project) -> None:
        text = ISSUE
        for old, new in (tuple(change.split("->")) for change in changes.values()):
            assert old in text
            text = text.replace(old, new)
        project.write({"TODO/GAL-1.md": text})
        project.commit()

    return prepare


def _unmet_dependency(project: Project) -> None:
    other = ISSUE.replace("GAL-1", "GAL-2").replace("labels: [bug]", "labels: []")
    project.write({"TODO/GAL-2.md": other, "TODO/README.md": README + "- [ ] [GAL-2](GAL-2.md) Reject empty names\n"})
    _issue(depends="depends-on: []->depends-on: [GAL-2]")(project)


REPOSITORY: dict[str, tuple[Callable[[Project], None], str, str]] = {
    "detached HEAD": (_detached, "detached_head", "git switch -c"),
    "branch is base": (_on_base, "branch_is_base", "git switch -c"),
    "no base": (_no_base, "usage", "--base REF"),
    "modified": (_modified, "dirty_tree", "Commit or stash"),
    "untracked": (_untracked, "dirty_tree", "notes.txt"),
    "staged": (_staged, "dirty_tree", "Commit or stash"),
    "no identity": (_no_identity, "config", "git config user.email"),
    "broken git config": (_broken_config, "usage", "config"),
    "no TODO": (_no_tracker, "tracker_missing", "redfirst issue new"),
    "TODO is a file": (_tracker_is_a_file, "tracker_invalid", "TODO"),
    "in progress": (_issue(s="status: Todo->status: In Progress"), "issue_not_todo", "redfirst issue"),
    "done": (_issue(s="status: Todo->status: Done"), "issue_not_todo", "redfirst issue"),
    "unknown status": (_issue(s="status: Todo->status: Soon"), "tracker_invalid", "In Progress"),
    "broken front matter": (_issue(t="title: Reject empty names->title: [unclosed"), "tracker_invalid", "line"),
    "misspelt key": (_issue(d="depends-on: []->depend-on: [GAL-9]"), "tracker_invalid", "`depends-on` is meant"),
    "missing dependency": (_issue(d="depends-on: []->depends-on: [GAL-9]"), "dependency_missing", "GAL-9"),
    "unmet dependency": (_unmet_dependency, "dependency_unmet", "GAL-2"),
}


@pytest.mark.parametrize("case", REPOSITORY)
@pytest.mark.broad(but_first=2)
def test_a_repository_that_cannot_be_run_is_refused(tmp_path: Path, case: str) -> None:
    prepare, kind, says = REPOSITORY[case]
    project = ready(tmp_path)
    prepare(project)
    refused(project, kind=kind, says=says)


@pytest.mark.broad
def test_places_without_a_worktree_or_a_commit_are_refused(tmp_path: Path) -> None:
    project = ready(tmp_path)
    bare, empty, nowhere = (tmp_path / name for name in ("bare.git", "empty", "nowhere"))
    project.git("clone", "--quiet", "--bare", str(project.root), str(bare))
    project.git("init", "--quiet", "--initial-branch=work", str(empty))
    nowhere.mkdir()
    refused(project, kind="bare_repository", says="git worktree add", cwd=bare)
    refused(project, kind="usage", says="Commit the project first", cwd=empty)
    refused(project, kind="usage", says="git init", cwd=nowhere)


@pytest.mark.broad
def test_a_folder_that_is_gone_is_told_so(tmp_path: Path) -> None:
    project = ready(tmp_path)
    (tmp_path / "gone").mkdir()
    redfirst = Path(sys.executable).with_name("redfirst")
    done = subprocess.run(
        ["sh", "-c", f"cd {tmp_path}/gone && rmdir {tmp_path}/gone && {redfirst} run GAL-1 --json"],
        env=project.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, json.loads(done.stdout)["error"]["kind"]) == (2, "usage")


@pytest.mark.broad
def test_words_that_name_nothing_are_refused(tmp_path: Path) -> None:
    project = ready(tmp_path)
    refused(project, "run", "GAL-404", kind="issue_not_found", says="redfirst issue list")
    for name in ("../GAL-1", "GAL/1"):  # the file of a recipe
        refused(project, "run", "--", name, kind="recipe_not_found", says="There is no file")
    for name in ("", "GAL-1\n"):
        error = refused(project, "run", "--", name, kind="usage", says="is not an issue id")
        assert error["safe_next_actions"] == ["redfirst issue list"]
    refused(project, "run", "GAL-1", "--base", "nonsense", kind="usage", says="nonsense")
    refused(project, "run", kind="usage", says="--help")
    refused(project, "run", "GAL-1", "--no-such-flag", kind="usage", says="--help")
    refused(project, "run", "GAL-1", "--approve", "everything", kind="usage", says="plan, split, commit")
    refused(project, "resume", "GAL-1", kind="usage", says="none yet")


# --- configuration -------------------------------------------------------------------------------------------------


@pytest.mark.broad
def test_a_configuration_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    project = ready(tmp_path)
    good = (project.home / "config" / "redfirst" / "config.toml").read_text()
    for text, says in (
        ("", "No agent is configured"),
        (good.replace("[agents]", 'sandbocks = "none"\n[agents]'), "sandbocks"),
        ('[agents]\nbackend = "off"\n', "plays simplify only"),
        ('[agents]\nbackend = "command"\nargv = ["/nowhere/agent"]\n', "/nowhere/agent"),
        ('[agents]\nbackend = "scripted"\nscript = "/nowhere/script.yaml"\n', "/nowhere/script.yaml"),
        ("[agents\n", "not valid TOML"),
        (good.replace("[agents]", 'minimum_sandbox = "bubblewrap"\n[agents]'), 'unknown key "minimum_sandbox"'),
    ):
        project.configure(text)
        refused(project, kind="config", says=says)
    project.configure(good)
    project.write({"redfirst.toml": "[limits]\nplan_revue = 3\n"})
    project.commit()
    error = refused(project, kind="config", says="plan_review")
    assert error["path"] == "redfirst.toml"


def test_redfirst_inside_one_of_its_own_agents_is_refused(tmp_path: Path) -> None:
    project = ready(tmp_path)
    project.env["REDFIRST_DEPTH"] = "1"
    refused(project, kind="usage", says="REDFIRST_DEPTH")


# --- the machine ---------------------------------------------------------------------------------------------------


def path_with(tmp_path: Path, *programs: str) -> str:
    """Return a PATH that has these programs of this machine and no others."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    for name in programs:
        found = shutil.which(name)
        if found is not None:
            (folder / name).symlink_to(found)
    return str(folder)


@pytest.mark.broad
def test_a_machine_without_git_is_told_so(tmp_path: Path) -> None:
    project = ready(tmp_path)
    path = path_with(tmp_path, "sh")
    done = subprocess.run(
        [str(Path(sys.executable).with_name("redfirst")), "run", "GAL-1", "--json"],
        cwd=project.root,
        env={**project.environment(), "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["kind"]) == (2, "usage")
    assert "git is not installed" in error["message"]


@pytest.mark.broad
def test_without_bubblewrap_a_run_is_refused_unless_the_user_wants_no_sandbox(tmp_path: Path) -> None:
    project = ready(tmp_path)
    project.env["PATH"] = f"{Path(sys.executable).parent}:{path_with(tmp_path, 'git', 'sh', 'setpriv', 'env')}"
    for setting in ("auto", "bubblewrap"):
        error = refused(project, "run", "GAL-1", "--set", f"sandbox={setting}", kind="config", says='sandbox = "none"')
        assert "Install bubblewrap" in error["message"]
    document = project.run("--set", "sandbox=none")
    assert (document["_code"], document["outcome"]) == (0, "completed"), document["_stderr"]
    assert document["sandbox"]["backend"] == "none"
    assert "sandbox: none" in (project.run_folder() / "summary.md").read_text()


@pytest.mark.parametrize("why", ["no pytest", "tests that cannot start"])
@pytest.mark.broad
def test_a_baseline_that_cannot_be_measured_rejects_the_run_and_leaves_no_claim(tmp_path: Path, why: str) -> None:
    project = ready(tmp_path)
    flags: tuple[str, ...] = ()
    if why == "no pytest":
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
        flags = ("--set", f'toolchains.pytest.command=["{tmp_path}/venv/bin/python", "-m", "pytest"]')
    else:
        project.write({"pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--no-such-option'\n"})
        project.commit()
    head = project.git("rev-parse", "HEAD")
    document = project.run(*flags)
    assert (document["_code"], document["outcome"]) == (2, "rejected")
    assert document["reason"] == "baseline_impossible"
    assert "pytest" in document["note"] or "no-such-option" in document["note"]
    assert project.untouched_since(head)
    assert problems(project) == []
    over = project.document("resume", "GAL-1")
    assert (over["_code"], over["error"]["kind"]) == (2, "usage")
    assert "redfirst run GAL-1" in over["error"]["safe_next_actions"]


@pytest.mark.broad
def test_names_of_runs_are_exact_or_unique_and_an_ended_run_stays_ended(tmp_path: Path) -> None:
    project = ready(tmp_path)
    for name in ("run-GAL-1", "run-GAL-1@2"):
        assert die_at(project, "after journal dispatch_started", 1, "run", "GAL-1") == KILLED
        assert project.document("abandon", name)["reason"] == "abandoned"
    for name, says in (("GAL-1", "has ended"), ("run-GAL-1@2", "has ended"), ("GAL", "more than one"), ("X", "runs:")):
        refused(project, "resume", name, kind="usage", says=says)
    refused(project, "abandon", "GAL-1", kind="usage", says="has ended")
    refused(project, "approve", "GAL-1", kind="usage", says="has ended")


def test_all_that_is_in_the_way_is_told_at_once_and_trust_after_what_is_cheap_to_mend(tmp_path: Path) -> None:
    project = ready(tmp_path)
    project.write({"redfirst.toml": 'sandbox = "none"\n'})
    project.commit()
    project.git("switch", "--quiet", "--create", "trunk")
    project.write({"notes.txt": "mine\n"})
    error = refused(project, "run", "GAL-1", "--base", "trunk", kind="branch_is_base", says="git switch -c")
    assert [each["kind"] for each in error["also"]] == ["dirty_tree", "untrusted"]
    told = project.redfirst("run", "GAL-1", "--base", "trunk").stderr
    assert told.index("base branch") < told.index("also: The working tree") < told.index("also: This repository asks")
    assert "redfirst trust" in told
    wrong = refused(project, "run", "GAL-404", "--base", "trunk", kind="issue_not_found", says="no issue GAL-404")
    assert wrong.get("also", []) == [], "the missing issue alone"


# --- disks that are full, read-only, or have something else where our folders go --------------------------------------


@pytest.mark.parametrize("name", [".workflow", ".workflow/run-GAL-1", "state"])
@pytest.mark.broad(but_first=1)
def test_something_else_in_the_place_of_our_folders_is_named(tmp_path: Path, name: str) -> None:
    project = ready(tmp_path)
    place = project.home / "state" if name == "state" else project.root / name
    place.parent.mkdir(exist_ok=True)
    place.write_text("not a folder\n")
    document = project.document("run", "GAL-1")
    assert (document["_code"], document["error"]["kind"]) == (2, "disk"), document
    assert str(place) in document["error"]["message"]
    assert place.read_text() == "not a folder\n"
    assert project.git("for-each-ref", "refs/redfirst") == ""


def in_namespace(project: Project, script: str) -> list[dict[str, Any]]:
    """Run a shell script in a private mount namespace, where `$REDFIRST ...` prints documents; return those.

    The function `rf` of the script runs redfirst with `--json` and adds its exit code.
    """
    unshare = ["unshare", "--mount", "--map-root-user"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no private mount namespace")
    redfirst = Path(sys.executable).with_name("redfirst")
    lines = [
        "set -eu",
        f'rf() {{ code=0; "{redfirst}" "$@" --json || code=$?; echo "{{\\"_code\\": $code}}"; }}',
        script,
    ]
    done = subprocess.run(
        [*unshare, "sh", "-c", "\n".join(lines)],
        cwd=project.root,
        env=project.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    decoder, found, text = json.JSONDecoder(), list[dict[str, Any]](), done.stdout.strip()
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:].strip()
    return [{**document, **code} for document, code in zip(found[0::2], found[1::2], strict=True)]


@pytest.mark.broad
def test_a_read_only_disk_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    project = ready(tmp_path)
    before = footprint(project)
    documents = in_namespace(
        project,
        f"""
        mount --bind {project.root} {project.root}; mount -o remount,ro,bind {project.root}
        cd {project.root}; rf run GAL-1
        """,
    )
    assert [(d["_code"], d["error"]["kind"]) for d in documents] == [(2, "disk")]
    assert str(project.root) in documents[0]["error"]["message"]
    assert footprint(project) == before


@pytest.mark.parametrize("place", ["run folder", "state folder"])
@pytest.mark.broad
def test_a_full_disk_stops_the_run_and_with_room_again_it_goes_on(tmp_path: Path, place: str) -> None:
    project = ready(tmp_path)
    folder = {
        "run folder": project.root / ".workflow",
        "state folder": project.home / "state",
    }[place]
    folder.mkdir(exist_ok=True)
    documents = in_namespace(
        project,
        f"""
        mkdir {tmp_path}/kept; cp -a {folder}/. {tmp_path}/kept/
        mount -t tmpfs -o size=24m none {folder}; cp -a {tmp_path}/kept/. {folder}/
        head -c 30000000 /dev/zero > {folder}/filler 2>/dev/null || true
        truncate -s -{150_000 if place == "run folder" else 60_000} {folder}/filler
        rf run GAL-1
        rm {folder}/filler
        if [ -e .workflow/run-GAL-1/run.json ]; then rf resume GAL-1; else rf run GAL-1; fi
        """,
    )
    full, after = documents
    assert (full["_code"], full["error"]["kind"]) == (2, "disk"), full
    assert "Make room" in full["error"]["message"]
    assert (after["_code"], after["outcome"]) == (0, "completed"), after["note"]


@pytest.mark.broad
def test_a_disk_that_is_full_at_the_publication_leaves_the_branch_and_goes_on_later(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    grown = [*HONEST]
    grown[6] = {**grown[6], "run": ["sh", "-c", "yes '# more' | head -c 900000 >> greet.py"]}
    project.use_script(grown)
    assert die_at(project, "before git read-tree -m", 1, "run", "GAL-1") == KILLED
    start = project.git("rev-parse", "work")
    documents = in_namespace(
        project,
        f"""
        cp -a {project.root} {tmp_path}/kept
        mount -t tmpfs -o size=16m none {project.root}; cp -a {tmp_path}/kept/. {project.root}/; cd {project.root}
        head -c 20000000 /dev/zero > .workflow/filler 2>/dev/null || true
        truncate -s -300000 .workflow/filler
        rf resume GAL-1
        test $(git rev-parse work) = {start}
        rm .workflow/filler
        rf resume GAL-1
        git status --porcelain >&2; test -z "$(git status --porcelain)"
        test $(git rev-parse work) != {start}
        """,
    )
    full, after = documents
    assert (full["_code"], full["error"]["kind"]) == (2, "disk"), full
    assert "redfirst resume run-GAL-1" in full["error"]["safe_next_actions"]
    assert (after["_code"], after["outcome"]) == (0, "completed"), after["note"]
