"""A test fails by its own judgement where it looked and did not like what it saw, not where the code threw."""

from __future__ import annotations

import pytest
from evidence.observed import BARE, MISMATCH, context, record

from pipeline.judge.evidence.classify import fails_by_itself
from pipeline.judge.evidence.observation import Ended, Fault, Frame, Raised, Reach

_TEST, _CODE = Frame(path="tests/test_a.py", line=3), Frame(path="pkg/core.py", line=9, function="new")


def fault(kind: str, *frames: Frame, expectation: bool = False) -> Fault:
    return Fault(chain=(Raised(kind=f"builtins.{kind}", message="no"),), frames=frames, expectation=expectation)


@pytest.mark.parametrize(
    ("ended", "why", "holds"),
    [
        (Ended.FAILED, MISMATCH, True),
        (Ended.FAILED, fault("Failed", _TEST, expectation=True), True),
        (Ended.FAILED, fault("ValueError", _TEST, _CODE), False),  # a legal RED, and none of its own
        (Ended.FAILED, fault("AssertionError", _TEST, _CODE), False),
        (Ended.FAILED, fault("KeyError", _TEST), False),
        (Ended.FAILED, fault("KeyError", _TEST, _CODE, _TEST), False),  # a double raises it: thrown out of the code
        (Ended.FAILED, BARE, True),  # it reached the code before
        (Ended.TIMED_OUT, None, False),
        (Ended.CRASHED, None, False),
        (Ended.PASSED, None, False),
    ],
)
def test_whose_judgement_it_is(ended: Ended, why: Fault | None, holds: bool) -> None:
    reached = record("tests/test_a.py::test_x", ended, fault=why).model_copy(
        update={"reach": Reach(functions=("pkg/core.py::new",))}
    )
    assert fails_by_itself(reached, context("tests/test_a.py")) is holds
