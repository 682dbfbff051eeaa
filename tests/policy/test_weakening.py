"""What a change of Python tests loosens is told in words; an honest change is told nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.languages.sources.weakening import added, weakenings

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
LOOSENED_BASE = [
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
    ('ValueError, match="empty"', "Exception", "loosened from raises(ValueError, match) to raises(Exception)"),
    (', match="empty"', "", "loosened from raises(ValueError, match) to raises(ValueError)"),
    ('(ValueError, match="empty")', "((ValueError, Exception))", "loosened"),
    ("[1, 2, 3])\ndef", "[1])\ndef", "2 of 3 parametrised cases are dropped"),
    ("def test_total", "@pytest.mark.skip\ndef test_total", "skip is added"),
    ("def test_total", "@pytest.mark.xfail\ndef test_total", "xfail is added"),
    ("    assert total(cart)", "    pytest.skip('later')\n    assert total(cart)", "skip is added"),
    ("def test_total", "def check_total", "test_total: the test is removed"),
    ("    return [1, 2, 3]", "    return []", "cart: the fixture is emptied"),
    ("    return [1, 2, 3]", "    pass", "cart: the fixture is emptied"),
    ("assertEqual(total([1]), 1)", "assertTrue(total([1]))", "TestMore.test_sum: an assertion is loosened"),
    ("assertEqual(total([1]), 1)", "assertIn(total([1]), [1, 2])", "loosened from assertEqual to assertIn"),
    ("class TestMore", "pytestmark = pytest.mark.skip\n\n\nclass TestMore", "the whole file is skipped"),
    ("class TestMore", "@pytest.fixture(autouse=True)\ndef all_():\n    yield\n\n\nclass TestMore", "(autouse)"),
    ("class TestMore", "def pytest_pyfunc_call(item):\n    return True\n\n\nclass TestMore", "pytest_pyfunc_call"),
    ("class TestMore", 'pytest_plugins = ["lenient"]\n\n\nclass TestMore', "(pytest_plugins)"),
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
        "test_total: something more is replaced by a stand-in",
    ),
]
HONEST_BASE = [
    ("    assert total(cart) == 6\n", "    assert total(cart) == 6, 'six in all'\n"),
    ("    assert total(cart) == 6\n", "    # the sum\n    assert (\n        total(cart) == 6\n    )\n"),
    ("    assert total(cart) == 6\n", "    assert total(cart) == 6\n    assert total([0]) == 0\n"),
    ("[1, 2, 3])\ndef", "[1, 2, 3, 4])\ndef"),
    ("rel=1e-6", "rel=1e-9"),
    ("timeout(5)", "timeout(2)"),
    ("class TestMore", "def test_new():\n    assert total([9]) == 9\n\n\nclass TestMore"),
    ("(ValueError, match", "(ValueError, check=None, match"),
    ("    return [1, 2, 3]", "    return [1, 2, 3, 4]"),
    ("    assert total(cart) == 6\n", "    found = total(cart)\n    assert found == 6\n"),
    ("def test_total", "def test_the_sum"),
    (
        "@pytest.mark.timeout(5)",
        "def check(given, want):\n    found = total(given)\n    assert found == want\n\n\n@pytest.mark.timeout(5)",
    ),
]


def told(old: str, new: str, text: str, path: str) -> str:
    """Return what is told of a text in which something is replaced."""
    assert old in text, old
    return "; ".join(map(str, weakenings(path, text.encode(), text.replace(old, new).encode())))


def test_what_is_loosened_is_said() -> None:
    for text, path, cases in ((HEAD + BASE, "test_it.py", LOOSENED_BASE),):
        for old, new, says in cases:
            assert says in told(old, new, text, path), (old, new)


def test_an_honest_change_is_told_nothing() -> None:
    for old, new in HONEST_BASE:
        assert told(old, new, HEAD + BASE, "test_it.py") == "", (old, new)


HELPER = "def check(given, want):\n    assert total(given) == want, 'no'\n\n\n"


def test_assertions_may_move_into_a_helper_and_are_not_lost_there() -> None:
    plain = "def test_it():\n    assert total([1]) == 1\n    assert total([2]) == 2\n"
    helped = HELPER + "def test_it():\n    check([1], 1)\n    check(want=2, given=[2])\n"
    assert weakenings("test_it.py", plain.encode(), helped.encode()) == ()
    assert weakenings("test_it.py", helped.encode(), plain.encode()) == ()
    empty = helped.replace("assert total(given) == want, 'no'", "total(given)")
    assert "2 of 2 assertions are gone" in str(weakenings("test_it.py", helped.encode(), empty.encode()))
    looser = helped.replace("== want, 'no'", "is not None")
    assert "loosened from == to is not" in str(weakenings("test_it.py", helped.encode(), looser.encode()))


def test_a_local_that_is_renamed_is_no_change() -> None:
    text = "def test_it():\n    found = total([1])\n    found += 1\n    assert found == 2\n"
    assert weakenings("test_it.py", text.encode(), text.replace("found", "other").encode()) == ()


def test_a_local_with_a_backslash_in_a_formatted_text_is_read() -> None:
    text = 'def test_it():\n    line = "a\\\\d"\n    assert f(f"{line}b") == 1\n'
    assert "gone" in str(weakenings("test_it.py", text.encode(), b"def test_it():\n    pass\n"))


def test_a_test_split_in_two_or_moved_to_another_file_is_not_gone() -> None:
    first, second = "    assert total([1]) == 1\n", "    assert total([2]) == 2\n"
    one, two = f"def test_it():\n{first}{second}", f"def test_it():\n{first}\n\ndef test_more():\n{second}"
    assert weakenings("test_it.py", one.encode(), two.encode()) == ()
    moved = added("tests/test_new.py", b"", one.encode())
    assert weakenings("test_it.py", one.encode(), b"", moved) == ()


@pytest.mark.parametrize("broken", [b"def (", b"\xff\xfe", b"x = '" + b"(" * 5000])
def test_what_cannot_be_read_says_nothing_but_that_it_once_could(broken: bytes) -> None:
    assert weakenings("test_it.py", broken, b"x = 1\n") == ()
    (told,) = weakenings("test_it.py", b"def test_a(): assert f() == 1\n", broken)
    assert "cannot be read any more" in str(told)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_two_texts_are_answered(before: bytes, after: bytes) -> None:
    assert isinstance(weakenings("test_it.py", before, after), tuple)
