"""What a change introduces: the names that stubs are made of when a task names none."""

from __future__ import annotations

from functools import partial

from pipeline.judge.evidence.red_classes import Symbol
from pipeline.testing.languages.sources import stubs

introduced = partial(stubs.introduced, "pipeline.testing.languages.python")

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


def test_what_a_change_introduces() -> None:
    wanted = (Symbol("a.py", "LIMIT"), Symbol("a.py", "Name"), Symbol("a.py", "greet"))
    assert introduced({}, {"a.py": NEW}) == wanted
    before = {"a.py": "LIMIT = 2\n\n\nclass Name:\n    pass\n", "b.py": "def greet():\n    pass\n"}
    assert introduced(before, {"a.py": NEW}) == (Symbol("a.py", "Name.size"), Symbol("a.py", "greet"))
    cart = "class Cart:\n    def __init__(self, items):\n        self.items = items\n"
    more = "        self.total = 0\n    def __len__(self):\n        return 1\n\n\nclass New:\n    size = 1\n"
    found = introduced({"a.py": cart}, {"a.py": cart + more})
    assert {one.name for one in found} == {"Cart.total", "Cart.__len__", "New"}
    assert introduced({}, {"a.py": "def greet(:"}) == (), "what cannot be parsed introduces nothing"
    assert introduced({"a.py": "def greet(:"}, {"a.py": "def greet(): ..."}) == (Symbol("a.py", "greet"),)
