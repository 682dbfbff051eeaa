"""Examples in documentation that were tests and are gone or changed are told, in Rust, Python and texts."""

from __future__ import annotations

from typing import Final

from pipeline.testing.languages.sources.examples import lost

PYTHON: Final = '''"""Greetings.

>>> GREETING
'Hello'
"""


def greet(name):
    r"""Greet.

    >>> greet("Ada")
    'Hello, Ada!'
    >>> greet("")
    Traceback (most recent call last):
    ValueError: a name is needed
    """
'''
RUST: Final = """/// Greets.
///
/// ```
/// assert_eq!(greet::greet("Ada"), "Hello, Ada!");
/// assert!(greet::greet("").is_err());
/// ```
pub fn greet(name: &str) -> String { String::new() }
"""
TEXT: Final = "How to greet\n\n    >>> greet('Ada')\n    'Hello'\n"
TEXTS: Final = {"greet.py": PYTHON, "src/lib.rs": RUST, "docs/greet.rst": TEXT}


def told(path: str, old: str, new: str) -> tuple[str, ...]:
    text = TEXTS[path]
    assert old in text, old
    return lost([(path, text.encode(), text.replace(old, new, 1).encode())], TEXTS)


def test_what_an_example_no_longer_checks_is_told() -> None:
    for path, old, new, shown in (
        ("greet.py", "greet(\"Ada\")\n    'Hello, Ada!'\n", '_ = greet("Ada")\n', ">>> greet(\"Ada\") 'Hello, Ada!'"),
        ("greet.py", "'Hello, Ada!'", "'Hello'", ">>> greet(\"Ada\") 'Hello, Ada!'"),
        ("greet.py", 'greet("Ada")', 'greet("Ada")  # doctest: +SKIP', ">>> greet(\"Ada\") 'Hello, Ada!'"),
        ("greet.py", ">>> GREETING\n'Hello'\n", "", ">>> GREETING 'Hello'"),
        ("src/lib.rs", '/// assert!(greet::greet("").is_err());\n', "", '/// assert!(greet::greet("").is_err());'),
        ("src/lib.rs", "/// ```\n/// assert_eq", "/// ```no_run\n/// assert_eq", "/// ```"),
        ("docs/greet.rst", ">>> greet('Ada')\n    'Hello'", "greet('Ada')", ">>> greet('Ada') 'Hello'"),
    ):
        assert told(path, old, new) == (
            f"{path}: an example in its documentation is gone, or is another now: `{shown}`",
        )


def test_an_honest_change_is_told_nothing() -> None:
    for path, old, new in (
        ("greet.py", "Greet.", "Greet somebody."),
        ("greet.py", '    >>> greet("")', '    >>> greet("Bob")\n    \'Hello, Bob!\'\n    >>> greet("")'),
        ("src/lib.rs", "/// Greets.", "/// Greets somebody."),
        ("src/lib.rs", "/// ```\npub", "/// assert!(true);\n/// ```\npub"),
    ):
        assert told(path, old, new) == ()


def test_an_example_that_moves_to_another_file_is_not_gone_and_one_that_was_not_run_is_not_told() -> None:
    change = ("greet.py", PYTHON.encode(), b"")
    assert len(lost([change], TEXTS)) == 3
    assert lost([change, ("more.py", None, f"class Greeter:\n{PYTHON}".encode())], TEXTS) == ()
    assert len(lost([("greet.py", PYTHON.encode(), None)], TEXTS)) == 3
    assert lost([change], ()) == ()
