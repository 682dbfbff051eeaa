"""Functions of a file of helpers that check less than before, and the tests of other files that use them."""

from __future__ import annotations

import pytest

from pipeline.languages.python.helper_files import lost_in, users_in

HELPER = b"""def check(order):
    assert order.total == 3
    assert order.items


def check_all(orders):
    for order in orders:
        check(order)
"""
TESTS = b"""from helpers import check_all


def test_orders():
    check_all(orders())


def test_nothing():
    pass
"""


def test_a_helper_that_is_emptied_names_the_tests_that_use_it() -> None:
    emptied = HELPER.replace(b"    assert order.total == 3\n    assert order.items\n", b"    pass\n")
    lost = lost_in(HELPER, emptied)
    assert [one.what for one in lost] == ["check: 2 of 2 assertions are gone", "check_all: 2 of 2 assertions are gone"]
    assert users_in("tests/test_a.py", TESTS, "tests/helpers.py", lost) == (("test_orders",), ("test_orders",))


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ("assert x == y", "assert x", "loosened from == to truth"),
        ("if x != y:\n        raise AssertionError(x)", "pass", "1 of 1 assertions are gone"),
        ("if x != y:\n        pytest.fail('differs')", "pass", "1 of 1 assertions are gone"),
    ],
)
def test_what_a_helper_no_longer_notices_is_told(before: str, after: str, what: str) -> None:
    old, new = (f"def check(x, y):\n    {body}\n".encode() for body in (before, after))
    (lost,) = lost_in(old, new)
    assert what in lost.what


@pytest.mark.parametrize("after", ["assert x == y, 'they differ'", "assert x == y\n    assert y"])
def test_a_helper_that_checks_as_much_or_more_lost_nothing(after: str) -> None:
    assert lost_in(b"def check(x, y):\n    assert x == y\n", f"def check(x, y):\n    {after}\n".encode()) == ()


def test_a_helper_that_is_gone_or_new_is_no_business_of_this() -> None:
    assert lost_in(HELPER, b"def other():\n    pass\n") == ()
