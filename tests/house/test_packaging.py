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


@pytest.mark.broad
def test_the_sdist_and_the_wheel_hold_exactly_what_they_should(built: Path) -> None:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    about = next(name for name in names if name.endswith("/METADATA")).removesuffix("METADATA")
    metadata = {about + name for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    assert names == metadata | {place for name in tracked_files() if (place := in_wheel(name))}
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    kept = ("agents/", "bench/", "commands/", "docs/", "pipeline/", "scripts/", "tests/", "todo/", ".ci/")
    single = {"redfirst.py", "Makefile", "README.md", "DESIGN.md", "AGENTS.md", "CHANGELOG.md", "LICENSE"}
    single |= {".gitignore", "compose.yaml", "pyproject.toml"}
    assert names == {"PKG-INFO"} | {name for name in tracked_files() if name.startswith(kept) or name in single}


@pytest.mark.broad
def test_the_installed_program_runs_from_anywhere(built: Path, tmp_path: Path) -> None:
    folder, home = tmp_path / "fresh", tmp_path / "home"
    home.mkdir()
    venv.create(folder, with_pip=False)
    (wheel,) = built.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder / "bin" / "python")]
    # what is compiled beforehand is most of the time, and of it hardly anything is imported here
    subprocess.run([*pip, "install", "--quiet", "--no-compile", str(wheel)], check=True)
    env = {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8"}

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(argv, cwd=home, env=env, capture_output=True, text=True, timeout=300, check=False)

    assert run("redfirst", "--version").stdout.strip().endswith("0.1.0")
    where = run("python", "-c", "import pipeline, todo; print(pipeline.__file__, todo.__file__)")
    assert all(Path(name).is_relative_to(folder) for name in where.stdout.split()), where
    listed = run("redfirst", "agents", "list")
    assert all(role in listed.stdout for role in ROLES), listed
    demo = run("redfirst", "demo", str(home / "place"))
    assert (demo.returncode, "SCRIPTED" in demo.stdout.splitlines()[-1]) == (0, True), demo
    assert {path.name for path in home.iterdir()} == {"place"}
    subprocess.run(["git", "init", "-q", str(home)], check=True)
    for extra in ("mcp", "console"):
        done = run("redfirst", extra)
        assert (done.returncode, f"[{extra}]" in done.stderr) == (2, True), done.stderr
