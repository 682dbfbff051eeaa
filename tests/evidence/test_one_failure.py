"""What the judges make of one failure: new arguments, members however they are written, whose judgement it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from evidence.observed import BARE, MISMATCH, context, record

from pipeline.judge.evidence.classify import classify, fails_by_itself
from pipeline.judge.evidence.observation import Ended, Fault, Frame, Layout, Raised, Reach
from pipeline.judge.evidence.red_classes import Context, RedClass, Symbol
from pipeline.testing.languages import names

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


@pytest.mark.parametrize("written", ["Cart.add", "Cart::add", "shop::Cart::add", "shop.Cart.add"])
@pytest.mark.parametrize(
    ("name", "owner", "is_new"),
    [
        ("add", "Cart", True),
        ("add", "shop::Cart", True),
        ("total", "shop.Cart.add", True),
        ("Cart", "shop", True),
        ("take", "Cart", False),
        ("shop::Cart::add", "", True),
    ],
)
def test_both_ways_to_write_a_member_are_one(written: str, name: str, owner: str, is_new: bool) -> None:
    context = Context(
        symbols=(Symbol("src/lib.rs", written),), existing=frozenset({"src/lib.rs"}), layout=Layout(), names=names
    )
    assert context.introduces(name, owner) is is_new


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
