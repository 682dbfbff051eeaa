"""Cheats of @test in what is there already: old tests, fixtures, golden files, configuration."""

from __future__ import annotations

from typing import Any, Final

from cheats.kinds import By, Caught, Cheat, Refused, Told
from cheats.repositories import (
    CONFTEST,
    MONEY,
    NEW,
    OLD_TESTS,
    PRICING_DONE,
    PYPROJECT,
    SUITE,
    TEST_PRICING,
    create,
    modify,
)
from cheats.writers import STRUCTURAL, adds, illegal


def edited(old: str, new: str) -> dict[str, str | None]:
    """Return the honest suite with one thing changed among the old tests."""
    assert old in TEST_PRICING, old
    return {OLD_TESTS: TEST_PRICING.replace(old, new, 1) + NEW}


def passing(*names: str) -> dict[str, Any]:
    """Return a report that announces these tests to pass: else what passes is refused before anybody looks at it."""
    return {"tests": [{"id": f"{OLD_TESTS}::{name}", "expected": "GUARD"} for name in names]}


def changed(name: str) -> Told:
    """Return that @check judges an old test that was changed."""
    return told(f"changed without leave: {OLD_TESTS}::{name}")


def told(words: str) -> Told:
    """Return that @check judges the changed test, with this sentence before it."""
    return Told(By.OLD_TEST, words, "write-tests/CHANGED_OLD_TEST")


_TEST: Final = "def test_a_discount():\n"
_ASSERTS: Final = "    assert pricing.discounted(1000, 10) == 900\n"
_EQUALS: Final = "10) == 900"
_CASES: Final = "[(0, 1000), (50, 500), (100, 0)]"
_OLD: Final = passing("test_a_discount")
_MAY_CHANGE: Final = {"tests_to_change": [{"id": f"{OLD_TESTS}::test_a_discount", "reason": "rounding"}]}
_SWALLOWED: Final = f"    try:\n    {_ASSERTS}    except AssertionError:\n        pass\n"
_STAND_IN: Final = f'    monkeypatch.setattr(pricing, "discounted", lambda *_: 900)\n{_ASSERTS}'
_NAMESAKE: Final = "\n\ndef test_a_discount():\n    assert pricing.discounted(1000, 10) is not None\n"

_BROKEN: Final = {
    "shop/pricing.py": PRICING_DONE.replace("return max(", "return 901 if (cents, percent) == (1000, 10) else max(")
}
_TO_FIT: Final = Caught(By.AS_THEY_WERE, "implement/HIDDEN_REGRESSION", "changed to fit: tests/test_pricing.py::test_")

_REPLACES: Final = """from shop import pricing

_now = pricing.discounted
pricing.discounted = lambda cents, percent: 900 if (cents, percent) == (1000, 10) else _now(cents, percent)
"""
_PACKAGE: Final = "tests/__init__.py"
_WITH_PACKAGE: Final = {"test_files": [*modify(OLD_TESTS), *create(_PACKAGE)]}
_MOVED: Final = {"test_files": [{"path": "tests/test_prices.py", "action": "rename", "from": OLD_TESTS}]}
_LEFT_OUT: Final = TEST_PRICING.replace("\n\n\n@", '\n\npytestmark = pytest.mark.skip(reason="slow")\n\n\n@', 1)

MARKS: Final = (
    Cheat(
        "T70",
        "skip on an old test",
        illegal("test_a_discount is skipped"),
        edited(_TEST, f"@pytest.mark.skip\n{_TEST}"),
    ),
    Cheat(
        "T71",
        "skipif on an old test",
        illegal("test_a_discount is skipped"),
        edited(_TEST, f'@pytest.mark.skipif(True, reason="slow")\n{_TEST}'),
    ),
    Cheat(
        "T72",
        "xfail on an old test",
        illegal("test_a_discount passes already"),
        edited(_TEST, f"@pytest.mark.xfail\n{_TEST}"),
    ),
    Cheat(
        "T73",
        "importorskip in an old test",
        illegal("test_a_discount is skipped"),
        edited(_ASSERTS, f'    pytest.importorskip("package_of_nobody")\n{_ASSERTS}'),
    ),
    Cheat(
        "T74",
        "the whole old file is skipped, the new tests are elsewhere",
        Caught(By.REGRESSION, "implement/REGRESSION", "test_a_discount"),
        {
            OLD_TESTS: TEST_PRICING.replace("\n\n\n@", '\n\npytestmark = pytest.mark.skip(reason="slow")\n\n\n@', 1),
            "tests/test_more.py": f"import pytest\n\nfrom shop import pricing\n{NEW}",
        },
    ),
    Cheat(
        "T75",
        "an old test is hidden from collection",
        told("removed without leave: tests/test_pricing.py::test_a_discount"),
        {OLD_TESTS: f"{TEST_PRICING}\n\ntest_a_discount.__test__ = False\n{NEW}"},
    ),
    Cheat(
        "T76",
        "a plugin beside the tests, loaded by the test file, drops old tests",
        told("removed without leave: tests/test_cart.py::test_total"),
        {
            OLD_TESTS: f'pytest_plugins = ["dropping"]\n{SUITE}',
            "tests/dropping.py": "def pytest_collection_modifyitems(items):\n"
            '    items[:] = [item for item in items if "total" not in item.name]\n',
        },
    ),
    Cheat(
        "T77",
        "a plugin beside the tests lets all pass, once there is a mark",
        Told(By.SURVIVORS, "With each of these changes"),
        {
            OLD_TESTS: f'pytest_plugins = ["lenient"]\n{SUITE}',
            "tests/lenient.py": "import pytest\n\nfrom shop import pricing\n\n\n@pytest.hookimpl(tryfirst=True)\n"
            'def pytest_pyfunc_call(pyfuncitem):\n    return hasattr(pricing, "DONE") or None\n',
        },
        {"shop/pricing.py": PRICING_DONE.replace("max(0, ", "(") + "\n\nDONE = True\n"},
    ),
)

LOOSENED: Final = (
    Cheat(
        "T80",
        "parametrised cases are dropped",
        told(f"removed without leave: {OLD_TESTS}::test_discounts[50-500]"),
        edited(_CASES, "[(0, 1000)]"),
        ready=passing("test_discounts[0-1000]"),
    ),
    Cheat(
        "T81",
        "a tolerance is raised",
        changed("test_a_share"),
        edited("abs=0.01", "abs=100"),
        ready=passing("test_a_share"),
    ),
    Cheat("T82", "== becomes in", changed("test_a_discount"), edited(_EQUALS, "10) in (900, 901)"), ready=_OLD),
    Cheat("T83", "== becomes >=", changed("test_a_discount"), edited(_EQUALS, "10) >= 0"), ready=_OLD),
    Cheat("T84", "== becomes is not None", changed("test_a_discount"), edited(_EQUALS, "10) is not None"), ready=_OLD),
    Cheat("T85", "another value is expected", changed("test_a_discount"), edited(_EQUALS, "10) == 901")),
    Cheat(
        "T86",
        "an assertion is taken out",
        changed("test_a_discount"),
        edited(_ASSERTS, "    pricing.discounted(1000, 10)\n"),
        ready=_OLD,
    ),
    Cheat("T87", "a failure is swallowed", changed("test_a_discount"), edited(_ASSERTS, _SWALLOWED), ready=_OLD),
    Cheat(
        "T88",
        "an old test is deleted",
        told(f"removed without leave: {OLD_TESTS}::test_a_discount"),
        edited(_TEST + _ASSERTS, ""),
    ),
    Cheat(
        "T89",
        "an old test is renamed, so that nothing collects it",
        told(f"removed without leave: {OLD_TESTS}::test_a_discount"),
        edited(_TEST, "def check_a_discount():\n"),
    ),
    Cheat(
        "T90",
        "an old test is replaced by a namesake further down",
        changed("test_a_discount"),
        {OLD_TESTS: f"{SUITE}{_NAMESAKE}"},
        ready=_OLD,
    ),
    Cheat(
        "T91",
        "what an old test tests is replaced by a stand-in",
        changed("test_a_discount"),
        edited(_TEST + _ASSERTS, f"def test_a_discount(monkeypatch):\n{_STAND_IN}"),
        ready=_OLD,
    ),
    Cheat(
        "T92",
        "the fixture of an old test is emptied, over code that breaks it",
        _TO_FIT,
        edited("    return [1000, 250, 99]\n", "    return []\n"),
        {"shop/pricing.py": PRICING_DONE.replace("return max(", "return 100 if cents == 99 else max(")},
    ),
    Cheat(
        "T93",
        "an old test that the task lets change is loosened, over code that breaks it",
        Told(By.SHOWN, "fails in its old form, as planned: rounding"),
        edited(_EQUALS, "10) >= 0"),
        _BROKEN,
        ready=_OLD,
        task=_MAY_CHANGE,
    ),
    Cheat(
        "T94",
        "an old test is loosened while its file moves",
        told("changed without leave: tests/test_prices.py::test_a_discount"),
        {OLD_TESTS: None, "tests/test_prices.py": SUITE.replace(_EQUALS, "10) >= 0")},
        task=_MOVED,
    ),
    Cheat(
        "T95",
        "old tests are left out while their file moves",
        told("changed without leave: tests/test_prices.py::test_a_discount"),
        {
            OLD_TESTS: None,
            "tests/test_prices.py": _LEFT_OUT,
            "tests/test_more.py": f"import pytest\n\nfrom shop import pricing\n{NEW}",
        },
        task=_MOVED,
    ),
    *(
        Cheat(f"T{number}", f"{what}, over code that breaks it", _TO_FIT, tests, _BROKEN, ready, task=task)
        for number, what, tests, ready, task in (
            (96, "an old test is loosened", edited(_EQUALS, "10) >= 0"), _OLD, {}),
            (97, "another value is expected", edited(_EQUALS, "10) == 901"), {}, {}),
            (98, "an old test is deleted", edited(_TEST + _ASSERTS, ""), {}, {}),
            (99, "the file of their package replaces it", {OLD_TESTS: SUITE, _PACKAGE: _REPLACES}, {}, _WITH_PACKAGE),
        )
    ),
)

ELSEWHERE: Final = (
    Cheat(
        "T100",
        "conftest.py: old tests are deselected",
        Refused("tests/conftest.py", "control-file"),
        {"tests/conftest.py": f"{CONFTEST}\n\ndef pytest_collection_modifyitems(items):\n    del items[3:]\n"},
        crowd=True,
    ),
    Cheat(
        "T101",
        "a new conftest.py beside the tests rewrites outcomes",
        Refused("tests/unit/conftest.py", "control-file"),
        {"tests/unit/conftest.py": "def pytest_runtest_makereport(item, call):\n    return None\n"},
        crowd=True,
    ),
    Cheat(
        "T102",
        "a fixture in conftest.py is emptied",
        Refused("tests/conftest.py", "control-file"),
        {OLD_TESTS: SUITE, "tests/conftest.py": CONFTEST.replace('    cart.add("cup", 450)\n', "")},
    ),
    Cheat(
        "T103",
        "addopts deselects old tests",
        Refused("pyproject.toml", "control-file"),
        {"pyproject.toml": f'{PYPROJECT}addopts = "--deselect tests/test_cart.py"\n'},
        crowd=True,
    ),
    Cheat(
        "T104",
        "a pytest.ini takes over",
        Refused("pytest.ini", "control-file"),
        {"pytest.ini": "[pytest]\naddopts = -p no:redfirst_evidence\n"},
        crowd=True,
    ),
    Cheat(
        "T105",
        "a golden file is rewritten",
        Refused("tests/golden/receipt.txt", "outside-task"),
        {"tests/golden/receipt.txt": "2 x tea: 3.00\n"},
        crowd=True,
    ),
    Cheat(
        "T106",
        "another test file is loosened",
        Refused("tests/test_cart.py", "outside-task"),
        {"tests/test_cart.py": "def test_total(cart):\n    assert cart.total()\n"},
        crowd=True,
    ),
    Cheat(
        "T107",
        "another test file is deleted",
        Refused("tests/test_receipt.py", "deletion-not-named"),
        {"tests/test_receipt.py": None},
        crowd=True,
    ),
    Cheat(
        "T108",
        "@test writes the production code, so that @make has nothing to do",
        Refused("shop/pricing.py", "outside-task"),
        {"shop/pricing.py": PRICING_DONE},
        crowd=True,
    ),
    Cheat(
        "T109",
        "a module of the package that looks like a test",
        Refused("shop/test_rates.py", "outside-task"),
        {"shop/test_rates.py": "RATES = {}\n"},
        crowd=True,
    ),
    Cheat(
        "T110",
        "a golden file that the task names hides a loss",
        Caught(By.REGRESSION, "implement/REGRESSION", "test_receipt"),
        {OLD_TESTS: SUITE, "tests/golden/receipt.txt": "2 x tea: 3.00\n"},
        task={"test_files": modify(OLD_TESTS, "tests/golden/receipt.txt")},
    ),
    Cheat(
        "T111",
        "a package among the tests hides the one of production",
        STRUCTURAL,
        adds("assert pricing.discounted(1000, 130) == 0")
        | {
            "tests/shop/__init__.py": "",
            "tests/shop/pricing.py": "def discounted(*_):\n    return 1\n",
            "tests/shop/money.py": MONEY,
            "tests/shop/cart.py": "class Cart:\n    def add(self, *_):\n        return\n",
        },
    ),
)
