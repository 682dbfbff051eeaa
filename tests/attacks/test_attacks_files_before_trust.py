"""Files of a cloned repository that are read before any trust: endless, nested, or leading elsewhere."""

from __future__ import annotations

import json
import subprocess
import time
import tomllib
from typing import TYPE_CHECKING, Final

import pytest
from kit import REDFIRST, make_project

from pipeline.config.sources import repository_file
from pipeline.sandbox.redaction import dotenv
from pipeline.testing.languages.javascript.environment import MODULES, installed_of
from pipeline.testing.languages.javascript.project import Project, read_project
from pipeline.toml_text import toml_table

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE: Final = json.dumps({"name": "a", "dependencies": {"left-pad": "1"}})
BOMB: Final = "a0: &a0 {x: y}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 28))


def test_an_endless_env_file_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".env").symlink_to("/dev/zero")
    (tmp_path / ".env.local").write_text("TOKEN=value-of-the-token\n")
    assert dotenv(tmp_path) == {"TOKEN": "value-of-the-token"}


UNREADABLE: Final = {
    "bomb": BOMB.encode(),
    "nested": b"packages: " + b"[" * 5000,
    "no text": b"packages: ['\xff']",
    "endless": None,
}


@pytest.mark.slow
@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE.keys())
@pytest.mark.broad(but_first=1)
def test_a_workspace_file_that_cannot_be_read_names_no_packages(tmp_path: Path, content: bytes | None) -> None:
    (tmp_path / "package.json").write_text(PACKAGE)
    file = tmp_path / "pnpm-workspace.yaml"
    if content is None:
        file.symlink_to("/dev/zero")
    else:
        file.write_bytes(content)
    found = read_project(tmp_path)
    assert isinstance(found, Project)
    assert list(found.packages) == [""]


@pytest.mark.parametrize("pattern", ["**a", "", "*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*"])
def test_a_pattern_that_is_none_names_no_packages(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "package.json").write_text(json.dumps({"workspaces": [pattern]}))
    for name in ("a", "b"):
        (tmp_path / name).symlink_to(".")
    assert isinstance(read_project(tmp_path), Project)


def test_patterns_without_number_are_no_project(tmp_path: Path) -> None:
    """Each is looked for in the whole project."""
    many = [f"**/a{number}" for number in range(100_000)]
    (tmp_path / "package.json").write_text(json.dumps({"workspaces": many}))
    assert "100000 workspaces" in str(read_project(tmp_path))
    (tmp_path / "package.json").write_text(json.dumps({"workspaces": many[:400]}))
    assert isinstance(read_project(tmp_path), Project)


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    "pattern", ["**", "**/*/**/*/**/*/**/*/x", "/".join(["**"] * 1_000_000)], ids=lambda text: text[:8]
)
def test_workspaces_are_found_in_bounded_time(tmp_path: Path, pattern: str) -> None:
    for number in range(250):
        (tmp_path / "p" / f"a{number}").mkdir(parents=True)
    (tmp_path / "p" / "a1" / "package.json").write_text(PACKAGE)
    many = [pattern[:3_000_000]] * (1 if len(pattern) > 100 else 100_000)
    (tmp_path / "package.json").write_text(json.dumps({"workspaces": [*many, "p/*"]}))
    begin = time.process_time()
    found = read_project(tmp_path)
    assert time.process_time() - begin < 5
    assert isinstance(found, Project)
    assert list(found.packages) == ["", "p/a1"]


@pytest.mark.parametrize("text", ["x = " + "[" * 3000, "x = " + "9" * 5000, "x = {" + "a = {" * 3000, "x ="])
def test_toml_that_cannot_be_read_is_one_kind_of_error(text: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        toml_table(text)


def test_control_the_library_raises_others() -> None:
    with pytest.raises(RecursionError):
        tomllib.loads("x = " + "[" * 3000)


def test_a_configuration_that_leads_to_a_device_is_an_error_of_the_users(tmp_path: Path) -> None:
    (tmp_path / "redfirst.toml").symlink_to("/dev/zero")
    with pytest.raises(Exception, match=r"cannot read redfirst\.toml"):
        repository_file(tmp_path, lambda name: None)  # noqa: ARG005  (of a commit that has none)


def test_a_tracked_link_to_packages_shows_nothing_of_the_host_and_the_users_own_does(tmp_path: Path) -> None:
    secret, checkout = tmp_path / "home", tmp_path / "checkout"
    (secret / ".ssh").mkdir(parents=True)
    checkout.mkdir()
    (checkout / "package.json").write_text(PACKAGE)
    (checkout / MODULES).symlink_to(secret)
    project = read_project(checkout)
    assert isinstance(project, Project)
    subprocess.run(["git", "init", "-q"], cwd=checkout, check=True)
    assert [folder.path for folder in installed_of(project, checkout)] == [secret], "the control: nothing tracks it"
    subprocess.run(["git", "add", MODULES], cwd=checkout, check=True)
    assert installed_of(project, checkout) == ()
    (checkout / MODULES).unlink()
    (checkout / MODULES).mkdir()
    assert [folder.path for folder in installed_of(project, checkout)] == [checkout / MODULES]


LIMITED: Final = ("/bin/sh", "-c", 'ulimit -v 4000000; exec "$@"', "sh")


@pytest.mark.slow
@pytest.mark.broad
def test_a_tracked_runner_whose_version_is_without_end_takes_no_memory(tmp_path: Path) -> None:
    project = make_project(
        tmp_path, {"package.json": '{"scripts": {"test": "vitest run"}, "devDependencies": {"vitest": "3"}}'}
    )
    place = project.root / MODULES / "vitest" / "package.json"
    place.parent.mkdir(parents=True)
    place.symlink_to("/dev/zero")
    project.git("add", "--force", "--all")
    project.git("commit", "--quiet", "--message", "packages")
    done = subprocess.run(
        [*LIMITED, str(REDFIRST), "doctor"],
        cwd=project.root,
        env=project.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "The tests are run with vitest, which is not installed" in done.stdout, done
