"""What Rust's assertions say, from their syntax: macros of the standard library, of approx, insta and their like.

An `unwrap` that stands around the value is no part of what is looked at: `f().unwrap() == 1` and `f() == Ok(1)` say the
same. Importing this module loads the parser.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tree_sitter import Language, Parser
from tree_sitter_rust import language

from pipeline.languages.sources.suite_walk import below, line_of, number, text, written
from pipeline.languages.sources.suites import EXACT, PART, PRESENCE, RELATION, Check, either

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node, Tree

    from pipeline.languages.sources.suite_walk import Language as Rules

_RUST: Final = Language(language())
_UNWRAPPED: Final = re.compile(r'\.(?:unwrap|expect)\((?:"(?:[^"\\]|\\.)*")?\)|\?(?=[.);,]|$)')
_RIGHT: Final = re.compile(r"(?:Ok|Some)\((?P<inside>.*)\)")
_FAILED: Final = re.compile(r"(?P<subject>.*)\.(?:unwrap_err\(\)|expect_err\(.*\))")
_LITERAL: Final = re.compile(r"-?\d[\w.]*|[bc]?\".*\"|'.*'|true|false|\(\)|None")
_COMPARED: Final = {"==": EXACT, "!=": RELATION, "<": RELATION, "<=": RELATION, ">": RELATION, ">=": RELATION}
_ASKED: Final = {
    **dict.fromkeys(("is_ok", "is_err", "is_some"), RELATION),
    **dict.fromkeys(("is_none", "is_empty", "contains", "starts_with", "ends_with", "contains_key"), PART),
    **dict.fromkeys(("eq", "approx_eq", "abs_diff_eq", "relative_eq", "ulps_eq"), EXACT),
}
_EQUAL: Final = re.compile(
    r"(?:debug_|prop_)?assert_eq|assert_(?:abs_diff|relative|ulps|approx|float(?:_absolute)?)_eq"
)
_TOLERANCES: Final = frozenset({"epsilon", "max_relative", "max_ulps", "abs", "rmax", "r2nd", "ulps"})


def parse(source: bytes) -> Tree:
    """Return the syntax tree of a Rust source, which may have errors in it."""
    return Parser(_RUST).parse(source)


def macro_name(node: Node) -> str:
    """Return the last part of the name of a macro that is called."""
    return text(node.child_by_field_name("macro")).rpartition("::")[2]


def arguments(macro: Node) -> list[Node]:
    """Return the arguments of a macro as expressions, none where they are something else."""
    inside = text(macro.named_children[-1])[1:-1] if macro.named_children else ""
    tree = parse(b"fn f() { g(" + inside.encode() + b"\n) }")
    call = next((node for node in below(tree.root_node) if node.type == "arguments"), None)
    return [] if call is None or tree.root_node.has_error else _expressions(call)


def asserted(macro: Node, rules: Rules, names: Mapping[str, str]) -> Iterator[Check]:
    """Yield what an assertion macro checks; nothing for any other macro."""
    name, line = macro_name(macro), line_of(macro)
    if name in {"assert", "debug_assert", "prop_assert"}:
        given = arguments(macro)
        yield from _true(given[0], rules, names, line) if given else _unread(macro, rules, names)
    elif name in {"assert_ne", "debug_assert_ne", "prop_assert_ne"}:
        yield from _two(macro, rules, names, "!=", RELATION)
    elif _EQUAL.fullmatch(name):
        yield from _two(macro, rules, names, "==", EXACT)
    elif name in {"assert_matches", "matches"}:
        yield from _matches(macro, rules, names)
    elif name.startswith("assert_"):
        yield from _two(macro, rules, names, name, PART)


def vacuous(macro: Node, rules: Rules, names: Mapping[str, str]) -> bool:
    """Return whether an assertion cannot fail: of a constant, or of a thing and itself."""
    name = macro_name(macro)
    given = [written(argument, rules) for argument in arguments(macro)[:2]]
    made = [written(argument, rules, names) for argument in arguments(macro)[:2]]
    if name in {"assert", "debug_assert"} and given:
        return any(part.strip() == "true" for part in given[0].split("||"))
    if name in {"assert_eq", "debug_assert_eq"} and len(given) > 1:
        same = given[0] == given[1]
        return same or (made[0] == made[1] and _LITERAL.fullmatch(made[0]) is not None)
    return False


def bare(source: str) -> str:
    """Return a piece of source without what only takes a value out of its wrapping."""
    return _UNWRAPPED.sub("", source.removeprefix("&").removeprefix("mut ").removeprefix("*"))


def _expressions(call: Node) -> list[Node]:
    return [child for child in call.named_children if "comment" not in child.type]


def _two(macro: Node, rules: Rules, names: Mapping[str, str], kind: str, strength: int) -> Iterator[Check]:
    given = arguments(macro)
    named = [argument for argument in given if argument.type in {"assignment_expression", "binary_expression"}]
    plain = [argument for argument in given if argument.type != "assignment_expression"]
    if not plain:
        yield from _unread(macro, rules, names)
        return
    sides = [bare(written(argument, rules, names)) for argument in plain[:2]]
    tolerance = next(filter(None, (_named_tolerance(argument, rules, names) for argument in named)), None)
    if tolerance is None and "approx" in macro_name(macro) and len(plain) > 2:  # noqa: PLR2004  (two sides and how far)
        tolerance = number(written(plain[2], rules, names))
    yield _check(sides[0], kind, strength, sides[1] if len(sides) > 1 else "", line_of(macro), tolerance)


def _named_tolerance(argument: Node, rules: Rules, names: Mapping[str, str]) -> float | None:
    name = text(argument.child_by_field_name("left"))
    value = argument.child_by_field_name("right")
    return number(written(value, rules, names)) if name in _TOLERANCES else None


def _check(subject: str, kind: str, strength: int, expected: str, line: int, tolerance: float | None = None) -> Check:
    """Return a check that is the same whichever side the value stands on, and whatever it was wrapped in."""
    if _LITERAL.fullmatch(subject) and not _LITERAL.fullmatch(expected):
        subject, expected = expected, subject
    failed = _FAILED.fullmatch(subject)
    right = _RIGHT.fullmatch(expected)
    if failed is not None:
        subject, expected = failed["subject"], f"Err({expected})"
    elif right is not None:
        expected = right["inside"]
    return Check(subject, kind, strength, expected, tolerance, line)


def _true(node: Node, rules: Rules, names: Mapping[str, str], line: int) -> Iterator[Check]:
    """Yield what a condition says that has to be true."""
    while node.type == "parenthesized_expression" and node.named_children:
        node = node.named_children[0]
    if node.type == "binary_expression":
        yield from _binary(node, rules, names, line)
    elif node.type == "unary_expression" and text(node).startswith("!"):
        for check in _true(node.named_children[0], rules, names, line):
            weaker = PRESENCE if check.kind == "is_empty" else RELATION
            yield Check(check.subject, f"not {check.kind}", min(check.strength, weaker), check.expected, line=line)
    elif node.type == "macro_invocation" and macro_name(node) == "matches":
        yield from _matches(node, rules, names, line)
    elif (method := _method(node)) is not None and method[0] in _ASKED:
        name, receiver, given = method
        expected = ", ".join(written(argument, rules, names) for argument in given)
        yield Check(bare(written(receiver, rules, names)), name, _ASKED[name], expected, line=line)
    else:
        yield Check(bare(written(node, rules, names)), "truth", PRESENCE, line=line)


def _binary(node: Node, rules: Rules, names: Mapping[str, str], line: int) -> Iterator[Check]:
    operator = text(node.child_by_field_name("operator"))
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None:
        return
    if operator == "&&":
        yield from _true(left, rules, names, line)
        yield from _true(right, rules, names, line)
        return
    if operator == "||":
        found = [*_true(left, rules, names, line), *_true(right, rules, names, line)]
        yield either(found, bare(written(node, rules, names)), line)
        return
    small, large = (left, right) if operator in {"<", "<="} else (right, left)
    distance = _distance(small) if operator in {"<", "<=", ">", ">="} else None
    if distance is not None:
        sides = [bare(written(side, rules, names)) for side in distance]
        yield _check(sides[0], "==", EXACT, sides[1], line, number(written(large, rules, names)))
    elif operator in _COMPARED:
        sides = [bare(written(side, rules, names)) for side in (left, right)]
        yield _check(sides[0], operator, _COMPARED[operator], sides[1], line)
    else:
        yield Check(bare(written(node, rules, names)), operator, PRESENCE, line=line)


def _distance(node: Node) -> tuple[Node, Node] | None:
    """Return the two sides of `(a - b).abs()`."""
    method = _method(node)
    inside = method[1] if method is not None and method[0] == "abs" else None
    if inside is not None and inside.type == "parenthesized_expression" and inside.named_children:
        inside = inside.named_children[0]
    if inside is None or inside.type != "binary_expression" or text(inside.child_by_field_name("operator")) != "-":
        return None
    left, right = inside.child_by_field_name("left"), inside.child_by_field_name("right")
    return (left, right) if left is not None and right is not None else None


def _method(node: Node) -> tuple[str, Node, list[Node]] | None:
    """Return name, receiver and arguments of a call of a method."""
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    given = node.child_by_field_name("arguments")
    if function is None or function.type != "field_expression" or given is None:
        return None
    receiver = function.child_by_field_name("value")
    return (
        (text(function.child_by_field_name("field")), receiver, _expressions(given)) if receiver is not None else None
    )


def _matches(macro: Node, rules: Rules, names: Mapping[str, str], line: int | None = None) -> Iterator[Check]:
    tokens = macro.named_children[-1].children[1:-1] if macro.named_children else []
    comma = next((at for at, token in enumerate(tokens) if token.type == ","), len(tokens))
    sides = ["".join(written(token, rules, names) for token in part) for part in (tokens[:comma], tokens[comma + 1 :])]
    yield Check(bare(sides[0]), "matches", PART, sides[1], line=line or line_of(macro))


def _unread(macro: Node, rules: Rules, names: Mapping[str, str]) -> Iterator[Check]:
    yield Check(written(macro, rules, names), macro_name(macro), PRESENCE, line=line_of(macro))
