"""Tests beside code that production does not have: not collected for lack of their module, and so RED on credit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from evidence.observed import NO_IMPORT, context
from runs.real import alone
from steps.ground import CARGO, ground

from pipeline.judge.evidence.classify import classify_collection
from pipeline.judge.evidence.observation import CollectionError, Ended, Observation, RunState, TestRecord
from pipeline.judge.evidence.red_classes import RedClass
from pipeline.testing.measure.red import with_undeclared
from pipeline.testing.measure.revert import Red

if TYPE_CHECKING:
    from pathlib import Path

TESTS = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() {}\n}\n"
FILE = "src/polite.rs"
TEST = "greet::lib::polite::tests::a"


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    alone(monkeypatch, tmp_path / "home")


def seen(*records: TestRecord, errors: tuple[CollectionError, ...] = ()) -> Observation:
    return Observation(
        state=RunState.COMPLETE,
        records={record.id: record for record in records},
        collection_errors=errors,
        layout=CARGO,
    )


def record(path: str, outcome: Ended | None = Ended.PASSED) -> TestRecord:
    return TestRecord(id=TEST, function=TEST, path=path, region_sha256="", outcome=outcome)


def absent(folder: Path, observation: Observation, *paths: str) -> list[str]:
    place = ground(folder, {"src/lib.rs": "", "src/there.rs": ""}, rust=True)
    composed = place.tree({FILE: TESTS, "src/there.rs": TESTS, "tests/a.rs": TESTS})
    found = with_undeclared(place, observation, composed, place.start, paths)
    return [error.path for error in found.collection_errors]


@pytest.mark.slow
def test_a_file_that_production_does_not_have_and_nothing_compiles_is_an_error(tmp_path: Path) -> None:
    assert absent(tmp_path / "a", seen(), FILE, "src/there.rs", "tests/a.rs", "src/nowhere.rs", TEST) == [FILE]
    assert absent(tmp_path / "b", seen(record(FILE)), FILE) == [], "it is compiled"
    known = CollectionError(path=FILE, fault=NO_IMPORT)
    assert absent(tmp_path / "c", seen(errors=(known,)), FILE) == [FILE], "the compiler said more"
    assert absent(tmp_path / "d", seen().model_copy(update={"state": RunState.UNUSABLE}), FILE) == []


def test_it_is_red_where_a_task_brings_the_file(tmp_path: Path) -> None:
    place = ground(tmp_path, {"src/lib.rs": ""}, rust=True)
    (error,) = with_undeclared(place, seen(), place.tree({FILE: TESTS}), place.start, [FILE]).collection_errors
    base = context("src/lib.rs")
    named = type(base)(base.symbols, base.existing, CARGO, base.names, task_files=frozenset({FILE}))
    found = classify_collection(error, named)
    assert (found.cls, found.legal) == (RedClass.MISSING_BEHAVIOR, True)
    assert not classify_collection(error, base).legal, "nobody is to write that file"
    stubbed = type(base)(base.symbols, base.existing, CARGO, base.names, task_files=frozenset({FILE}), stubbed=True)
    assert not classify_collection(error, stubbed).legal, "the stubs have it, or should"


def test_where_a_test_stands_is_said_by_its_record_and_not_by_its_id() -> None:
    fault = NO_IMPORT.model_copy(update={"missing": None})
    red = Red("abc", seen(errors=(CollectionError(path=FILE, fault=fault),)), context(), (".rs",))
    assert red.of(TEST) is None
    known = Red(red.production, red.observation, red.context, red.sources, {TEST: record(FILE)})
    found, by_file = known.of(TEST), known.of(FILE)
    assert found is not None
    assert found.cls is RedClass.TEST_BROKEN
    assert by_file == found
