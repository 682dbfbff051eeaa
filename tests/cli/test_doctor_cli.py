"""`redfirst doctor`: what it finds in real repositories and machines, and that it changes nothing."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import typer
from agent_clis import cli
from runs.real import alone, begin, event, git, make_repository
from typer.testing import CliRunner

from pipeline.app.documents import Check, DoctorDocument
from pipeline.faces.cli.doctor import checkup_text, doctor
from pipeline.outcomes import Reason
from pipeline.repo import Repository
from pipeline.run.store import run_ref, state_of_run, take_claim
from pipeline.vocabulary import Signal

pytestmark = pytest.mark.slow

app = typer.Typer()
app.command()(doctor)

ISSUE = "---\nid: GAL-39\ntitle: Reject empty names\nstatus: Todo\n---\n# GAL-39: Reject empty names\n"
INDEX = "# Issues\n\n## Bugs\n- [ ] [GAL-39](GAL-39.md) Reject empty names\n"
CONFIG = 'sandbox = "none"\n[agents]\nargv = ["sh"]\n'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    alone(monkeypatch, folder)
    return folder


@pytest.fixture
def repository(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A project that is ready for a run, but for the box, which not every machine offers."""
    files = {"test_app.py": "def test_x(): pass\n", "TODO/GAL-39.md": ISSUE, "TODO/README.md": INDEX}
    made = make_repository(tmp_path / "project", files)
    configure(home, CONFIG)
    monkeypatch.chdir(made.worktree)
    return made


def configure(home: Path, text: str) -> None:
    (home / ".config/redfirst").mkdir(parents=True, exist_ok=True)
    (home / ".config/redfirst/config.toml").write_text(text)


def ask(*, exit_code: int = 0) -> dict[str, Check]:
    result = CliRunner().invoke(app, ["--json"])
    assert result.exit_code == exit_code, result.output
    document = DoctorDocument.model_validate(json.loads(result.stdout))
    assert document.ok is (exit_code == 0)
    assert document.proceed == ("block" if exit_code else "judge" if _worst(document) == "warn" else "true")
    return {check.id: check for check in document.checks}


def _worst(document: DoctorDocument) -> str:
    statuses = {check.status for check in document.checks}
    return next(status for status in ("fail", "warn", "ok") if status in statuses)


def folder_with(tmp_path: Path, *programs: str) -> Path:
    """Return a folder for PATH with these programs of the host only."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in programs:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def snapshot(folder: Path) -> dict[str, Any]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_what_git_advises_is_passed_on(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    found = ask(exit_code=2)["repository"]
    assert found.message.startswith("git refuses to work in ")
    assert found.message.endswith(f"dubious ownership in repository at '{repository.worktree}'")
    assert found.advice == f"git config --global --add safe.directory {repository.worktree}"


def test_a_project_that_is_ready_has_only_the_warning_about_the_missing_box(
    repository: Repository, tmp_path: Path
) -> None:
    before = snapshot(tmp_path)
    checks = ask()
    assert snapshot(tmp_path) == before, "nothing is changed"
    assert not (tmp_path / "home/.local").exists()
    assert {id_ for id_, check in checks.items() if check.status != "ok"} == {"sandbox"}
    assert "without isolation" in checks["sandbox"].message
    assert checks["repository"].message == f"{repository.worktree}, branch work, base main"
    assert checks["tests"].message.startswith("Python 3")
    assert checks["tracker"].message == "TODO is sound, and 1 issue can be worked on"
    assert "config.toml" in checks["config"].message
    assert checks["agent-make"].message.startswith("command: /")
    assert checks["agent-pm"].message == "builtin"


def test_what_does_not_fit_goes_on_below_its_own_column() -> None:
    check = Check(
        id="tracker", status="ok", message="one two three four five six seven", advice="eight nine ten eleven"
    )
    document = DoctorDocument(version="1", ok=True, proceed="true", checks=(check,))
    assert checkup_text(document, width=40).split("\n")[1:-1] == [
        "  ok    tracker  one two three four five",
        "                 six seven",
        "                 -> eight nine ten",
        "                    eleven",
    ]


def test_where_no_run_could_begin_the_rest_is_still_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checks = ask(exit_code=2)
    assert "not inside a git repository" in checks["repository"].message
    assert {"git", "sandbox", "state"} <= set(checks)
    git(tmp_path, "init", "-q", "--bare", "store.git")
    monkeypatch.chdir(tmp_path / "store.git")
    assert ask(exit_code=2)["repository"].advice == "git worktree add ../work BRANCH"


@pytest.mark.broad
def test_where_a_run_would_be_refused_it_is_said_before(repository: Repository, home: Path) -> None:
    git(repository.worktree, "switch", "-q", "main")
    (repository.worktree / "new.py").touch()
    checks = ask()
    assert checks["repository"].status == checks["worktree"].status == "warn"
    assert "the base branch" in checks["repository"].message
    assert "new.py" in checks["worktree"].message
    git(repository.worktree, "switch", "-q", "--detach")
    git(repository.worktree, "config", "--remove-section", "user")
    git(repository.worktree, "config", "user.useConfigOnly", "true")
    (home / ".local").touch()
    checks = ask(exit_code=2)
    assert "detached" in checks["repository"].message
    assert checks["identity"].status == "fail"
    assert checks["state"].message == f"{home / '.local'} cannot be written"


@pytest.mark.broad
def test_nobody_is_told_to_commit_a_configuration_that_is_broken(repository: Repository) -> None:
    file = repository.worktree / "redfirst.toml"
    file.write_text("[limits]\nplan_review = 2\n")
    git(repository.worktree, "add", "redfirst.toml")
    git(repository.worktree, "commit", "-qm", "configured")
    file.write_text('sandbox = "of"\nplan = 3\n')
    check = ask()["config"]
    assert "once they are committed no run begins: " in check.message
    assert "\n" not in check.message
    assert check.advice == "mend the file as it lies there, before you commit it"
    git(repository.worktree, "commit", "-qam", "broken")
    check = ask(exit_code=2)["config"]
    assert (check.status, check.advice) == ("fail", "mend redfirst.toml"), check.advice
    assert "\n" not in check.message


def test_a_missing_or_broken_tracker_is_told_with_what_to_do(repository: Repository) -> None:
    (repository.worktree / "TODO/GAL-39.md").write_text(ISSUE.replace("Todo", "Perhaps"))
    assert ask(exit_code=2)["tracker"].advice == "redfirst issue lint"
    shutil.rmtree(repository.worktree / "TODO")
    tracker = ask()["tracker"]  # before the first issue: nothing is broken
    assert (tracker.status, tracker.advice) == ("warn", "redfirst issue new --title TITLE")
    assert tracker.message == "there is no folder TODO/ yet: the first issue makes it"


def test_a_broken_configuration_blocks_and_hides_nothing_else(home: Path, repository: Repository) -> None:
    configure(home, "sandbx = 1\n")
    checks = ask(exit_code=2)
    assert 'unknown key "sandbx"' in checks["config"].message
    assert {"git", "repository", "sandbox", "state", "leftovers"} <= set(checks)


def test_an_agent_that_is_not_there_blocks(home: Path, repository: Repository) -> None:
    configure(
        home,
        f'{CONFIG}[agents.make]\nargv = ["no-such-program"]\n[agents.test]\nbackend = "scripted"\nscript = "x.yaml"\n',
    )
    checks = ask(exit_code=2)
    assert "The program no-such-program " in checks["agent-make"].message
    assert "No agent that redfirst knows" not in checks["agent-make"].message
    assert "x.yaml cannot be read" in checks["agent-test"].message
    assert checks["agent-check"].status == "ok"


@pytest.mark.broad
def test_a_program_whose_script_the_box_does_not_show_is_told(home: Path, repository: Repository) -> None:
    script = home / "agent.py"
    script.write_text("")
    own = f'[agents.make]\nargv = ["sh", "{script}"]\n'
    configure(home, CONFIG + own)
    assert ask()["agent-make"].status == "ok", "without a box there is nothing that hides it"
    configure(home, CONFIG.replace('sandbox = "none"', "") + own)
    found = ask()["agent-make"]
    assert found.status == "warn"
    assert f"the box does not show {script}" in found.message
    configure(home, CONFIG.replace('sandbox = "none"', "") + f'{own}read = ["{home}"]\n')
    assert ask()["agent-make"].status == "ok"


@pytest.mark.broad
def test_a_role_that_only_recipes_ask_is_looked_at_where_one_does(home: Path, repository: Repository) -> None:
    assert "agent-explore" not in ask()
    configure(home, f'{CONFIG}[agents.explore]\nbackend = "command"\nargv = ["nowhere-to-be-found"]\n')
    assert ask(exit_code=2)["agent-explore"].status == "fail", "it has a table"
    configure(home, CONFIG)
    (home / ".config/redfirst/recipes").mkdir()
    (home / ".config/redfirst/recipes/look.yaml").write_text(
        "name: look\nsteps: [{id: a, agent: explore, prompt: Look.}]\n"
    )
    assert ask()["agent-explore"].status == "ok", "a recipe asks it"


def test_without_bubblewrap_the_advice_says_how_to_get_it(
    home: Path, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(home, '[agents]\nargv = ["sh"]\n')
    monkeypatch.setenv("PATH", str(folder_with(tmp_path, "git", "sh", "python3")))
    check = ask(exit_code=2)["sandbox"]
    assert "bwrap" in check.message
    assert "Install bubblewrap" in check.advice
    assert 'set sandbox = "none" in your own configuration' in check.advice


@pytest.mark.parametrize("mode", ["auto", "bubblewrap"])
def test_a_box_that_does_not_hold_is_not_used(
    mode: str, home: Path, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(home, f'sandbox = "{mode}"\n[agents]\nargv = ["sh"]\n')
    folder = folder_with(tmp_path, "git", "sh", "python3")
    (folder / "bwrap").write_text("#!/bin/sh\nexit 0\n")
    (folder / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    check = ask(exit_code=2)["sandbox"]
    assert check.status == "fail"
    assert "Agents cannot be isolated here: bubblewrap ended with 0" in check.message


@pytest.mark.broad
def test_an_old_git_blocks_and_the_reason_is_said(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, folder = shutil.which("git"), tmp_path / "old"
    folder.mkdir()
    (folder / "git").write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "git version 2.30.2" && exit\nexec {real} "$@"\n'
    )
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    check = ask(exit_code=2)["git"]
    assert check.message.startswith("git version 2.30.2 is too old: 2.36 is needed")


def test_a_project_without_a_way_to_run_its_tests_blocks(home: Path, repository: Repository) -> None:
    configure(home, f'{CONFIG}[toolchains.pytest]\ncommand = ["no-such-python", "-m", "pytest"]\n')
    assert "no-such-python" in ask(exit_code=2)["tests"].message


@pytest.mark.parametrize(
    ("command", "exit_code"), [("", 2), ('[toolchains.pytest]\ncommand = ["uv", "run", "pytest"]\n', 0)]
)
def test_nothing_is_fetched_to_find_out_how_tests_are_run(
    home: Path, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, exit_code: int
) -> None:
    configure(home, CONFIG + command)
    (repository.worktree / "uv.lock").touch()
    folder = tmp_path / "fake"
    folder.mkdir()
    (folder / "uv").write_text(f"#!/bin/sh\ntouch {tmp_path}/fetched\n")
    (folder / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    checks = ask(exit_code=exit_code)
    assert checks["tests"].status == "warn"
    assert ("uv sync" in checks["trust"].advice) is (exit_code == 2)  # a lock without an environment needs trust
    assert not (tmp_path / "fetched").exists()


@pytest.mark.broad
def test_what_gone_and_ended_runs_left_is_named(repository: Repository, home: Path) -> None:
    live, ended = begin(repository, "run-GAL-1"), begin(repository, "run-GAL-2")
    ended.decide(event(Signal.PRECONDITION, reason=Reason.DIRTY_TREE))
    for issue, name in (("GAL-1", "run-GAL-1"), ("GAL-2", "run-GAL-2"), ("GAL-3", "run-GAL-3@2")):
        assert take_claim(repository, issue, name) is None
    repository.add_worktree(home / "linked", "other", "main")
    linked = Repository.find(home / "linked")  # what another worktree has is no leftover
    begin(linked, "run-GAL-5")
    assert take_claim(linked, "GAL-5", "run-GAL-5") is None
    repository.set_ref(run_ref(linked, "run-GAL-5"), repository.resolve("HEAD") or "")
    state = home / ".local/state/redfirst"
    for name in ("run-GAL-1", "run-GAL-9"):
        (state_of_run(state, repository, name) / "tree").mkdir(parents=True)
        repository.set_ref(run_ref(repository, name), repository.resolve("HEAD") or "")
    check = ask()["leftovers"]
    assert check.status == "warn"
    assert check.advice is not None
    assert "redfirst abandon GAL-3" in check.advice
    found = check.message.split("; ")
    assert len(found) == 4
    assert found[0].startswith("GAL-2 is claimed by")
    assert "which has ended" in found[0]
    assert "which is gone" in found[1]
    assert "run-GAL-9" in found[2]
    assert found[3] == f"{run_ref(repository, 'run-GAL-9')} belongs to no run"
    assert live.folder.exists()


@pytest.mark.broad
def test_what_is_installed_is_listed_without_starting_it(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "gemini").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (folder / "gemini").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("GEMINI_API_KEY", "secret-of-the-user")
    result = CliRunner().invoke(app, ["--json"])
    gemini = next(each for each in json.loads(result.stdout)["agents"] if each["name"] == "gemini")
    assert (gemini["path"], gemini["version"], gemini["box"]) == (str(folder / "gemini"), None, None)
    assert gemini["variables"] == ["GEMINI_API_KEY"]
    assert [line.split("  ")[0] for line in gemini["config"]] == [
        "[agents]",
        'backend = "acp"',
        'profile = "gemini"',
        'provider = "google"',
        '# model = "NAME"',
    ]
    assert "secret-of-the-user" not in result.stdout
    assert not (tmp_path / "started").exists()
    assert "Gemini CLI: " in CliRunner().invoke(app, []).stdout


@pytest.mark.broad
def test_on_request_agents_are_started_in_the_box(
    home: Path, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "gemini").write_text('#!/bin/sh\n[ "$HOME" = /home/agent ] && echo broken >&2 && exit 3\necho 0.1.2\n')
    (folder / "gemini").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    configure(home, '[agents]\nargv = ["sh"]\n')
    result = CliRunner().invoke(app, ["--agents", "--json"])
    document = json.loads(result.stdout)
    sandbox = next(check for check in document["checks"] if check["id"] == "sandbox")
    if not sandbox["message"].startswith("bubblewrap"):
        pytest.skip("no bubblewrap here")
    gemini = next(each for each in document["agents"] if each["name"] == "gemini")
    assert (gemini["version"], gemini["tested"]) == ("0.1.2", "0.61.0")
    assert gemini["box"] == "does not start in the box: broken"


@pytest.mark.parametrize("name", ["claude", "codex", "opencode", "gemini", "claude-agent-acp", "codex-acp"])
@pytest.mark.broad
def test_the_real_agents_start_in_the_box(
    home: Path, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / name).symlink_to(cli(name))
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    configure(home, '[agents]\nargv = ["sh"]\n')
    document = json.loads(CliRunner().invoke(app, ["--agents", "--json"]).stdout)
    found = next(each for each in document["agents"] if each["path"] and Path(each["path"]).name == cli(name).name)
    assert found["version"] == found["tested"]
    assert found["box"].startswith("starts in the box")


@pytest.mark.broad
def test_what_tools_made_and_nobody_ignores_is_no_work_to_commit(repository: Repository) -> None:
    for name in (".venv", "node_modules", "web/target", "env38"):
        (repository.worktree / name).mkdir(parents=True)
        (repository.worktree / name / "pyvenv.cfg").touch()
    (repository.worktree / "web/here.py").touch()
    git(repository.worktree, "add", "web/here.py")
    git(repository.worktree, "commit", "-q", "-m", "web")
    check = ask()["worktree"]
    assert check.advice == (
        "add .venv/, /env38/, node_modules/, target/ to .gitignore and commit that, or to .git/info/exclude"
    )
    (repository.worktree / "own.py").touch()
    check = ask()["worktree"]
    assert "uncommitted: own.py; made by tools, and not ignored: .venv/," in check.message
    assert check.advice.startswith("commit or stash it; add .venv/")


def test_files_behind_a_filter_that_no_agent_can_change_are_named(repository: Repository) -> None:
    assert "filters" not in ask()
    git(repository.worktree, "config", "filter.rot.clean", "cat")
    git(repository.worktree, "config", "filter.rot.smudge", "cat")
    for name in ("a.secret", "b.secret"):
        (repository.worktree / name).write_text("x\n")
    (repository.worktree / ".gitattributes").write_text("*.secret filter=rot\n")
    git(repository.worktree, "add", ".gitattributes", "a.secret", "b.secret")
    git(repository.worktree, "commit", "-q", "-m", "secrets")
    check = ask()["filters"]
    words = "no agent can change a.secret, which goes through the git filter 'rot'; only lfs is supported"
    assert (check.status, check.message) == ("warn", f"{words}, and so does 1 other file")
    assert "by hand" in check.advice


def test_one_cause_has_one_line(home: Path, repository: Repository) -> None:
    configure(home, 'sandbox = "none"\n')
    (repository.worktree / "redfirst.toml").write_text('[toolchains.pytest]\nsetup = ["make"]\n')
    git(repository.worktree, "add", "-A")
    git(repository.worktree, "commit", "-q", "-m", "configure")
    shown = CliRunner().invoke(app, []).stdout
    lines = [line.split() for line in shown.splitlines()]
    assert [line[1] for line in lines if line[0] == "fail"] == ["trust", "agents"]
    assert "orchestrator, check, simplify, test, make: No agent is configured: " in shown
    assert (shown.count("redfirst trust"), shown.count("No agent is"), shown.count("installed here.")) == (1, 1, 1)
    assert ask(exit_code=2)["tests"].same_as == "trust"
