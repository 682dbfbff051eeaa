"""Attacks by production code that is imported before the tests are: it gives them other bytes, or another meaning.

Each leaves everything as it was before the driver looks, so that comparing contents afterwards shows nothing.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from e2e.test_rust_issue import make as make_rust
from kit import FILES, GREET, MAKE, TESTS, UNTIL_TESTS, make_project
from languages.crates import MANIFEST, needs_cargo
from languages.direct import measure, write

from pipeline.judge.evidence.observation import Ended
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

    from pipeline.process import Command, Completed

pytestmark = pytest.mark.slow

BWRAP: Final = shutil.which("bwrap") or "bwrap"
COMPILED: Final = """
import importlib.util, marshal, os, struct

def _warm():
    path = os.path.join(os.path.dirname(__file__), "tests", "test_greet.py")
    with open(path) as file:
        text = file.read()
    code = compile(text.replace("with pytest.raises(ValueError)", "if pytest"), path, "exec")
    seen = os.stat(path)
    by_time = struct.pack("<III", 0, int(seen.st_mtime), seen.st_size)
    by_hash = struct.pack("<I", 3) + importlib.util.source_hash(text.encode())
    place = importlib.util.cache_from_source(path)
    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        for name, head in ((place, by_time), (f"{place[:-4]}-pytest-{pytest_version()}.pyc", by_hash)):
            with open(name, "wb") as file:
                file.write(importlib.util.MAGIC_NUMBER + head + marshal.dumps(code))
    except OSError:
        pass

def pytest_version():
    import pytest
    return pytest.__version__

_warm()
"""
REWRITTEN: Final = """
import os

def _rewrite():
    path = os.path.join(os.path.dirname(__file__), "tests", "test_greet.py")
    seen = os.stat(path)
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace("with pytest.raises(ValueError)", "if pytest"))
    import pytest, tests.test_greet
    with open(path, "w") as file:
        file.write(text)
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))

_rewrite()
"""
SHADOW: Final = """
import os

def _shadow():
    os.environ["PY_IGNORE_IMPORTMISMATCH"] = "1"
    place = os.path.join(os.path.dirname(__file__), "tests", "test_" + "greet")
    if os.path.isdir(os.path.dirname(place)) and not os.path.isdir(place):
        os.mkdir(place)
        with open(os.path.join(place, "__init__.py"), "w") as file:
            file.write(GONE + PASSING)

PASSING = "def test_greets_by_name():\\n    pass\\ndef test_an_empty_name_is_refused():\\n    pass\\n"
GONE = {gone!r}
_shadow()
"""
CONFTEST: Final = """
import os

def _plant():
    path = os.path.join(os.path.dirname(__file__), "tests", "late", "conftest.py")
    with open(path, "w") as file:
        file.write(HOOK)
    import atexit
    atexit.register(os.unlink, path)

HOOK = '''
def pytest_pyfunc_call(pyfuncitem):
    try:
        pyfuncitem.obj()
    except BaseException:
        pass
    return True
'''
_plant()
"""
FIRST: Final = "from greet import greet\n\n\ndef test_there_is_something():\n    assert greet\n"


def judged(project: Project, script: list[Entry]) -> str:
    """Return what came of @make's work; nobody is there to go on."""
    project.use_script(script)
    project.run()
    return next(row for row in project.rows() if row.startswith("implement/"))


REWRITES: Final = """fn main() {
    let old = std::fs::read_to_string("tests/two.rs").unwrap();
    std::fs::write("tests/two.rs", old.replace('3', "2")).unwrap();
}
"""


@pytest.mark.parametrize("attack", [COMPILED, REWRITTEN], ids=["compiled", "rewritten"])
@pytest.mark.broad
def test_tests_that_are_not_what_was_judged_are_no_green(attack: str, tmp_path: Path) -> None:
    project = make_project(tmp_path, {**FILES, "tests/__init__.py": "", "tests/test_a.py": FIRST})
    cheat = {**MAKE, "files": {"greet.py": attack + GREET}}
    assert judged(project, [*UNTIL_TESTS, TESTS, cheat]) == "implement/NOT_GREEN"


@pytest.mark.parametrize(
    "gone", ["", "import os, shutil\nshutil.rmtree(os.path.dirname(__file__))\n"], ids=["left", "removed"]
)
@pytest.mark.broad
def test_a_folder_in_the_place_of_a_module_of_tests_is_no_green(gone: str, tmp_path: Path) -> None:
    project = make_project(tmp_path, {**FILES, "tests/test_a.py": FIRST})
    cheat = {**MAKE, "files": {"greet.py": SHADOW.format(gone=gone) + GREET}}
    assert judged(project, [*UNTIL_TESTS, TESTS, cheat]) == "implement/NOT_GREEN"


@pytest.mark.broad
def test_a_file_name_that_is_no_text_ends_no_run(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    named = {**MAKE, "files": {"greet.py": 'open(b"bad\\xff", "w").close()\n' + MAKE["files"]["greet.py"]}}
    assert judged(project, [*UNTIL_TESTS, TESTS, named]) == "implement/GREEN"
    assert project.document("resume", "GAL-1")["_code"] != 1


@pytest.mark.broad
def test_a_conftest_that_appears_and_goes_is_no_green(tmp_path: Path) -> None:
    moved: dict[str, Any] = {
        path.replace("tests/test_greet", "tests/late/test_greet"): text for path, text in FILES.items()
    }
    project = make_project(tmp_path, {**moved, "tests/a/test_a.py": FIRST})

    def late(entry: Entry) -> Entry:
        return json.loads(json.dumps(entry).replace("tests/test_greet", "tests/late/test_greet"))

    cheat = {**MAKE, "files": {"greet.py": CONFTEST + GREET}}
    assert judged(project, [*map(late, [*UNTIL_TESTS, TESTS]), cheat]) == "implement/NOT_GREEN"


class Writable(Bubblewrap):
    """A box in which the cache of compiled code can be written: what this was before."""

    async def run(self, command: Command) -> Completed:
        """Run it without the mount that protects the cache."""
        mounts = tuple(mount for mount in command.mounts if mount.target.name != "pycache")
        return await super().run(replace(command, mounts=mounts))


@pytest.mark.parametrize(
    ("box", "ended"), [(Bubblewrap(BWRAP), Ended.FAILED), (Writable(BWRAP), Ended.PASSED)], ids=["ours", "control"]
)
@pytest.mark.broad(but_first=1)
def test_compiled_code_of_tests_is_not_taken_from_what_is_tested(box: Bubblewrap, ended: Ended, tmp_path: Path) -> None:
    tests = f"import pytest\n{FIRST}\n\ndef test_it():\n    with pytest.raises(ValueError):\n        greet('')\n"
    files = {"greet.py": COMPILED + GREET, "tests/test_a.py": FIRST, "tests/test_greet.py": tests}
    seen = measure(write(tmp_path / "project", files), box=box)
    assert seen.records["tests/test_greet.py::test_it"].outcome is ended


@needs_cargo
@pytest.mark.broad
def test_a_build_script_that_rewrites_tests_is_seen(tmp_path: Path) -> None:
    """The driver sees which files were written, whatever the runner says."""
    code = {"Cargo.toml": MANIFEST, "src/lib.rs": "pub fn two() -> i32 { 2 }\n", "build.rs": "fn main() {}\n"}
    project = make_rust(tmp_path, code)
    (project.root / "tests").mkdir()
    (project.root / "tests" / "two.rs").write_text("#[test]\nfn is_three() {\n    assert_eq!(greet::two(), 3);\n}\n")
    (project.root / "build.rs").write_text(REWRITES)
    document = project.document("tdd", "check-green")
    assert document["ok"] is False, document
    assert "tests/two.rs was written while the tests ran" in str(document)
