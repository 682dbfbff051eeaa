"""Reads Go for `suite_walk`: conditions on which a test fails, and the assertions of testify."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from pipeline.languages.sources.claims import compared, conditions, group, said, split, strengths
from pipeline.languages.sources.suite_walk import Trees
from pipeline.languages.sources.suites import EXACT, PRESENCE, RELATION, Check, Words
from pipeline.languages.sources.syntax_trees import line_of, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tree_sitter import Node

_FAILS: Final = re.compile(r"(?:t|tb|b|f|tt|\w*\.?T\(\))\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)")
NO_ERROR: Final = "no error"
"""The kind of a check that a call returned no error, which set-up consists of as well."""
_BINDS: Final = frozenset({"short_var_declaration", "assignment_statement"})
_ASKED: Final = strengths(
    exact="DeepEqual Equal EqualFold Is EqualFunc",
    part="Contains HasPrefix HasSuffix As MatchString ContainsAny",
)
_TESTIFY: Final = strengths(
    exact="Equal EqualValues Exactly JSONEq YAMLEq ElementsMatch Same InDelta InEpsilon WithinDuration "
    "EqualError ErrorIs PanicsWithValue Nil Zero",
    part="Contains Subset Regexp ErrorContains ErrorAs IsType Implements Len Empty Panics PanicsWithError "
    "Eventually FileExists DirExists",
    relation="NotEqual NotContains Greater GreaterOrEqual Less LessOrEqual NotRegexp Positive Negative NotSame "
    "NotSubset NotErrorIs",
    presence="NotNil NotEmpty NotZero Error NotPanics NoError",
)
_THIRD: Final[dict[str, Literal["digits", "deviation"]]] = dict.fromkeys(
    ("InDelta", "InEpsilon", "WithinDuration"), "deviation"
)
_ALONE: Final = frozenset({"Nil", "Zero", "Empty", "NotNil", "NotEmpty", "NotZero", "Error", "NoError", "Panics"})


class Go(Trees):
    """The implementation of one Go file; `handles` are the receivers of testify's methods, beside its packages."""

    atoms = frozenset({"interpreted_string_literal", "raw_string_literal", "rune_literal"})
    branch = "if_statement"
    failures = re.compile(r"\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow|Skip|Skipf|SkipNow)\(")

    def __init__(self, handles: frozenset[str] = frozenset()) -> None:
        self.handles = handles

    def bindings(self, node: Node) -> Iterator[tuple[Sequence[str], Words]]:
        """Yield the names that a declaration or assignment binds, those of an `if` included, with their values."""
        if node.type == "if_statement" and (first := node.child_by_field_name("initializer")) is not None:
            yield from self.bindings(first)
        if node.type in _BINDS:
            yield from self._bound(node.child_by_field_name("left"), node.child_by_field_name("right"))
        elif node.type in {"var_spec", "const_spec"}:
            named = [text(child) for child in node.children_by_field_name("name") if child.type == "identifier"]
            if (value := node.child_by_field_name("value")) is not None:
                yield from self._each(named, value)

    def _bound(self, left: Node | None, right: Node | None) -> Iterator[tuple[Sequence[str], Words]]:
        if left is not None and right is not None:
            yield from self._each([text(child) for child in left.named_children], right)

    def _each(self, names: list[str], right: Node) -> Iterator[tuple[Sequence[str], Words]]:
        values = right.named_children
        if len(values) == len(names):
            yield from (((name,), self._value(value)) for name, value in zip(names, values, strict=True))
        else:
            yield names, self.words(right)

    def _value(self, value: Node) -> Words:
        """Return the tokens of a value; for a list literal those of its elements, without their type."""
        body = value.child_by_field_name("body") if value.type == "composite_literal" else None
        kind = value.child_by_field_name("type")
        listed = kind is not None and kind.type in {"slice_type", "map_type", "implicit_length_array_type"}
        return self.words(body) if body is not None and listed else self.words(value)

    def loop(self, node: Node) -> tuple[Sequence[str], Words] | None:
        """Return the names that a range binds, and the tokens of what it iterates over; None for other nodes."""
        clause = next((child for child in node.named_children if child.type == "range_clause"), None)
        right = clause.child_by_field_name("right") if clause is not None else None
        if clause is None or right is None or node.type != "for_statement":
            return None
        left = clause.child_by_field_name("left")
        return [text(child) for child in (left.named_children if left is not None else ())], self._value(right)

    def checks(self, node: Node, made: Callable[[Words], Words]) -> Iterator[Check]:
        """Yield the checks of a condition that fails the test, or of a testify assertion."""
        if node.type == "if_statement":
            body, condition = node.child_by_field_name("consequence"), node.child_by_field_name("condition")
            if body is not None and condition is not None and _fails_directly(body):
                yield from map(_known, conditions(made(self.words(condition)), _ASKED, line_of(node), must=False))
        elif node.type == "call_expression":
            function = node.child_by_field_name("function")
            if _FAILS.fullmatch(text(function)) and not _is_told_by_if(node):
                yield Check((), "failure", RELATION, line=line_of(node))
            elif function is not None and function.type == "selector_expression":
                yield from self._testify(node, function, made)

    def _testify(self, node: Node, function: Node, made: Callable[[Words], Words]) -> Iterator[Check]:
        operand, line = text(function.child_by_field_name("operand")), line_of(node)
        name = re.sub(r"(?<=[a-z])f$", "", text(function.child_by_field_name("field")))
        given = [*map(made, self.arguments(node))]
        if operand in {"assert", "require"}:
            given = given[1:]
        elif not (made((operand,))[:4:2] in {("assert", "New"), ("require", "New")} or operand in self.handles):
            return
        if name in {"True", "False"} and given:
            yield from conditions(given[0], _ASKED, line, must=name == "True")
        elif name in {"Equal", "EqualValues", "Exactly"} and len(given) > 1:
            yield compared(given[1], "==", given[0], EXACT, line)
        elif name in _TESTIFY and given:
            taken = given[:1] if name in _ALONE else given
            kind = NO_ERROR if name == "NoError" else name
            yield said(taken, kind, _TESTIFY[name], line, _THIRD.get(name))

    def marks(self, node: Node) -> Iterator[str]:
        """Yield a sentence if a panic below a node would be caught."""
        if node.type == "defer_statement" and "recover" in self.words(node):
            yield "a failing assertion is swallowed"


def _known(check: Check) -> Check:
    """Return the check in Go's terms: no error, or no difference between two values."""
    if check.kind == "==" and check.words[-2:] == ("==", "nil"):
        return replace(check, kind=NO_ERROR, strength=PRESENCE)
    if check.kind == "==" and check.words[:4] == ("cmp", ".", "Diff", "("):
        return said(split(group(check.words, 3), ","), "DeepEqual", EXACT, check.line)
    return check


def _fails_directly(block: Node) -> bool:
    """Return whether one of a block's own statements fails the test."""
    listed = next((child for child in block.named_children if child.type == "statement_list"), block)
    calls = (child.named_children[0] for child in listed.named_children if child.type == "expression_statement")
    return any(_FAILS.fullmatch(text(call.child_by_field_name("function"))) is not None for call in calls)


def _is_told_by_if(call: Node) -> bool:
    """Return whether a failure is in the first branch of an `if`, whose condition then is the check."""
    child, above = call, call.parent
    while above is not None and above.type not in {"func_literal", "function_declaration", "method_declaration"}:
        if above.type == "if_statement":
            return child == above.child_by_field_name("consequence")
        child, above = above, above.parent
    return False
