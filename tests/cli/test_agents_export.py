"""`redfirst agents export`: what is written and never overwritten, and what the real products make of it."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import typer
import yaml
from agent_clis import cli
from typer.testing import CliRunner

from pipeline.agents.dispatch.roles import load_roles
from pipeline.app.agent_files import FOLDERS, Target, agent_file
from pipeline.errors import UserError
from pipeline.faces.cli.agents import app
from pipeline.outcomes import Reason
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = typer.Typer()
PROGRAM.add_typer(app)
NAMES = {f"redfirst-{role.value}" for role in Role}
READERS = {"redfirst-orchestrator", "redfirst-check", "redfirst-simplify", "redfirst-pm"}


def export(*words: str) -> str:
    result = CliRunner().invoke(PROGRAM, ["agents", "export", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def refused(*words: str) -> UserError:
    with pytest.raises(UserError) as caught:
        export(*words)
    assert caught.value.reason is Reason.USAGE
    return caught.value


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository that the test stands in, below its top."""
    top = tmp_path / "project"
    (top / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", str(top)], check=True)
    monkeypatch.chdir(top / "src")
    return top


def front(text: str) -> dict[str, Any]:
    return yaml.safe_load(text.split("---\n")[1])


@pytest.mark.parametrize("target", Target)
def test_every_role_lies_in_the_products_folder_of_the_repository(target: Target, here: Path) -> None:
    told = json.loads(export("--to", target.value, "--json"))
    assert (told["schema"], told["to"], told["folder"]) == (
        "redfirst.agents-export/1",
        target,
        str(here / FOLDERS[target]),
    )
    assert {role["name"] for role in told["roles"]} == NAMES
    assert {role["state"] for role in told["roles"]} == {"written"}
    folder = here / FOLDERS[target]
    assert {path.name for path in folder.iterdir()} == {f"{name}.md" for name in NAMES}
    for role, spec in load_roles().items():
        text = (folder / f"redfirst-{role.value}.md").read_text(encoding="utf-8")
        assert spec.prompt in text
        assert "No gate compares the workspace" in text
        assert front(text)["description"] == spec.description
    again = json.loads(export("--to", target.value, "--json"))
    assert {role["state"] for role in again["roles"]} == {"unchanged"}


def test_a_file_that_differs_is_named_and_nothing_is_written(here: Path) -> None:
    folder = here / FOLDERS[Target.CLAUDE]
    folder.mkdir(parents=True)
    mine = folder / "redfirst-check.md"
    mine.write_text("mine\n")
    error = refused("--to", "claude")
    assert (error.path, error.details) == (str(mine), {"differ": [str(mine)]})
    assert "--force" in error.message
    assert [path.name for path in folder.iterdir()] == ["redfirst-check.md"]
    assert mine.read_text() == "mine\n"
    told = json.loads(export("--to", "claude", "--force", "--json"))
    assert {role["name"]: role["state"] for role in told["roles"]}["redfirst-check"] == "replaced"
    assert mine.read_text() == agent_file(load_roles()[Role.CHECK], Target.CLAUDE, "TODO").text


def test_a_link_is_replaced_and_not_followed(here: Path) -> None:
    folder = here / FOLDERS[Target.OPENCODE]
    folder.mkdir(parents=True)
    aim = here / "aim"
    aim.write_text(agent_file(load_roles()[Role.PM], Target.OPENCODE, "TODO").text)
    (folder / "redfirst-pm.md").symlink_to(aim)
    assert refused("--to", "opencode").path == str(folder / "redfirst-pm.md")
    aim.write_text("somebody's")
    export("--to", "opencode", "--force")
    assert aim.read_text() == "somebody's"
    assert not (folder / "redfirst-pm.md").is_symlink()


def test_a_folder_of_the_repository_that_leads_out_of_it_is_not_written(here: Path) -> None:
    outside = here.parent / "outside"
    outside.mkdir()
    (here / ".claude").symlink_to(outside)
    assert "--dir" in refused("--to", "claude").message
    assert list(outside.iterdir()) == []


def test_any_folder_can_be_named_and_needs_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    export("--to", "opencode", "--dir", "deep/er")
    assert len(list((tmp_path / "deep/er").iterdir())) == len(NAMES)
    (tmp_path / "file").write_text("")
    assert "Not a directory" in refused("--to", "opencode", "--dir", "file").message
    (tmp_path / "deep/er/redfirst-pm.md").unlink()
    (tmp_path / "deep/er/redfirst-pm.md").mkdir()
    assert "Cannot read" in refused("--to", "opencode", "--dir", "deep/er", "--force").message


@pytest.mark.parametrize("target", Target)
def test_each_key_of_ours_is_kept_or_named_with_its_reason(target: Target) -> None:
    for role, spec in load_roles().items():
        named = {key.key for key in agent_file(spec, target, "TODO").ignored}
        assert {"kinds", "timeout_s"} <= named
        assert all(key.why for key in agent_file(spec, target, "TODO").ignored)
        assert ("writes" in named) == (role in {Role.TEST, Role.MAKE}), "a reader's writes are kept exactly"
        assert ({"shell", "network"} <= named) == spec.shell
        assert ("test_regions" in named) == spec.test_regions


def test_the_text_tells_what_is_not_kept(here: Path) -> None:
    assert here.is_dir()
    told = export("--to", "opencode")
    assert "not kept: test_regions = true" in told
    assert "no box, no gate" in told


# --- the products themselves ---------------------------------------------------------------------------------------


def environment(home: Path, **more: str) -> dict[str, str]:
    home.mkdir(exist_ok=True)
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8", **more}


def opencode(here: Path, *words: str) -> subprocess.CompletedProcess[str]:
    switches = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD")
    env = environment(here.parent / "home", **{f"OPENCODE_DISABLE_{switch}": "1" for switch in switches})
    return subprocess.run(
        [str(cli("opencode")), *words], cwd=here, env=env, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.slow
@pytest.mark.broad
def test_opencode_lists_them_and_keeps_to_their_permissions(here: Path) -> None:
    export("--to", "opencode")
    listed = opencode(here, "agent", "list").stdout
    assert {name for name in NAMES if f"{name} (all)" in listed} == NAMES
    for name in ("redfirst-check", "redfirst-make", "redfirst-pm"):
        known = json.loads(opencode(here, "debug", "agent", name).stdout)
        tools = {tool for tool, offered in known["tools"].items() if offered}
        assert tools == {"read", "glob", "grep"} | (set() if name in READERS else {"edit", "write", "bash"})
        assert known["options"] == {}, "a key that opencode does not know goes to the model's provider"
        assert known["description"] == load_roles()[Role(name.removeprefix("redfirst-"))].description
    for path, writable in {"src/new.py": True, "TODO/GAL-1.md": False, ".workflow/x": False}.items():
        place = here / path
        words = json.dumps({"filePath": str(place), "content": "x"})
        opencode(here, "debug", "agent", "redfirst-make", "--tool", "write", "--params", words)
        assert place.exists() == writable, path


@pytest.mark.slow
@pytest.mark.broad
def test_claude_lists_them_and_offers_their_tools(here: Path) -> None:
    export("--to", "claude")
    for name in ("redfirst-check", "redfirst-make"):
        init = first_event(here, name)
        assert set(init["agents"]) >= NAMES
        tools = set(init["tools"])
        assert (tools & {"Edit", "Write", "Bash"} == set()) == (name in READERS)
        assert tools <= {"Read", "Grep", "Glob", "Edit", "Write", "Bash"}


def first_event(here: Path, agent: str) -> dict[str, Any]:
    """Return what Claude Code says of itself before it asks a model, which is not there."""
    words = ["-p", "hi", "--agent", agent, "--output-format", "stream-json", "--verbose", "--no-session-persistence"]
    env = environment(
        here.parent / "home",
        ANTHROPIC_BASE_URL="http://127.0.0.1:9",  # the port of "discard": nobody listens
        ANTHROPIC_API_KEY="placeholder",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_AUTOUPDATER="1",
    )
    argv = [str(cli("claude")), *words, "--setting-sources", "project", "--strict-mcp-config"]
    with subprocess.Popen(
        argv, cwd=here, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            return json.loads(process.stdout.readline())
        finally:
            process.kill()
