"""A special method that the task introduces: its absence is RED, and that of no other method of no other class is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from languages.direct import context_of, files_of, measure, write

from pipeline.judge.evidence.classify import classify
from pipeline.judge.evidence.red_classes import RedClass, Symbol

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.judge.evidence.observation import Observation

WAYS = {
    "__len__": "assert len(Cart()) == 2",
    "__call__": "assert Cart()('a') == 1",
    "__getitem__": "assert Cart()['a'] == 1",
    "__class_getitem__": "assert Cart[int]",
    "__setitem__": "Cart()['a'] = 1",
    "__delitem__": "del Cart()['a']",
    "__iter__": "assert list(Cart()) == []",
    "__contains__": "assert 'a' in Cart()",
    "__next__": "assert next(Cart()) == 1",
    "__enter__": "with Cart() as cart: assert cart",
    "__exit__": "with Cart(): pass",
    "__add__": "assert Cart() + 1 == 2",
    "__radd__": "assert 1 + Cart() == 2",
    "__iadd__": "cart = Cart(); cart += 1",
    "__pow__": "assert Cart() ** 2",
    "__lt__": "assert Cart() < Cart()",
    "__ge__": "assert sorted([Cart() >= 1])",
    "__neg__": "assert -Cart() == 1",
    "__abs__": "assert abs(Cart()) == 1",
}
CARTS = """
class Cart:
    pass

class Basket(Cart):
    pass

class Other:
    pass

class Full:
    def __len__(self):
        return 1
"""
MORE = {
    "subclass": "assert len(Basket()) == 2",
    "other": "assert len(Other()) == 2",
    "raised": "raise TypeError(\"object of type 'Cart' has no len()\")",
    "of_a_test": "class Mine: pass\n    assert len(Mine()) == 2",
    "plain": "assert len(1) == 2",
    "has_one": "assert len(Full()) + Full() == 2",
    "loop": "for one in Full(): assert len(Full())",
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[Observation, frozenset[str]]:
    tests = "".join(f"\n\ndef test_{name.strip('_')}():\n    {body}\n" for name, body in (WAYS | MORE).items())
    files = {"shop/__init__.py": "", "shop/carts.py": CARTS, "test_carts.py": f"from shop.carts import *\n{tests}"}
    root: Path = write(tmp_path_factory.mktemp("carts"), files)
    return measure(root), files_of(root)


def cls_of(seen: tuple[Observation, frozenset[str]], test: str, *symbols: Symbol) -> RedClass:
    observation, existing = seen
    record = observation.records[f"test_carts.py::test_{test.strip('_')}"]
    return classify(record, context_of(observation, existing, symbols=symbols)).cls


@pytest.mark.slow
def test_the_absence_of_the_method_that_the_task_names_is_red_and_of_no_other(
    seen: tuple[Observation, frozenset[str]],
) -> None:
    for method in WAYS:
        named = Symbol("shop/carts.py", f"Cart.{method}")
        assert cls_of(seen, method, named) is RedClass.MISSING_BEHAVIOR, method
        assert cls_of(seen, method, Symbol("", f"Cart.{method}")) is RedClass.MISSING_BEHAVIOR, method
        others = [Symbol("shop/carts.py", f"Other.{method}"), Symbol("shop/other.py", f"Cart.{method}")]
        others += [Symbol("shop/carts.py", name) for name in ("Cart", method, "Cart.__str__")]
        assert cls_of(seen, method, *others) is RedClass.TEST_BROKEN, method


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "symbol", "cls"),
    [
        ("subclass", "Cart.__len__", RedClass.MISSING_BEHAVIOR),
        ("subclass", "Basket.__len__", RedClass.MISSING_BEHAVIOR),
        ("other", "Cart.__len__", RedClass.TEST_BROKEN),
        ("raised", "Cart.__len__", RedClass.TEST_BROKEN),
        ("of_a_test", "Mine.__len__", RedClass.TEST_BROKEN),
        ("plain", "int.__len__", RedClass.TEST_BROKEN),
        ("has_one", "Full.__len__", RedClass.TEST_BROKEN),
        ("has_one", "Full.__radd__", RedClass.MISSING_BEHAVIOR),
        ("loop", "Full.__iter__", RedClass.MISSING_BEHAVIOR),
    ],
)
def test_whose_method_it_is(seen: tuple[Observation, frozenset[str]], test: str, symbol: str, cls: RedClass) -> None:
    assert cls_of(seen, test, Symbol("", symbol)) is cls
