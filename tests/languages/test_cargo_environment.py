"""Which toolchain is found, what of it the box is shown, and what is said where there is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from languages.crates import TOOLCHAIN, environment, needs_cargo

from pipeline.languages.protocol import Environment, Lookup, Missing

if TYPE_CHECKING:
    from collections.abc import Sequence


def find(place: Path, command: Sequence[str] | None = None, path: str | None = None) -> Environment | Missing:
    chosen = None if command is None else tuple(command)
    search_path = os.environ["PATH"] if path is None else path
    return anyio.run(TOOLCHAIN.find_environment, Lookup(place, place, chosen, place, search_path))


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


def test_a_toolchain_that_the_project_names_by_path_is_not_started(tmp_path: Path) -> None:
    (tmp_path / "rust-toolchain.toml").write_text('[toolchain]\npath = "/tmp/evil"\n')
    found = find(tmp_path)
    assert isinstance(found, Missing)
    assert "rust-toolchain.toml" in found.sentence


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


# --- which toolchain the project's files name


def repository(place: Path, files: dict[str, bytes]) -> Path:
    """Return the folder of a project below the top of a repository that has these files."""
    inner = place / "repository" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / ".git").mkdir()
    for name, content in files.items():
        (inner.parent / name).write_bytes(content)
    return inner


@pytest.fixture
def rustup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a PATH with a rustc that notes where it is started and with which toolchain."""
    monkeypatch.delenv("RUSTUP_TOOLCHAIN", raising=False)
    monkeypatch.setenv("RUSTUP_HOME", str(tmp_path / "rustup"))
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("rustc", "cargo"):
        (folder / name).write_text(f'#!/bin/sh\necho "$PWD $RUSTUP_TOOLCHAIN" >> {tmp_path}/log\nexit 1\n')
        (folder / name).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


@pytest.mark.parametrize("name", ["rust-toolchain.toml", "rust-toolchain", "inner/rust-toolchain.toml"])
@pytest.mark.parametrize(
    "content",
    [
        b'\xef\xbb\xbf[toolchain]\npath = "tools"\n',
        b'[toolchain]\npath = "tools"\n',
        b'toolchain.path = "tools"\n',
        b'[toolchain]\nchannel = "../tools"\n',
        b'[toolchain]\nchannel = "/tmp/tools"\n',
        b'[toolchain]\nchannel = ".."\n',
        b"[toolchain]\nchannel = 1\n",
        b"toolchain = 1\n",
        b"[toolchain\n",
        b"\xff\xfe",
        b"/tmp/tools",
        b"\xef\xbb\xbfstable\n",
    ],
)
def test_a_file_that_does_not_name_a_toolchain_plainly_starts_nothing(
    tmp_path: Path, rustup: str, name: str, content: bytes
) -> None:
    found = find(repository(tmp_path, {name: content}), path=rustup)
    assert isinstance(found, Missing)
    assert "rust-toolchain" in found.sentence
    assert not (tmp_path / "log").exists()


def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path, rustup: str) -> None:
    inner = repository(tmp_path, {})
    (inner / "rust-toolchain").symlink_to("/etc/hostname")
    assert isinstance(found := find(inner, path=rustup), Missing)
    assert "no regular file" in found.sentence


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"rust-toolchain.toml": b'[toolchain]\nchannel = "1.75.0"\ncomponents = ["clippy"]\n'}, "1.75.0"),
        ({"rust-toolchain": b"nightly-2024-01-02\n"}, "nightly-2024-01-02"),
        ({"rust-toolchain": b'[toolchain]\nchannel = "beta"\n', "rust-toolchain.toml": b""}, "beta"),
        ({"rust-toolchain.toml": b'[toolchain]\nprofile = "minimal"\n'}, ""),
        ({}, ""),
    ],
)
def test_the_name_is_handed_to_rustup_which_is_started_in_the_root(
    tmp_path: Path, rustup: str, files: dict[str, bytes], name: str
) -> None:
    find(repository(tmp_path, files), path=rustup)
    assert (tmp_path / "log").read_text().splitlines()[0] == f"/ {name}"


def test_what_the_user_chose_for_a_folder_counts_before_its_files(tmp_path: Path, rustup: str) -> None:
    inner = repository(tmp_path, {"rust-toolchain": b"stable\n"})
    (tmp_path / "rustup").mkdir()
    (tmp_path / "rustup" / "settings.toml").write_text(f'[overrides]\n"{inner.parent}" = "mine"\n')
    find(inner, path=rustup)
    assert (tmp_path / "log").read_text().splitlines()[0] == "/ mine"
