"""Bytecode of the baseline serves files of the same bytes, and nothing else, whatever time and size say."""

from __future__ import annotations

import os
import py_compile
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from languages.direct import TOOLCHAIN, environment, write
from languages.measured import ends, request

from pipeline.judge.evidence.observation import Ended, Observation, RunState
from pipeline.sandbox.boxes.box_folder import BoxFolder
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.languages.protocol import Cache, Selection
from pipeline.testing.languages.python.bytecode import Place, keep, lay_out
from pipeline.trees import Files

if TYPE_CHECKING:
    from pipeline.process import Command, Completed

# --- what is kept, and what is given out


@dataclass(frozen=True)
class Ground:
    cache: Path
    project: Path
    prefix: Path

    @property
    def place(self) -> Place:
        return Place(Path("/redfirst-view"), Files(self.project))

    def compiled(self, source: str, inside: str = "redfirst-view") -> Path:
        """Compile a source of the project into the cache, as a run there does."""
        path = Path(source)
        target = self.cache / inside / path.with_suffix(".cpython-311.pyc")
        py_compile.compile(str(self.project / source), str(target), doraise=True)
        return target

    def given(self) -> dict[str, bool]:
        """Return what one measurement finds under the project's folder: the path, and whether it is a link."""
        shutil.rmtree(self.prefix, ignore_errors=True)
        self.prefix.mkdir()
        lay_out(self.cache, [self.place], self.prefix)
        top = self.prefix / "redfirst-view"
        return {str(path.relative_to(top)): path.is_symlink() for path in top.rglob("*.pyc")}


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    made = Ground(tmp_path / "cache", tmp_path / "project", tmp_path / "prefix")
    write(made.project, {"a.py": "A = 1\n", "pkg/b.py": "B = 1\n", "pyproject.toml": ""})
    made.compiled("a.py")
    made.compiled("pkg/b.py")
    other = made.cache / "usr/lib/json.cpython-311.pyc"
    write(made.cache, {"usr/lib/json.cpython-311.pyc": "x"})
    assert other.exists()
    return made


def test_what_was_not_kept_is_not_given(ground: Ground) -> None:
    assert ground.given() == {}
    assert not (ground.prefix / "usr").exists()


def test_unchanged_files_get_theirs_and_the_rest_is_shared(ground: Ground) -> None:
    keep(ground.cache, [ground.place], ())
    assert not (ground.cache / "redfirst-view").exists()
    assert ground.given() == {"a.cpython-311.pyc": True, "pkg/b.cpython-311.pyc": True}
    assert (ground.prefix / "usr").is_symlink()
    assert (ground.prefix / "usr/lib/json.cpython-311.pyc").read_text() == "x"


def test_other_bytes_of_the_same_size_and_time_get_nothing(ground: Ground) -> None:
    keep(ground.cache, [ground.place], ())
    source = ground.project / "a.py"
    before = source.stat()
    source.write_text("A = 2\n")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert ground.given() == {"pkg/b.cpython-311.pyc": True}


def test_the_same_bytes_of_another_time_get_a_copy_that_says_so(ground: Ground) -> None:
    keep(ground.cache, [ground.place], ())
    os.utime(ground.project / "a.py", (1, 1_000_000))
    assert ground.given()["a.cpython-311.pyc"] is False
    header = (ground.prefix / "redfirst-view/a.cpython-311.pyc").read_bytes()[:16]
    assert int.from_bytes(header[8:12], "little") == 1_000_000


def test_bytecode_that_fits_no_source_is_thrown_away(ground: Ground) -> None:
    ground.compiled("a.py")
    (ground.project / "a.py").write_text("A = 'longer than it was'\n")
    (ground.project / "pkg/b.py").unlink()
    write(ground.cache, {"redfirst-view/strange.pyc": "x", "redfirst-view/c.cpython-311.pyc": "short"})
    keep(ground.cache, [ground.place], ())
    assert ground.given() == {}
    assert not (ground.cache / "redfirst-view").exists()


@pytest.mark.parametrize("name", ["pyproject.toml", "pytest.ini"])
def test_with_another_configuration_everything_is_compiled_again(ground: Ground, name: str) -> None:
    keep(ground.cache, [ground.place], ())
    (ground.project / name).write_text("[tool.pytest.ini_options]\n")
    assert ground.given() == {}


def test_an_environment_inside_the_project_stays_shared(ground: Ground) -> None:
    inside = "redfirst-view/tools/.venv/lib/x.cpython-311.pyc"
    write(ground.cache, {inside: "x"})
    write(ground.project, {"tools/t.py": "T = 1\n"})
    ground.compiled("tools/t.py")
    keep(ground.cache, [ground.place], [Path("/redfirst-view/tools/.venv")])
    assert ground.given()["tools/t.cpython-311.pyc"] is True
    assert (ground.prefix / inside).read_text() == "x"
    assert not (ground.prefix / "redfirst-view/tools").is_symlink()
    assert (ground.prefix / "redfirst-view/tools/.venv").is_symlink()
    assert sorted(path.name for path in (ground.cache / "redfirst-view/tools").iterdir()) == [".venv"]


def test_what_tests_planted_in_their_folder_leads_nowhere(ground: Ground, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"o.cpython-311.pyc": "theirs", "deep/o.cpython-311.pyc": "theirs"})
    folder = BoxFolder.made(tmp_path, "process")
    compiled = folder.add("pycache")
    shutil.copytree(ground.cache, compiled, dirs_exist_ok=True)
    (compiled / ".own").symlink_to(outside)
    (compiled / "redfirst-view/link").symlink_to(outside)
    (compiled / "redfirst-view/o.cpython-311.pyc").symlink_to(outside / "o.cpython-311.pyc")
    (compiled / "home").symlink_to(outside)
    (compiled / "opt").write_text("no folder")
    os.mkfifo(compiled / "redfirst-view/f.cpython-311.pyc")
    os.mkfifo(ground.project / "f.py")
    assert folder.keep(ground.cache, inside="pycache")
    elsewhere = [Place(Path(name), Files(ground.project)) for name in ("/home/deep", "/opt/project", "/nowhere/at/all")]
    keep(ground.cache, [ground.place, *elsewhere], ())
    assert ground.given() == {"a.cpython-311.pyc": True, "pkg/b.cpython-311.pyc": True}
    assert not [path for path in ground.cache.rglob("*") if path.is_symlink() or path.is_fifo()]
    assert sorted(str(path.relative_to(outside)) for path in outside.rglob("*.pyc")) == [
        "deep/o.cpython-311.pyc",
        "o.cpython-311.pyc",
    ]


# --- with real runs


@dataclass
class Watching(NoBox):
    """A box that notes which folder of bytecode each process got, and what was new in it afterwards."""

    prefixes: list[str] = field(default_factory=list[str])
    written: list[set[str]] = field(default_factory=list[set[str]])

    async def run(self, command: Command) -> Completed:
        prefix = command.env["PYTHONPYCACHEPREFIX"]
        before = compiled_in(prefix)
        done = await super().run(command)
        self.prefixes.append(prefix)
        self.written.append({path.name.partition(".")[0] for path in compiled_in(prefix) - before})
        return done


def compiled_in(prefix: str) -> set[Path]:
    return set(Path(prefix).rglob("*.pyc"))


def measured(root: Path, cache: Path, box: NoBox, *, warm: bool = False) -> Observation:
    asked = request(root, environment(), box, selection=Selection(), cache=Cache(cache, warm=warm))
    return anyio.run(TOOLCHAIN.run_tests, asked)


POISON = """
import marshal, os, pathlib, py_compile, sys

def test_poisons():
    for path in pathlib.Path(sys.pycache_prefix).rglob("redfirst_evidence*.pyc"):
        header = path.read_bytes()[:16]
        path.unlink()
        path.write_bytes(header + marshal.dumps(compile("raise SystemExit('poisoned')", "x", "exec")))
    os._exit(1)

def test_after(): pass
"""


@pytest.mark.slow
@pytest.mark.broad
def test_what_one_process_leaves_behind_is_not_loaded_by_the_next(tmp_path: Path) -> None:
    root = write(tmp_path / "project", {"test_it.py": POISON})
    box = Watching()
    for warm in (True, False):
        observation = measured(root, tmp_path / "cache", box, warm=warm)
        assert observation.state is RunState.CRASHED
        assert ends(observation) == {"test_poisons": Ended.CRASHED, "test_after": Ended.PASSED}
    assert len(set(box.prefixes)) == len(box.prefixes) == 4
