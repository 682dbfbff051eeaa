"""`redfirst init`, and what `run` says where no agent is configured."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from kit import make_project

from pipeline.agents.backends.discovery import Server, find_servers
from pipeline.agents.dispatch.agent_choice import choices
from pipeline.app.init_config import names, start_called, starts, toml
from pipeline.config.load import load
from pipeline.config.sources import RepositoryFile
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project on a machine with git, and agents only where a test installs them."""
    made = make_project(tmp_path)
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("git", "sh", "echo"):
        (folder / name).symlink_to(shutil.which(name) or name)
    made.env |= {"PATH": str(folder)}
    return made


def install(project: Project, *names: str) -> None:
    for name in names:
        path = project.root.parent / "bin" / name
        if name == "gemini":
            path.write_text("#!/bin/sh\necho 0.61.0\n")
        else:
            shutil.copyfile(shutil.which("true") or "/bin/true", path)
        path.chmod(0o755)


def init(project: Project, *argv: str, code: int = 0) -> dict[str, Any]:
    document = project.document("init", *argv)
    assert document["_code"] == code, document
    return document


def written(project: Project) -> dict[str, Any]:
    return tomllib.loads((project.root / "redfirst.toml").read_text())


NEW_ISSUE = "redfirst issue new --title TITLE --edit"


@pytest.mark.broad
def test_the_best_agent_that_is_here_is_chosen_and_the_file_counts(project: Project) -> None:
    install(project, "gemini", "claude")
    document = init(project)
    assert (document["agent"], document["found"][:2]) == ("claude", ["claude", "gemini"])
    assert written(project)["agents"] == {"backend": "claude", "provider": "anthropic", "model": "medium"}
    path = project.root / "redfirst.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert document["text"] == path.read_text()
    assert "redfirst trust" in document["next"]
    shown = project.document("config", "show")
    assert shown["values"]["agents.backend"]["value"] == "claude"
    assert project.git("status", "--porcelain") == "?? redfirst.toml"


@pytest.mark.parametrize("name", [name for name in names() if name != "llamacpp"])
def test_each_agent_can_be_asked_for_and_its_file_loads(tmp_path: Path, name: str) -> None:
    environ = {"HOME": str(tmp_path), "OPENAI_API_KEY": "x"}
    start = start_called(name, starts([], [], None, environ, "some/model:8b"), environ, "some/model:8b")
    assert start is not None
    file = RepositoryFile("redfirst.toml", toml(start).encode(), tracked=False)
    config = load(tmp_path, environ=environ, repo_file=file).config
    for role in (Role.CHECK, Role.MAKE):
        (choice,) = choices(config, role)
        assert choice.model == (None if name in {"command", "human"} else "some/model:8b")


def test_a_name_that_is_none_is_refused(project: Project) -> None:
    message = init(project, "--agent", "cloude", code=2)["error"]["message"]
    assert "Did you mean claude? Accepted: claude, codex" in message
    (project.root / "redfirst.toml").write_text("")
    refused = project.redfirst("init", "--agent", "codx")
    assert "--agent codx is no agent. Did you mean codex?" in refused.stderr, "that comes first"
    assert "redfirst init --agent codx" not in refused.stderr


def test_a_dry_run_prints_the_file_and_nothing_else(project: Project) -> None:
    install(project, "gemini")
    done = project.redfirst("init", "--dry-run")
    assert tomllib.loads(done.stdout)["agents"]["profile"] == "gemini"
    assert "begun for Gemini CLI 0.61.0" in done.stdout
    assert project.git("status", "--porcelain") == ""


@pytest.mark.broad
def test_a_model_that_must_be_named_is_a_next_step(project: Project) -> None:
    install(project, "codex")
    document = init(project)
    assert document["to_write"] == ["the model's name, at model"]
    assert document["next"][0].startswith("git add redfirst.toml")
    assert '# model = "NAME"' in (project.root / "redfirst.toml").read_text()


def test_the_issue_to_run_is_named_and_where_there_is_none_the_next_one(project: Project) -> None:
    def told() -> list[str]:
        (project.root / "redfirst.toml").unlink(missing_ok=True)
        return init(project, "--agent", "human")["next"][2:]

    assert told() == ["redfirst run GAL-1 --worktree"]
    project.redfirst("issue", "status", "GAL-1", "done")
    assert told() == [f"{NEW_ISSUE} && git add TODO && git commit -m 'file GAL-2'", "redfirst run GAL-2 --worktree"]
    (project.root / "TODO" / "GAL-1.md").write_text("no front matter\n", encoding="utf-8")
    assert told() == ["redfirst issue lint"]


@pytest.mark.broad
def test_a_program_of_one_s_own_is_configured_or_left_to_be_filled_in(project: Project) -> None:
    agent = project.home / "agent.py"
    agent.write_text("")
    document = init(project, "--agent", "command", "--argv", f"echo 'a b' ü {agent} {project.home}/none")
    argv = ["echo", "a b", "ü", str(agent), f"{project.home}/none"]
    assert written(project)["agents"] == {"backend": "command", "argv": argv, "read": [str(agent)]}
    assert "redfirst trust" in document["next"]
    (project.root / "redfirst.toml").unlink()
    document = init(project, "--agent", "command")
    assert document["to_write"] == ["your program, at argv"]
    assert document["next"][0].startswith("git add redfirst.toml")
    path = project.root / "redfirst.toml"
    path.write_text(path.read_text().replace('# argv = ["PROGRAM", "ARGUMENT"]', 'argv = ["echo"]'))
    assert written(project)["agents"]["argv"] == ["echo"]
    path.unlink()
    assert "give both" in init(project, "--argv", "x", code=2)["error"]["message"]
    assert "No closing quotation" in init(project, "--agent", "command", "--argv", "'x", code=2)["error"]["message"]


@pytest.mark.broad
def test_a_key_that_is_set_chooses_the_service(project: Project) -> None:
    install(project, "opencode")
    project.env["GEMINI_API_KEY"] = "secret-of-the-user"
    document = init(project, "--agent", "opencode")
    assert written(project)["agents"]["provider"] == "google"
    assert "secret-of-the-user" not in json.dumps(document)


@pytest.mark.broad
def test_a_login_is_used_where_no_key_is_set(project: Project) -> None:
    install(project, "claude")
    login = project.home / ".claude/.credentials.json"
    login.parent.mkdir()
    login.touch(mode=0o600)
    init(project)
    agents = written(project)["agents"]
    assert (agents["network"], agents["login"]) == ("open", True)


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("redfirst.toml", 'base = "main"\n'),
        ("pyproject.toml", '[tool.redfirst]\nbase = "main"\n'),
        ("redfirst.toml", ""),
    ],
)
def test_what_is_there_is_never_touched(project: Project, name: str, content: str) -> None:
    (project.root / name).write_text(content)
    error = init(project, "--agent", "claude", code=2)["error"]
    assert f"configured already, in {name}" in error["message"]
    assert (project.root / name).read_text() == content
    assert (project.root / "redfirst.toml").exists() is (name == "redfirst.toml")


@pytest.mark.broad
@pytest.mark.slow
def test_the_tracker_is_made_only_where_there_is_none(project: Project) -> None:
    assert init(project, "--agent", "human", "--tracker")["tracker"] is False
    (project.root / "redfirst.toml").unlink()
    shutil.rmtree(project.root / "TODO")
    assert init(project, "--agent", "human", "--tracker")["tracker"] is True
    assert project.document("issue", "lint")["ok"]
    filed = project.redfirst("issue", "new", "--id", "NEW-1", "--title", "First")
    assert filed.stdout.strip() == "NEW-1"


@pytest.mark.slow
def test_the_command_that_new_prints_commits_what_it_filed_and_nothing_else(project: Project) -> None:
    project.write({"greet.py": "not = 'mine to commit'\n"})
    project.git("add", "greet.py")
    filed = project.redfirst("issue", "new", "--id", "NEW-1", "--title", "First")
    command = filed.stderr.splitlines()[-1]
    done = subprocess.run(
        ["sh", "-c", command], cwd=project.root, env=project.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    committed = project.git("show", "--name-only", "--format=", "HEAD").split()
    assert "TODO/NEW-1.md" in committed
    assert all(path.startswith("TODO/") for path in committed)
    assert project.git("status", "--porcelain") == "M  greet.py"


@pytest.mark.broad
def test_nothing_is_here(project: Project) -> None:
    if find_servers():
        pytest.skip("a model server answers on this machine")
    error = init(project, code=2)["error"]
    assert "No agent that redfirst knows is installed here" in error["message"]
    assert any("--agent human" in action for action in error["safe_next_actions"])
    assert any("redfirst demo" in action for action in error["safe_next_actions"])
    assert not (project.root / "redfirst.toml").exists()


def test_a_server_of_this_machine_is_used_with_a_model_that_it_has() -> None:
    server = Server("llamacpp", "llama.cpp", "http://127.0.0.1:8080", ("qwen3", "other"))
    start = start_called("llamacpp", starts([], [server], "2.0", {}, None), {}, None)
    assert start is not None
    table = tomllib.loads(toml(start))
    assert table["agents"] == {"backend": "api", "provider": "llamacpp", "model": "qwen3"}
    assert table["providers"] == {"llamacpp": {"url": "http://127.0.0.1:8080"}}


def test_a_run_without_an_agent_names_what_is_installed(project: Project) -> None:
    install(project, "gemini")
    error = project.document("run", "GAL-1")["error"]
    assert "No agent is configured" in error["message"]
    assert "Gemini CLI 0.61.0 is installed: redfirst init --agent gemini." in error["message"]
    assert error["safe_next_actions"][0] == "redfirst init --agent gemini"
    assert not (project.root / ".workflow").exists()


@pytest.mark.broad
def test_several_projects_of_one_language_are_written(project: Project) -> None:
    assert "toolchains" not in written_by(project, dry_run=True)
    project.write({f"{folder}/pytest.ini": "[pytest]\n" for folder in ("api", "worker")})
    project.commit()
    found = written_by(project)["toolchains"]
    assert found == {"pytest": {"folder": [".", "api", "worker"]}}, "the top has sources of its own"
    shown = project.document("config", "show")
    assert [each["folder"] for each in shown["projects"]] == [".", "api", "worker"]


def written_by(project: Project, *, dry_run: bool = False) -> dict[str, Any]:
    install(project, "claude")
    return tomllib.loads(init(project, *(["--dry-run"] if dry_run else []))["text"])
