"""Which definition a task means: modules may be left out of a name, owners may not."""

from __future__ import annotations

from importlib import import_module

import pytest

from pipeline.judge.evidence.red_classes import Symbol
from pipeline.testing.languages.sources.stubs import parts_of, stub_faults, stub_symbols
from pipeline.testing.languages.table import language_of


@pytest.mark.parametrize(
    ("path", "place", "symbol", "same"),
    [
        ("shop/cart.py", "load", "load", True),
        ("shop/cart.py", "load", "cart.load", True),
        ("src/shop/cart.py", "load", "shop.cart.load", True),
        ("src/shop/cart.py", "load", "shop.load", True),
        ("shop/cart.py", "load", "config.load", False),
        ("shop/cart.py", "config.load", "load", False),
        ("shop/cart.py", "config.load", "cart.config.load", True),
        ("shop/cart.py", "Cart.load", "load", False),
        ("shop/cart.py", "load", "Cart.load", False),
        ("src/my-cart.ts", "load", "myCart.load", True),
        ("src/cart/index.js", "load", "cart.load", True),
        ("src/cart.js", "load", "config.load", False),
        ("src/cart.js", "config.load", "load", False),
        ("src/cart.rs", "load", "crate::cart::load", True),
        ("src/lib.rs", "load", "shop::load", True),
        ("src/lib.rs", "inner.load", "load", True),
        ("src/lib.rs", "Cart.load", "load", False),
        ("cart.go", "Load", "shop.Load", True),
        ("cart.go", "cart.Load", "Load", False),
        ("cart.go", "Cart.Load", "shop.Cart.Load", True),
    ],
)
def test_a_name_means_a_definition(path: str, place: str, symbol: str, same: bool) -> None:
    language = language_of(path)
    assert language is not None
    rules = import_module(f"{language.package}.stubs").RULES
    assert rules.is_same(parts_of(place), parts_of(symbol), path) is same


def test_a_function_of_a_lower_case_class_is_not_the_function_that_a_task_names() -> None:
    before = {"cart.py": "class config:\n    def load(self):\n        return 1\n"}
    after = {"cart.py": before["cart.py"].replace("return 1", "raise NotImplementedError")}
    (fault, gone) = stub_faults("pipeline.testing.languages.python", before, after, [Symbol("cart.py", "load")])
    assert (fault.what, gone.what) == ("changes config.load, which the task does not name", "does not define load")
    assert (
        stub_faults(
            "pipeline.testing.languages.python", before, after, [Symbol("cart.py", "cart.config.load", new=False)]
        )
        == ()
    )


def test_only_the_function_that_is_meant_is_stubbed() -> None:
    text = "export const config = { load() { return 1; } };\nexport function load() { return 2; }\n"
    stubbed = stub_symbols(
        "pipeline.testing.languages.javascript", {"src/cart.js": text}, [Symbol("src/cart.js", "load")]
    )
    assert "return 1" in stubbed.files["src/cart.js"]
    assert "return 2" not in stubbed.files["src/cart.js"]
