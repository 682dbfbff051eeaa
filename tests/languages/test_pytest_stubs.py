"""Stubbing a task's symbols: only their bodies change, and what remains is still Python."""

from __future__ import annotations

import ast
from functools import partial
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.judge.evidence.red_classes import Symbol
from pipeline.testing.languages.sources import stubs

stub_symbols = partial(stubs.stub_symbols, "pipeline.testing.languages.python")

pytestmark = pytest.mark.slow

SOURCE = dedent('''
    """Grüße."""
    import functools

    LIMIT: int = 3

    def greet(name):  # keep
        """Say hello."""
        return f"hällo {name}"

    @functools.cache
    def cached(): return 1

    async def later():
        @functools.wraps(greet)
        def inner(): pass
        return inner

    class Greeter:
        kind = "x"

        def __init__(self, name):
            self.name = name

        @property
        def loud(self):
            return self.name.upper()

        class Inner:
            def deep(self):
                return 1

    class Plain(Exception): pass

    if True:
        def guarded():
            return 1
    ''').lstrip()


def stub(*names: str) -> str:
    return stub_symbols({"a.py": SOURCE}, [Symbol("a.py", name) for name in names]).files.get("a.py", SOURCE)


def run(source: str) -> dict[str, object]:
    scope: dict[str, object] = {}
    exec(compile(source, "a.py", "exec"), scope)  # noqa: S102  the edited source is what is tested
    return scope


@pytest.mark.parametrize(
    "call", ["greet('x')", "cached()", "guarded()", "Greeter('x')", "Plain()", "Greeter.Inner().deep()"]
)
def test_a_stubbed_symbol_raises_when_it_is_used(call: str) -> None:
    name = "Greeter.Inner.deep" if "deep" in call else call.partition("(")[0]
    with pytest.raises((NotImplementedError, TypeError)):
        eval(call, run(stub(name)))  # noqa: S307  the edited source is what is tested
    assert eval(call, run(SOURCE)) is not None  # noqa: S307  the same


def test_a_method_alone_can_be_stubbed() -> None:
    scope = run(stub("Greeter.loud"))
    assert eval("Greeter('x').name", scope) == "x"  # noqa: S307  the edited source is what is tested
    with pytest.raises(NotImplementedError):
        eval("Greeter('x').loud", scope)  # noqa: S307  the same


def test_a_module_variable_loses_its_value() -> None:
    assert run(stub("LIMIT"))["LIMIT"] is NotImplemented


def test_everything_outside_the_body_keeps_its_bytes() -> None:
    expected = SOURCE.replace('"""Say hello."""\n    return f"hällo {name}"', "raise NotImplementedError")
    assert stub("greet") == expected


def test_symbols_that_no_file_defines_are_named() -> None:
    wanted = [Symbol("a.py", "greet"), Symbol("a.py", "absent"), Symbol("", "loud"), Symbol("gone.py", "greet")]
    stubbed = stub_symbols({"a.py": SOURCE, "b.py": "x = 1\n"}, wanted)
    assert stubbed.unknown == (wanted[1], wanted[2], wanted[3])
    assert set(stubbed.files) == {"a.py"}


def test_a_file_that_is_not_python_is_left_alone() -> None:
    assert stub_symbols({"a.py": "def greet(:"}, [Symbol("a.py", "greet")]).files == {}


NAMES = ["LIMIT", "greet", "cached", "later", "Greeter", "Greeter.loud", "Greeter.Inner", "Plain", "guarded", "absent"]


@given(st.lists(st.sampled_from(NAMES), unique=True))
def test_any_choice_of_symbols_leaves_valid_python_with_the_same_names(names: list[str]) -> None:
    def top(source: str) -> list[str]:
        return [getattr(node, "name", "") for node in ast.parse(source).body]

    assert top(stub(*names)) == top(SOURCE)
    assert stub(*names) == stub(*reversed(names))
