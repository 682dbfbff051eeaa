"""Parses untrusted TOML, with one error for everything that the library cannot read."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

_LONGEST: Final = 300
_APART: Final = re.compile(
    r'"""(?:[^"\\]++|\\.?|"{1,2}(?!"))*+"{0,5}'
    r"|'''(?:[^']++|'{1,2}(?!'))*+'{0,5}"
    r'|"(?:[^"\\\n]++|\\.?)*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+",
    re.DOTALL,
)
"""Strings and comments, in which text that looks like a key is none."""
_WORD: Final = re.compile(r"[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]++)*+")


def toml_table(text: str) -> dict[str, Any]:
    """Return the table in a TOML text.

    Raises:
        tomllib.TOMLDecodeError: it is no TOML, is nested too deeply, or has an endless key or number.
    """
    text = text.removeprefix("\ufeff")  # as editors of Windows begin it
    # the library takes the square of the number of a key's parts, and reads numbers that nobody can print
    if any(len(word[0]) > _LONGEST for word in _WORD.finditer(_APART.sub("s", text))):
        raise tomllib.TOMLDecodeError(f"a key or a number has more than {_LONGEST} characters")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError("it is nested too deeply") from None
    except ValueError as error:  # of int()
        raise tomllib.TOMLDecodeError(str(error)) from None
