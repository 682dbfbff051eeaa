"""A folder of ours is as we left it, or what is not is named; no link is written through; what a kill leaves goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import pytest

from pipeline.agents.backends.desk import Desk
from pipeline.run.files import Seal, write_atomic

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tree/pkg/deep").mkdir(parents=True)
    (tmp_path / "tree/empty").mkdir()
    for name in ("app.py", "pkg/mod.py", "pkg/deep/x"):
        (tmp_path / "tree" / name).write_text(name)
    (tmp_path / "tree/link").symlink_to("app.py")
    return tmp_path / "tree"


def forged(folder: Path) -> None:
    path = folder / "app.py"
    before = path.stat()
    path.write_text("APP.PY")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def replaced(folder: Path) -> None:
    (folder / "app.py").rename(folder.parent / "kept")
    (folder / "app.py").write_text("app.py")


TOUCHED: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "another content": (lambda folder: (folder / "pkg/mod.py").write_text("more"), {"pkg/mod.py"}),
    "the same size and the old time": (forged, {"app.py"}),
    "another file of that name": (replaced, {"app.py"}),
    "a permission": (lambda folder: (folder / "app.py").chmod(0o755), {"app.py"}),
    "a permission of a folder": (lambda folder: (folder / "pkg").chmod(0o700), {"pkg"}),
    "a second name elsewhere": (lambda folder: os.link(folder / "app.py", folder.parent / "l"), {"app.py"}),
    "a new file": (lambda folder: (folder / "empty/new").write_text(""), {"empty/new"}),
    "a new folder": (lambda folder: (folder / ".git").mkdir(), {".git"}),
    "a file gone": (lambda folder: (folder / "pkg/deep/x").unlink(), {"pkg/deep/x"}),
    "a folder gone": (lambda folder: (folder / "empty").rmdir(), {"empty"}),
    "another link": (lambda folder: ((folder / "link").unlink(), (folder / "link").symlink_to("pkg")), {"link"}),
}


def test_what_nobody_touched_is_as_it_was(folder: Path) -> None:
    seal = Seal.of(folder)
    (folder / "app.py").read_text()
    list(folder.rglob("*"))
    assert seal.broken() == ()
    assert Seal.of(folder) == seal


@pytest.mark.parametrize("what", TOUCHED)
def test_what_was_touched_is_named(folder: Path, what: str) -> None:
    act, names = TOUCHED[what]
    seal = Seal.of(folder)
    act(folder)
    assert {os.path.relpath(path, folder) for path in seal.broken()} == names


def test_a_single_file_can_be_sealed_with_a_folder_and_may_be_missing(folder: Path) -> None:
    index = folder.parent / "index"
    assert Seal.of(folder, index).broken() == ()
    seal = Seal.of(folder, index)
    index.write_text("x")
    assert seal.broken() == (str(index),)


def test_a_folder_that_gave_way_to_a_link_is_broken(folder: Path) -> None:
    seal = Seal.of(folder)
    folder.rename(folder.parent / "moved")
    folder.symlink_to(folder.parent / "moved")
    assert str(folder) in seal.broken()


def test_what_lies_too_deep_to_be_read_is_broken(folder: Path) -> None:
    seal = Seal.of(folder)
    at = os.open(folder, os.O_RDONLY)
    for _ in range(400):
        os.mkdir("f" * 20, dir_fd=at)
        inner = os.open("f" * 20, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    assert seal.broken() != ()


def test_a_link_of_the_temporary_name_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("role.md", "handed-in.json"):
        (folder / f".{name}.{os.getpid()}.tmp").symlink_to(victim)
    write_atomic(folder / "role.md", "ours")
    Desk(folder).put(Desk(folder).report, "ours")
    assert victim.read_text() == "precious"
    assert sorted(path.name for path in folder.iterdir()) == ["handed-in.json", "role.md"]
    assert (folder / "role.md").read_text() == (folder / "handed-in.json").read_text() == "ours"


# --- what a killed redfirst leaves in the temporary folder goes with the next one -------------------------------------

ROOT = Path(__file__).parents[2]
_HOLDS = """
import sys
from pipeline.scratch import scratch_folder
with scratch_folder("tests") as place:
    (place / "deep" / "er").mkdir(parents=True)
    (place / "deep" / "er").chmod(0o500)
    print(place, flush=True)
    sys.stdin.read()
"""


def holding(temporary: Path) -> tuple[subprocess.Popen[str], Path]:
    argv = [sys.executable, "-c", _HOLDS]
    env = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(argv, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, Path(cast("IO[str]", process.stdout).readline().strip())


def end(process: subprocess.Popen[str]) -> None:
    process.communicate("")
    assert process.returncode == 0


@pytest.mark.slow
def test_what_a_killed_process_left_goes_with_the_next_and_nothing_else(tmp_path: Path) -> None:
    killed, left = holding(tmp_path)
    alive, kept = holding(tmp_path)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert left.is_dir()
    strange = {name: tmp_path / name for name in ("redfirst-scratch-mine", "redfirst-tests-old", "other")}
    for folder in strange.values():
        folder.mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lock").touch()
    (tmp_path / "redfirst-scratch-link").symlink_to(elsewhere)
    end(holding(tmp_path)[0])
    assert not left.parent.exists()
    assert kept.is_dir(), "its process is alive"
    assert all(folder.is_dir() for folder in strange.values())
    assert (elsewhere / "lock").exists()
    end(alive)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("elsewhere", "other", "redfirst-scratch-link", "redfirst-scratch-mine", "redfirst-tests-old")
    ]
