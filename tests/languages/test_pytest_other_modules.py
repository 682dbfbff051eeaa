"""A module in the place of a file of tests is a collection error, however it came there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from languages.direct import measure, write

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

PLANTED = """
import os, sys, types
os.environ["PY_IGNORE_IMPORTMISMATCH"] = "1"
module = types.ModuleType("test_b")
module.test_it = lambda: None
{named}
sys.modules["test_b"] = module
"""
FAILS = "def test_it():\n    assert 0\n"


@pytest.mark.parametrize("named", ["", "module.__file__ = __file__"], ids=["nothing", "another"])
@pytest.mark.parametrize("mode", ["prepend", "importlib"])
@pytest.mark.broad(but_first=2)
def test_a_planted_module_is_no_file_of_tests(named: str, mode: str, tmp_path: Path) -> None:
    settings = f"[pytest]\npythonpath = .\naddopts = --import-mode={mode}\n"
    files = {
        "pytest.ini": settings,
        "app.py": PLANTED.format(named=named),
        "test_a.py": "import app\n",
        "test_b.py": FAILS,
    }
    seen = measure(write(tmp_path, files))
    assert seen.unread == {"test_b.py"}
    assert "was loaded in its place" in seen.collection_errors[0].fault.raised.message


@pytest.mark.broad
def test_honest_modules_are_in_their_own_place(tmp_path: Path) -> None:
    passes = "def test_it():\n    '''\n    >>> 1\n    1\n    '''\n"
    files = {
        "pytest.ini": "[pytest]\naddopts = --doctest-modules\n",
        "pkg/__init__.py": passes,
        "pkg/tests/__init__.py": passes,
        "pkg/tests/test_a.py": passes,
        "other/test_b.py": passes,
    }
    root = write(tmp_path / "real", files)
    (root / "linked").symlink_to("other")
    (tmp_path / "link").symlink_to(root)
    for place in (root, tmp_path / "link"):
        assert measure(place).collection_errors == ()
