"""The wheel that users get is built from the sdist, holds exactly what it should, and runs on its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ROLES = {"check", "simplify", "test", "make", "pm", "orchestrator"}


def tracked_files() -> set[str]:
    """Return the files of the checkout, new ones included, ignored and deleted ones not."""
    argv = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(argv, check=True, capture_output=True).stdout.decode().split("\0")
    return {name for name in names if name and (ROOT / name).is_file()}


def in_wheel(name: str) -> str | None:
    """Return where the file *name* of the checkout lies in the wheel."""
    if name.startswith(("agents/", "commands/")):
        return f"pipeline/_data/{name}"
    return name if name.startswith(("pipeline/", "todo/")) or name == "redfirst.py" else None


def test_no_two_names_are_one_where_case_is_ignored() -> None:
    names = {str(path) for name in tracked_files() for path in (Path(name), *Path(name).parents)}
    spelt: dict[str, set[str]] = {}
    for name in names:
        spelt.setdefault(name.casefold(), set()).add(name)
    assert [found for found in spelt.values() if len(found) > 1] == []


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the sdist and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    argv = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the `bin` folder of a fresh environment with the wheel and what it depends on, as pip resolves it."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=False)
    (wheel,) = built.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder / "bin" / "python")]
    # what is compiled beforehand is most of the time, and of it hardly anything is imported here
    subprocess.run([*pip, "install", "--quiet", "--no-compile", str(wheel)], check=True)
    return folder / "bin"


def run(installed: Path, home: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": f"{installed}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8"}
    return subprocess.run(argv, cwd=home, env=env, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.broad
def test_the_wheel_holds_exactly_the_program(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    about = next(iter(names & {name for name in names if name.endswith("/METADATA")})).removesuffix("METADATA")
    metadata = {about + name for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    assert names == metadata | {place for name in tracked_files() if (place := in_wheel(name))}


def test_the_sdist_holds_what_the_tests_need_too(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    kept = ("agents/", "bench/", "commands/", "docs/", "pipeline/", "scripts/", "tests/", "todo/", ".ci/")
    single = {"redfirst.py", "Makefile", "README.md", "DESIGN.md", "AGENTS.md", "CHANGELOG.md", "LICENSE"}
    single |= {".gitignore", "pyproject.toml"}
    assert names == {"PKG-INFO"} | {name for name in tracked_files() if name.startswith(kept) or name in single}


def test_the_wheel_carries_roles_and_commands_and_no_tests(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {f"pipeline/_data/agents/{role}.md" for role in ROLES} <= names
    assert {"pipeline/_data/commands/workflow.md", "pipeline/_data/commands/implement.md"} <= names
    assert {"redfirst.py", "pipeline/cli/main.py", "todo/__init__.py", "pipeline/py.typed", "todo/py.typed"} <= names
    assert not {name for name in names if name.startswith(("tests/", "bench/", "agents/", "commands/", "docs/"))}


def test_the_installed_program_runs_from_anywhere(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, "redfirst", "--version")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("0.1.0")
    where = run(installed, tmp_path, "python", "-c", "import pipeline, todo; print(pipeline.__file__, todo.__file__)")
    assert all(Path(name).is_relative_to(installed.parent) for name in where.stdout.split()), where


def test_without_its_extra_a_server_says_what_it_needs(installed: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for extra in ("mcp", "console"):
        done = run(installed, tmp_path, "redfirst", extra)
        assert (done.returncode, f"[{extra}]" in done.stderr) == (2, True), done.stderr


def test_the_installed_program_lists_its_roles(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, "redfirst", "agents", "list")
    assert done.returncode == 0, done.stderr
    assert all(role in done.stdout for role in ROLES)


@pytest.mark.broad
def test_the_installed_program_shows_a_whole_run(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, "redfirst", "demo", str(tmp_path / "place"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SCRIPTED" in done.stdout.splitlines()[-1]
    assert {path.name for path in tmp_path.iterdir()} == {"place"}  # which is the home folder too
