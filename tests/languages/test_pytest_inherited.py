"""Tests that a class inherits: what counts as their source is where they are written, and the class that has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from languages.direct import measure, write

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

COMMON = """
import pytest

class Shared:
    kind = None

    @pytest.mark.parametrize("n", [1, 2])
    def test_shared(self, n):
        assert self.kind

class TestWhole:
    def test_whole(self):
        assert True

def test_alone():
    assert True
"""
SUITE = """
import unittest
from common import Shared, TestWhole, test_alone

class Mixin:
    cls = None

    def test_same(self):
        assert self.cls

class TestA(Mixin):
    cls = 1

    def test_own(self):
        assert True

class TestB(Mixin, unittest.TestCase):
    cls = 2

class TestC(Shared):
    kind = 3

def make(value):
    class TestMade:
        def test_made(self):
            assert value
    return TestMade

TestMade = make(1)

def test_lent(self=None):
    assert True

class TestLent:
    pass

TestLent.test_of_another = test_lent
"""
INHERITED = {"TestA::test_same", "TestB::test_same"}
SHARED = {"TestC::test_shared[1]", "TestC::test_shared[2]"}
MADE = {"TestMade::test_made"}
LENT = {"TestLent::test_of_another"}
CHANGES: list[tuple[str, str, str, set[str]]] = [
    ("test_it.py", "TestMade = make(1)\n", "TestMade = make(1)\n\nclass TestNew:\n    pass\n", {*MADE, *LENT}),
    ("test_it.py", "    def test_own(self):\n", "    def test_own(self):\n        pass\n", {"TestA::test_own"}),
    ("test_it.py", "def test_own(self):", "def test_new(self): pass\n\n    def test_own(self):", set()),
    ("test_it.py", "test_lent(self=None)", "test_lent(self=1)", {"test_lent", *LENT}),
    ("test_it.py", "assert value", "assert value or True", {*MADE, *LENT}),
    ("test_it.py", "assert self.cls", "assert self.cls or True", INHERITED),
    ("test_it.py", "cls = 2", "cls = 4", {"TestB::test_same", *MADE, *LENT}),
    ("test_it.py", "TestC(Shared)", "TestC(Shared, object)", {*SHARED, *MADE, *LENT}),
    ("test_it.py", "make(1)", "make(2)", {*MADE, *LENT}),
    ("common.py", "assert self.kind", "assert self.kind or True", SHARED),
    ("common.py", "def test_whole(self):", "def test_whole(self, x=1):", {"TestWhole::test_whole"}),
    ("common.py", "def test_alone():", "def test_alone(x=1):", {"test_alone"}),
]


def regions(root: Path, files: dict[str, str]) -> dict[str, str]:
    found = measure(write(root, files)).records
    assert not [entry for entry, record in found.items() if not record.region_sha256]
    return {entry.partition("::")[2]: record.region_sha256 for entry, record in found.items()}


@pytest.mark.broad
def test_the_source_of_an_inherited_test_is_its_own_lines(tmp_path: Path) -> None:
    files = {"common.py": COMMON, "test_it.py": SUITE}
    before = regions(tmp_path / "before", files)
    assert len(before) == 10
    for number, (path, old, new, expected) in enumerate(CHANGES):
        assert old in files[path]
        after = regions(tmp_path / str(number), {**files, path: files[path].replace(old, new)})
        assert {entry for entry in before if before[entry] != after[entry]} == expected, (path, new)


def test_the_written_values_of_an_inherited_test_are_known(tmp_path: Path) -> None:
    records = measure(write(tmp_path, {"common.py": COMMON, "test_it.py": SUITE})).records
    case = records["test_it.py::TestC::test_shared[1]"].case
    assert case is not None
    assert case.written
