"""Which file and which definition a name means: modules may be left out of it, owners may not."""

from __future__ import annotations

from importlib import import_module

import pytest

from pipeline.judge.evidence.observation import Layout
from pipeline.judge.evidence.red_classes import Context, Symbol
from pipeline.testing.languages import names
from pipeline.testing.languages.names import is_module, is_part_of
from pipeline.testing.languages.sources.stubs import parts_of, stub_faults, stub_symbols
from pipeline.testing.languages.table import language_of


@pytest.mark.parametrize(
    ("path", "name", "module", "part"),
    [
        ("src/pkg/core.py", "pkg.core", True, True),
        ("src/pkg/core.py", "pkg", False, True),
        ("src/pkg/__init__.py", "pkg", True, True),
        ("pkg/core.rs", "pkg.core", False, False),
        ("src/polite.rs", "polite", False, True),
        ("greet/src/polite/mod.rs", "greet::polite", False, True),
        ("src/polite/inner.rs", "crate::polite", False, True),
        ("src/polite/inner.rs", "polite.inner", False, True),
        ("src/polite/inner.rs", "inner", False, False),
        ("src/lib.rs", "greet", False, False),
        ("tests/polite.rs", "polite", False, False),
        ("src/polite.rs", "", False, False),
        ("polite/bye.go", "polite", True, True),
        ("internal/polite/bye.go", "internal/polite", True, True),
        ("services/api/polite/bye.go", "polite", True, True),
        ("impolite/bye.go", "polite", False, False),
        ("polite/inner/bye.go", "polite", False, False),
        ("polite/bye_test.go", "polite", False, False),
        ("greet.go", ".", True, True),
        ("polite/bye.go", ".", False, False),
    ],
)
def test_which_file_a_name_means(path: str, name: str, *, module: bool, part: bool) -> None:
    assert (is_module(path, name), is_part_of(path, name)) == (module, part)


@pytest.mark.parametrize(("existing", "is_new"), [("src/lib.rs", True), ("src/polite/mod.rs", False)])
def test_a_module_of_a_crate_that_the_task_creates_is_introduced_by_it(existing: str, *, is_new: bool) -> None:
    context = Context(
        symbols=(Symbol("src/polite.rs", "bye"),),
        existing=frozenset({existing}),
        layout=Layout(),
        names=names,
        task_files=frozenset({"src/polite.rs", "src/lib.rs"}),
    )
    assert context.introduces("polite", "greet") is is_new


def test_a_package_that_the_task_creates_is_introduced_by_it() -> None:
    context = Context(
        symbols=(Symbol("polite/bye.go", "Bye"),),
        existing=frozenset({"go.mod", "greet.go", "old/old.go"}),
        layout=Layout(),
        names=names,
        task_files=frozenset({"polite/bye.go", "greet.go"}),
    )
    assert context.introduces("polite")
    assert not context.introduces("old")
    assert context.introduces("Anything", "."), "the task names no symbol of greet.go"
    assert not context.introduces("Anything", "polite")
    assert context.introduces("Bye", "polite")


def test_data_of_tests_is_on_their_side() -> None:
    assert Layout().is_test_side("polite/testdata/golden.json")
    assert not Layout().is_test_side("polite/data/golden.json")


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
