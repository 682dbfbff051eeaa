"""What Go's tests check: conditions on which they fail, and the assertions of testify.

Importing this module loads the parser.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.sources.suite_walk import line_of, number, text, written
from pipeline.languages.sources.suites import EXACT, NOTHING, PART, PRESENCE, RELATION, Check, either

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

    from pipeline.languages.sources.suite_walk import Language

NO_ERROR: Final = "no error"
"""The kind of a check that a call worked: also what set-up is made of."""

FAILS: Final = frozenset({"Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"})
TELLS: Final = frozenset({"Log", "Logf"})

_HANDLES: Final = re.compile(r"t|tb|b|f|tt|\w*\.?T\(\)")
_LITERAL: Final = re.compile(r"-?\d[\w.]*|\".*\"|`.*`|'.*'|true|false|nil")
_WANTED: Final = re.compile(r"(?:want|expected?|exp)\w*|each case\.(?:want|exp)\w*", re.IGNORECASE)
_OPPOSITE: Final = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_STRENGTH: Final = {"==": EXACT, "!=": RELATION, "<": RELATION, "<=": RELATION, ">": RELATION, ">=": RELATION}
_EQUAL: Final = frozenset({"DeepEqual", "Equal", "EqualFold", "Is", "EqualFunc"})
_PARTLY: Final = frozenset({"Contains", "HasPrefix", "HasSuffix", "As", "MatchString", "ContainsAny"})
_TESTIFY: Final[dict[str, int]] = {
    **dict.fromkeys(("Equal", "EqualValues", "Exactly", "JSONEq", "YAMLEq", "ElementsMatch", "Same"), EXACT),
    **dict.fromkeys(("InDelta", "InEpsilon", "WithinDuration", "EqualError", "ErrorIs", "PanicsWithValue"), EXACT),
    **dict.fromkeys(("Contains", "Subset", "Regexp", "ErrorContains", "ErrorAs", "IsType", "Implements"), PART),
    **dict.fromkeys(("Len", "Panics", "PanicsWithError", "Eventually", "FileExists", "DirExists"), PART),
    **dict.fromkeys(("NotEqual", "NotContains", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"), RELATION),
    **dict.fromkeys(("NotRegexp", "Positive", "Negative", "NotSame", "NotSubset", "NotErrorIs"), RELATION),
    **dict.fromkeys(("NotNil", "NotEmpty", "NotZero", "Error", "NotPanics"), PRESENCE),
}
_ACTUAL_FIRST: Final = frozenset(
    {"Len", "Contains", "NotContains", "Subset", "NotSubset", "ErrorIs", "ErrorAs", "ErrorContains", "EqualError"}
)
_CONSTANT: Final = {"Nil": "nil", "Empty": "empty", "Zero": "zero"}
_ALONE: Final = frozenset({"NotNil", "NotEmpty", "NotZero", "Error", "Panics", "NotPanics", "Positive", "Negative"})
_TOLERANT: Final = frozenset({"InDelta", "InEpsilon", "WithinDuration"})


def method(node: Node) -> tuple[Node, str, list[Node]] | None:
    """Return operand, name and arguments of a call of a method or of a package's function."""
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    given = node.child_by_field_name("arguments")
    if function is None or given is None or function.type != "selector_expression":
        return None
    operand = function.child_by_field_name("operand")
    plain = [child for child in given.named_children if child.type != "comment"]
    return (operand, text(function.child_by_field_name("field")), plain) if operand is not None else None


def called_on_test(node: Node, names: frozenset[str]) -> bool:
    """Return whether a node calls one of these methods of a `testing.T`, `B`, `F` or `TB`."""
    found = method(node)
    return found is not None and found[1] in names and _HANDLES.fullmatch(text(found[0])) is not None


def conditions(node: Node, rules: Language, names: Mapping[str, str], *, must: bool) -> Iterator[Check]:
    """Yield what is checked where a condition has to hold (*must*), or has to fail."""
    line = line_of(node)
    while node.type == "parenthesized_expression" and node.named_children:
        node = node.named_children[0]
    if node.type == "unary_expression" and text(node).startswith("!"):
        yield from conditions(node.named_children[-1], rules, names, must=not must)
    elif node.type == "binary_expression":
        yield from _binary(node, rules, names, must=must)
    elif (found := method(node)) is not None and found[1] in _EQUAL | _PARTLY and len(found[2]) > 1:
        sides = [written(argument, rules, names) for argument in found[2][:2]]
        strength = (EXACT if found[1] in _EQUAL else PART) if must else RELATION
        yield _check(sides[0], found[1] if must else f"not {found[1]}", strength, sides[1], line)
    else:
        yield Check(written(node, rules, names), "truth" if must else "not", PRESENCE if must else RELATION, line=line)


def _binary(node: Node, rules: Language, names: Mapping[str, str], *, must: bool) -> Iterator[Check]:
    operator, line = text(node.child_by_field_name("operator")), line_of(node)
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None:
        return
    if operator == ("&&" if must else "||"):
        yield from conditions(left, rules, names, must=must)
        yield from conditions(right, rules, names, must=must)
        return
    if operator in {"&&", "||"}:
        found = [check for side in (left, right) for check in conditions(side, rules, names, must=must)]
        yield either(found, written(node, rules, names), line)
        return
    sides = [written(side, rules, names) for side in (left, right)]
    kind = operator if must else _OPPOSITE.get(operator, operator)
    compared = _compared_by_diff(sides) if kind == "==" else None
    distance = _distance(left if kind in {"<", "<="} else right) if kind in {"<", "<=", ">", ">="} else None
    if compared is not None:
        yield _check(compared[1], "DeepEqual", EXACT, compared[0], line)
    elif distance is not None:
        apart = [written(side, rules, names) for side in distance]
        tolerance = number(sides[1] if kind in {"<", "<="} else sides[0])
        yield _check(apart[0], "==", EXACT, apart[1], line, tolerance)
    elif kind in {"==", "!="} and "nil" in sides and _is_error(left, right):
        subject = sides[0] if sides[1] == "nil" else sides[1]
        yield Check(subject, NO_ERROR if kind == "==" else "error", RELATION if kind == "==" else PRESENCE, line=line)
    else:
        yield _check(sides[0], kind, _STRENGTH.get(kind, PRESENCE), sides[1], line)


def _compared_by_diff(sides: list[str]) -> tuple[str, str] | None:
    """Return what `cmp.Diff(want, got) == ""` compares."""
    diff = next((side for side in sides if side.startswith("cmp.Diff(") and side.endswith(")")), None)
    if diff is None or '""' not in sides:
        return None
    given: list[str] = []
    depth = start = 0
    inside = diff.removeprefix("cmp.Diff(").removesuffix(")")
    for at, char in enumerate(inside):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            given.append(inside[start:at].strip())
            start = at + 1
    given.append(inside[start:].strip())
    return (given[0], given[1]) if len(given) > 1 else None


def _is_error(left: Node, right: Node) -> bool:
    named = text(left) if text(right) == "nil" else text(right)
    return re.fullmatch(r"\w*[eE]rr(?:or)?\w{0,2}", named) is not None


def _distance(node: Node) -> tuple[Node, Node] | None:
    """Return the two sides of `math.Abs(a - b)`."""
    found = method(node)
    inside = found[2][0] if found is not None and found[1] == "Abs" and found[2] else None
    if inside is None or inside.type != "binary_expression" or text(inside.child_by_field_name("operator")) != "-":
        return None
    left, right = inside.child_by_field_name("left"), inside.child_by_field_name("right")
    return (left, right) if left is not None and right is not None else None


def _check(subject: str, kind: str, strength: int, expected: str, line: int, tolerance: float | None = None) -> Check:
    """Return a check that is the same whichever side the value stands on."""
    if (_LITERAL.fullmatch(subject) or _WANTED.fullmatch(subject)) and not _LITERAL.fullmatch(expected):
        subject, expected = expected, subject
    return Check(subject, kind, strength, expected, tolerance, line)


def testify(node: Node, rules: Language, names: Mapping[str, str], receiver: str) -> Iterator[Check]:
    """Yield what a call of testify checks: of its packages, of an object that they made, or of a suite (*receiver*)."""
    found = method(node)
    if found is None:
        return
    operand, called, given = found
    made = written(operand, rules, names)
    if made in {"assert", "require"}:
        given = given[1:]
    elif not made.startswith(("assert.New(", "require.New(")) and made.split(".")[0] != (receiver or "\0"):
        return
    name = called.removesuffix("f") if called.removesuffix("f") in _KNOWN else called
    if name in _KNOWN and given:
        yield from _of_testify(name, given, rules, names, line_of(node))


_KNOWN: Final = frozenset({*_TESTIFY, *_CONSTANT, "True", "False", "NoError"})


def _of_testify(name: str, given: list[Node], rules: Language, names: Mapping[str, str], line: int) -> Iterator[Check]:
    sides = [written(argument, rules, names) for argument in given[:3]]
    if name in {"True", "False"}:
        yield from conditions(given[0], rules, names, must=name == "True")
    elif name == "NoError" or (name == "Nil" and _is_error(given[0], given[0])):
        yield Check(sides[0], NO_ERROR, RELATION, line=line)
    elif name in _CONSTANT:
        yield Check(sides[0], name, EXACT if name != "Empty" else PART, _CONSTANT[name], line=line)
    elif name in _ALONE or len(sides) == 1:
        yield Check(sides[0], name, _TESTIFY[name], line=line)
    else:
        actual, expected = (sides[0], sides[1]) if name in _ACTUAL_FIRST else (sides[1], sides[0])
        tolerance = number(sides[2]) if name in _TOLERANT and len(sides) > 2 else None  # noqa: PLR2004  (two and how far)
        kind = "==" if name in {"Equal", "InDelta"} else name
        yield _check(actual, kind, _TESTIFY[name], expected, line, tolerance)


def only_told(check: Check) -> Check:
    """Return the check as one that nothing fails by."""
    return Check(check.subject, "t.Log", NOTHING, check.expected, check.tolerance, check.line)
