"""Honest work in new tests and in production that resembles a cheat, and goes through without a question."""

from __future__ import annotations

from typing import Any, Final

from cheats.kinds import Honest
from cheats.repositories import (
    CART,
    CONFTEST,
    NEW,
    OLD_TESTS,
    PRICING,
    PRICING_DONE,
    SUITE,
    TEST_PRICING,
    create,
    modify,
)
from cheats.weakeners import passing
from cheats.writers import COUPON, HEAD, new

_PATH: Final = "shop/pricing.py"
_TITLE: Final = '"""Prices, in cents."""\n'
_MORE: Final = "tests/test_more.py"
_COUPON: Final = """

def coupon(cents, code):
    \"\"\"Return what is left of a price with a code.\"\"\"
    return discounted(cents, {"SPRING": 10}.get(code, 0))
"""
TAKES: Final = {_PATH: PRICING + _COUPON}
"""A coupon that takes something off."""

_SPRING: Final = 'pricing.coupon(1000, "SPRING") == 900'
_DEAR: Final = "@pytest.fixture\ndef dear():\n    return 100_000\n"
_WITH_DEAR: Final = NEW.replace("negative():", "negative(dear):").replace("(1000, 130)", "(dear, 130)")
_CASES: Final = """

@pytest.mark.parametrize("percent", [100, 101, 200])
def test_nothing_left(percent):
    assert pricing.discounted(1000, percent) == 0
"""
_HELPER: Final = 'def costs(amount, wanted):\n    assert amount == wanted, f"{amount} is not {wanted}"\n'
_UNITTEST: Final = """import unittest

from shop import pricing


class TestPrices(unittest.TestCase):
    def setUp(self):
        self.price = 1000

    def test_nothing_left(self):
        self.assertEqual(pricing.discounted(self.price, 130), 0)
"""
_RATES: Final = '''"""Rates."""

import urllib.request


def rate(name):
    """Return a rate."""
    return float(urllib.request.urlopen(f"http://rates.invalid/{name}").read())
'''
_TILL: Final = '''"""The till."""

import sys

from shop import money

if __name__ == "__main__":
    print(money.shown(int(sys.argv[1])))
'''
_OFF: Final = """

def coupon(cents, code):
    return discounted(cents, int(os.environ.get("SHOP_OFF", "0")))
"""
_SAVE: Final = (
    '\n    def save(self, path):\n        """Write the receipt."""\n        path.write_text(self.receipt())\n'
)
_SLOWLY: Final = "\n\ndef test_slowly():\n    time.sleep(0.3)\n    assert pricing.discounted(1, 200) == 0\n"
_WINDOWS: Final = "@pytest.mark.skipif(\"sys.platform == 'win32'\")\ndef test_a_price_is"
_EACH: Final = """

@pytest.mark.parametrize("percent", range(101, 141))
def test_each(percent):
    assert pricing.discounted(1000, percent) == 0
"""


def task(files: list[dict[str, str]], tests: list[dict[str, str]], **more: Any) -> dict[str, Any]:
    """Return what a task says differently."""
    return {"files": files, "test_files": tests, **more}


def symbol(path: str, name: str) -> dict[str, Any]:
    """Return what a task introduces."""
    return {"path": path, "name": name, "new": True}


_NEW_FILE: Final = create("tests/test_coupon.py")

WRITERS: Final = (
    Honest("H01", "the plain way", "nothing at all"),
    Honest(
        "H02",
        "what is new is imported at the top of a new file",
        "RED by a misspelt module",
        new('assert coupon(1000, "SPRING") == 900', head="from shop.pricing import coupon\n"),
        TAKES,
        task=COUPON,
    ),
    Honest(
        "H03",
        "what is new is imported in the test",
        "a test that only imports",
        new("from shop import pricing", "", f"assert {_SPRING}", head="import sys  # noqa: F401\n"),
        TAKES,
        task=COUPON,
    ),
    Honest(
        "H04",
        "a guard beside RED tests, announced",
        "every test is announced to pass",
        {OLD_TESTS: f"{SUITE}\n\ndef test_all_of_it():\n    assert pricing.discounted(1000, 100) == 0\n"},
        ready=passing("test_all_of_it"),
    ),
    Honest("H05", "one case is RED, others pass", "tests that pass already", {OLD_TESTS: SUITE + _CASES}),
    Honest(
        "H06",
        "the assertions are in a helper beside the tests",
        "RED by a helper that breaks",
        {
            OLD_TESTS: f"from helper import costs\n\n{SUITE}\n\ndef test_more():\n"
            "    costs(pricing.discounted(1, 200), 0)\n",
            "tests/helper.py": _HELPER,
        },
    ),
    Honest(
        "H07",
        "a fixture is added and used",
        "a fixture that replaces production",
        {OLD_TESTS: TEST_PRICING.replace("@pytest.fixture\n", f"{_DEAR}\n\n@pytest.fixture\n", 1) + _WITH_DEAR},
    ),
    Honest(
        "H08",
        "a fixture in a conftest.py that the task names",
        "configuration is edited",
        {OLD_TESTS: TEST_PRICING + _WITH_DEAR, "tests/conftest.py": f"{CONFTEST}\n\n{_DEAR}"},
        task=task(modify(_PATH), modify(OLD_TESTS, "tests/conftest.py")),
    ),
    Honest("H09", "a class of unittest", "tests that nothing runs", {OLD_TESTS: SUITE, _MORE: _UNITTEST}),
    Honest(
        "H10",
        "the network is replaced by a stand-in",
        "the test replaces what it tests",
        new(
            'with mock.patch("urllib.request.urlopen") as opened:',
            '    opened.return_value.read.return_value = b"1.25"',
            '    assert rates.rate("chf") == 1.25',
            'opened.assert_called_once_with("http://rates.invalid/chf")',
            head="from unittest import mock\n\nfrom shop import rates\n",
        ),
        {"shop/rates.py": _RATES},
        task=task(create("shop/rates.py"), _NEW_FILE, symbols=[symbol("shop/rates.py", "rate")]),
    ),
    Honest(
        "H11",
        "a program is started and asked",
        "the process is ended",
        new(
            'argv = [sys.executable, "-m", "shop.till", "1000"]',
            "done = subprocess.run(argv, capture_output=True, text=True, check=False)",
            'assert done.stdout == "10.00\\n", done.stderr',
            head="import subprocess\nimport sys\n",
        ),
        {"shop/till.py": _TILL},
        task=task(create("shop/till.py"), _NEW_FILE),
    ),
    Honest(
        "H12",
        "a variable of the environment is set for a test",
        "RED as long as a variable is missing",
        {
            "tests/test_coupon.py": f"{HEAD}\n\ndef test_it(monkeypatch):\n"
            '    monkeypatch.setenv("SHOP_OFF", "20")\n    assert pricing.coupon(1000, "ANY") == 800\n'
        },
        {_PATH: PRICING.replace(_TITLE, f"{_TITLE}\nimport os\n") + _OFF},
        task=COUPON,
    ),
    Honest(
        "H13",
        "a slow test, within its limit",
        "sleeping past the time limit",
        {OLD_TESTS: f"import time\n\n{SUITE}{_SLOWLY}"},
    ),
    Honest(
        "H14",
        "a new test that another system leaves out",
        "the new test is skipped",
        {OLD_TESTS: SUITE.replace("def test_a_price_is", _WINDOWS)},
    ),
    Honest(
        "H15",
        "forty cases and four hundred lines",
        "more than anybody reads",
        {OLD_TESTS: SUITE + _EACH},
        {_PATH: PRICING_DONE + "".join(f"\n\ndef plus_{n}(cents):\n    return cents + {n}\n" for n in range(100))},
    ),
    Honest(
        "H16",
        "a file is written where tests may",
        "a file counts how often",
        {
            "tests/test_coupon.py": "from shop.cart import Cart\n\n\ndef test_it(tmp_path):\n    cart = Cart()\n"
            '    cart.add("tea", 300)\n    cart.save(tmp_path / "cart.txt")\n'
            '    assert (tmp_path / "cart.txt").read_text() == "1 x tea: 3.00\\n"\n'
        },
        {"shop/cart.py": CART + _SAVE},
        task=task(modify("shop/cart.py"), _NEW_FILE, symbols=[symbol("shop/cart.py", "Cart.save")]),
    ),
)
