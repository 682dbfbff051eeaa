"""What assertions of JavaScript say: `expect` of jest, vitest and chai, and `assert` of node and chai."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.languages.sources.suite_walk import below, line_of, number, text, written
from pipeline.languages.sources.suites import EXACT, PART, PRESENCE, RELATION, Check, either

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

    from pipeline.languages.sources.suite_walk import Language

_STRENGTH: Final[dict[str, int]] = {
    **dict.fromkeys(("toBe", "toEqual", "toStrictEqual", "toBeNull", "toBeUndefined", "toBeNaN"), EXACT),
    **dict.fromkeys(
        ("toBeCloseTo", "toHaveBeenCalledWith", "toHaveBeenLastCalledWith", "toHaveBeenNthCalledWith"), EXACT
    ),
    **dict.fromkeys(("toHaveReturnedWith", "toThrowError", "toHaveBeenCalledTimes", "toHaveBeenCalledOnce"), EXACT),
    **dict.fromkeys(
        ("equal", "eql", "equals", "eq", "true", "false", "null", "undefined", "closeTo", "members"), EXACT
    ),
    **dict.fromkeys(("strictEqual", "deepEqual", "deepStrictEqual", "calledWith", "approximately"), EXACT),
    **dict.fromkeys(
        ("toMatchObject", "toContain", "toContainEqual", "toMatch", "toHaveLength", "toHaveProperty"), PART
    ),
    **dict.fromkeys(("toBeInstanceOf", "toThrow", "toMatchSnapshot", "toMatchInlineSnapshot", "toBeTypeOf"), PART),
    **dict.fromkeys(("toThrowErrorMatchingSnapshot", "toThrowErrorMatchingInlineSnapshot", "toSatisfy"), PART),
    **dict.fromkeys(
        ("toMatchFileSnapshot", "include", "includes", "contain", "match", "throw", "throws", "rejects"), PART
    ),
    **dict.fromkeys(
        ("lengthOf", "length", "property", "instanceof", "instanceOf", "keys", "empty", "oneOf", "a", "an"), PART
    ),
    **dict.fromkeys(("partialDeepStrictEqual", "string", "snapshot", "fileSnapshot", "toHaveTextContent"), PART),
    **dict.fromkeys(("toBeGreaterThan", "toBeGreaterThanOrEqual", "toBeLessThan", "toBeLessThanOrEqual"), RELATION),
    **dict.fromkeys(("above", "below", "least", "most", "greaterThan", "lessThan", "within", "gt", "lt"), RELATION),
    **dict.fromkeys(("notEqual", "notStrictEqual", "notDeepEqual", "notDeepStrictEqual", "doesNotMatch"), RELATION),
    **dict.fromkeys(("toBeFalsy", "isFalse", "isNull", "isUndefined"), RELATION),
    **dict.fromkeys(("toBeTruthy", "toBeDefined", "ok", "exist", "exists", "toHaveBeenCalled", "called"), PRESENCE),
    **dict.fromkeys(
        ("toHaveReturned", "doesNotThrow", "doesNotReject", "toBeInTheDocument", "isOk", "isTrue"), PRESENCE
    ),
}
_CONSTANTS: Final = {
    "toBeNull": "null", "toBeUndefined": "undefined", "toBeNaN": "NaN", "true": "true", "false": "false",
    "null": "null", "undefined": "undefined",
}  # fmt: skip
_FILLERS: Final = frozenset(
    {
        "to",
        "be",
        "been",
        "is",
        "that",
        "which",
        "and",
        "has",
        "have",
        "with",
        "at",
        "of",
        "same",
        "deep",
        "soft",
        "poll",
    }
)
_EMPTY_THROWS: Final = frozenset({"toThrow", "toThrowError", "throw", "throws", "rejects"})
_ANYTHING: Final = frozenset(
    {"anything", "any", "objectContaining", "arrayContaining", "stringContaining", "stringMatching", "arrayOf"}
)
_TOLERANT: Final = frozenset({"closeTo", "approximately"})
_WORDS: Final = 30
_TRUE: Final = frozenset({"toBeTruthy", "ok", "isOk", "isTrue"})
_ASSERT: Final = re.compile(r"(?:\w+\.)?assert(?:\.strict)?|strict")
_LITERAL: Final = re.compile(r"-?\d[\w.]*|\".*\"|'.*'|`[^$]*`|true|false|null|undefined")
_COMPARED: Final = {
    "===": EXACT, "==": EXACT, "!==": RELATION, "!=": RELATION, "<": RELATION, "<=": RELATION, ">": RELATION,
    ">=": RELATION,
}  # fmt: skip
_OPPOSITE: Final = {
    "===": "!==", "==": "!=", "!==": "===", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
}  # fmt: skip


@dataclass(frozen=True)
class Expectation:
    """`expect(subject).words.matcher(arguments)`; a property of chai's has no arguments."""

    subject: tuple[Node, ...]
    words: tuple[str, ...]
    arguments: tuple[Node, ...]


def expectation(node: Node) -> Expectation | None:
    """Return what a node expects, None for any other node and for a part of a longer expectation."""
    given = plain(node.child_by_field_name("arguments")) if node.type == "call_expression" else ()
    place = node.child_by_field_name("function") if node.type == "call_expression" else node
    words: list[str] = []
    while place is not None and len(words) < _WORDS:
        if place.type == "member_expression":
            words.append(text(place.child_by_field_name("property")))
            place = place.child_by_field_name("object")
        elif place.type != "call_expression":
            return None
        elif text(place.child_by_field_name("function")) in {"expect", "expect.soft"}:
            subject = plain(place.child_by_field_name("arguments"))
            return Expectation(subject, tuple(reversed(words)), given) if words and not _is_part(node) else None
        else:
            place = place.child_by_field_name("function")
            words.append("")
    return None


def _is_part(node: Node) -> bool:
    """Return whether more of the expectation follows; asked last, since a parent is looked for from the root."""
    above = node.parent
    if above is None or above.type not in {"member_expression", "call_expression"}:
        return False
    return node in {above.child_by_field_name("object"), above.child_by_field_name("function")}


def expected(found: Expectation, line: int, rules: Language, names: Mapping[str, str]) -> Iterator[Check]:
    """Yield what an expectation checks."""
    words = [
        word for word in found.words if word and word not in _FILLERS and word not in {"not", "resolves", "rejects"}
    ]
    name = words[-1] if words else ""
    if name not in _STRENGTH or not found.subject:
        name = name or "expect"
    is_not = "not" in found.words
    if (name in _TRUE or _is_boolean(name, found)) and _is_condition(found.subject[:1]):
        must = (name in _TRUE or "true" in {name, *map(text, found.arguments)}) is not is_not
        yield from conditions(found.subject[0], rules, names, must=must)
        return
    subject = ", ".join(_made(node, rules, names) for node in found.subject)
    if "rejects" in found.words:
        subject = f"rejection of {subject}"
    check = _check(subject, name, found.arguments, line, rules, names)
    yield _negated(check) if is_not else check


def _is_boolean(name: str, found: Expectation) -> bool:
    compared = name in {"toBe", "toEqual", "toStrictEqual", "equal"}
    return name in {"true", "false"} or (compared and [text(node) for node in found.arguments] in (["true"], ["false"]))


def _is_condition(nodes: tuple[Node, ...]) -> bool:
    return bool(nodes) and nodes[0].type == "binary_expression"


def asserted(node: Node, rules: Language, names: Mapping[str, str], imported: frozenset[str]) -> Iterator[Check]:
    """Yield what a call of node's `assert` or chai's checks; *imported* are functions of it by their own names."""
    function = node.child_by_field_name("function")
    given = plain(node.child_by_field_name("arguments"))
    if function is None or not given:
        return
    name = ""
    if function.type == "member_expression" and _ASSERT.fullmatch(text(function.child_by_field_name("object"))):
        name = text(function.child_by_field_name("property"))
    elif function.type == "identifier" and (text(function) in imported or text(function) == "assert"):
        name = text(function)
    if name in {"assert", "ok", "isOk", "isTrue"}:
        yield from conditions(given[0], rules, names, must=True)
    elif name == "ifError":
        yield Check(_made(given[0], rules, names), "no error", RELATION, line=line_of(node))
    elif name in _STRENGTH:
        yield _check(_made(given[0], rules, names), name, given[1:], line_of(node), rules, names)


def conditions(node: Node, rules: Language, names: Mapping[str, str], *, must: bool) -> Iterator[Check]:
    """Yield what is checked where a condition has to hold (*must*), or has to fail."""
    line = line_of(node)
    while node.type == "parenthesized_expression" and node.named_children:
        node = node.named_children[0]
    operator = text(node.child_by_field_name("operator"))
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if node.type == "unary_expression" and operator == "!":
        yield from conditions(node.named_children[-1], rules, names, must=not must)
    elif node.type != "binary_expression" or left is None or right is None:
        yield Check(_made(node, rules, names), "truth" if must else "not", PRESENCE if must else RELATION, line=line)
    elif operator == ("&&" if must else "||"):
        yield from conditions(left, rules, names, must=must)
        yield from conditions(right, rules, names, must=must)
    elif operator in {"&&", "||"}:
        found = [check for side in (left, right) for check in conditions(side, rules, names, must=must)]
        yield either(found, _made(node, rules, names), line)
    elif operator in _COMPARED:
        kind = operator if must else _OPPOSITE[operator]
        distance = _distance(left) if kind in {"<", "<="} else None
        one, other = (_made(side, rules, names) for side in (distance or (left, right)))
        if distance is not None:
            yield _sided(one, "===", EXACT, other, line, number(_made(right, rules, names)))
        else:
            yield _sided(one, kind, _COMPARED[kind], other, line)
    else:
        yield Check(_made(node, rules, names), operator, PRESENCE, line=line)


def plain(node: Node | None) -> tuple[Node, ...]:
    """Return what is in a node, comments aside."""
    return tuple(child for child in node.named_children if child.type != "comment") if node is not None else ()


def is_literal(source: str) -> bool:
    """Return whether a piece of source is one value that is written down."""
    return _LITERAL.fullmatch(source) is not None


def _made(node: Node, rules: Language, names: Mapping[str, str]) -> str:
    return re.sub(r"\bawait ", "", written(node, rules, names))


def _check(
    subject: str, name: str, given: tuple[Node, ...], line: int, rules: Language, names: Mapping[str, str]
) -> Check:
    strength = _STRENGTH.get(name, PART)
    if name in _EMPTY_THROWS:
        strength = EXACT if given else PART
    expected_ = _CONSTANTS.get(name) or ", ".join(_made(node, rules, names) for node in given[:2])
    loose = sum(_is_anything(part) for node in given for part in below(node))
    tolerance: float | None = None
    if name == "toBeCloseTo":
        digits = number(text(given[1])) if len(given) > 1 else 2.0
        tolerance = 0.5 * 10.0 ** -(digits if digits is not None else 2.0)
        expected_ = _made(given[0], rules, names) if given else ""
    elif name in _TOLERANT and len(given) > 1:
        tolerance = number(_made(given[1], rules, names))
        expected_ = _made(given[0], rules, names)
    return Check(subject, name, strength, expected_, tolerance, line, loose)


def _sided(subject: str, kind: str, strength: int, expected_: str, line: int, tolerance: float | None = None) -> Check:
    if is_literal(subject) and not is_literal(expected_):
        subject, expected_ = expected_, subject
    return Check(subject, kind, strength, expected_, tolerance, line)


def _negated(check: Check) -> Check:
    nothing = check.kind in {"toBeNull", "toBeUndefined", "null", "undefined", "toBeFalsy", "toThrow", "throw", "empty"}
    strength = PRESENCE if nothing else min(RELATION, check.strength)
    return Check(check.subject, f"not {check.kind}", strength, check.expected, check.tolerance, check.line, check.loose)


def _is_anything(node: Node) -> bool:
    if node.type != "member_expression" or text(node.child_by_field_name("object")) not in {"expect", "sinon.match"}:
        return False
    return text(node.child_by_field_name("property")) in _ANYTHING


def _distance(node: Node) -> tuple[Node, Node] | None:
    """Return the two sides of `Math.abs(a - b)`."""
    given = plain(node.child_by_field_name("arguments")) if node.type == "call_expression" else ()
    if not given or text(node.child_by_field_name("function")) != "Math.abs" or given[0].type != "binary_expression":
        return None
    left, right = given[0].child_by_field_name("left"), given[0].child_by_field_name("right")
    is_minus = text(given[0].child_by_field_name("operator")) == "-"
    return (left, right) if is_minus and left is not None and right is not None else None
