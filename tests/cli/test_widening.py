"""What of a repository needs trust because its files are there: its own environments, a lock, files to carry along."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING

import pytest
from languages.direct import write
from runs.real import alone, git, make_repository

from pipeline.app.run_config import file_at
from pipeline.app.trust_requests import widening_in
from pipeline.config.load import load
from pipeline.repo import Repository
from pipeline.search_path import without_the_repository

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

PYTHON = {"pyproject.toml": "", "test_x.py": "def test_x(): pass\n"}
MARK = "#!/bin/sh\ntouch {mark}\n"


class Place:
    """A repository, what it brings along, and the user's own files and configuration."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.mark = tmp_path / "home", tmp_path / "started"
        alone(monkeypatch, self.home)
        self.repository = make_repository(tmp_path / "project", PYTHON)
        self.top = self.repository.worktree
        self.path = "/usr/bin:/bin"

    def tracks(self, files: dict[str, str], *, executable: tuple[str, ...] = ()) -> None:
        write(self.top, files)
        for name in executable:
            (self.top / name).chmod(0o755)
        git(self.top, "add", "--force", "--all")
        git(self.top, "commit", "-q", "-m", "more")

    def has_uv(self) -> None:
        uv = write(self.home / "bin", {"uv": MARK.format(mark=self.mark)}) / "uv"
        uv.chmod(0o755)
        self.path = f"{uv.parent}:{self.path}"

    def has_environment(self, name: str, *, pytest_in_it: bool = True) -> None:
        place = self.top / name
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
        site = next(place.glob("lib/python*/site-packages"))
        (site / "more.pth").write_text(f"{sysconfig.get_path('purelib')}\n" if pytest_in_it else "")
        (self.top / ".git/info/exclude").write_text(f"/{name.split('/', maxsplit=1)[0]}\n")

    def configure(self, text: str) -> None:
        write(self.home / ".config/redfirst", {"config.toml": text})

    def asks_for(self, repository: Repository | None = None) -> list[str]:
        here = repository or self.repository
        environ = {**os.environ, "PATH": self.path}
        loaded = load(here.worktree, environ=environ, repo_file=file_at(here, "HEAD"))
        found = widening_in(here, loaded, environ)
        assert not self.mark.exists(), "nothing of the repository is started to find that out"
        return [item.key for item in found]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def test_a_project_without_any_of_these_asks_for_nothing(place: Place) -> None:
    assert place.asks_for() == []


def test_an_environment_that_the_user_made_is_the_users_own(place: Place) -> None:
    place.has_environment(".venv")
    place.has_environment("venv")
    assert place.asks_for() == []


@pytest.mark.parametrize("name", [".venv", "venv"])
def test_an_environment_that_is_tracked_needs_trust(place: Place, name: str) -> None:
    python = f"{name}/bin/python"
    place.tracks({python: MARK.format(mark=place.mark), f"{name}/pyvenv.cfg": ""}, executable=(python,))
    assert place.asks_for() == [name]


@pytest.mark.parametrize("tracked", ["pyvenv.cfg", "lib/python3.11/os.py", "bin/pybuilddir.txt"])
def test_a_part_of_an_environment_that_is_tracked_is_enough(place: Place, tracked: str) -> None:
    place.tracks({f".venv/{tracked}": ""})
    assert place.asks_for() == []  # there is no interpreter
    write(place.top, {".venv/bin/python": MARK.format(mark=place.mark)})
    assert place.asks_for() == [".venv"]


def test_a_folder_of_that_name_that_is_no_environment_needs_none(place: Place) -> None:
    place.tracks({"venv/__init__.py": "", ".venv/README": ""})
    assert place.asks_for() == []


def test_an_environment_behind_a_tracked_link_needs_trust(place: Place, tmp_path: Path) -> None:
    python = write(tmp_path / "elsewhere", {"bin/python": MARK.format(mark=place.mark)}) / "bin" / "python"
    python.chmod(0o755)
    (place.top / ".venv").symlink_to("inner")
    (place.top / "inner").symlink_to(tmp_path / "elsewhere")
    (place.top / ".git/info/exclude").write_text("/.venv\n")
    assert place.asks_for() == []
    git(place.top, "add", "inner")
    assert place.asks_for() == [".venv"]


def test_an_environment_in_a_submodule_needs_trust(place: Place, tmp_path: Path) -> None:
    inner = make_repository(tmp_path / "inner", {"bin/python": MARK.format(mark=place.mark)})
    git(place.top, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.worktree), ".venv")
    assert place.asks_for() == [".venv"]


def test_an_environment_of_the_main_checkout_counts_by_what_that_tracks(place: Place, tmp_path: Path) -> None:
    git(place.top, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other", "main")
    python = ".venv/bin/python"
    place.tracks({python: MARK.format(mark=place.mark)}, executable=(python,))
    assert place.asks_for(Repository.find(tmp_path / "linked")) == [str(place.top / ".venv")]


def test_the_environment_of_a_project_in_a_folder(place: Place) -> None:
    place.configure('[toolchains.pytest]\nfolder = "inner"\n')
    python = "inner/.venv/bin/python"
    place.tracks({python: MARK.format(mark=place.mark), "inner/setup.py": ""}, executable=(python,))
    assert place.asks_for() == ["inner/.venv"]


@pytest.mark.parametrize("command", ['[".venv/bin/pytest"]', '["tools/python", "-m", "pytest"]', '["./enter", "x"]'])
def test_a_program_of_the_repository_that_the_users_configuration_names_needs_trust(place: Place, command: str) -> None:
    place.configure(f"[toolchains.pytest]\ncommand = {command}\n")
    assert place.asks_for() == []
    programs = (".venv/bin/pytest", "tools/python", "enter")
    place.tracks(dict.fromkeys(programs, MARK.format(mark=place.mark)), executable=programs)
    assert place.asks_for() == [command.split('"')[1].removeprefix("./")]


def test_an_untracked_interpreter_whose_settings_are_tracked_needs_trust(place: Place) -> None:
    place.configure('[toolchains.pytest]\ncommand = ["env/bin/python", "-m", "pytest"]\n')
    place.has_environment("env")
    assert place.asks_for() == []
    git(place.top, "add", "--force", "env/pyvenv.cfg")
    assert place.asks_for() == ["env/bin/python"]


def test_a_lock_needs_trust_as_long_as_there_is_no_environment_with_pytest(place: Place) -> None:
    place.tracks({"uv.lock": "version = 1\n"})
    assert place.asks_for() == []  # there is no uv
    place.has_uv()
    assert place.asks_for() == ["uv.lock"]
    place.has_environment(".venv", pytest_in_it=False)
    assert place.asks_for() == ["uv.lock"]
    shutil.rmtree(place.top / ".venv")
    place.has_environment(".venv")
    assert place.asks_for() == []


def test_a_lock_and_a_tracked_environment_are_two_things(place: Place) -> None:
    place.has_uv()
    place.tracks({"uv.lock": "", ".venv/bin/python": MARK.format(mark=place.mark)}, executable=(".venv/bin/python",))
    assert place.asks_for() == [".venv", "uv.lock"]


def test_files_to_carry_along_need_trust_by_their_patterns(place: Place) -> None:
    write(place.top, {".worktreeinclude": "# mine\n.env\n"})
    assert place.asks_for() == []  # the user's own
    git(place.top, "add", ".worktreeinclude")
    assert place.asks_for() == [".worktreeinclude"]
    write(place.top, {".worktreeinclude": "# nothing\n\n"})
    assert place.asks_for() == []
    (place.top / ".worktreeinclude").unlink()
    (place.top / ".worktreeinclude").symlink_to(place.home / "secret")
    assert place.asks_for() == []  # a link does not count, neither here nor where the files are kept


# --- PATH


def searched(place: Place, *entries: Path | str) -> list[str]:
    return without_the_repository(":".join(map(str, entries))).split(":")


def test_of_the_search_path_only_what_the_repository_tracks_is_left_out(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.tracks({"bin/git": MARK.format(mark=place.mark), "env/pyvenv.cfg": "", "a/b": ""}, executable=("bin/git",))
    place.has_environment(".venv")
    (place.top / "own").mkdir()
    (tmp_path / "link").symlink_to(place.top / "bin")
    write(place.top, {"env/bin/python": ""})
    kept = ["/usr/bin", str(place.top / ".venv/bin"), str(place.top / "own"), "/bin"]
    theirs = ["bin", ".", str(place.top / "bin"), str(tmp_path / "link"), str(place.top / "env/bin"), str(place.top)]
    git(place.top, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other", "main")
    for folder in (place.top, place.top / "a", tmp_path / "linked"):
        monkeypatch.chdir(folder)
        assert searched(place, *theirs, *kept) == kept
    monkeypatch.chdir(tmp_path)
    assert searched(place, place.top / "bin", "/bin") == [str(place.top / "bin"), "/bin"]
    assert not place.mark.exists()
