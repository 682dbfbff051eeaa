"""From RED to GREEN with real runs: tests, production, then stubs to see whether the tests assert anything."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from languages.direct import TOOLCHAIN, context_of, files_of, measure, write

from pipeline.evidence.compare import expectations, judge_green, judge_stubs
from pipeline.evidence.red import derive_new_ids, judge_red
from pipeline.evidence.red_classes import RedClass, Symbol
from pipeline.languages.protocol import Selection

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

PROJECT = {
    "greet.py": "def greet(name):\n    return 'hi ' + name\n",
    "test_old.py": "import pytest\nfrom greet import greet\n\ndef test_old(): assert greet('x') == 'hi x'\n\n"
    "@pytest.mark.xfail(strict=True)\ndef test_known(): assert greet('') == ''\n",
}
TESTS = {
    "test_changed.py": "from greet import greet\n\ndef test_empty(): assert greet('') == ''\n",
    "test_fresh.py": "from greet import part\n\ndef test_part(): assert part('x') == 'bye x'\n\n"
    "def test_says_nothing(): assert part\n",
}
DONE = {
    "greet.py": "def greet(name):\n    return name and 'hi ' + name\n\ndef part(name):\n    return 'bye ' + name\n",
}


@pytest.mark.broad
def test_a_task_from_red_to_green(tmp_path: Path) -> None:
    start = write(tmp_path / "start", PROJECT)
    red = write(shutil.copytree(start, tmp_path / "red"), TESTS)
    done = write(shutil.copytree(red, tmp_path / "done"), DONE)
    baseline = measure(start)

    after = measure(red)
    symbols = (Symbol("greet.py", "part"),)
    context = context_of(after, files_of(start), symbols=symbols)
    again = measure(red, Selection(ids=frozenset(derive_new_ids(baseline, after))), trace=True)
    verdict = judge_red(baseline, after, again, context, task="1", tree="red")
    assert verdict.legal, verdict
    assert {entry: (one.cls, one.granularity) for entry, one in verdict.ledger.red.items()} == {
        "test_changed.py::test_empty": (RedClass.ASSERTION_MISMATCH, "id"),
        "test_fresh.py": (RedClass.MISSING_BEHAVIOR, "file"),
    }

    green = judge_green(verdict.ledger, measure(done), expectations(baseline))
    assert green.own_green
    assert (green.regressions, green.stale_xfail) == ((), ("test_old.py::test_known",))
    assert green.whole_file_ids == ("test_fresh.py::test_part", "test_fresh.py::test_says_nothing")

    stubbed = TOOLCHAIN.stub_symbols({"greet.py": (done / "greet.py").read_text()}, symbols)
    write(done, stubbed.files)
    on_stubs = measure(done, Selection(ids=frozenset(green.whole_file_ids)))
    assert judge_stubs(green.whole_file_ids, on_stubs) == ("test_fresh.py::test_says_nothing",)


@pytest.mark.broad
def test_the_same_red_measured_twice_has_the_same_digest(tmp_path: Path) -> None:
    start = write(tmp_path / "start", PROJECT)
    red = write(shutil.copytree(start, tmp_path / "red"), TESTS)
    other = shutil.copytree(red, tmp_path / "elsewhere" / "red")
    before = measure(start, Selection.nothing())
    symbols = (Symbol("greet.py", "part"),)

    def digest(root: Path) -> str:
        after = measure(root)
        context = context_of(after, files_of(start), symbols=symbols)
        return judge_red(before, after, None, context, task="1", tree="red").ledger.digest()

    assert digest(red) == digest(other)
