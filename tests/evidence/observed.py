"""Small observations, written as {id: outcome}, for the tests of the judges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from pipeline.judge.evidence.observation import (
    Ended,
    Fault,
    Frame,
    Layout,
    Missing,
    Observation,
    Raised,
    RunState,
    TestRecord,
)
from pipeline.judge.evidence.red_classes import Context, Symbol
from pipeline.testing.languages import names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.judge.evidence.observation import CollectionError
    from pipeline.judge.evidence.red_classes import Expected

MISMATCH = Fault(
    chain=(Raised(kind="builtins.AssertionError", message="assert 1 == 2"),),
    frames=(Frame(path="tests/test_a.py", line=3),),
)
BARE = MISMATCH.model_copy(update={"bare": True})
NO_IMPORT = Fault(
    chain=(Raised(kind="builtins.ImportError", message="cannot import name 'new' from 'pkg'"),),
    frames=(Frame(path="tests/test_a.py", line=1),),
    missing=Missing(name="new", owner="pkg"),
)
NO_LIBRARY = Fault(
    chain=(
        Raised(kind="builtins.ModuleNotFoundError", bases=("builtins.ImportError",), message="No module named 'gone'"),
    ),
    frames=(Frame(path="tests/test_a.py", line=1),),
    missing=Missing(name="gone", first_party=False),
)


def record(test: str, outcome: Ended | None, *, fault: Fault | None = MISMATCH, region: str = "r") -> TestRecord:
    return TestRecord(
        id=test,
        function=test.partition("[")[0],
        path=test.partition("::")[0],
        region_sha256=region,
        outcome=outcome,
        fault=fault if outcome is Ended.FAILED else None,
    )


def observed(
    outcomes: Mapping[str, Ended | TestRecord | None],
    *,
    errors: tuple[CollectionError, ...] = (),
    state: RunState = RunState.COMPLETE,
) -> Observation:
    records = {test: one if isinstance(one, TestRecord) else record(test, one) for test, one in outcomes.items()}
    files = {one.path: f"file of {one.path}" for one in records.values()} | {error.path: "broken" for error in errors}
    layout = Layout(python_files=("test_*.py",), collected=frozenset(files))
    return Observation(state=state, records=records, collection_errors=errors, files=files, layout=layout)


def context(*existing: str, expected: Mapping[str, Expected] | None = None) -> Context:
    return Context(
        symbols=(Symbol("pkg/core.py", "new"),),
        existing=frozenset({"pkg/core.py", *existing}),
        layout=Layout(python_files=("test_*.py",), collected=frozenset({"tests/test_old.py"})),
        names=names,
        expected=expected or {},
    )


test_ids = st.sampled_from([f"tests/test_{file}.py::test_{name}" for file in "abc" for name in ("x", "y[1]", "y[2]")])
endings = st.sampled_from(Ended)
observations = st.dictionaries(test_ids, endings).map(observed)
