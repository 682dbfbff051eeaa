"""One project with every sort of test that pytest knows, some red or unstable before anybody touches it."""

from __future__ import annotations

from typing import Final

from e2e.shapes import TRACKER

ZOO: Final = '''"""Zoo.

>>> 1 + 1
2
"""


def greet(name):
    """Greet.

    >>> greet("Ada")
    'Hello, Ada!'
    """
    return f"Hello, {name}!"


def never_called():
    return 1
'''
INI: Final = """[tool.pytest.ini_options]
addopts = ["--doctest-modules", "--cov=zoo", "--cov-fail-under=99", "-q"]
asyncio_mode = "auto"
asyncio_default_fixture_loop_scope = "function"
pythonpath = ["."]
"""
OUTER_CONFTEST: Final = """import pytest


@pytest.fixture
def who():
    return "Ada"
"""
INNER_CONFTEST: Final = """import pytest


@pytest.fixture
def who(who):
    return who + " L."
"""
INNER: Final = """from zoo import greet


def test_inner(who):
    assert greet(who) == "Hello, Ada L.!"
"""
ASYNC: Final = """import asyncio


async def test_waits():
    await asyncio.sleep(0)
"""
UNIT: Final = """import unittest

from zoo import greet


class TestZoo(unittest.TestCase):
    def setUp(self):
        self.name = "Ada"

    def test_greet(self):
        for name in ("a", "b"):
            with self.subTest(name=name):
                self.assertIn(name, greet(name))
"""
LOUD: Final = """import sys


def test_prints_a_lot(capfd):
    with capfd.disabled():
        for _ in range(60_000):
            sys.stdout.write("x" * 99 + "\\n")
"""
STATE: Final = """import sys


def test_leaves_state():
    sys.zoo = True


def test_fails_after_the_other():
    assert not hasattr(sys, "zoo")
"""
FILES: Final = {
    "zoo.py": ZOO,
    "pyproject.toml": INI,
    "tests/conftest.py": OUTER_CONFTEST,
    "tests/inner/conftest.py": INNER_CONFTEST,
    "tests/inner/test_inner.py": INNER,
    "tests/test_async.py": ASYNC,
    "tests/test_unit.py": UNIT,
    "tests/test_loud.py": LOUD,
    "tests/test_state.py": STATE,
    "tests/test_red.py": "def test_was_red_before():\n    assert 1 == 2\n",
    "tests/test_broken.py": "import there_is_no_such_module\n",
    **TRACKER,
}

# --- what the issue brings -----------------------------------------------------------------------------------------

NEW_UNIT: Final = """
    def test_nobody(self):
        with self.assertRaises(ValueError):
            greet("")
"""
NEW_ASYNC: Final = """

async def test_nobody_waits():
    import zoo

    assert await zoo.later("Ada") == "Hello, Ada!"
"""
PARAMETERS: Final = """import pytest

import zoo


@pytest.mark.parametrize("name", ["", " ", "Ada"])
def test_blank(name, who):
    if name == who[:3]:
        assert zoo.greet(name)
        return
    with pytest.raises(ValueError):
        zoo.greet(name)
"""
LATER: Final = """

async def later(name):
    return greet(name)
"""
TESTS: Final = {
    "tests/test_unit.py": UNIT + NEW_UNIT,
    "tests/test_async.py": ASYNC + NEW_ASYNC,
    "tests/inner/test_nobody.py": PARAMETERS,
}
CODE: Final = {
    "zoo.py": ZOO.replace("    return f", "    if not name.strip():\n        raise ValueError(name)\n    return f")
    + LATER
}
SYMBOLS: Final = [{"path": "zoo.py", "name": "later", "new": True}]
GUARD: Final = "tests/inner/test_nobody.py::test_blank[Ada]"
RED: Final = [
    "tests/inner/test_nobody.py::test_blank[ ]",
    "tests/inner/test_nobody.py::test_blank[]",
    "tests/test_async.py::test_nobody_waits",
    "tests/test_unit.py::TestZoo::test_nobody",
]
