from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from pipeline.errors import UserError
from pipeline.faces.cli.config import app
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def worktree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", folder], check=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "REDFIRST_TRUST"):
        monkeypatch.delenv(name, raising=False)
    return folder


def commit(worktree: Path, name: str, text: str) -> None:
    (worktree / name).write_text(text)
    git = ["git", "-C", str(worktree), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "add", name], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)


def show(*words: str) -> str:
    result = CliRunner().invoke(app, ["show", *words], standalone_mode=False)
    if result.exception:
        raise result.exception
    return result.stdout


def shown(*words: str) -> dict[str, Any]:
    return json.loads(show("--json", *words))


@pytest.mark.usefixtures("worktree")
def test_every_value_is_shown_with_its_origin() -> None:
    lines = show("--set", "limits.seam=4").splitlines()
    words = {line.split(" = ")[0]: line.split(" = ")[1].split() for line in lines}
    assert words["sandbox"] == ['"auto"', "default"]
    assert words["limits.seam"] == ["4", "--set", "limits.seam"]
    assert words["budget.cost_usd"] == ["(not", "set)", "default"]


def test_a_tracked_file_is_shown_as_head_has_it(worktree: Path) -> None:
    commit(worktree, "redfirst.toml", "# ours\n[limits]\nseam = 2\n")
    (worktree / "redfirst.toml").write_text("[limits]\nseam = 9\n")
    seam = shown()["values"]["limits.seam"]
    assert seam == {"value": 2, "hidden": False, "layer": "repository", "source": "redfirst.toml", "line": 3}


@pytest.mark.parametrize("name", ["redfirst.toml", "pyproject.toml"])
@pytest.mark.parametrize("tracked", [True, False])
def test_a_file_that_is_larger_than_any_configuration_is_refused(worktree: Path, name: str, *, tracked: bool) -> None:
    text = "#" * (1 << 20) + "\n"
    if tracked:
        commit(worktree, name, text)
    (worktree / name).write_text("" if tracked else text)
    with pytest.raises(UserError, match=f"{name} is larger than 1 MiB") as caught:
        show()
    assert (caught.value.reason, caught.value.path) == (Reason.CONFIG, name)


def test_the_top_is_found_from_a_folder_below(worktree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (worktree / "redfirst.toml").write_text('base = "trunk"\n')
    (worktree / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(worktree / "a" / "b")
    assert shown()["values"]["base"]["value"] == "trunk"


def test_what_cannot_be_shown_is_refused_with_the_nearest(worktree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"limits\.seam"):
        show("--set", "limits.saem=4")
    with pytest.raises(UserError, match="Did you mean agents\\?"):
        config("get", "agnts")
    monkeypatch.chdir(worktree.parent)
    with pytest.raises(UserError, match="not inside a git repository"):
        show()


@pytest.mark.usefixtures("worktree")
def test_the_users_variables_for_agents_are_hidden(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "redfirst"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('[agents.env]\nKEY = "s3cret"\n')
    assert "s3cret" not in show() + show("--json")
    assert shown()["values"]["agents.env.KEY"]["hidden"] is True


def test_what_is_not_trusted_is_named(worktree: Path) -> None:
    (worktree / "redfirst.toml").write_text('[agents]\nargv = ["bot"]\n')
    assert "agents.argv. See: redfirst trust" in show().splitlines()[-1]
    document = shown()
    assert document["trusted"] is False
    assert [item["key"] for item in document["widening"]] == ["agents.argv"]


def config(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), standalone_mode=False)
    if result.exception:
        raise result.exception
    return result.stdout


def test_a_value_is_set_in_the_repository_s_file_and_read_again(worktree: Path) -> None:
    commit(worktree, "redfirst.toml", "# ours\n[limits]\nseam = 2  # enough\n")
    config("set", "limits.seam", "4")
    assert (worktree / "redfirst.toml").read_text() == "# ours\n[limits]\nseam = 4  # enough\n"
    assert config("get", "limits.seam") == "2\n", "HEAD counts"
    commit(worktree, "redfirst.toml", (worktree / "redfirst.toml").read_text())
    assert config("get", "limits.seam") == "4\n"
    config("set", "agents.model", "large")
    commit(worktree, "redfirst.toml", (worktree / "redfirst.toml").read_text())
    inherited = json.loads(config("get", "agents.make.model", "--json"))["values"]["agents.make.model"]
    assert (inherited["value"], inherited["source"]) == ("large", "redfirst.toml")


def test_a_shared_file_and_the_user_s_own_are_changed_where_they_speak(worktree: Path, tmp_path: Path) -> None:
    commit(worktree, "pyproject.toml", '[project]\nname = "x"\n\n[tool.redfirst.limits]\nseam = 2\n')
    config("set", "limits.seam", "3")
    assert 'name = "x"\n\n[tool.redfirst.limits]\nseam = 3\n' in (worktree / "pyproject.toml").read_text()
    told = config("set", "limits.seam", "5", "--user", "--json")
    own = tmp_path / ".config" / "redfirst" / "config.toml"
    assert json.loads(told)["path"] == str(own)
    assert own.read_text() == "[limits]\nseam = 5\n"
    assert "says something else, and that counts" in config("set", "limits.seam", "6")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("limits.seem", "3"), 'Did you mean "limits.seam"?'),
        (("limits.seam", "three"), "not a TOML value"),
        (("limits.seam", "0.5"), "limits.seam"),
        (("sandbox", "nome"), 'Did you mean "none"?'),
        (("agents.fallback", '["spare"]'), "there is no [spares.spare]"),
    ],
)
def test_what_a_run_would_refuse_is_not_written(
    worktree: Path, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    commit(worktree, "redfirst.toml", "# ours\n")
    for place in ((), ("--user",)):
        with pytest.raises(UserError) as caught:
            config("set", *words, *place)
        assert says in caught.value.message
    assert (worktree / "redfirst.toml").read_text() == "# ours\n"
    assert not (worktree.parent / ".config").exists()


@pytest.mark.usefixtures("worktree")
def test_a_value_that_widens_reminds_of_trust() -> None:
    assert "next: redfirst trust" in config("set", "agents.env.TOKEN", "x")
    assert "trust" not in config("set", "limits.seam", "3")
