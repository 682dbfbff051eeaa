"""Constants and tables of Python tests: who uses them, by whatever way, and files of any form are answered."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.languages.sources.weakening import added, changed_around, weakenings


def told(old: str, new: str, *, text: str) -> str:
    assert old in text, old
    return "; ".join(map(str, weakenings("tests/test_it.py", text.encode(), text.replace(old, new).encode())))


def test_of_many_tests_that_use_a_constant_the_first_are_named() -> None:
    text = "LIMIT = 5\n" + "".join(f"\n\ndef test_{n}():\n    assert f({n}) < LIMIT\n" for n in range(40))
    assert told("LIMIT = 5", "LIMIT = 9", text=text) == (
        "constant LIMIT: 5 is 9 now (used by test_0, test_1, test_2 and 37 more) (line 1)"
    )
    old, new = text.encode(), text.replace("LIMIT = 5", "LIMIT = 9").encode()
    assert len(changed_around("tests/test_it.py", old, new)) == 40
    assert changed_around("tests/test_it.py", old, b"(") == ()


def test_a_test_that_moves_may_take_its_constant_along_copy_it_or_import_it() -> None:
    test = "def test_it():\n    assert f() == LIMIT\n"
    old = f"LIMIT = 5\n\n\n{test}"
    for left in ("", "LIMIT = 5\n"):
        for head in ("LIMIT = 5\n", "from test_it import LIMIT\n"):
            moved = added("tests/test_new.py", b"", f"{head}\n\n{test}".encode())
            expected = left == "" and "import" in head  # nobody imports what is not there
            found = weakenings("tests/test_it.py", old.encode(), left.encode(), moved)
            assert bool(found) is expected, (left, head)


def test_fixtures_that_serve_unasked_and_set_up_use_constants_for_all_their_tests() -> None:
    text = (
        "import pytest\n\nHOST = 'a'\nPORT = 1\n\n\n@pytest.fixture(autouse=True)\ndef server():\n    serve(HOST)\n\n\n"
        "def test_a():\n    assert f() == 1\n\n\n"
        "class Base:\n    def setUp(self):\n        self.port = PORT\n\n\n"
        "class TestB(Base):\n    def test_b(self):\n        assert g() == 1\n"
    )
    assert "constant HOST: 'a' is 'b' now (used by test_a, TestB.test_b)" in told("HOST = 'a'", "HOST = 'b'", text=text)
    assert "constant PORT: 1 is 2 now (used by TestB.test_b)" in told("PORT = 1", "PORT = 2", text=text)


@pytest.mark.parametrize("literal", ["10**400", "1e400", "-1e400", "2 ** -5", "10 " + "+ 1" * 50])
def test_tolerances_of_any_size_are_read(literal: str) -> None:
    text = (
        f"def test_it():\n    self.assertAlmostEqual(f(), 1, {literal})\n    assert f() == approx(1, abs={literal})\n"
    )
    assert weakenings("test_it.py", text.encode(), text.replace("f()", "f() ").encode()) == ()


SOURCES = st.lists(
    st.sampled_from(
        [
            "A = [1, 2]", "A += [3]", "A.append(4)", "del A[0]", "A[0] = 1", "B = A", "A, B = B, A", "A: int",
            "A: int = 1",
            "class C:\n    A = 1\n    def test_c(self):\n        assert self.A == A",
            "for a in A:\n    B = a", "if A:\n    A = 2", "try:\n    A = 1\nexcept E:\n    A = 2",
            "def test_a(B):\n    for x in A:\n        for y in zip(A, B):\n            assert f(x) == y",
            "@mark.parametrize('x, y', A)\ndef test_b(x, y):\n    assert f(x) == y",
            "@mark.parametrize('x', [*A, param(1), (1, 2)])\ndef test_b(x):\n    check(x)",
            "def check(x):\n    return\n    assert x < A",
            "@fixture\ndef fix():\n    x = A\n    yield {**B, 'a': x}",
        ]
    ),
    max_size=8,
)  # fmt: skip


@settings(deadline=None)
@given(SOURCES, SOURCES)
def test_any_two_files_are_answered_and_the_same_loosens_nothing(old: list[str], new: list[str]) -> None:
    before, after = ("\n".join(lines).encode() for lines in (old, new))
    assert isinstance(weakenings("test_it.py", before, after), tuple)
    assert weakenings("test_it.py", before, before) == ()
    assert weakenings("test_it.py", before, before + b"\nZ = 1\n") == ()


def test_many_cases_take_bounded_time() -> None:
    rows = ", ".join(f"({n}, {n})" for n in range(3_000))
    text = (
        f"A = [{rows}]\n\n\ndef test_a():\n    for x, y in A:\n        for z in A:\n            assert f(x, z) == y\n"
    )
    assert "table A: 1 of 3000 values" in told("(7, 7), ", "", text=text)
