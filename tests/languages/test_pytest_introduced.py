"""What a change introduces: the names that stubs are made of when a task names none."""

from __future__ import annotations

from functools import partial

from pipeline.evidence.red_classes import Symbol
from pipeline.languages.sources import stubs

introduced = partial(stubs.introduced, "pipeline.languages.python")

NEW = """import os

__all__ = ["greet"]
LIMIT: int = 3


class Name:
    size = 1


if os.name == "nt":
    def greet():
        return 1
else:
    async def greet():
        return 2
"""


def test_a_new_module_introduces_what_it_defines_at_its_top_level() -> None:
    wanted = (Symbol("a.py", "LIMIT"), Symbol("a.py", "Name"), Symbol("a.py", "greet"))
    assert introduced({}, {"a.py": NEW}) == wanted


def test_what_was_there_before_is_not_introduced() -> None:
    before = {"a.py": "LIMIT = 2\n\n\nclass Name:\n    pass\n", "b.py": "def greet():\n    pass\n"}
    assert introduced(before, {"a.py": NEW}) == (Symbol("a.py", "Name.size"), Symbol("a.py", "greet"))


def test_what_a_class_newly_has_is_introduced_with_its_name() -> None:
    before = "class Cart:\n    def __init__(self, items):\n        self.items = items\n"
    more = "        self.total = 0\n    def __len__(self):\n        return 1\n\n\nclass New:\n    size = 1\n"
    found = introduced({"a.py": before}, {"a.py": before + more})
    assert {one.name for one in found} == {"Cart.total", "Cart.__len__", "New"}


def test_a_module_that_cannot_be_parsed_introduces_nothing() -> None:
    assert introduced({}, {"a.py": "def greet(:"}) == ()
    assert introduced({"a.py": "def greet(:"}, {"a.py": "def greet(): ..."}) == (Symbol("a.py", "greet"),)
