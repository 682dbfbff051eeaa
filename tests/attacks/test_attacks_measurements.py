"""Attacks from inside a measurement: what tests leave in their folder, and what they say in the recorder's name.

Each attack has a control that shows it at work against a driver that goes by names, as ours once did.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from languages.direct import environment, measure, write

from pipeline.judge.evidence.observation import Ended, Observation, RunState
from pipeline.process import Answer, Mount
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.limits import BOX_USER
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.languages.environments.installed import linked
from pipeline.testing.languages.protocol import PlacedFolder, View
from pipeline.testing.languages.python.records import read_session
from pipeline.trees import remove_tree

if TYPE_CHECKING:
    from pipeline.process import Command, Completed
    from pipeline.testing.languages.protocol import Environment

BWRAP: Final = shutil.which("bwrap") or "bwrap"
OWNERS: Final = (None, BOX_USER) if os.getuid() == 0 else (None,)
BOXES: Final = [pytest.param(owner, id="own-user" if owner is None else "another-user") for owner in OWNERS]
PASSES: Final = "from core import answer\n\ndef test_answer(): assert answer() == 42\n"


@dataclass
class Watched(Bubblewrap):
    """A box that looks at the folder of each process when its tests are over, before the driver does anything."""

    seen: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    async def run(self, command: Command) -> Completed:
        """Run it, then note what kind of thing each name in the folder is."""
        done = await super().run(command)
        folder = Path(command.env["PYTEST_DEBUG_TEMPROOT"]).parent
        self.seen.append({path.name: kind_of(path) for path in folder.iterdir()})
        return done


def kind_of(path: Path) -> str:
    """Return what is there, nothing being followed."""
    mode = path.lstat().st_mode
    kinds = {"link": stat.S_ISLNK, "fifo": stat.S_ISFIFO, "folder": stat.S_ISDIR, "file": stat.S_ISREG}
    return next(name for name, test in kinds.items() if test(mode))


def outcome(seen: Observation) -> Ended | None:
    """Return how the one test ended."""
    return seen.records["test_it.py::test_answer"].outcome


# --- what the tests leave in the place of what the driver opens

PLANTS: Final = """
import os, shutil

NAMES = ("request.json", "records.jsonl", "pytest-cache", "coverage", "hypothesis", "seconds.json", ".own")

def answer():
    top = os.path.dirname(os.environ["PYTEST_DEBUG_TEMPROOT"])
    for name in sorted({*NAMES, *os.listdir(top)} - {"pycache"}):  # a read-only mount
        place = os.path.join(top, name)
        if os.path.isdir(place) and not os.path.islink(place):
            shutil.rmtree(place)
        elif os.path.lexists(place):
            os.unlink(place)
        PLANT(place)
    os._exit(1)
"""
PLANTED: Final = {
    "a link to a file of the user": "lambda place: os.symlink('VICTIM', place)",
    "a FIFO": "os.mkfifo",
    "a link to an endless device": "lambda place: os.symlink('/dev/zero', place)",
}


@pytest.mark.parametrize("owner", BOXES)
@pytest.mark.parametrize("plant", PLANTED)
@pytest.mark.slow
@pytest.mark.broad(but_first=1)
def test_what_tests_plant_in_their_folder_is_not_opened(tmp_path: Path, plant: str, owner: int | None) -> None:
    victim = tmp_path / "victim"
    victim.write_text("the user's own")
    code = PLANTS.replace("PLANT(place)", f"({PLANTED[plant]})(place)").replace("VICTIM", str(victim))
    write(tmp_path / "project", {"core.py": code, "test_it.py": PASSES + "\ndef test_after(): pass\n"})
    box = Watched(BWRAP, owner)
    began = time.monotonic()
    seen = measure(tmp_path / "project", box=box)
    assert outcome(seen) is Ended.CRASHED
    assert seen.records["test_it.py::test_after"].outcome is Ended.PASSED, "the rest is run in another process"
    assert victim.read_text() == "the user's own"
    assert time.monotonic() - began < 60
    kind = "fifo" if plant == "a FIFO" else "link"
    assert box.seen[0]["request.json"] == box.seen[0]["temproot"] == kind, "the attack was carried out"


def test_control_a_driver_that_goes_by_names_overwrites_the_users_file(tmp_path: Path) -> None:
    victim, shared = tmp_path / "victim", tmp_path / "shared"
    victim.write_text("the user's own")
    (shared / "temproot").mkdir(parents=True)
    code = PLANTS.replace("PLANT(place)", f"({PLANTED['a link to a file of the user']})(place)")
    code = code.replace("VICTIM", str(victim))
    environ = {**os.environ, "PYTEST_DEBUG_TEMPROOT": str(shared / "temproot")}
    subprocess.run([sys.executable, "-c", f"{code}\nanswer()"], env=environ, check=False)
    (shared / "request.json").write_text("the next request")
    assert victim.read_text() == "the next request"


DEEP: Final = """
import os

def answer():
    os.symlink("VICTIM", os.path.join(os.environ["PYTEST_DEBUG_TEMPROOT"], "link"))
    os.chdir(os.environ["PYTEST_DEBUG_TEMPROOT"])
    for _ in range(3000):
        os.mkdir("d")
        os.chdir("d")
    os.symlink("VICTIM", "link")
    os.chmod(".", 0)
    return 42
"""


@pytest.mark.broad
@pytest.mark.slow
@pytest.mark.parametrize("owner", BOXES)
def test_thousands_of_nested_folders_are_removed_and_no_mode_changes_through_a_link(
    tmp_path: Path, owner: int | None
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o500)
    write(tmp_path / "project", {"core.py": DEEP.replace("VICTIM", str(victim)), "test_it.py": PASSES})
    folders: list[Path] = []

    class Noting(Watched):
        async def run(self, command: Command) -> Completed:
            folders.append(Path(command.env["PYTEST_DEBUG_TEMPROOT"]).parent)
            return await super().run(command)

    seen = measure(tmp_path / "project", box=Noting(BWRAP, owner))
    assert outcome(seen) is Ended.PASSED
    assert not [folder for folder in folders if folder.exists() or folder.parent.exists()]
    assert stat.S_IMODE(victim.stat().st_mode) == 0o500


@pytest.mark.broad
@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="rmtree does without recursion from here on")
def test_control_the_librarys_own_removal_does_not_come_to_the_end_of_them(tmp_path: Path) -> None:
    code = DEEP.replace("VICTIM", str(tmp_path)).replace('    os.chmod(".", 0)\n', "")
    (tmp_path / "temproot").mkdir()
    environ = {**os.environ, "PYTEST_DEBUG_TEMPROOT": str(tmp_path / "temproot")}
    subprocess.run([sys.executable, "-c", f"{code}\nanswer()"], env=environ, check=True)
    with pytest.raises((RecursionError, OSError)):
        shutil.rmtree(tmp_path / "temproot")
    remove_tree(tmp_path / "temproot")  # pytest itself could not


# --- what the tests say in the recorder's name

FORGES: Final = """
import json, os, re

def everything_that_can_be_read():
    folders = ["/proc/self/fd", os.path.dirname(os.environ["PYTEST_DEBUG_TEMPROOT"])]
    for folder in folders:
        for name in os.listdir(folder):
            place = os.path.join(folder, name)
            try:
                descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
                yield place, os.read(descriptor, 1 << 20)
            except OSError:
                pass

def lines(known):
    records = [json.loads(line) for line in known.splitlines() if line.strip()]
    nonce, n = records[-1]["nonce"], records[-1]["n"]
    name = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    passed = {"when": "call", "outcome": "passed", "reason": "", "fault": None}
    said = [
        dict(kind="test", id=name, phases=[passed], reach=None, timed_out=False, seconds=0.1),
        dict(kind="modules", own={}, foreign={}),
        dict(kind="session_end", exitstatus=0, canaries={"pass": "passed", "fail": "failed"}),
    ]
    for number, facts in enumerate(said, n + 1):
        yield json.dumps({"nonce": nonce, "n": number, **facts}) + "\\n"

def answer():
    for place, known in everything_that_can_be_read():
        if b'"nonce"' in known:
            with open(place, "a") as out:
                out.writelines(lines(known.decode()))
            os._exit(0)
    return 41
"""


@pytest.mark.broad(but_first=1)
@pytest.mark.slow
@pytest.mark.parametrize("owner", BOXES)
def test_records_cannot_be_read_back_and_forged_with_files_alone(tmp_path: Path, owner: int | None) -> None:
    write(tmp_path, {"core.py": FORGES, "test_it.py": PASSES})
    seen = measure(tmp_path, box=Bubblewrap(BWRAP, owner))
    assert (seen.state, outcome(seen)) == (RunState.COMPLETE, Ended.FAILED)


def test_control_records_in_a_file_can_be(tmp_path: Path) -> None:
    started = '{"nonce":"n","n":0,"kind":"session_start","python":"3","pytest":"9"}\n'
    item = (
        '{"nonce":"n","n":1,"kind":"item","id":"test_it.py::test_answer","function":"f","path":"test_it.py",'
        '"region_sha256":"","case":null,"own":true}\n'
    )
    begun = '{"nonce":"n","n":2,"kind":"start","id":"test_it.py::test_answer"}\n'
    records = tmp_path / "records.jsonl"
    records.write_text(started + item + begun)
    (tmp_path / "temproot").mkdir()
    current = {"PYTEST_CURRENT_TEST": "test_it.py::test_answer (call)"}
    environ = {**os.environ, **current, "PYTEST_DEBUG_TEMPROOT": str(tmp_path / "temproot")}
    done = subprocess.run([sys.executable, "-c", f"{FORGES}\nanswer()"], env=environ, check=False)
    session = read_session(Answer(records.read_bytes()), "n", exit_code=done.returncode, timed_out=False)
    assert (session.forged, session.contradicted) == ("", "")
    assert session.ended is not None, "a whole session, with the test passed"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import atexit, os\n\ndef answer():\n    atexit.register(os._exit, 0)\n    return 41\n", "exited with 0"),
        ("import atexit, os\n\ndef answer():\n    atexit.register(os._exit, 3)\n    return 42\n", "exited with 3"),
        (
            "import atexit, os\n\ndef answer():\n    atexit.register(os.kill, os.getpid(), 9)\n    return 42\n",
            "was ended by a signal",
        ),
    ],
)
@pytest.mark.parametrize("owner", BOXES)
@pytest.mark.broad(but_first=1)
def test_an_exit_status_that_contradicts_the_records_makes_them_unbelievable(
    tmp_path: Path, code: str, says: str, owner: int | None
) -> None:
    write(tmp_path, {"core.py": code, "test_it.py": PASSES})
    seen = measure(tmp_path, box=Bubblewrap(BWRAP, owner))
    assert (seen.state, outcome(seen)) == (RunState.CRASHED, Ended.CRASHED)
    assert says in seen.detail
    assert says in seen.records["test_it.py::test_answer"].reason


FLOODS: Final = """
import os

def answer():
    for fd in os.listdir("/proc/self/fd"):
        if "/socket:" in os.path.realpath("/proc/self/fd/" + fd):
            while True:
                os.write(int(fd), b"\\n" * 1_000_000)
"""


@pytest.mark.parametrize("owner", BOXES)
@pytest.mark.slow
@pytest.mark.broad
def test_a_flood_of_lines_ends_at_the_limit(tmp_path: Path, owner: int | None) -> None:
    write(tmp_path, {"core.py": FLOODS, "test_it.py": PASSES})
    seen = measure(tmp_path, box=Bubblewrap(BWRAP, owner))
    assert seen.state is RunState.UNUSABLE
    assert "the records are larger than" in seen.detail
    assert seen.records == {}


FAKE: Final = """
import os
open(os.environ["MARK"], "w").close() if "MARK" in os.environ else None
print("1 passed")
raise SystemExit(0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pytest.py", "json.py", "redfirst_evidence.py", "start.py", "runpy.py", "ast.py"])
@pytest.mark.broad(but_first=1)
def test_a_module_of_the_project_is_not_taken_for_pytest_or_the_recorder(tmp_path: Path, name: str) -> None:
    write(tmp_path, {name: FAKE, "core.py": "def answer(): return 41\n", "test_it.py": PASSES})
    seen = measure(tmp_path, box=Bubblewrap(BWRAP))
    assert outcome(seen) is Ended.FAILED


def test_control_started_as_a_module_the_projects_own_pytest_is_run(tmp_path: Path) -> None:
    write(tmp_path, {"pytest.py": FAKE, "test_it.py": PASSES})
    mark = tmp_path / "mark"
    command = [*environment().command, "-q"]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "MARK": str(mark)}, check=False)
    assert (done.returncode, mark.exists()) == (0, True)


# --- what outlives a measurement, and what is cleaned up after it


def _installed(tmp_path: Path) -> tuple[View, PlacedFolder, Path]:
    victim = tmp_path / "victim"
    (victim / "empty").mkdir(parents=True)
    (victim / "link").symlink_to("/nowhere")
    (tmp_path / "installed" / "left-pad").mkdir(parents=True)
    (tmp_path / "view").mkdir()
    view = View(Mount(tmp_path / "view", tmp_path / "view", writable=True))
    return view, PlacedFolder(tmp_path / "installed", "node_modules"), victim


def _replace(view: View, victim: Path) -> None:
    shutil.rmtree(view.host / "node_modules")
    (view.host / "node_modules").symlink_to(victim)


def test_clean_up_does_not_walk_through_a_link_in_the_place_of_installed_packages(tmp_path: Path) -> None:
    view, folder, victim = _installed(tmp_path)
    with linked(_with(folder), view, isolated=False):
        assert (view.host / "node_modules" / "left-pad").is_dir()
        _replace(view, victim)
    assert sorted(path.name for path in victim.iterdir()) == ["empty", "link"]
    assert not (view.host / "node_modules").is_symlink()


def test_control_a_walk_by_names_deletes_behind_the_link(tmp_path: Path) -> None:
    view, _, victim = _installed(tmp_path)
    (view.host / "node_modules").mkdir()
    _replace(view, victim)
    for top, folders, files in os.walk(view.host / "node_modules", topdown=False):
        for name in (*files, *folders):
            path = Path(top, name)
            path.unlink() if path.is_symlink() else path.rmdir()
    assert list(victim.iterdir()) == []


def _with(folder: PlacedFolder) -> Environment:
    return replace(environment(), installed=(folder,))


@pytest.mark.broad
@pytest.mark.slow
def test_the_box_without_isolation_is_the_same_driver(tmp_path: Path) -> None:
    write(tmp_path, {"core.py": "def answer(): return 42\n", "test_it.py": PASSES})
    assert outcome(measure(tmp_path, box=NoBox())) is Ended.PASSED
