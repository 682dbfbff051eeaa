"""Where the programs and the logins of products are."""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.agents.backends.claude import CLAUDE
from pipeline.agents.backends.codex import CODEX
from pipeline.agents.backends.products import Bundle, Place, home_for
from pipeline.agents.backends.program import Exchange
from pipeline.agents.backends.protocol import AgentJob, Session
from pipeline.config.agents import AgentConfig, Backend
from pipeline.errors import UserError
from pipeline.judge.policy.roles import Network
from pipeline.process import Mount
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.nobox import NoBox

if TYPE_CHECKING:
    from pipeline.agents.backends.products import Native

MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
PLACE = Place(".claude", "projects", ".credentials.json")


def elf(path: Path) -> Path:
    """Put a native program at *path*."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path("/bin/true").resolve(), path)
    return path


def wrapper(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/usr/bin/env node\n")
    path.chmod(0o755)
    return path


def linked(folder: Path, name: str, target: Path) -> str:
    """Return a search path with a link to *target*, as npm makes one."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to(os.path.relpath(target, folder))
    return str(folder)


def npm_codex(modules: Path) -> tuple[Path, Path]:
    """Return the wrapper and the native program of an npm installation."""
    top = modules / "@openai"
    vendor = top / f"codex-linux-{MACHINE}" / "vendor" / "the-triple"
    native = elf(vendor / "bin" / "codex")
    (vendor / "codex-package.json").write_text("{}")
    return wrapper(top / "codex" / "bin" / "codex.js"), native


def test_codex_behind_its_wrapper(tmp_path: Path) -> None:
    script, native = npm_codex(tmp_path / "lib" / "node_modules")
    path = linked(tmp_path / "bin", "codex", script)
    assert CODEX.installed(path) == native
    program = CODEX.program((), path)
    assert program.argv("exec") == (str(native), "exec")
    top = native.parent.parent
    assert Mount(top, top) in program.mounts, "it looks for its own tools beside itself"


def test_codex_as_one_file_brings_nothing_else(tmp_path: Path) -> None:
    native = elf(tmp_path / ".local" / "bin" / "codex")
    program = CODEX.program((), str(native.parent))
    assert {mount.target for mount in program.mounts} == {native}


def test_claude_of_npm_is_a_program_itself(tmp_path: Path) -> None:
    native = elf(tmp_path / "node_modules" / "@anthropic-ai" / "claude-code" / "bin" / "claude.exe")
    link = linked(tmp_path / "node_modules" / ".bin", "claude", native)
    program = CLAUDE.program((), link)
    assert program.path == Path(link, "claude")
    assert {mount.target for mount in program.mounts} == {native, Path(link, "claude")}


def test_claude_behind_its_wrapper(tmp_path: Path) -> None:
    top = tmp_path / "node_modules" / "@anthropic-ai"
    native = elf(top / f"claude-code-linux-{MACHINE}" / "claude")
    elf(top / f"claude-code-linux-{MACHINE}-musl" / "claude")
    path = linked(tmp_path / "bin", "claude", wrapper(top / "claude-code" / "cli-wrapper.cjs"))
    assert CLAUDE.installed(path) == native


@pytest.mark.parametrize("product", [CLAUDE, CODEX])
def test_what_is_not_there_is_the_users_to_install(product: Native, tmp_path: Path) -> None:
    assert product.installed(str(tmp_path)) is None
    with pytest.raises(UserError, match="npm install -g"):
        product.program((), str(tmp_path))


def test_a_wrapper_without_a_program_for_this_machine(tmp_path: Path) -> None:
    path = linked(tmp_path / "bin", "codex", wrapper(tmp_path / "@openai" / "codex" / "bin" / "codex.js"))
    with pytest.raises(UserError, match="no build for this machine"):
        CODEX.program((), path)


def test_options_of_the_users_own_are_refused(tmp_path: Path) -> None:
    native = elf(tmp_path / "claude")
    with pytest.raises(UserError, match="nothing more"):
        CLAUDE.program((str(native), "--dangerously-skip-permissions"), None)


def test_an_agent_that_cannot_reach_its_model_is_refused_before_the_run(tmp_path: Path) -> None:
    path = str(elf(tmp_path / "claude").parent)
    agent = AgentConfig(backend=Backend.CLAUDE)
    CLAUDE.require(agent, path)
    with pytest.raises(UserError, match='network = "none"'):
        CLAUDE.require(agent.model_copy(update={"network": Network.NONE}), path)
    with pytest.raises(UserError, match="login = true"):
        CLAUDE.require(agent.model_copy(update={"login": True}), path)
    CLAUDE.require(agent.model_copy(update={"login": True, "network": Network.OPEN}), path)


def job(folder: Path, *, login: bool = True, network: str = "open") -> AgentJob:
    """Return a job of a user whose home is below *folder*, with a session."""
    for name in ("exchange", "sessions", "home/.claude"):
        (folder / name).mkdir(parents=True)
    agent = AgentConfig(backend=Backend.CLAUDE, login=login)
    view = Mount(folder, folder)
    kept = Session(Mount(folder / "sessions", Path("/redfirst-session"), writable=True))
    return AgentJob(
        Bubblewrap("bwrap"),
        b"{}",
        view,
        folder / "exchange",
        agent=agent,
        network=network,
        home=folder / "home",
        session=kept,
    )


def test_the_login_is_one_file_and_read_only(tmp_path: Path) -> None:
    asked = job(tmp_path)
    file = tmp_path / "home" / ".claude" / ".credentials.json"
    file.write_text("{}")
    home = home_for(PLACE, Exchange.open(asked))
    assert Mount(file, Path("/home/agent/.claude/.credentials.json")) in home.mounts
    assert [mount.target for mount in home.mounts if mount.writable] == [Path("/home/agent/.claude/projects")]


@pytest.mark.parametrize(("login", "network"), [(False, "open"), (True, "model")])
def test_a_login_that_is_not_needed_is_not_shown(tmp_path: Path, login: bool, network: str) -> None:
    asked = job(tmp_path, login=login, network=network)
    (tmp_path / "home" / ".claude" / ".credentials.json").write_text("{}")
    assert [mount.target.name for mount in home_for(PLACE, Exchange.open(asked)).mounts] == ["projects"]


def test_a_login_that_is_missing_is_the_users_to_mend(tmp_path: Path) -> None:
    asked = job(tmp_path)
    with pytest.raises(UserError, match="there is no login"):
        home_for(PLACE, Exchange.open(asked))


def test_without_a_box_a_login_cannot_be_shown_and_nothing_is_kept(tmp_path: Path) -> None:
    asked = replace(job(tmp_path), box=NoBox())
    with pytest.raises(UserError, match="bubblewrap"):
        home_for(PLACE, Exchange.open(asked))
    asked = replace(job(tmp_path / "second", login=False), box=NoBox())
    home = home_for(PLACE, Exchange.open(asked))
    assert home.path.is_dir()
    assert (home.mounts, home.session) == ((), None)


# --- an agent that Node runs: its packages, never the user's home folder


BUNDLE = Bundle("gemini", "npm install -g @google/gemini-cli", "0.61.0")


def script(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_its_packages_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    script(tmp_path / "lib" / "node_modules" / "@google" / "gemini-cli" / "gemini.js")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gemini").symlink_to("../lib/node_modules/@google/gemini-cli/gemini.js")
    mounts = BUNDLE.program((), str(tmp_path / "bin")).mounts
    assert tmp_path / "lib" / "node_modules" in {mount.source for mount in mounts}
    assert tmp_path not in {mount.source for mount in mounts}


@pytest.mark.parametrize("folder", [".", ".."], ids=["home", "above"])
def test_a_script_in_the_home_folder_would_show_all_of_it(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    place = (home / folder).resolve()
    script(place / "gemini")
    with pytest.raises(UserError, match="which the box must hide"):
        BUNDLE.program((), str(place))
