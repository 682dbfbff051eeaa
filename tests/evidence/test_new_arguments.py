"""A new argument of a known function is RED where the task lists the function; else the hint says what to do."""

from __future__ import annotations

from dataclasses import replace

from evidence.observed import context, record

from pipeline.judge.evidence.classify import classify
from pipeline.judge.evidence.observation import Ended, Fault, Frame, Raised
from pipeline.judge.evidence.red_classes import RedClass, Symbol

UNEXPECTED = Fault(
    chain=(Raised(kind="builtins.TypeError", message="greet() got an unexpected keyword argument 'loud'"),),
    frames=(Frame(path="tests/test_a.py", line=3),),
)


def test_the_hint_names_the_function_and_what_to_do() -> None:
    test = record("tests/test_a.py::test_loud", Ended.FAILED, fault=UNEXPECTED)
    refused = classify(test, context())
    assert (refused.cls, refused.legal) == (RedClass.TEST_BROKEN, False)
    assert "the task's symbols do not list greet" in refused.message
    assert "answer BLOCKED and say that the split has to list it" in refused.message
    listed = replace(context(), symbols=(Symbol("pkg/core.py", "greet"),))
    assert classify(test, listed).cls is RedClass.MISSING_BEHAVIOR, "the control"
