from __future__ import annotations

import json
import stat
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pipeline.config.load import load
from pipeline.config.sources import RepositoryFile
from pipeline.config.trust import Widening, fingerprint, grant, is_trusted, require_trust, revoke
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.repo import Repository

if TYPE_CHECKING:
    from pathlib import Path


def widening(tmp_path: Path, text: str) -> tuple[Widening, ...]:
    file = RepositoryFile("redfirst.toml", text.encode(), tracked=True)
    return load(tmp_path, environ={"HOME": str(tmp_path)}, repo_file=file).widening


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def common_dir(tmp_path: Path) -> Path:
    return initialise(tmp_path / "repo")


def initialise(folder: Path) -> Path:
    subprocess.run(["git", "init", "-q", folder], check=True)
    return Repository.find(folder).common_dir


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('sandbox = "none"', "sandbox"),
        ('[agents]\nnetwork = "open"', "agents.network"),
        ('[solo]\narea = ["**", "pyproject.toml"]', "solo.area"),
        ('[agents.test]\nnetwork = "model"', "agents.test.network"),
        ('[agents]\nread = ["/etc"]', "agents.read"),
        ('[agents.pm]\nread = ["/etc"]', "agents.pm.read"),
        ('[agents]\nargv = ["sh"]', "agents.argv"),
        ('[agents.make]\nargv = ["sh"]', "agents.make.argv"),
        ('[agents]\nscript = "../x.yaml"', "agents.script"),
        ('[agents.env]\nLD_PRELOAD = "x.so"', "agents.env.LD_PRELOAD"),
        ('[agents.check.env]\nA = ""', "agents.check.env.A"),
        ('[toolchains.pytest]\nsetup = ["make"]', "toolchains.pytest.setup"),
        ("[toolchains]\noutside = true", "toolchains.outside"),
        ('[toolchains.pytest.env]\nTZ = "UTC"', "toolchains.pytest.env.TZ"),
        ('[toolchains.cargo]\nenv = { APP_ENV = "" }', "toolchains.cargo.env.APP_ENV"),
        ('[toolchains.pytest]\ncommand = ["/home/user/python", "-m", "pytest"]', "toolchains.pytest.command"),
        ('[toolchains.pytest]\ncommand = ["../python"]', "toolchains.pytest.command"),
        ('[toolchains.cargo]\ncommand = ["nix", "develop", "-c", "cargo", "test"]', "toolchains.cargo.command"),
        ('[toolchains.cargo]\ncommand = ["sh", "-c", "curl x", "cargo", "test"]', "toolchains.cargo.command"),
        ('[toolchains.pytest]\ncommand = ["uv", "run", "./evil", "pytest"]', "toolchains.pytest.command"),
        ('[toolchains.pytest]\ncommand = ["python", "evil.py", "pytest"]', "toolchains.pytest.command"),
        ('[toolchains.pytest]\ncommand = ["tools/pytest"]', "toolchains.pytest.command"),
        ('[toolchains.pytest]\ncommand = ["npm", "run", "x", "pytest"]', "toolchains.pytest.command"),
        ('[toolchains.pytest]\ncommand = ["cargo", "run", "pytest"]', "toolchains.pytest.command"),
        ('[toolchains.cargo]\ncommand = ["python", "-m", "pytest", "cargo", "test"]', "toolchains.cargo.command"),
        ('[toolchains.cargo]\ncommand = ["cargo", "run", "cargo", "test"]', "toolchains.cargo.command"),
        ('[toolchains.go]\ncommand = ["go", "run", ".", "go", "test"]', "toolchains.go.command"),
        ('[toolchains.go]\nsetup = ["go", "mod", "download"]', "toolchains.go.setup"),
        ('[checks]\ncommands = [["ruff"], ["~/bin/x"]]', "checks.commands"),
        ('[checks]\nfix = [["a/../../x"]]', "checks.fix"),
    ],
)
def test_a_value_that_opens_the_box_or_the_host_needs_trust(tmp_path: Path, text: str, key: str) -> None:
    assert [item.key for item in widening(tmp_path, text)] == [key]


@pytest.mark.parametrize(
    "text",
    [
        'sandbox = "auto"',
        '[agents]\nnetwork = "none"\nread = []\nargv = []\ntimeout_s = 5\nbackend = "command"',
        '[agents.simplify]\nbackend = "off"',
        '[toolchains.pytest]\ncommand = [".venv/bin/python", "-m", "pytest"]',
        '[toolchains.pytest]\ncommand = ["python3.12", "-m", "pytest", "-x"]',
        '[toolchains.node]\ncommand = ["npm", "test"]\nfolder = "web"',
        '[toolchains]\nuse = ["cargo", "go"]\n[toolchains.cargo]\ncommand = ["cargo", "test", "--all-features"]',
        '[checks]\ncommands = [["ruff", "/etc/passwd"]]\nfix = []',
        '[solo]\narea = ["src/**", "tests/**"]',
        "[limits]\nplan_review = 9\n[budget]\ncost_usd = 100.0",
    ],
)
def test_a_value_that_opens_nothing_needs_no_trust(
    tmp_path: Path, common_dir: Path, environ: dict[str, str], text: str
) -> None:
    assert widening(tmp_path, text) == ()
    require_trust((), common_dir, environ)


def test_without_trust_the_refusal_names_keys_values_and_the_command(
    tmp_path: Path, common_dir: Path, environ: dict[str, str]
) -> None:
    asked = widening(tmp_path, 'sandbox = "none"\n[agents]\nargv = ["./bot", "x"]\n')
    with pytest.raises(UserError) as caught:
        require_trust(asked, common_dir, environ)
    error = caught.value
    assert error.reason is Reason.UNTRUSTED
    assert 'sandbox = "none"; agents.argv = ["./bot", "x"]' in error.message
    assert any("redfirst trust" in action for action in error.actions)


def test_trust_holds_for_these_values_only(tmp_path: Path, common_dir: Path, environ: dict[str, str]) -> None:
    asked = widening(tmp_path, '[agents]\nargv = ["bot"]\ntimeout_s = 5\n')
    grant(asked, common_dir, environ)
    require_trust(asked, common_dir, environ)
    same = widening(tmp_path, '# a comment\n[agents]\ntimeout_s = 99\nargv = ["bot"]\n')
    assert is_trusted(same, common_dir, environ), "what does not widen does not count"
    for other in (
        '[agents]\nargv = ["bot2"]',
        '[agents]\nargv = ["bot"]\nread = ["/etc"]',
        "[agents.make]\nread=['/']",
    ):
        assert not is_trusted(widening(tmp_path, other), common_dir, environ)


def test_trust_is_by_repository_and_shared_by_its_worktrees(
    tmp_path: Path, common_dir: Path, environ: dict[str, str]
) -> None:
    asked = widening(tmp_path, 'sandbox = "none"')
    grant(asked, common_dir, environ)
    git = ["git", "-C", str(tmp_path / "repo"), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    linked = tmp_path / "linked"
    subprocess.run([*git, "worktree", "add", "-q", "--detach", linked], check=True)
    assert is_trusted(asked, Repository.find(linked).common_dir, environ)
    assert not is_trusted(asked, initialise(tmp_path / "other"), environ)


def test_what_a_file_brings_about_has_a_hash_of_its_own(
    tmp_path: Path, common_dir: Path, environ: dict[str, str]
) -> None:
    asked = widening(tmp_path, '[agents]\nargv = ["bot"]\n')
    lock = Widening("uv.lock", "uv sync --frozen", "it builds", is_file=True, instead="make it yourself: uv sync")
    include = Widening(".worktreeinclude", ["a"], "it copies", is_file=True)
    grant((*asked, lock), common_dir, environ)
    for part in ((*asked, lock), asked, (lock,)):  # an environment may be there today, and gone tomorrow
        assert is_trusted(part, common_dir, environ)
    for more in ((*asked, lock, include), (include,), (replace(lock, value="uv sync"),)):
        assert not is_trusted(more, common_dir, environ)
    with pytest.raises(UserError) as caught:
        require_trust((lock, include), common_dir, environ)
    assert "Make it yourself: uv sync." in caught.value.message


def test_revoked_trust_is_gone(tmp_path: Path, common_dir: Path, environ: dict[str, str]) -> None:
    asked = widening(tmp_path, 'sandbox = "none"')
    grant(asked, common_dir, environ)
    assert revoke(common_dir, environ) is True
    assert not is_trusted(asked, common_dir, environ)
    assert revoke(common_dir, environ) is False


def test_ci_can_trust_by_a_variable(tmp_path: Path, common_dir: Path, environ: dict[str, str]) -> None:
    asked = widening(tmp_path, 'sandbox = "none"')
    assert is_trusted(asked, common_dir, {**environ, "REDFIRST_TRUST": "1"})
    assert not is_trusted(asked, common_dir, {**environ, "REDFIRST_TRUST": "0"})
    with pytest.raises(UserError, match="Accepted: 0, 1"):
        is_trusted(asked, common_dir, {**environ, "REDFIRST_TRUST": "yes"})


def test_the_record_is_private_and_whole(tmp_path: Path, common_dir: Path, environ: dict[str, str]) -> None:
    asked = widening(tmp_path, 'sandbox = "none"')
    grant(asked, common_dir, environ)
    folder = tmp_path / "state" / "redfirst"
    assert [path.name for path in folder.iterdir()] == ["trust.json"]
    record = folder / "trust.json"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert json.loads(record.read_text()) == {
        "schema": "redfirst.trust-store/1",
        "repositories": {str(tmp_path / "repo" / ".git"): fingerprint(asked)},
    }


@pytest.mark.parametrize("content", ["", "[]", '{"schema": "redfirst.trust-store/2"}', '{"repositories": {"a": 1}}'])
def test_a_damaged_record_is_told_and_trusts_nothing(
    tmp_path: Path, common_dir: Path, environ: dict[str, str], content: str
) -> None:
    record = tmp_path / "state" / "redfirst" / "trust.json"
    record.parent.mkdir(parents=True)
    record.write_text(content)
    with pytest.raises(UserError) as caught:
        is_trusted(widening(tmp_path, 'sandbox = "none"'), common_dir, environ)
    assert caught.value.path == str(record)
