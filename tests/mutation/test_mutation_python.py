"""The faults of Python, one by one: what each is called, and what is left alone."""

from __future__ import annotations

import pytest

from pipeline.testing.languages.sources.faults import mutants


def made(text: str, *lines: int) -> dict[str, str]:
    """Return the changed sources by what was done."""
    source = text.encode()
    wanted = lines or range(1, text.count("\n") + 2)
    return {mutant.what: mutant.apply(source).decode() for mutant in mutants("a.py", source, wanted)}


CHANGED = [
    ("x = a < b", "`<` becomes `<=`", "x = a <= b"),
    ("x = a < b", "`<` becomes `>=`", "x = a >= b"),
    ("x = (a) >= (b)", "`>=` becomes `>`", "x = (a) > (b)"),
    ("x = a is  not b", "`is not` becomes `is`", "x = a is b"),
    ("x = a not in b", "`not in` becomes `in`", "x = a in b"),
    ("x = a == b == c", "`==` becomes `!=`", "x = a == b != c"),
    ("x = (a  # <\n  < b)", "`<` becomes `<=`", "x = (a  # <\n  <= b)"),
    ("x = a and(b)", "`and` becomes `or`", "x = a or(b)"),
    ("x = a or b", "`a` is left out", "x = False or b"),
    ("x = not(a)", "`not` is left out before `(a)`", "x = (a)"),
    ("x = -a", "`-` is left out before `a`", "x = a"),
    ("x = a // b", "`//` becomes `/`", "x = a / b"),
    ("x = 10", "`10` becomes `11`", "x = 11"),
    ("x = 0x0f", "`0x0f` becomes `16`", "x = 16"),
    ("x = 1.5", "`1.5` becomes `2.5`", "x = 2.5"),
    ("x = True", "`True` becomes `False`", "x = False"),
    ("x = 'a' 'b'", "the text `'a' 'b'` is empty", "x = ''"),
    ("x = f'{a < b}'", "the text `f'{a < b}'` is empty", "x = f''"),
    ("x = ''", "the text `''` is not empty", "x = 'x'"),
    ("x = [a, b]", "a list is empty", "x = []"),
    ("x = f(a, k=1)", "the argument `k=1` is left out", "x = f(a)"),
    ("x = f(k=(1), j=2)", "the argument `k=(1)` is left out", "x = f(j=2)"),
    ("x = f(a, b)", "the argument `b` is left out", "x = f(a)"),
    ("x = a if b else c", "the first value is never taken: `b` is False", "x = a if False else c"),
    ("x = [a for a in b if a]", "`a` leaves nothing out", "x = [a for a in b if True]"),
    ("if a:\n    b()", "the branch is never taken: `a` is False", "if False:\n    b()"),
    ("if(a):\n    b()", "the branch is always taken: `(a)` is True", "if True:\n    b()"),
    ("while a:\n    b()", "the loop is never entered", "while False:\n    b()"),
    ("for a in b:\n    c()", "the loop is never entered", "for a in ():\n    c()"),
    ("f(a)", "`f(a)` is left out", "pass"),
    ("a.b = c", "`a.b = c` is left out", "pass"),
    ("a += c", "`+=` becomes `-=`", "a -= c"),
    ("raise A(b)", "`raise A(b)` is left out", "pass"),
    ("try:\n    a()\nexcept B:\n    c()", "what is caught is raised again",
     "try:\n    a()\nexcept B:\n    raise"),
    ("def f():\n    return[1]", "returns `None`", "def f():\n    return None"),
    ("def f():\n    yield a", "yields `None`", "def f():\n    yield None"),
    ("def f(a):\n    a = b\n    return a", "`a = b` is left out", "def f(a):\n    pass\n    return a"),
    ("# -*- coding: latin-1 -*-\nx = 'é' < 1", "`<` becomes `<=`", "# -*- coding: latin-1 -*-\nx = 'é' <= 1"),
    ("match a:\n    case b if c:\n        d()", "the arm is never taken: `c` is False",
     "match a:\n    case b if False:\n        d()"),
    ("\ufeffx = 'é' < a", "`<` becomes `<=`", "\ufeffx = 'é' <= a"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "what", "after"), CHANGED)
def test_what_is_changed(before: str, what: str, after: str) -> None:
    assert made(before)[what] == after


@pytest.mark.parametrize(
    "text",
    [
        '"""Doc."""',
        "def f(a: 'x', b: list[1]) -> Literal[3]:\n    ...",
        "def f():\n    '''Doc.'''\n    log.debug('x', 1)\n    self.logger.info(f'{a}')\n    logging.error('%s', 2)",
        "if TYPE_CHECKING:\n    from a import b\n    x = 1",
        "if typing.TYPE_CHECKING:\n    x = 1",
        "if __name__ == '__main__':\n    main(1)",
        "@cache(maxsize=3)\ndef f():\n    pass",
        "@overload\ndef f(a: int) -> int: return 1",
        "__all__ = ['a', 'b']",
        "T = TypeVar('T', bound=int)",
        "from a import b\nimport c",
        "def f():\n    raise NotImplementedError('later')",
        "x: TypeAlias = Literal['a']",
        "class A(B, metaclass=C(1)):\n    pass",
        "def f():\n    return None",
        "def f():\n    '''Makes a value.'''\n    value = a",
    ],
)  # fmt: skip
def test_what_is_left_alone(text: str) -> None:
    assert made(text) == {}


def test_only_the_lines_that_are_given() -> None:
    text = "a = 1 < 2\nb = 3 < 4\nf(\n    a,\n    b + 1,\n)\n"
    assert set(made(text, 2)) == {"`<` becomes `<=`", "`<` becomes `>=`", "`3` becomes `4`", "`4` becomes `5`"}
    inside = mutants("a.py", text.encode(), (5,))
    assert {mutant.line for mutant in inside} == {5}  # a statement counts for each of its lines
    assert "`f( a, b + 1, )` is left out" in {mutant.what for mutant in inside}


def test_messages_are_no_texts_to_be_emptied() -> None:
    assert set(made("raise ValueError('no')")) == {"`raise ValueError('no')` is left out"}
    assert "the text `'no'` is empty" in made("x = g('no')")


def test_each_function_has_its_turn_and_decisions_come_first() -> None:
    text = "".join(
        f"def f{n}(a):\n    x = 'text'\n    if a < {n}:\n        return a + 1\n    return x\n\n\n" for n in range(4)
    )
    found = mutants("a.py", text.encode(), range(1, 99), at_most=8)
    assert [mutant.function for mutant in found] == ["f0", "f1", "f2", "f3"] * 2
    assert all("text" not in mutant.what for mutant in found)
    assert len({(mutant.function, mutant.line) for mutant in found}) == 8


def test_of_a_large_file_all_faults_of_the_functions_that_are_meant_are_found() -> None:
    many = "".join(f"def f{number}(n):\n    return n + {number}\n\n\n" for number in range(150))
    asked = "class Cart:\n  def asked(self, a, b):\n    if a > b and a != 3:\n      return a\n    return a - b\n"
    source = (many + asked).encode()
    lines = range(1, source.count(b"\n") + 1)
    everywhere = mutants("a.py", source, lines, at_most=100)
    meant = mutants("a.py", source, lines, at_most=100, within=("asked",))
    assert sum(one.function == "Cart.asked" for one in everywhere) <= 1
    assert {one.function for one in meant} == {"Cart.asked"}
    assert len({one.line for one in meant}) > 1
