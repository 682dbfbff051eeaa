"""A project in a folder: paths and ids of the repository outside, its own inside, the whole view around its tests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.languages.table import LANGUAGES

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
