"""Which Go is found, what of it the box is shown, and what is said where there is none."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest
from languages import measured
from languages.modules import MANIFEST, TOOLCHAIN, environment, needs_go

from pipeline.testing.languages.go.environment import GoTest, parse
from pipeline.testing.languages.protocol import Environment, Missing

find = partial(measured.find, TOOLCHAIN)


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


def test_go_is_asked_in_the_root_and_fetches_nothing(tmp_path: Path) -> None:
    told = '{"GOROOT": "/usr", "GOVERSION": "go1.21.0"}'
    program(tmp_path, f"echo \"$PWD $GOPROXY\" >> {tmp_path}/log\necho '{told}'")
    env = find(tmp_path, path=f"{tmp_path}:/usr/bin:/bin")
    assert isinstance(env, Environment), env
    assert env.versions == ("go1.21.0",)
    assert (tmp_path / "log").read_text() == "/ off\n"
