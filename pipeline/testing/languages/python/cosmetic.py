"""Decides whether an edit of a Python file is cosmetic: it changes only comments without effect and blank space.

The syntax tree alone would not be enough to compare. It does not have comments, and some of those are orders to a type
checker, a linter, a coverage tool or an editor; a `coding` comment even changes what every other line says. And it
hides syntax that only our own Python understands. So all tokens must be the same, and comments that give orders count.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from typing import TYPE_CHECKING, Final

from pipeline.characters import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterator

_LARGEST: Final = 1_000_000
_ENCODINGS: Final = frozenset({"utf-8", "utf-8-sig"})
_BLANK: Final = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.ENCODING})
_LAYOUT: Final = frozenset({tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})
_ORDER: Final = re.compile(
    r"""
    ^\#! | ^\#\s*/// | -\*- | local\ variables
    | \b(?: noqa | pragma | nosec | nosemgrep | noinspection | skipcq | lgtm | pycln | copyright )\b
    | \b(?: type | fmt | isort | pylint | pyright | pyre-\w+ | pytype | mypy | ruff | flake8 | yapf | black | autopep8
          | coverage | cython | distutils | doctest | coding | vi | vim | ex | codespell | cspell\S* | spdx-[\w-]+
          | license ) \s* [:=]
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SCRIPT_BLOCK: Final = re.compile(r"^#\s*///")

_Token = tuple[int, str]


def edited(content: bytes, old: str, new: str) -> bytes | None:
    """Return a Python file with the only occurrence of `old` replaced; None if the edit is not cosmetic.

    Args:
        content: The file as git stores it.
        old: What is to be replaced; it must be there exactly once.
        new: What takes its place; without control, direction or invisible characters.
    """
    if len(content) > _LARGEST or HIDDEN.search(new.replace("\n", "").replace("\t", "")):
        return None
    if b"\r" in content and "\n" in old + new:  # the line ends of the file would be mixed
        return None
    wanted = old.encode("utf-8", errors="surrogatepass")
    at = content.find(wanted)
    if at < 0 or at != content.rfind(wanted):
        return None
    result = content[:at] + new.encode() + content[at + len(wanted) :]
    return result if _says_the_same(content, result) else None


def _says_the_same(before: bytes, after: bytes) -> bool:
    try:
        return _first_line(before) == _first_line(after) and _meaning(before) == _meaning(after)
    except (SyntaxError, ValueError, tokenize.TokenError, RecursionError, MemoryError):
        return False


def _first_line(content: bytes) -> bytes:
    """Return the `#!` line of a file, empty if it has none."""
    return content.splitlines()[0] if content.startswith(b"#!") else b""


def _meaning(content: bytes) -> tuple[str, str, list[_Token]]:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    if encoding not in _ENCODINGS:
        raise ValueError(encoding)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.dump(ast.parse(content))
    tokens = list(tokenize.tokenize(io.BytesIO(content).readline))
    return encoding, tree, list(_significant(tokens))


def _significant(tokens: list[tokenize.TokenInfo]) -> Iterator[_Token]:
    """Yield the tokens that programs or tools read; for a comment, also whether it has a line of its own."""
    all_comments = any(token.type == tokenize.COMMENT and _SCRIPT_BLOCK.match(token.string) for token in tokens)
    for token in tokens:
        if token.type == tokenize.COMMENT and (all_comments or _ORDER.search(token.string)):
            alone = not token.line[: token.start[1]].strip()
            yield (token.type, f"{alone} {token.string}")
        elif token.type in _LAYOUT:
            yield (token.type, "")
        elif token.type not in _BLANK:
            yield (token.type, token.string)
