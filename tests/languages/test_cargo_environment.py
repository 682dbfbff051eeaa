"""Which toolchain is found, what of it the box is shown, and what is said where there is none."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest
from languages import measured
from languages.crates import TOOLCHAIN, environment, needs_cargo

from pipeline.testing.languages.protocol import Environment, Missing

find = partial(measured.find, TOOLCHAIN)


def test_a_manifest_makes_a_rust_project(tmp_path: Path) -> None:
    assert not TOOLCHAIN.detect(tmp_path)
    (tmp_path / "Cargo.toml").touch()
    assert TOOLCHAIN.detect(tmp_path)


@needs_cargo
def test_the_toolchain_itself_is_shown_and_not_what_asks_for_it() -> None:
    env = environment()
    program = Path(env.command[0])
    assert env.command[1:] == ("test",)
    assert program.resolve() == program == env.prefix / "bin" / "cargo" or env.prefix == Path("/usr")
    assert [version.split()[0] for version in env.versions] == ["rustc", "cargo"]
    assert env.variables["CARGO_NET_OFFLINE"] == "true"
    shown = {mount.target for mount in env.mounts}
    home = Path(env.variables["CARGO_HOME"])
    assert home not in shown  # the credentials of registries are in it
    assert not any(home.is_relative_to(target) for target in shown)


def test_without_rust_the_sentence_says_what_to_install(tmp_path: Path) -> None:
    found = find(tmp_path, path=str(tmp_path))
    assert isinstance(found, Missing)
    assert "https://rustup.rs" in found.sentence


@needs_cargo
def test_a_wrapper_is_asked_once_on_the_host_and_its_variables_are_kept(tmp_path: Path) -> None:
    wrapper = tmp_path / "shell"
    wrapper.write_text(
        f'#!/bin/sh\nexport PKG_CONFIG_PATH=/opt/it SECRET=x PATH="$PATH:{tmp_path}"\nshift\nexec "$@"\n'
    )
    wrapper.chmod(0o755)
    found = find(tmp_path, [str(wrapper), "-c", "cargo", "test", "--all-features"])
    assert isinstance(found, Environment), found
    assert found.command[1:] == ("test", "--all-features")
    assert found.variables["PKG_CONFIG_PATH"] == "/opt/it"
    assert "SECRET" not in found.variables


@pytest.mark.parametrize("command", [[sys.executable, "-m", "pytest"], ["cargo", "run"]])
def test_a_command_that_is_not_cargo_test_is_refused(tmp_path: Path, command: list[str]) -> None:
    assert isinstance(find(tmp_path, command), Missing)


def test_rustc_is_asked_in_the_root_where_no_file_of_the_project_chooses(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "rust-toolchain.toml").write_text('[toolchain]\npath = "/tmp/evil"\n')
    for name in ("rustc", "cargo"):
        (tmp_path / name).write_text(f"#!/bin/sh\npwd >> {tmp_path}/log\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    assert isinstance(find(project, path=f"{tmp_path}:/usr/bin:/bin"), Missing)
    assert (tmp_path / "log").read_text() == "/\n"
