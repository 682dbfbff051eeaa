"""A project in a folder: paths and ids of the repository outside, its own inside, the whole view around its tests."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from languages import direct
from languages.direct import write
from languages.measured import request

from pipeline.judge.evidence.observation import (
    CollectionError,
    Ended,
    Fault,
    Frame,
    Layout,
    Observation,
    Raised,
    Reach,
    RunState,
    TestRecord,
)
from pipeline.testing.languages.projects.combined import Projects
from pipeline.testing.languages.projects.project import Place, Project
from pipeline.testing.languages.protocol import Environment, Lookup, Missing, PlacedFolder, Selection
from pipeline.testing.languages.table import LANGUAGES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

PYTEST = Projects([Project(LANGUAGES["pytest"].toolchain, "apps/api")])

WORD = st.text("abz_-./:#[]", min_size=1, max_size=8)
PATH = st.builds("/".join, st.lists(st.text("ab_-", min_size=1, max_size=4), min_size=1, max_size=4))
FOLDER = PATH
MARK = st.sampled_from(["/", "::"])


@pytest.mark.broad
@given(FOLDER, MARK, WORD)
def test_an_id_comes_back_as_it_went_out(folder: str, mark: str, entry: str) -> None:
    place = Place(folder, f"{folder}{mark}")
    assert place.inner_id(place.outer_id(entry)) == entry


@pytest.mark.broad
@given(FOLDER, FOLDER, MARK, WORD, WORD)
def test_ids_of_two_places_never_meet_unless_one_lies_in_the_other(
    one: str, other: str, mark: str, first: str, second: str
) -> None:
    left, right = Place(one, f"{one}{mark}"), Place(other, f"{other}{mark}")
    nested = left.marks.startswith(right.marks) or right.marks.startswith(left.marks)
    if not nested:
        assert left.outer_id(first) != right.outer_id(second)
        assert right.inner_id(left.outer_id(first)) is None


@given(st.frozensets(WORD, max_size=4), st.frozensets(PATH, max_size=4), FOLDER)
def test_a_selection_means_the_same_tests_inside(ids: frozenset[str], files: frozenset[str], folder: str) -> None:
    place = Place(folder, f"{folder}::")
    outside = Selection(ids=frozenset(map(place.outer_id, ids)), files=frozenset(map(place.outer_path, files)))
    assert place.selected(outside) == Selection(ids, files)
    assert place.selected(None) is None
    assert place.selected(Selection(files=frozenset({"elsewhere.py"}))) == Selection(files=frozenset())


def test_everything_that_is_observed_is_said_in_paths_of_the_repository() -> None:
    fault = Fault(
        chain=(Raised(kind="E"),), frames=(Frame(path="src/a.py"), Frame(module="json"), Frame(path="../b.py"))
    )
    record = TestRecord(
        id="tests/t.py::x[1]",
        function="tests/t.py::x",
        path="tests/t.py",
        region_sha256="0",
        outcome=Ended.FAILED,
        fault=fault,
        reach=Reach(functions=("src/a.py::f",), references=("src/a.py::g",), doors=("data.csv", "process")),
    )
    seen = PYTEST.projects[0].place.observed(
        Observation(
            state=RunState.COMPLETE,
            records={record.id: record},
            collection_errors=(CollectionError(path="tests/u.py", fault=fault),),
            files={"tests/t.py": "1"},
            layout=Layout(testpaths=("tests",), collected=frozenset({"tests/t.py"})),
            modules={"a": "src/a.py"},
            command=("python", "-m", "pytest"),
        )
    )
    (out,) = seen.records.values()
    assert (list(seen.records), out.id, out.function) == (
        ["apps/api/tests/t.py::x[1]"],
        "apps/api/tests/t.py::x[1]",
        "apps/api/tests/t.py::x",
    )
    assert out.path == "apps/api/tests/t.py"
    assert out.fault is not None
    assert [frame.path for frame in out.fault.frames] == ["apps/api/src/a.py", "", "apps/b.py"]
    assert out.reach == Reach(
        functions=("apps/api/src/a.py::f",),
        references=("apps/api/src/a.py::g",),
        doors=("apps/api/data.csv", "process"),
    )
    assert [error.path for error in seen.collection_errors] == ["apps/api/tests/u.py"]
    assert seen.files == {"apps/api/tests/t.py": "1"}
    assert seen.layout.testpaths == ("apps/api/tests",)
    assert seen.modules == {"a": "apps/api/src/a.py"}
    assert " ".join(seen.command) == "(cd apps/api && python -m pytest)"


def test_only_files_below_the_folder_are_its_tests_and_every_control_file_counts() -> None:
    seen = Observation(state=RunState.COMPLETE, layout=Layout(testpaths=(".",)))
    assert PYTEST.is_test_path("apps/api/test_a.py", seen)
    assert not PYTEST.is_test_path("apps/test_a.py", seen)
    assert PYTEST.is_control_path("pyproject.toml")
    assert PYTEST.is_control_path("apps/api/conftest.py")


# --- real tests of projects in folders, with the whole view around them


MONOREPO = {
    "lib/shared.py": "def twice(x):\n    return 2 * x\n",
    "apps/api/core.py": "from shared import twice\n\ndef four():\n    return twice(2)\n",
    "apps/api/conftest.py": "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parents[2] / 'lib'))\n",
    "apps/api/tests/test_core.py": """
        from core import four

        def test_four():
            assert four() == 4

        def test_five():
            assert four() == 5
        """,
    "apps/api/pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\ntestpaths = ["tests"]\n',
}


def measure(toolchain: Projects, root: Path, env: Environment, selection: Selection | None = None) -> Observation:
    return anyio.run(toolchain.run_tests, request(root, env, selection=selection))


@pytest.mark.broad
def test_tests_run_in_their_folder_and_import_from_a_sibling(tmp_path: Path) -> None:
    root = write(tmp_path / "view", MONOREPO)
    seen = measure(PYTEST, root, direct.environment())
    five = "apps/api/tests/test_core.py::test_five"
    assert {entry: record.outcome for entry, record in seen.records.items()} == {
        "apps/api/tests/test_core.py::test_four": Ended.PASSED,
        five: Ended.FAILED,
    }
    assert seen.files.keys() == {"apps/api/tests/test_core.py"}
    fault = seen.records[five].fault
    assert fault is not None
    assert fault.last_own_frame is not None
    assert fault.last_own_frame.path == "apps/api/tests/test_core.py"
    chosen = measure(PYTEST, root, direct.environment(), Selection(ids=frozenset({five})))
    assert [record.id for record in chosen.records.values() if record.ran] == [five]
    named = measure(PYTEST, root, direct.environment(), Selection(files=frozenset({"apps/api/tests/test_core.py"})))
    assert all(record.ran for record in named.records.values())


def test_a_tree_without_the_folder_has_no_tests(tmp_path: Path) -> None:
    seen = measure(PYTEST, write(tmp_path / "view", {"x.py": ""}), direct.environment())
    assert (seen.state, seen.records) == (RunState.COMPLETE, {})
    assert seen.environment_problem is None


@pytest.mark.parametrize("link", ["apps", "apps/api"])
def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path: Path, link: str) -> None:
    outside = write(tmp_path / "outside", {"api/tests/test_a.py": "open('was_here', 'w')\n", "tests/test_a.py": ""})
    root = tmp_path / "view"
    (root / link).parent.mkdir(parents=True)
    (root / link).symlink_to(outside)
    seen = measure(PYTEST, root, direct.environment())
    assert "is not a folder of the measured files" in (seen.environment_problem or "")
    assert not list(outside.rglob("was_here"))


def test_the_environment_is_that_of_the_folder(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"apps/api/pyproject.toml": ""})

    def find(toolchain: Projects, command: tuple[str, ...]) -> Environment | Missing:
        return direct.environments(toolchain, Lookup(tree, tree, command, tmp_path / "state", os.environ["PATH"]))

    (tree / "python").symlink_to(sys.executable)
    (tree / "apps/api/py").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tree / "apps/api/py").chmod(0o755)
    assert isinstance(find(PYTEST, ("./py", "-m", "pytest")), Environment)
    nowhere = find(Projects([Project(LANGUAGES["pytest"].toolchain, "gone")]), (sys.executable, "-m", "pytest"))
    assert isinstance(nowhere, Missing)
    assert "no folder gone" in nowhere.sentence


@pytest.mark.broad
def test_a_sibling_that_is_installed_in_place_is_taken_from_the_view(tmp_path: Path) -> None:
    from languages.test_pytest_environment import SITE, venv

    tree = write(tmp_path / "tree", {"lib/src/shared.py": "VALUE = 1\n", "apps/api/pyproject.toml": ""})
    venv(tree / "apps/api/.venv", SITE, str(tree / "lib/src"))
    env = direct.environments(PYTEST, Lookup(tree, tree, None, tmp_path / "state", "/nowhere"))
    assert isinstance(env, Environment), env
    assert PlacedFolder(tree / "lib/src", "../../lib/src") in env.editable_roots
    assert not any(mount.target == tree / "lib/src" for mount in env.mounts)
    view = write(
        tmp_path / "view",
        {
            "lib/src/shared.py": "VALUE = 2\n",
            "apps/api/tests/test_a.py": "import shared\n\ndef test_a():\n    assert shared.VALUE == 2\n",
        },
    )
    seen = measure(PYTEST, view, env)
    assert [record.outcome for record in seen.records.values()] == [Ended.PASSED], seen.tail
