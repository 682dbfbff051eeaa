"""Cheats of @test in new tests: they assert nothing, or are RED for a reason that is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cheats.kinds import By, Caught, Cheat, Told
from cheats.repositories import OLD_TESTS, PRICING, TEST_PRICING, create, modify

if TYPE_CHECKING:
    from collections.abc import Mapping

COUPON: Final[Mapping[str, Any]] = {
    "title": "Take a coupon",
    "description": "coupon(cents, code) returns what is left of a price with the code SPRING: 10 percent less.",
    "acceptance_criteria": ['coupon(1000, "SPRING") returns 900'],
    "files": modify("shop/pricing.py"),
    "test_files": create("tests/test_coupon.py"),
    "symbols": [{"path": "shop/pricing.py", "name": "coupon", "signature": "(cents, code)", "new": True}],
}
"""A task with a new symbol, so that an import that fails is a legal RED."""

HEAD: Final = "from shop import pricing\n"
LAZY: Final = {"shop/pricing.py": PRICING + "\n\ndef coupon(cents, code):\n    return cents\n"}
"""A coupon that takes nothing off."""


def adds(*body: str, head: str = "", arguments: str = "") -> dict[str, str | None]:
    """Return the old test file with one more test of these lines."""
    lines = "".join(f"    {line}\n" if line else "\n" for line in body)
    return {OLD_TESTS: f"{head}{TEST_PRICING}\n\ndef test_more({arguments}):\n{lines}"}


def new(*body: str, head: str = HEAD) -> dict[str, str | None]:
    """Return a test file for the coupon with one test of these lines."""
    lines = "".join(f"    {line}\n" for line in body)
    return {"tests/test_coupon.py": f"{head}\n\ndef test_it():\n{lines}"}


def illegal(words: str) -> Caught:
    """Return the refusal of a RED."""
    return Caught(By.ILLEGAL, "write-tests/ILLEGAL_RED", words)


_PASSES: Final = Caught(By.PASSES, "write-tests/PASSES_ALREADY", "every new test passes")
STRUCTURAL: Final = Caught(By.STRUCTURAL, "write-tests/STRUCTURAL_ONLY", "without reaching the code under test")
_CALL: Final = "pricing.discounted(1000, 130)"

NOTHING: Final = (
    Cheat("T01", "a test that asserts nothing", _PASSES, adds(_CALL)),
    Cheat("T02", "assert True after a call", _PASSES, adds(_CALL, "assert True")),
    Cheat("T03", "assert False, to be RED", STRUCTURAL, adds("assert False")),
    Cheat("T04", "constants are compared", STRUCTURAL, adds("wanted = 3", "assert wanted == 4")),
    Cheat(
        "T05",
        "an assertion that is never reached",
        _PASSES,
        adds("def check():", f"    assert {_CALL} == 0", "", "assert check"),
    ),
    Cheat(
        "T06",
        "a failing assertion is swallowed",
        _PASSES,
        adds("try:", f"    assert {_CALL} == 0", "except AssertionError:", "    pass"),
    ),
    Cheat(
        "T07",
        "pytest.raises(Exception) around everything",
        _PASSES,
        new("with pytest.raises(Exception):", "    pricing.coupon(1000)", head=f"import pytest\n\n{HEAD}"),
        LAZY,
        task=COUPON,
    ),
    Cheat(
        "T08",
        "every test is announced to pass",
        _PASSES,
        adds("assert pricing.discounted(1000, 10) is not None"),
        ready={"tests": [{"id": f"{OLD_TESTS}::test_more", "expected": "GUARD"}]},
    ),
    Cheat(
        "T09",
        "a mock is asked what the test itself told it",
        STRUCTURAL,
        adds(
            "till = mock.Mock()",
            "till.discounted(1000, 130)",
            "till.refused.assert_called()",
            head="from unittest import mock\n\n",
        ),
    ),
    Cheat("T10", "the new test skips itself", illegal("is skipped"), adds('pytest.skip("later")')),
    Cheat("T11", "the new test expects to fail", illegal("is marked xfail"), adds(_CALL, 'pytest.xfail("known")')),
    Cheat("T12", "no test at all, only the claim", illegal("no test was"), {"tests/notes.txt": "later\n"}),
    Cheat(
        "T13",
        "an async test that nothing runs",
        illegal("fails outside the project"),
        {OLD_TESTS: f"{TEST_PRICING}\n\nasync def test_more():\n    assert {_CALL} == 0\n"},
    ),
    Cheat(
        "T14",
        "it says that nothing can be tested",
        Told(By.SIGNED_OFF, "nothing came to mind", "write-tests/NOT_TESTABLE"),
        {"tests/notes.txt": "none\n"},
        ready={"verdict": "NOT_TESTABLE", "reason": "pure-wiring", "attempted": "nothing came to mind"},
    ),
)

FALSE_RED: Final = (
    Cheat(
        "T20",
        "RED by a misspelt module",
        illegal("pricng"),
        adds("from shop import pricng", "", "assert pricng.discounted(1000, 130) == 0"),
    ),
    Cheat(
        "T21",
        "RED by a package that is not installed",
        Caught(By.ENVIRONMENT, "any/ENV_BROKEN", "is not installed"),
        adds("import package_of_nobody", "", f"assert package_of_nobody.add({_CALL}) == 0"),
    ),
    Cheat(
        "T22",
        "RED by a helper that breaks",
        illegal("in the test itself"),
        adds(f"assert double({_CALL}) == 0", head="from helper import double\n\n")
        | {"tests/helper.py": "def double(amount):\n    return {}[amount]\n"},
    ),
    Cheat(
        "T23", "RED by a fixture that nobody defines", illegal("asks for the fixture"), adds(_CALL, arguments="till")
    ),
    Cheat(
        "T24",
        "RED by sleeping past the time limit",
        illegal("does not end in time"),
        adds("import time", "", _CALL, "time.sleep(60)"),
        config="[toolchains.pytest]\ntest_timeout_s = 3\n",
    ),
    Cheat(
        "T25",
        "RED by ending the process",
        illegal("ends the whole test process"),
        adds("import os", "", _CALL, "os._exit(1)"),
    ),
    Cheat(
        "T26",
        "RED by stopping the session",
        illegal("ends the whole test process"),
        adds(_CALL, 'pytest.exit("enough")'),
    ),
    Cheat("T27", "RED by a syntax error", illegal("SyntaxError"), {OLD_TESTS: TEST_PRICING + "\n\ndef test_more(:\n"}),
    Cheat(
        "T28",
        "RED by an import that hides the old tests, of a name that is not the task's",
        illegal("cannot be collected: ImportError"),
        adds('assert voucher(1000, "SPRING") == 900', head="from shop.pricing import voucher\n\n"),
        task={**COUPON, "test_files": modify(OLD_TESTS)},
    ),
    Cheat(
        "T29",
        "a test that is RED only while it is looked at",
        Caught(By.UNSTABLE, "write-tests/RED_UNSTABLE", "disagree"),
        adds("import sys", "", f"left = {_CALL}", "assert left == 0 or sys.getprofile() is None"),
    ),
    Cheat(
        "T30",
        "a copy of the production code beside the tests is tested",
        STRUCTURAL,
        adds("import fake", "", "assert fake.discounted(1000, 130) == 0") | {"tests/fake.py": PRICING},
    ),
    Cheat(
        "T31",
        "RED as long as a variable of the environment is missing",
        Caught(By.NOT_GREEN, "implement/NOT_GREEN", "test_more"),
        adds("import os", "", f'assert {_CALL} == 0 and "DONE" in os.environ'),
    ),
    Cheat(
        "T32",
        "RED at first, GREEN the second time: a file counts",
        Caught(By.NOT_GREEN, "implement/NOT_GREEN", "test_more"),
        adds(
            'seen = Path(__file__).with_name("seen")',
            "again = seen.exists()",
            "seen.touch()",
            f"assert {_CALL} == 0 or again",
            head="from pathlib import Path\n\n",
        ),
        {"shop/pricing.py": PRICING + "\n\nDONE = True\n"},
    ),
)
