from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import typer
from kit import REDFIRST
from typer.testing import CliRunner
from waiting import wait_until, waits_for_a_lock

from pipeline.config.user_folders import state_folder
from pipeline.errors import UserError
from pipeline.faces.cli.config import trust
from pipeline.outcomes import Reason
from pipeline.run.files import locked

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

app = typer.Typer()
app.command()(trust)

ON_A_TERMINAL = """
import sys
import typer
from pipeline.faces.cli.errors import run_guarded
from pipeline.faces.cli.config import trust
app = typer.Typer()
app.command()(trust)
sys.exit(run_guarded(lambda: app([], standalone_mode=False), json=False))
"""


@pytest.fixture
def worktree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", folder], check=True)
    (folder / "redfirst.toml").write_text('sandbox = "none"\n[agents]\nargv = ["bot"]\ntimeout_s = 5\n')
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "REDFIRST_TRUST"):
        monkeypatch.delenv(name, raising=False)
    return folder


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), standalone_mode=False)
    if result.exception:
        raise result.exception
    return result.stdout


def record(tmp_path: Path) -> Path:
    return tmp_path / ".local" / "state" / "redfirst" / "trust.json"


@pytest.mark.usefixtures("worktree")
def test_yes_allows_and_shows_what(tmp_path: Path) -> None:
    told = run("--yes").splitlines()
    assert told[0].startswith('sandbox = "none"  (')
    assert told[1].startswith('agents.argv = ["bot"]  (')
    assert len(told) == 3, "timeout_s widens nothing"
    assert record(tmp_path).exists()


@pytest.mark.usefixtures("worktree")
def test_without_a_terminal_it_needs_yes(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        run("--json")
    assert caught.value.reason is Reason.USAGE
    assert "agents.argv" in caught.value.message
    assert not record(tmp_path).exists()


def test_the_document_tells_what_is_allowed(worktree: Path) -> None:
    document = json.loads(run("--yes", "--json"))
    assert document["repository"] == str(worktree)
    assert document["trusted"] is True
    assert [item["key"] for item in document["widening"]] == ["sandbox", "agents.argv"]
    assert len(document["sha256"]) == 64


@pytest.mark.usefixtures("worktree")
def test_revoke_forgets() -> None:
    assert run("--revoke").strip() == "Nothing was allowed."
    run("--yes")
    assert run("--revoke").strip() == "Forgotten."
    assert json.loads(run("--revoke", "--json"))["trusted"] is False


def test_of_two_words_at_once_none_is_lost(worktree: Path, tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(4)]
    for folder in folders:
        shutil.copytree(worktree, folder)
    kept = state_folder(os.environ)
    kept.mkdir(parents=True)
    with locked(kept):  # each has read what is asked for, and waits
        trusting = [subprocess.Popen([REDFIRST, "trust", "--yes"], cwd=folder) for folder in folders]
        wait_until(lambda: all(map(waits_for_a_lock, [each.pid for each in trusting])))
    assert [each.wait() for each in trusting] == [0] * len(folders)
    assert len(json.loads(record(tmp_path).read_bytes())["repositories"]) == len(folders)


def test_a_repository_that_asks_for_nothing_needs_no_word(worktree: Path, tmp_path: Path) -> None:
    (worktree / "redfirst.toml").write_text("[limits]\nseam = 3\n")
    assert "nothing" in run()
    assert not record(tmp_path).exists()


@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"n\n", 2), (b"\n", 2)])
@pytest.mark.broad(but_first=1)
def test_on_a_terminal_it_shows_the_values_and_asks(worktree: Path, tmp_path: Path, answer: bytes, code: int) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    done = subprocess.run(
        [sys.executable, "-c", ON_A_TERMINAL], cwd=worktree, stdin=theirs, capture_output=True, timeout=300, check=False
    )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == code, done.stderr
    assert b'agents.argv = ["bot"]' in done.stderr
    assert b"Allow this?" in done.stderr
    assert b"agents.argv" not in done.stdout, "it is shown once"
    assert record(tmp_path).exists() is (code == 0)


@pytest.mark.usefixtures("worktree")
def test_what_was_allowed_is_not_asked_for_again(worktree: Path) -> None:
    first = (worktree / "redfirst.toml").read_text()
    run("--yes")
    assert "Allowed already" in run(), "without a terminal a question would be refused"
    (worktree / "redfirst.toml").write_text('[agents]\nargv = ["other"]\n')
    with pytest.raises(UserError):
        run()
    run("--yes")
    (worktree / "redfirst.toml").write_text(first)  # as on another branch
    assert "Allowed already" in run()


def test_what_is_not_committed_yet_is_said_where_nothing_is_asked_for(worktree: Path) -> None:
    (worktree / "redfirst.toml").write_text("[limits]\nseam = 3\n")
    for argv in (("add", "-A"), ("-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "-m", "x")):
        subprocess.run(["git", *argv], cwd=worktree, check=True)
    (worktree / "redfirst.toml").write_text('[agents]\nargv = ["bot"]\n')
    assert "uncommitted changes of redfirst.toml do not count" in run()
    (worktree / "redfirst.toml").write_text("[limits]\nseem = 3\n")
    assert "no run begins: redfirst.toml:2: unknown key" in run()
