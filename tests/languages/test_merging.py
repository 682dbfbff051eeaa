"""Observations of several runners as one: every record is kept, the worst state speaks, and ids never meet."""

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
    Observation,
    Raised,
    RunState,
    TestRecord,
)
from pipeline.sandbox.views.manifest import scan
from pipeline.testing.languages.projects.combined import Memory, key_of
from pipeline.testing.languages.projects.merging import together
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
