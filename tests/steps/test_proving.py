"""Proofs of findings on a real project: what proves, what refutes, and what is refused or shows neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from steps.probed import PYPROJECT, repository, seen, tree_of, without_run

from pipeline.config.model import Config
from pipeline.judge.reports.proofs import Edit, Proof, ProvingTest
from pipeline.steps.asking.grants import scope_without_task
from pipeline.testing.measure.proofs import MOST_CHARACTERS, Work, measure_proof

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.judge.reports.proofs import MeasuredProof
    from pipeline.testing.verification.context import VerificationContext

pytestmark = pytest.mark.slow

SHOP = '''"""Shop."""

RATES = {"low": 5, "high": 20}


def rate(kind):
    return RATES[kind]
'''
PRICED = (
    SHOP
    + """

def price(total, kind):
    if total < 0:
        raise ValueError("no price")
    return total + rate(kind)
"""
)
TESTS = "from shop import price\n\n\ndef test_price():\n    assert price(1, 'low') == 6\n"
HEAD = "from shop import price\n\n\n"
NOTICED = "def test_high():\n    assert price(1, 'high') == 22\n"


WRITES = """from pathlib import Path

import shop


def test_x():
    source = Path(shop.__file__)
    source.write_text(source.read_text().replace("total +", "total -"))
    assert shop.price(1, "low") == 7
"""
QUICK = Config.model_validate({"toolchains": {"pytest": {"test_timeout_s": 3}}})


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[VerificationContext, Work]]:
    """Yield a project whose last commit brought `price`, and that commit as work."""
    files = {"pyproject.toml": PYPROJECT, "shop.py": SHOP, "tests/conftest.py": "", "tests/test_old.py": ""}
    project = repository(tmp_path_factory.mktemp("proofs"), files, {"shop.py": PRICED, "tests/test_shop.py": TESTS})
    with without_run(project, config=QUICK) as context:
        found = seen(context)
        scope = scope_without_task(found, [*files], context.toolchain.sources)
        start, tree = tree_of(context, "HEAD~1"), tree_of(context, "HEAD")
        yield context, Work(tree, found.layout, scope, start, frozenset({"tests/test_shop.py::test_price"}))


Lab = tuple["VerificationContext", Work]


def shown(lab: Lab, path: str, content: str) -> MeasuredProof:
    """Return what a new test shows."""
    context, work = lab
    proof = Proof(test=ProvingTest(path=path, content=content))
    return anyio.run(measure_proof, context, proof, work, "a finding")


def changed(lab: Lab, old: str, new: str, path: str = "shop.py") -> MeasuredProof:
    """Return what an edit shows."""
    context, work = lab
    return anyio.run(measure_proof, context, Proof(edit=Edit(path=path, old=old, new=new)), work, "a finding")


def test_a_test_that_fails_over_the_work_proves_and_one_that_passes_refutes(lab: Lab) -> None:
    both = shown(lab, "tests/test_high.py", f"{HEAD}{NOTICED}\n\ndef test_low():\n    assert price(0, 'low') == 5\n")
    assert (both.found, both.tests) == ("proved", ("tests/test_high.py::test_high",)), both.why
    assert both.guards == ("tests/test_high.py::test_low",)
    assert both.files == ("shop.py",)
    passes = shown(lab, "tests/test_high.py", HEAD + NOTICED.replace("22", "21"))
    assert (passes.found, passes.tests) == ("refuted", ()), passes.why


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (f"{HEAD}def test_x():\n    price(1, 'low').nothing\n", "a reason that shows nothing"),
        ("def test_x():\n    assert 1 == 2\n", "a reason that shows nothing: tests/test_x.py::test_x fails without"),
        ("from shop import nothing\n\n\ndef test_x():\n    assert nothing()\n", "cannot be collected"),
        ("import requests_of_tomorrow\n\n\ndef test_x():\n    assert 0\n", "not installed"),
        ("def helper():\n    return 1\n", "collected no test"),
        (f"{HEAD}import pytest\n\n\n@pytest.mark.skip\ndef test_x():\n    assert price(1, 'low') == 7\n", "skip"),
        (f"{HEAD}import os\n\n\ndef test_x():\n    price(1, 'low')\n    os._exit(3)\n", "ends the whole test process"),
        (f"{HEAD}x = {'1' * MOST_CHARACTERS}\n", "more than"),
        (WRITES, "writes files of the project while it runs: shop.py"),
        (f"{HEAD}def test_x():\n    while price(1, 'low'):\n        pass\n", "does not end in time"),
    ],
    ids=["broken", "no code", "unknown name", "no module", "no test", "skipped", "crash", "long", "writes", "hangs"],
)
def test_a_test_that_shows_neither_is_unproved_and_it_is_said_why(lab: Lab, content: str, why: str) -> None:
    found = shown(lab, "tests/test_x.py", content)
    assert found.found == "unproved"
    assert why in found.why


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("tests/conftest.py", "is there already"),
        ("tests/sub/conftest.py", "controls tests"),
        ("conftest.py", "controls tests"),
        ("tests/test_shop.py", "is there already"),
        ("tests/TEST_shop.py", "where case or Unicode form is ignored"),
        ("shop/test_backdoor.py", "no place of a test file"),
        ("test_top.py", "named as they are; the runner looks only at tests"),
        ("tests/helper.py", "no place of a test file"),
        ("tests/sitecustomize.py", "controls tests"),
        ("TODO/test_x.py", "the tracker is written by the program only"),
    ],
)
def test_a_test_is_refused_where_a_writer_of_tests_is(lab: Lab, path: str, why: str) -> None:
    found = shown(lab, path, HEAD + NOTICED)
    assert found.found == "unproved"
    assert why in found.why


def test_two_runs_that_disagree_prove_nothing(lab: Lab, tmp_path: Path) -> None:
    once = f"{HEAD}from pathlib import Path\n\n\ndef test_x():\n    mark = Path({str(tmp_path / 'mark')!r})\n"
    content = once + "    wanted = 6 if mark.exists() else 7\n    mark.touch()\n    assert price(1, 'low') == wanted\n"
    found = shown(lab, "tests/test_x.py", content)
    assert (found.found, found.why) == ("unproved", "its two runs disagree: tests/test_x.py::test_x")


def test_an_edit_that_all_tests_accept_proves_and_one_that_a_test_notices_refutes(lab: Lab) -> None:
    accepted = changed(lab, "total < 0", "total < -5")
    assert (accepted.found, accepted.files) == ("proved", ("shop.py",)), accepted.why
    noticed = changed(lab, "return total + rate(kind)", "return total - rate(kind)")
    assert (noticed.found, noticed.tests) == ("refuted", ("tests/test_shop.py::test_price",)), noticed.why


@pytest.mark.parametrize(
    ("old", "new", "path", "why"),
    [
        ("kind", "sort", "shop.py", "times in shop.py"),
        ("nowhere", "here", "shop.py", "0 times"),
        ("    if total < 0:", "    if total < 0:  # never", "shop.py", "changes nothing"),
        ("return RATES[kind]", "return 5", "shop.py", "not of lines"),
        ("== 6", "== 6 or True", "tests/test_shop.py", "no production file"),
        ("addopts", "nothing", "pyproject.toml", "no production file"),
        ("x", "y", "missing.py", "no file of the result"),
    ],
)
def test_an_edit_that_can_prove_nothing_is_not_run(lab: Lab, old: str, new: str, path: str, why: str) -> None:
    found = changed(lab, old, new, path)
    assert found.found == "unproved"
    assert why in found.why
