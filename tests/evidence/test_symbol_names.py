"""A member is the same whether a task writes `Cart.add` or, as in Rust, `Cart::add`."""

from __future__ import annotations

import pytest

from pipeline.judge.evidence.observation import Layout
from pipeline.judge.evidence.red_classes import Context, Symbol
from pipeline.testing.languages import names


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
