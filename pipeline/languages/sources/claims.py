"""Reads an assertion's tokens: how strict it is, its tolerance, and whether it can fail at all.

The same for every language: a language says which tokens are an assertion, and what its assertions are called.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from pipeline.languages.sources.suites import EXACT, NOTHING, PART, PRESENCE, RELATION, Check, Words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_COMPARED: Final = {
    "==": EXACT, "===": EXACT, "is": EXACT, "in": PART, "not in": RELATION, "is not": PRESENCE,
    "!=": RELATION, "!==": RELATION, "<": RELATION, "<=": RELATION, ">": RELATION, ">=": RELATION,
}  # fmt: skip
_OPPOSITE: Final = {
    "==": "!=", "!=": "==", "===": "!==", "!==": "===", "is": "is not", "is not": "is", "in": "not in", "not in": "in",
    "<": ">=", ">=": "<", ">": "<=", "<=": ">",
}  # fmt: skip
_OPENING: Final = {"(": ")", "[": "]", "{": "}"}
_CLOSING: Final = frozenset(_OPENING.values())
OPERATORS: Final = frozenset({*_COMPARED, "and", "or", "&&", "||", "not", "!"})
EMPTY: Final = frozenset({"None", "nil", "null", "undefined"})
_TRUE: Final = frozenset({"True", "true"})
_FALSE: Final = frozenset({"False", "false", "0"})
_KEYWORDS: Final = EMPTY | {*_TRUE, "False", "false", "NaN"}
_NO_NAMES: Final = _KEYWORDS | {"and", "or", "not", "in", "is", "not in", "is not", "each", "given"}
_LITERAL: Final = re.compile(r"[A-Za-z]{0,2}#*[\"'`]|\d")
_DISTANCES: Final = frozenset({"abs", "Abs", "fabs"})
_DEVIATIONS: Final = frozenset(
    {
        "rel", "abs", "rel_tol", "abs_tol", "delta", "rtol", "atol", "nulp", "maxulp", "epsilon", "max_relative",
        "max_ulps", "rmax", "r2nd", "ulps",
    }
)  # fmt: skip
_DIGITS: Final = frozenset({"places", "decimal", "significant"})
_RANGE: Final = 1_000
_LARGEST: Final = 300
"""The most digits of a number that is read; no float has more."""


def strengths(*, exact: str = "", part: str = "", relation: str = "", presence: str = "") -> dict[str, int]:
    """Return the strength of assertions by name."""
    named = {EXACT: exact, PART: part, RELATION: relation, PRESENCE: presence}
    return {name: strength for strength, names in named.items() for name in names.split()}


def is_literal(word: str) -> bool:
    """Return whether a token is a literal."""
    return word in _KEYWORDS or _LITERAL.match(word) is not None


def is_name(word: str) -> bool:
    """Return whether a token is an identifier."""
    return (word[0].isalpha() or word[0] in "_$") and word not in _NO_NAMES and not is_literal(word)


def values_in(words: Words) -> frozenset[str]:
    """Return the literal values in tokens; a text counts without its quotes."""
    if words[:2] == ("range", "("):
        return frozenset(map(str, range(min(size(words) or 0, _RANGE))))
    return frozenset(word.strip("'\"`") for word in words if is_literal(word))


def called_in(words: Words) -> list[str]:
    """Return the names of the functions that tokens call."""
    return [word for word, after in pairwise(words) if after == "(" and is_name(word)]


def split(words: Words, *separators: str) -> list[Words]:
    """Return the parts of tokens between separators outside of brackets; empty parts are left out."""
    parts: list[list[str]] = [[]]
    for at, word in _at_top(words):
        if word in separators:
            parts.append([])
        else:
            parts[-1] += words[at : _behind(words, at)]
    return [tuple(part) for part in parts if part]


def joined(parts: Sequence[Words]) -> list[Words]:
    """Return several arguments joined to one; an empty list for none."""
    words = [word for part in parts for word in (",", *part)]
    return [tuple(words[1:])] if words else []


def group(words: Words, at: int) -> Words:
    """Return the tokens inside the brackets that open at index `at`."""
    return words[at + 1 : _behind(words, at) - 1]


def size(words: Words) -> int | None:
    """Return the number of elements of the first list literal in tokens, None if there is none."""
    if words[:2] == ("range", "(") and len(words) == len(("range", "(", "n", ")")) and words[2].isdigit():
        return int(words[2])
    for at, word in enumerate(words):
        if word in _OPENING and not (at and (is_name(words[at - 1]) or words[at - 1] in _CLOSING)):
            return len(split(group(words, at), ","))
    return None


def conditions(words: Words, asked: Mapping[str, int], line: int, *, must: bool = True) -> Iterator[Check]:
    """Yield the checks of a condition that must hold (*must*) or must fail.

    Args:
        words: The condition.
        asked: How strict it is to ask a function, by its name.
        line: Where it stands.
        must: Whether it has to hold.
    """
    while words[:1] == ("(",) and _behind(words, 0) == len(words):
        words = words[1:-1]
    both, either = (("&&", "and"), ("||", "or")) if must else (("||", "or"), ("&&", "and"))
    if len(parts := split(words, *both)) > 1:
        for part in parts:
            yield from conditions(part, asked, line, must=must)
    elif len(parts := split(words, *either)) > 1:
        found = [check for part in parts for check in conditions(part, asked, line, must=must)]
        strength = min((PART, *(check.strength for check in found)))
        yield Check(words, "one of several" if strength else "nothing", strength, line=line)
    elif words[:1] == ("not",):
        yield from conditions(words[1:], asked, line, must=not must)
    elif (at := next((at for at, word in _at_top(words) if word in _COMPARED), None)) is not None:
        kind = words[at] if must else _OPPOSITE[words[at]]
        yield compared(words[:at], kind, words[at + 1 :], _COMPARED[kind], line)
    elif words[:1] == ("!",):
        yield from conditions(words[1:], asked, line, must=not must)
    else:
        yield _asked(words, asked, line, must=must)


def compared(left: Words, kind: str, right: Words, strength: int, line: int) -> Check:
    """Return the check of a relation between two values; a bound on their distance is equality with a tolerance."""
    small, large = (left, right) if kind in {"<", "<="} else (right, left)
    if strength == RELATION and kind in {"<", "<=", ">", ">="} and not _DISTANCES.isdisjoint(called_in(small)):
        return Check(small, "==", EXACT, number(large), line)
    if (left == right and kind in {"==", "===", "is", "<=", ">="}) or not any(map(is_name, (*left, *right))):
        return Check((*left, kind, *right), "nothing", NOTHING, line=line)
    return said((left, right), kind.replace("===", "==").replace("!==", "!="), strength, line)


def said(
    given: Sequence[Words], kind: str, strength: int, line: int, third: Literal["digits", "deviation"] | None = None
) -> Check:
    """Return the check that an assertion call makes, by its arguments.

    Args:
        given: Its arguments, of which two are compared.
        kind: What it is called.
        strength: How strict it is.
        line: Where it stands.
        third: What its third argument is; without one it may be a text for whoever reads the failure.
    """
    tolerance = number(given[2]) if third is not None and len(given) > 2 and "=" not in given[2] else None  # noqa: PLR2004
    if third == "digits" and tolerance is not None:
        tolerance = _by_digits(tolerance)
    words: list[str] = []
    for at, argument in enumerate(given):
        left, named = _without_tolerance(argument)
        tolerance = max((one for one in (tolerance, named) if one is not None), default=None)
        words += (*(("==",) if at == 1 else ()), *left) if at < 2 else ()  # noqa: PLR2004  (two are compared)
    return Check(tuple(words), kind, strength, tolerance, line)


def number(words: Words) -> float | None:
    """Return the number in tokens, without underscores and type suffixes; None if it is no number."""
    found = re.match(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?", "".join(words).replace("_", ""))
    return float(found[0]) if found is not None else None


def _asked(words: Words, asked: Mapping[str, int], line: int, *, must: bool) -> Check:
    calls = [at for at, word in _at_top(words) if word == "(" and at]
    name = words[calls[-1] - (2 if words[calls[-1] - 1] == "!" else 1)] if calls else ""
    if (len(words) == 1 and words[0] in (_TRUE if must else _FALSE)) or (words and not any(map(is_name, words))):
        never = len(words) == 1 and words[0] in (_FALSE if must else _TRUE)
        return Check(words, "fails", RELATION, line=line) if never else Check(words, "nothing", NOTHING, line=line)
    if name not in asked:
        return Check(words, "truth" if must else "not", PRESENCE if must else RELATION, line=line)
    given = split(group(words, calls[-1]), ",") if asked[name] == EXACT else [words]
    check = said(given, name if must else f"not {name}", asked[name], line)
    weaker = PRESENCE if asked[name] == PART and "empty" in name.lower() else RELATION
    return check if must else Check(check.words, check.kind, min(weaker, check.strength), check.tolerance, line)


def _without_tolerance(words: Words) -> tuple[Words, float | None]:
    """Return an argument without named tolerances, and the largest of these."""
    found: list[float] = []
    kept: list[str] = []
    at = 0
    while at < len(words):
        if words[at] in _DEVIATIONS | _DIGITS and words[at + 1 : at + 2] == ("=",):
            end = next((end for end in range(at, len(words)) if words[end] in {",", *_CLOSING}), len(words))
            value = number(words[at + 2 : end])
            if value is not None:
                found += [_by_digits(value)] if words[at] in _DIGITS else [value]
            kept = kept[:-1] if kept[-1:] == [","] else kept
            at = end
        else:
            kept.append(words[at])
            at += 1
    return tuple(kept), max(found, default=None)


def _by_digits(digits: float) -> float:
    return 10.0**-digits if abs(digits) <= _LARGEST else 0.0


def _at_top(words: Words) -> Iterator[tuple[int, str]]:
    """Yield index and text of tokens outside of brackets, opening brackets included."""
    at = 0
    while at < len(words):
        yield at, words[at]
        at = _behind(words, at)


def _behind(words: Words, at: int) -> int:
    """Return the index after a token; for an opening bracket, after its closing one."""
    if words[at] not in _OPENING:
        return at + 1
    depth = 0
    for end in range(at, len(words)):
        depth += (words[end] in _OPENING) - (words[end] in _CLOSING)
        if not depth:
            return end + 1
    return len(words)
