"""What a change of Python tests loosens is told in words; an honest change is told nothing."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.policy.weakening import weakenings

HEAD = "import pytest\nfrom shop import total\n\n"
BASE = """
@pytest.fixture
def cart():
    return [1, 2, 3]


@pytest.mark.timeout(5)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_total(cart, n):
    assert total(cart) == 6
    assert total([n]) == pytest.approx(n, rel=1e-6)
    with pytest.raises(ValueError, match="empty"):
        total([])


class TestMore:
    def test_sum(self):
        self.assertEqual(total([1]), 1)
"""


def told(old: str, new: str, *, text: str = BASE) -> str:
    assert old in text, old
    changed = text.replace(old, new)
    ast.parse(changed)
    return "; ".join(map(str, weakenings((HEAD + text).encode(), (HEAD + changed).encode())))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("    assert total(cart) == 6\n", "", "test_total: 1 of 3 assertions are gone"),
        ("total(cart) == 6", "total(cart) >= 6", "loosened from == to >="),
        ("total(cart) == 6", "total(cart) != 7", "loosened from == to !="),
        ("total(cart) == 6", "total(cart) in (5, 6, 7)", "loosened from == to in"),
        ("total(cart) == 6", "total(cart)", "loosened from == to truth"),
        ("total(cart) == 6", "total(cart) is not None", "loosened from == to is not"),
        ("total(cart) == 6", "isinstance(total(cart), int)", "loosened from == to isinstance"),
        ("total(cart) == 6", "total(cart) == 7", "another value is expected: 7 instead of 6"),
        ("total(cart) == 6", "(total(cart) == 6, 'six')", "an assertion can never fail"),
        ("total(cart) == 6", "total(cart) == 6 or True", "an assertion can never fail"),
        ("total(cart) == 6", "total(cart) == total(cart)", "an assertion can never fail"),
        ("total(cart) == 6", "True", "an assertion can never fail"),
        ("rel=1e-6", "rel=0.5", "a tolerance is raised"),
        ("total(cart) == 6", "round(total(cart)) == 6", "about something else now"),
        ('ValueError, match="empty"', "Exception", "loosened from raises(ValueError, match) to raises(Exception)"),
        (', match="empty"', "", "loosened from raises(ValueError, match) to raises(ValueError)"),
        ('(ValueError, match="empty")', "((ValueError, Exception))", "loosened"),
        ("[1, 2, 3])\ndef", "[1])\ndef", "2 of 3 parametrised cases are dropped"),
        ("def test_total", "@pytest.mark.skip\ndef test_total", "skip is added"),
        ("def test_total", "@pytest.mark.xfail\ndef test_total", "xfail is added"),
        ("    assert total(cart)", "    pytest.skip('later')\n    assert total(cart)", "skip is added"),
        ("def test_total", "def check_total", "test_total: the test is removed"),
        ("timeout(5)", "timeout(500)", "its time limit is raised"),
        ("@pytest.mark.timeout(5)\n", "", "its time limit is gone"),
        ("    return [1, 2, 3]", "    return []", "cart: the fixture is emptied"),
        ("    return [1, 2, 3]", "    pass", "cart: the fixture is emptied"),
        ("def cart()", "def other()", "cart: the fixture is removed"),
        ("assertEqual(total([1]), 1)", "assertTrue(total([1]))", "TestMore.test_sum: an assertion is loosened"),
        ("assertEqual(total([1]), 1)", "assertIn(total([1]), [1, 2])", "loosened from assertEqual to assertIn"),
        ("class TestMore", "pytestmark = pytest.mark.skip\n\n\nclass TestMore", "the whole file is skipped"),
        (
            "    assert total(cart) == 6\n",
            "    try:\n        assert total(cart) == 6\n    except AssertionError:\n        pass\n",
            "a failing assertion is swallowed",
        ),
        (
            "    assert total(cart) == 6\n",
            "    import contextlib\n    with contextlib.suppress(Exception):\n        assert total(cart) == 6\n",
            "a failing assertion is swallowed",
        ),
        (
            "    assert total(cart) == 6\n",
            "    pytest.MonkeyPatch().setattr(shop, 'total', id)\n    assert total(cart) == 6\n",
            "1 more thing is replaced by a stand-in",
        ),
    ],
)
def test_what_is_loosened_is_said(old: str, new: str, says: str) -> None:
    assert says in told(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    assert total(cart) == 6\n", "    assert total(cart) == 6, 'six in all'\n"),
        ("    assert total(cart) == 6\n", "    # the sum\n    assert (\n        total(cart) == 6\n    )\n"),
        ("    assert total(cart) == 6\n", "    assert total(cart) == 6\n    assert total([0]) == 0\n"),
        ("[1, 2, 3])\ndef", "[1, 2, 3, 4])\ndef"),
        ("rel=1e-6", "rel=1e-9"),
        ("timeout(5)", "timeout(2)"),
        ("class TestMore", "def test_new():\n    assert total([9]) == 9\n\n\nclass TestMore"),
        ("(ValueError, match", "(ValueError, check=None, match"),
        ("    return [1, 2, 3]", "    return [1, 2, 3, 4]"),
    ],
)
def test_an_honest_change_is_told_nothing(old: str, new: str) -> None:
    assert told(old, new) == ""


def test_two_assertions_that_change_places_are_no_change() -> None:
    first, second = "    assert total([1]) == 1\n", "    assert total([2]) == 2\n"
    text = f"def test_it():\n{first}{second}"
    assert told(first + second, second + first, text=text) == ""


@pytest.mark.parametrize("broken", [b"def (", b"\xff\xfe", b"x = '" + b"(" * 5000])
def test_what_cannot_be_read_says_nothing(broken: bytes) -> None:
    assert weakenings(broken, b"x = 1\n") == ()
    assert weakenings(b"def test_a(): assert f() == 1\n", broken) == ()


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_two_texts_are_answered(before: bytes, after: bytes) -> None:
    assert isinstance(weakenings(before, after), tuple)


def test_the_same_text_loosens_nothing() -> None:
    assert weakenings((HEAD + BASE).encode(), (HEAD + BASE).encode()) == ()
