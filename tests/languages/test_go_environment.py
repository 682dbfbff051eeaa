"""Which Go is found, what of it the box is shown, and what is said where there is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from languages.modules import MANIFEST, TOOLCHAIN, environment, needs_go

from pipeline.languages.go.command import GoTest, parse
from pipeline.languages.go.pins import is_newer, wanted_toolchain
from pipeline.languages.protocol import Environment, Lookup, Missing

if TYPE_CHECKING:
    from collections.abc import Sequence


def find(place: Path, command: Sequence[str] | None = None, path: str | None = None) -> Environment | Missing:
    chosen = None if command is None else tuple(command)
    search_path = os.environ["PATH"] if path is None else path
    return anyio.run(TOOLCHAIN.find_environment, Lookup(place, place, chosen, place, search_path))


@pytest.mark.parametrize("name", ["go.mod", "go.work"])
def test_a_manifest_makes_a_go_project(tmp_path: Path, name: str) -> None:
    assert not TOOLCHAIN.detect(tmp_path)
    (tmp_path / name).touch()
    assert TOOLCHAIN.detect(tmp_path)


@needs_go
def test_the_toolchain_itself_is_shown_and_nothing_is_fetched() -> None:
    env = environment()
    assert env.command == (str(env.prefix / "bin" / "go"), "test")
    assert env.versions[0].startswith("go1.")
    offline = {"GOPROXY": "off", "GOSUMDB": "off", "GOTOOLCHAIN": "local", "GOENV": "off"}
    assert {name: env.variables[name] for name in offline} == offline
    assert "-mod=" not in env.variables["GOFLAGS"]
    shown = {mount.target for mount in env.mounts}
    assert Path.home() not in shown
    assert not any(mount.writable for mount in env.mounts)


def test_without_go_the_sentence_says_what_to_install(tmp_path: Path) -> None:
    found = find(tmp_path, path=str(tmp_path))
    assert isinstance(found, Missing)
    assert "golang-go" in found.sentence


def program(place: Path, text: str, name: str = "go") -> Path:
    made = place / name
    made.write_text(f"#!/bin/sh\n{text}\n")
    made.chmod(0o755)
    return made


def test_a_go_that_is_too_old_is_told_so(tmp_path: Path) -> None:
    program(tmp_path, 'echo \'{"GOROOT": "/usr", "GOVERSION": "go1.16.3"}\'')
    found = find(tmp_path, path=f"{tmp_path}:/usr/bin:/bin")
    assert isinstance(found, Missing)
    assert "go1.16.3; go1.19 or newer is needed" in found.sentence


@needs_go
def test_a_toolchain_that_go_mod_asks_for_and_nobody_fetched_is_not_fetched(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text(MANIFEST.replace("1.19", "1.999"))
    found = find(tmp_path)  # the tests then say what is asked for
    assert isinstance(found, Environment)
    assert found.versions == environment().versions


@needs_go
def test_a_wrapper_is_asked_once_on_the_host_and_its_variables_are_kept(tmp_path: Path) -> None:
    program(
        tmp_path, f'export CGO_LDFLAGS=-L/opt SECRET=x GOFLAGS=-tags=y PATH="$PATH:{tmp_path}"\nshift\nexec "$@"', "sh1"
    )
    found = find(tmp_path, [str(tmp_path / "sh1"), "-c", "go", "test", "-tags", "x", "-race"])
    assert isinstance(found, Environment), found
    assert found.command[1:] == ("test", "-tags", "x", "-race")
    assert found.variables["CGO_LDFLAGS"] == "-L/opt"
    assert found.variables["GOFLAGS"] == "-tags=y -buildvcs=false"
    assert "SECRET" not in found.variables


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([sys.executable, "-m", "pytest"], "does not name `go test`"),
        (["go", "run", "."], "does not name `go test`"),
        (["go", "test", "-exec", "evil"], "-exec"),
        (["go", "test", "-toolexec=evil", "./..."], "-toolexec"),
        (["go", "test", "-c"], "-c"),
    ],
)
def test_a_command_that_cannot_be_measured_is_refused(tmp_path: Path, command: list[str], said: str) -> None:
    found = find(tmp_path, command)
    assert isinstance(found, Missing)
    assert said in found.sentence


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", GoTest()),
        ("./... -v -count=1 -run X -timeout 30s -coverprofile c.out -json", GoTest(patterns=("./...",))),
        (
            "-tags integration -race ./a/... ./b",
            GoTest(build=("-tags", "integration", "-race"), patterns=("./a/...", "./b")),
        ),
        ("--tags=x -short -parallel 4", GoTest(build=("--tags=x",), test=("-short", "-parallel", "4"))),
        (
            "-skip Slow . -args -update -v",
            GoTest(test=("-skip", "Slow"), patterns=(".",), rest=("-args", "-update", "-v")),
        ),
        ("-ldflags -X=a.b=c -test.cpu 2", GoTest(build=("-ldflags", "-X=a.b=c"), test=("-test.cpu", "2"))),
    ],
)
def test_what_of_the_arguments_is_kept(arguments: str, expected: GoTest) -> None:
    assert parse(arguments.split()) == expected


def repository(place: Path, files: dict[str, str]) -> Path:
    """Return the folder of a module below the top of a repository that has these files."""
    inner = place / "repository" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / ".git").mkdir()
    for name, text in files.items():
        (inner.parent / name).write_text(text)
    return inner


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"inner/go.mod": "module x\n\ngo 1.21\ntoolchain go1.22.3\n"}, "go1.22.3"),
        ({"inner/go.mod": "module x\r\ngo 1.23.1 // new\r\n"}, "go1.23.1"),
        ({"inner/go.mod": "go 1.24rc2\n", "go.work": "go 1.25\nuse ./inner\n"}, "go1.25"),
        ({"inner/go.mod": "module x\n"}, None),
        ({"inner/go.mod": "toolchain /tmp/evil\n"}, None),
        ({"inner/go.mod": "toolchain go1.22.3/../../evil\ngo 1.2.3.4\n"}, None),
        ({"inner/go.mod": "toolchain go1.22.3-custom\n"}, None),
        ({"inner/go.mod": "// go 1.99\n  go 1.98\n"}, None),
        ({}, None),
    ],
)
def test_which_toolchain_the_files_of_a_project_name(tmp_path: Path, files: dict[str, str], wanted: str | None) -> None:
    assert wanted_toolchain(repository(tmp_path, files)) == wanted


@pytest.mark.parametrize(
    ("wanted", "own", "newer"),
    [
        ("go1.22.3", "go1.22.2", True),
        ("go1.22.3", "go1.22.3", False),
        ("go1.22", "go1.22rc1", True),
        ("go1.9", "go1.19.8", False),
        ("go1.23.1", "devel go1.22-abc", False),
        ("go1.23.1", "", False),
    ],
)
def test_which_toolchain_is_newer(wanted: str, own: str, newer: bool) -> None:
    assert is_newer(wanted, own) is newer


FAKE = """
echo "$PWD ${GOTOOLCHAIN-} $GOPROXY" >> LOG
echo "{\\"GOROOT\\": \\"/usr\\", \\"GOVERSION\\": \\"${GOTOOLCHAIN:-go1.21.0}\\", \\"GOTOOLCHAIN\\": \\"SETTING\\"}"
"""


@pytest.mark.parametrize(
    ("setting", "found"), [("auto", "go1.22.3"), ("local", "go1.21.0"), ("local+auto", "go1.22.3")]
)
def test_go_is_asked_in_the_root_and_told_the_toolchain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, found: str
) -> None:
    monkeypatch.delenv("GOTOOLCHAIN", raising=False)
    program(tmp_path, FAKE.replace("LOG", str(tmp_path / "log")).replace("SETTING", setting))
    inner = repository(tmp_path, {"inner/go.mod": "module x\ntoolchain go1.22.3\n"})
    env = find(inner, path=f"{tmp_path}:/usr/bin:/bin")
    assert isinstance(env, Environment), env
    assert env.versions == (found,)
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines == ["/  off", "/ go1.22.3 off"][: 1 if setting == "local" else 2]
