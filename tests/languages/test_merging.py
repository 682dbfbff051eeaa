"""Observations and layouts of several runners as one: nothing is lost, the worst state speaks, ids never meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.judge.evidence.observation import (
    CollectionError,
    Ended,
    Fault,
    ForeignModule,
    Layout,
    Observation,
    Raised,
    RunState,
    TestRecord,
)
from pipeline.sandbox.views.manifest import scan
from pipeline.testing.languages.projects.combined import Memory, key_of
from pipeline.testing.languages.projects.merging import below, one_layout, together
from pipeline.testing.languages.protocol import Selection

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path

FAULT = Fault(chain=(Raised(kind="E"),))
NAMES = ("pytest", "cargo", "go")


def record(entry: str, outcome: Ended | None = Ended.PASSED) -> TestRecord:
    return TestRecord(id=entry, function=entry, path=entry.partition("::")[0], region_sha256="0", outcome=outcome)


def seen(*ids: str, state: RunState = RunState.COMPLETE, **more: object) -> Observation:
    return Observation.model_validate({"state": state, "records": {entry: record(entry) for entry in ids}, **more})


@st.composite
def observations(draw: st.DrawFn) -> dict[str, Observation]:
    found: dict[str, Observation] = {}
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)):
        paths = draw(st.lists(st.sampled_from(["a", "b", "c"]), max_size=3, unique=True))
        foreign = (ForeignModule(name="m", origin="/x"),) if draw(st.booleans()) else ()
        found[name] = seen(
            *(f"{name}/{path}::t" for path in paths),
            state=draw(st.sampled_from(list(RunState))),
            detail=draw(st.sampled_from(["", "why"])),
            files={f"{name}/{path}": "0" for path in paths},
            collection_errors=[CollectionError(path=f"{name}/{path}", fault=FAULT) for path in paths[:1]],
            foreign_modules=foreign,
        )
    return found


@given(observations())
def test_nothing_is_lost_and_the_worst_speaks(parts: dict[str, Observation]) -> None:
    whole = together(parts)
    everything = list(parts.values())
    assert whole.records == {entry: r for each in everything for entry, r in each.records.items()}
    assert whole.files == {path: digest for each in everything for path, digest in each.files.items()}
    problems = [each.environment_problem for each in everything if each.environment_problem is not None]
    assert (whole.environment_problem is not None) == bool(problems)
    if not any(each.state is RunState.UNUSABLE and each.environment_problem for each in everything):
        errors = {error.path for each in everything for error in each.collection_errors}
        assert {error.path for error in whole.collection_errors} == errors
    worst = (RunState.UNUSABLE, RunState.TIMED_OUT, RunState.CRASHED, RunState.COMPLETE)
    assert whole.state is next(state for state in worst if any(each.state is state for each in everything))


def test_the_detail_names_the_one_that_went_wrong() -> None:
    whole = together({"pytest": seen("a::t"), "cargo": seen(state=RunState.CRASHED, detail="the test run died")})
    assert (whole.state, whole.detail) == (RunState.CRASHED, "cargo: the test run died")


def test_two_tests_of_one_id_make_the_evidence_unusable() -> None:
    whole = together({"pytest": seen("a::t"), "go": seen("a::t", "b::t")})
    assert whole.state is RunState.UNUSABLE
    assert whole.environment_problem is not None
    assert whole.environment_problem.startswith("pytest and go both have a test a::t")


def test_a_runner_that_does_not_work_is_not_excused_by_anothers_collection_errors() -> None:
    broken = seen(collection_errors=[CollectionError(path="a", fault=FAULT)])
    whole = together({"pytest": broken, "cargo": seen(state=RunState.UNUSABLE, detail="no linker")})
    assert whole.environment_problem == "cargo: no linker"


# --- what is remembered ----------------------------------------------------------------------------------------------


def test_outcomes_are_never_remembered() -> None:
    memory = Memory()
    memory.remember("cargo", "key", seen("a::t"))
    known = memory.unrun("cargo", "key", Selection(ids=frozenset({"other"})))
    assert known is not None
    assert [r.outcome for r in known.records.values()] == [None]
    assert memory.unrun("cargo", "key", Selection(ids=frozenset({"a::t"}))) is None
    assert memory.unrun("cargo", "key", Selection(files=frozenset({"a"}))) is None
    assert memory.unrun("cargo", "key", Selection(ids=frozenset({"a::t"}), files=frozenset({"b"}))) is not None
    assert memory.unrun("cargo", "key", None) is None
    assert memory.unrun("cargo", "other", Selection.nothing()) is None
    assert memory.unrun("pytest", "key", Selection.nothing()) is None


def test_only_what_may_be_believed_is_remembered_and_not_without_end() -> None:
    memory = Memory()
    for state in RunState:
        memory.remember("cargo", state.value, seen("a::t", state=state))
        found = memory.unrun("cargo", state.value, Selection.nothing())
        assert (found is not None) is (state is RunState.COMPLETE)
    for number in range(50):
        memory.remember("go", str(number), seen("a::t"))
    assert memory.unrun("go", "0", Selection.nothing()) is None
    assert memory.unrun("go", "49", Selection.nothing()) is not None
    assert memory.unrun("cargo", "complete", Selection.nothing()) is not None


def test_a_key_is_all_that_a_runner_is_shown_but_the_sources_of_others(tmp_path: Path) -> None:
    for path, text in {"src/lib.rs": "a", "a.py": "b", "data.json": "c"}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "link").symlink_to("a.py")

    def key() -> str:
        return key_of(scan(tmp_path), {".py"})

    first = key()
    (tmp_path / "a.py").write_text("other")
    assert key() == first
    keys = {first}
    for act in (
        lambda: (tmp_path / "data.json").write_text("d"),
        lambda: (tmp_path / "src/lib.rs").write_text("e"),
        lambda: (tmp_path / "src/lib.rs").chmod(0o755),
        (tmp_path / "link").unlink,
        lambda: (tmp_path / "link").symlink_to("data.json"),
        lambda: (tmp_path / "src/lib.rs").rename(tmp_path / "src/main.rs"),
    ):
        act()
        keys.add(key())
    assert len(keys) == 7


# --- layouts of several runners as one


PART = st.sampled_from(["src", "tests", "pkg", "a", "test_x", "unit-tests", "web", "spec"])
NAME = st.sampled_from(["test_a.py", "a_test.py", "b.py", "lib.rs", "x.test.js", "a_test.go", "conftest.py"])
PATH = st.tuples(st.lists(PART, max_size=3), NAME).map(lambda parts: "/".join([*parts[0], parts[1]]))
LAYOUT = st.builds(
    Layout,
    testpaths=st.lists(st.sampled_from(["tests", "src", ".", "./tests/", "pkg/tests", "*/tests"]), max_size=2).map(
        tuple
    ),
    python_files=st.lists(
        st.sampled_from(["test_*.py", "*_test.py", "*.rs", "*.test.js", "*_test.go", "tests/*.py"]), max_size=3
    ).map(tuple),
    collected=st.frozensets(PATH, max_size=4),
)


@given(st.lists(LAYOUT, min_size=1, max_size=3), PATH)
def test_what_one_runner_takes_for_a_test_all_together_do(layouts: list[Layout], path: str) -> None:
    if any(layout.is_test(path) for layout in layouts):
        assert one_layout(layouts).is_test(path)
    if any(layout.is_test_side(path) for layout in layouts):
        assert one_layout(layouts).is_test_side(path)


@given(LAYOUT, PATH)
def test_a_layout_below_a_folder_says_the_same_of_paths_below_it(layout: Layout, path: str) -> None:
    moved = below(layout, "apps/web")
    if layout.is_test(path):
        assert moved.is_test(f"apps/web/{path}")
    assert not moved.is_test(path)


PYTHON = Layout(testpaths=("src",), python_files=("test_*.py",), collected=frozenset({"src/test_a.py"}))
RUST = Layout(
    testpaths=("tests", "benches"), python_files=("*.rs",), collected=frozenset({"tests/a.rs", "src/b.rs#tests"})
)
BESIDE = Layout(python_files=("test_*.py", "*_test.py"), collected=frozenset({"pkg/test_a.py", "tests/unit/test_b.py"}))
GO = Layout(testpaths=(".",), python_files=("*_test.go",), collected=frozenset({"svc/a_test.go"}))


@pytest.mark.parametrize(
    ("path", "is_test"),
    [
        ("src/lib.rs", False),  # Rust's names count in Rust's folders
        ("src/deep/test_new.py", True),
        ("tests/new.rs", True),
        ("tests/test_new.py", False),
        ("src/b.rs", False),  # a file with test regions is production
        ("src/b.rs#tests", True),
        ("any/where/x_test.go", True),
    ],
)
def test_names_count_in_the_folders_of_their_own_runner(path: str, is_test: bool) -> None:
    assert one_layout([PYTHON, RUST, GO]).is_test(path) is is_test


@pytest.mark.parametrize(
    ("path", "is_test"),
    [
        ("pkg/test_new.py", True),
        ("other/test_backdoor.py", False),  # the name alone adds a module to the package
        ("other/tests/test_new.py", True),
        ("tests/new/test_new.py", True),
        ("test_top.py", False),
        ("pkg/helper.py", False),
    ],
)
def test_without_folders_a_new_test_stands_beside_others_or_in_a_folder_of_tests(path: str, is_test: bool) -> None:
    assert BESIDE.is_test(path) is is_test
    assert one_layout([BESIDE, RUST]).is_test(path) is is_test
    assert below(BESIDE, "web").is_test(f"web/{path}") is is_test


def test_tests_at_the_top_make_no_test_of_modules_further_down() -> None:
    top = Layout(python_files=("test_*.py",), collected=frozenset({"test_a.py"}))
    both = one_layout([top, RUST])
    assert both.is_test("test_new.py")
    assert not both.is_test("pkg/test_new.py")


def test_with_tests_in_very_many_folders_the_patterns_stay_few() -> None:
    many = Layout(collected=frozenset(f"pkg{number % 5}/m{number}/test_a.py" for number in range(500)))
    both = one_layout([many, RUST])
    assert len(both.python_files) < 100
    assert both.is_test("pkg3/m8/test_new.py")
    assert not both.is_test("other/test_new.py")


def test_a_runner_without_any_test_yet_goes_by_its_names() -> None:
    assert one_layout([Layout(python_files=("*.test.js",)), PYTHON]).is_test("lib/first.test.js")
