"""Examples in documentation that were tests and check less after a change are told, in Rust, Python and texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.languages.sources.documented import notes, suite_of

PYTHON = '''"""Greetings.

>>> GREETING
'Hello'
"""


def greet(name):
    r"""Greet.

    >>> greet("Ada")
    'Hello, Ada!'
    >>> assert greet("Bob") == "Hello, Bob!"
    >>> greet("")
    Traceback (most recent call last):
    ValueError: a name is needed
    """


class Cart:
    def total(self):
        """Return what it costs.

        >>> Cart().total()
        0
        """
'''
RUST = """//! Greetings.

/// Greets.
///
/// ```
/// assert_eq!(greet::greet("Ada"), "Hello, Ada!");
/// assert!(greet::greet("").is_err());
/// ```
pub fn greet(name: &str) -> String { String::new() }
"""
TEXT = "How to greet\n\n    >>> greet('Ada')\n    'Hello'\n"


EXAMPLES = frozenset({"greet", "total"})
EVERY = {"greet.py": EXAMPLES, "more.py": EXAMPLES, "src/lib.rs": EXAMPLES, "docs/greet.rst": EXAMPLES}


def told(path: str, text: str, old: str, new: str) -> str:
    assert old in text, old
    return "; ".join(notes([(path, text.encode(), text.replace(old, new).encode())], EVERY))


@pytest.mark.parametrize(
    ("path", "text", "old", "new", "says"),
    [
        (
            "greet.py",
            PYTHON,
            "    >>> greet(\"Ada\")\n    'Hello, Ada!'\n",
            '    >>> _ = greet("Ada")\n',
            "greet.py: an example in the documentation of greet checks less than it did: 1 of 3 assertions are gone",
        ),
        ("greet.py", PYTHON, "'Hello, Ada!'", "'Hello'", "of greet checks less than it did: another value is expected"),
        ("greet.py", PYTHON, 'greet("Ada")', 'greet("Ada")  # doctest: +SKIP', "SKIP is added"),
        (
            "greet.py",
            PYTHON,
            "greet(\"Ada\")\n    'Hello, Ada!'",
            "greet(\"Ada\")  # doctest: +ELLIPSIS\n    '...'",
            "loosened",
        ),
        ("greet.py", PYTHON, '    >>> assert greet("Bob") == "Hello, Bob!"\n', "", "1 of 3 assertions are gone"),
        (
            "greet.py",
            PYTHON,
            ">>> Cart().total()\n        0",
            "It is 0.",
            "of Cart.total checks less than it did: the test is",
        ),
        ("greet.py", PYTHON, ">>> GREETING\n'Hello'\n", "", "of the file checks less than it did: the test is removed"),
        (
            "greet.py",
            PYTHON,
            "def greet(name)",
            "def greet(",
            "of the file checks less than it did: the test is removed",
        ),
        (
            "src/lib.rs",
            RUST,
            '/// assert!(greet::greet("").is_err());\n',
            "",
            "of greet checks less than it did: 1 of 2",
        ),
        ("src/lib.rs", RUST, "/// ```\n/// assert_eq", "/// ```no_run\n/// assert_eq", "no_run is added"),
        ("src/lib.rs", RUST, "/// ```\n", "", "of greet checks less than it did: the test is removed"),
        (
            "docs/greet.rst",
            TEXT,
            ">>> greet('Ada')\n    'Hello'",
            "greet('Ada')",
            "of the file checks less than it did",
        ),
    ],
)
def test_what_an_example_no_longer_checks_is_told(path: str, text: str, old: str, new: str, says: str) -> None:
    assert says in told(path, text, old, new)


@pytest.mark.parametrize(
    ("path", "text", "old", "new"),
    [
        ("greet.py", PYTHON, "Return what it costs", "Return the sum"),
        ("greet.py", PYTHON, ">>> Cart().total()", ">>> # of nothing\n        >>> Cart().total()"),
        ("greet.py", PYTHON, "        0\n", "        0\n        >>> Cart().total() + 1\n        1\n"),
        ("src/lib.rs", RUST, "/// Greets.", "/// Greets somebody."),
        ("src/lib.rs", RUST, "/// ```\npub", "/// assert!(true);\n/// ```\npub"),
        ("src/lib.go", RUST, "/// ```", ""),
    ],
)
def test_an_honest_change_is_told_nothing(path: str, text: str, old: str, new: str) -> None:
    assert told(path, text, old, new) == ""


def test_an_example_that_moves_to_another_file_is_not_gone_and_one_that_was_not_run_is_not_told() -> None:
    empty = PYTHON.replace("        >>> Cart().total()\n        0\n", "")
    more = '"""More."""\n\n\nclass Cart:\n    """Cart.\n\n    >>> Cart().total()\n    0\n    """\n'
    change = ("greet.py", PYTHON.encode(), empty.encode())
    assert notes([change, ("more.py", None, more.encode())], EVERY) == ()
    assert len(notes([change], EVERY)) == 1
    assert notes([change], {"greet.py": frozenset({"greet"})}) == ()
    assert len(notes([("greet.py", PYTHON.encode(), None)], EVERY)) == 3


@given(st.text(alphabet=" >.\n\"'ax=1#:+", max_size=200))
def test_any_text_is_answered(text: str) -> None:
    for path in ("a.py", "a.rst", "a.rs"):
        suite = suite_of(path, text.encode())
        assert suite is None or notes([(path, text.encode(), text.encode())], EVERY) == ()
    docstring = suite_of("a.py", f"def f():\n    {text!r}\n".encode())
    assert docstring is not None
