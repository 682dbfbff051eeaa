"""Development shells: asked once on the host, and what of them goes into the box."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.process import Mount
from pipeline.testing.languages.environments.devshell import Shell, entered, is_carried, variables_in
from pipeline.testing.languages.protocol import Environment, Lookup, Missing
from pipeline.testing.languages.table import LANGUAGES

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from collections.abc import Sequence

SHELL = """#!/bin/sh
# behaves like `nix develop -c`: builds, greets, sets, starts
[ "$1" = develop ] && [ "$2" = -c ] || exit 9
shift 2
echo "$PWD" >> "{log}"
echo "warning: welcome=to the shell" >&2
echo "Hello from the shell, A=B"
export PATH="{tools}:$PATH"
export PKG_CONFIG_PATH=/opt/pc LD_LIBRARY_PATH=/opt/lib CC_x86_64_unknown_linux_gnu=clang
export NIX_CONFIG="access-tokens = secret" AWS_SECRET_ACCESS_KEY=secret MULTI="one
two"
exec "$@"
"""


class Nix:
    """A program called nix on a PATH of its own, the folder that its shell adds, and how often it was started."""

    def __init__(self, place: Path) -> None:
        self.tools, self.log = place / "store" / "bin", place / "log"
        self.tools.mkdir(parents=True)
        folder = place / "on-path"
        folder.mkdir()
        (folder / "nix").write_text(SHELL.format(log=self.log, tools=self.tools))
        (folder / "nix").chmod(0o755)
        self.path = f"{folder}:/usr/bin:/bin"

    @property
    def starts(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


@pytest.fixture
def nix(tmp_path: Path) -> Nix:
    return Nix(tmp_path)


def enter(wrapper: Sequence[str], worktree: Path, path: str) -> Shell | Missing:
    return anyio.run(entered, wrapper, worktree, path, "pytest")


def test_the_shell_is_asked_once_and_what_builds_need_is_carried(tmp_path: Path, nix: Nix) -> None:
    shell = enter(("nix", "develop", "-c"), tmp_path, nix.path)
    assert isinstance(shell, Shell), shell
    assert nix.starts == 1
    assert nix.log.read_text().strip() == str(tmp_path)
    assert shell.search_path == f"{nix.tools}:{nix.path}"
    set_here = {name: value for name, value in shell.variables.items() if os.environ.get(name) != value}
    assert set_here == {
        "PATH": f"{nix.tools}:/usr/local/bin:/usr/bin:/bin",
        "PKG_CONFIG_PATH": "/opt/pc",
        "LD_LIBRARY_PATH": "/opt/lib",
        "CC_x86_64_unknown_linux_gnu": "clang",
    }
    assert shell.mounts == (Mount(nix.tools, nix.tools),)


def test_without_a_wrapper_nothing_is_started(tmp_path: Path) -> None:
    assert enter((), tmp_path, "/nowhere") == Shell("/nowhere")


@pytest.mark.parametrize(
    "wrapper", [("no-such-nix", "develop", "-c"), ("/bin/false",), ("nix", "develop", "--command")]
)
def test_a_wrapper_that_starts_nothing_is_named(tmp_path: Path, nix: Nix, wrapper: tuple[str, ...]) -> None:
    shell = enter(wrapper, tmp_path, nix.path)
    assert isinstance(shell, Missing)
    assert wrapper[0] in shell.sentence


def test_a_wrapper_of_the_project_is_found_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "enter").write_text('#!/bin/sh\nexec "$@"\n')
    (tmp_path / "enter").chmod(0o755)
    assert isinstance(enter(("./enter",), tmp_path, os.environ["PATH"]), Shell)


def test_folders_that_hold_the_home_folder_are_never_shown(tmp_path: Path) -> None:
    (tmp_path / "enter").write_text(f'#!/bin/sh\nPATH="{Path.home()}:{Path.home().parent}:$PATH" exec "$@"\n')
    (tmp_path / "enter").chmod(0o755)
    shell = enter(("./enter",), tmp_path, "/usr/bin:/bin")
    assert isinstance(shell, Shell)
    assert shell.mounts == ()


@pytest.mark.parametrize(
    ("name", "carried"),
    [
        ("LD_LIBRARY_PATH", True),
        ("PKG_CONFIG_PATH_FOR_TARGET", True),
        ("NIX_LDFLAGS", True),
        ("NIX_CFLAGS_COMPILE", True),
        ("RUST_SRC_PATH", True),
        ("CGO_CFLAGS", True),
        ("NIX_CONFIG", False),
        ("HOME", False),
        ("GITHUB_TOKEN", False),
        ("LD_PRELOAD", False),
        ("PYTHONPATH", False),  # the harness's own
        ("CARGO_REGISTRY_TOKEN", False),
        ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", True),
        ("CARGO_TARGET_DIR", False),
        ("PATH", False),  # judged folder by folder
    ],
)
def test_which_variables_are_carried(name: str, carried: bool) -> None:
    assert is_carried(name) is carried


NAMES = st.from_regex(r"[A-Za-z_]\w{0,6}", fullmatch=True)
VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=12)


@given(st.dictionaries(NAMES, VALUES, max_size=5), st.lists(st.text("ab =:!", max_size=9), max_size=3))
def test_what_a_shell_prints_before_its_variables_is_no_part_of_them(
    variables: dict[str, str], greeting: list[str]
) -> None:
    first = next(iter(variables.values()), "")
    if "\n" in first:
        return  # of the first variable a line that looks like another one is taken for it
    said = "".join(f"{line}\n" for line in greeting)
    said += "".join(f"{name}={value}\0" for name, value in variables.items())
    if variables:
        assert variables_in(f"{said}bye\n") == variables


# --- nix, played by a program that answers as its documentation says --------------------------------------------------

FLAKE = """#!/bin/sh
echo "$@" >> "{log}"
case "$1" in
print-dev-env) [ "$2" = --json ] || exit 9; shift 2; cat "{told}"; exit 0;;
develop) ;;
*) exit 9;;
esac
while [ "$1" != -c ]; do shift; done
shift
export SHOP_DATA=/nix/store/abc-data RATES=fresh TOKEN=secret-of-a-hook DECLARED_TOKEN=secret-of-a-hook
export PYTHONPATH=/nix/store/evil PYTEST_ADDOPTS=-x src=/nix/store/src NIX_CONFIG=x
exec "$@"
"""
TOLD = {
    "bashFunctions": {"buildPhase": "..."},
    "variables": {
        "SHOP_DATA": {"type": "exported", "value": "/nix/store/abc-data"},
        "RATES": {"type": "exported", "value": "fresh"},
        "DECLARED_TOKEN": {"type": "exported", "value": ""},
        "PYTHONPATH": {"type": "exported", "value": "/nix/store/evil"},
        "PYTEST_ADDOPTS": {"type": "exported", "value": "-x"},
        "NIX_CONFIG": {"type": "exported", "value": "x"},
        "src": {"type": "exported", "value": "/nix/store/src"},
        "TOKEN": {"type": "var", "value": "secret-of-a-hook"},
        "PKGS": {"type": "array", "value": ["a", "b"]},
        "pairs": {"type": "associative", "value": {"a": "b"}},
    },
}


def flake(place: Path, told: str) -> str:
    """Put a nix on a PATH of its own; return that."""
    folder = place / "flake-path"
    folder.mkdir()
    (place / "told.json").write_text(told)
    (folder / "nix").write_text(FLAKE.format(log=place / "asked", told=place / "told.json"))
    (folder / "nix").chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_what_a_flake_declares_reaches_the_tests_and_what_a_hook_sets_does_not(tmp_path: Path) -> None:
    path = flake(tmp_path, json.dumps(TOLD))
    shell = enter(("nix", "develop", ".#tests", "--impure", "-c"), tmp_path, path)
    assert isinstance(shell, Shell), shell
    set_here = {name: value for name, value in shell.variables.items() if os.environ.get(name) != value}
    assert set_here == {"SHOP_DATA": "/nix/store/abc-data", "RATES": "fresh"}
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["develop .#tests --impure -c /usr/bin/env -0", "print-dev-env --json .#tests --impure"]


@pytest.mark.parametrize("told", ["", "{}", "[]", '{"variables": [1]}', '{"variables": {"A": 1}}', "[" * 100_000])
def test_an_answer_of_another_form_declares_nothing(tmp_path: Path, told: str) -> None:
    shell = enter(("nix", "develop", "-c"), tmp_path, flake(tmp_path, told))
    assert isinstance(shell, Shell), shell
    assert "SHOP_DATA" not in shell.variables


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (("flake.nix",), 'a flake.nix: with its shell that is command = ["nix", "develop", "-c", "pytest"].'),
        (
            ("shell.nix", "flake.nix"),
            'a flake.nix: with its shell that is command = ["nix", "develop", "-c", "pytest"].',
        ),
        (("shell.nix",), 'command = ["nix", "develop", "-f", "shell.nix", "-c", "pytest"].'),
    ],
)
def test_a_project_whose_interpreter_is_in_its_shell_alone_is_told_how(
    tmp_path: Path, files: tuple[str, ...], said: str
) -> None:
    for name in files:
        (tmp_path / name).touch()
    found = anyio.run(
        LANGUAGES["pytest"].toolchain.find_environment, Lookup(tmp_path, tmp_path, None, tmp_path / "state", "/nowhere")
    )
    assert isinstance(found, Missing)
    assert found.sentence.endswith(said)


# --- the toolchains --------------------------------------------------------------------------------------------------


def find(name: str, place: Path, command: tuple[str, ...], path: str) -> Environment:
    found = anyio.run(LANGUAGES[name].toolchain.find_environment, Lookup(place, place, command, place / "state", path))
    assert isinstance(found, Environment), found
    return found


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    "command", [("nix", "develop", "-c", "pytest", "-x"), ("nix", "develop", "-c", "python", "-m", "pytest", "-x")]
)
def test_pytest_of_a_shell_is_found_with_its_variables(tmp_path: Path, nix: Nix, command: tuple[str, ...]) -> None:
    """In a real shell python is on PATH there and nowhere else."""
    for name, words in (("python", ""), ("pytest", " -m pytest")):
        (nix.tools / name).write_text(f'#!/bin/sh\nexec {sys.executable}{words} "$@"\n')
        (nix.tools / name).chmod(0o755)
    env = find("pytest", tmp_path, command, nix.path)
    assert nix.starts == 1
    assert env.command[-1] == "-x"
    assert env.variables["LD_LIBRARY_PATH"] == "/opt/lib"
    assert env.variables["PATH"].startswith(f"{env.prefix}/bin:{nix.tools}:")
    assert Mount(nix.tools, nix.tools) in env.mounts


def test_what_starts_pytest_by_itself_makes_no_shell(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "uv").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/log\nshift\nexec {sys.executable} -m "$@"\n')
    (folder / "uv").chmod(0o755)
    env = find("pytest", tmp_path, ("uv", "run", "pytest"), f"{folder}:/usr/bin:/bin")
    assert not env.variables
    assert (tmp_path / "log").read_text().splitlines() == ["run pytest -p redfirst_probe"]
