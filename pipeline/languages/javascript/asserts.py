"""Reads JavaScript for `suite_walk`: `expect` of jest, vitest and chai, and `assert` of node and chai."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from pipeline.languages.sources.claims import compared, conditions, group, joined, said, split, strengths
from pipeline.languages.sources.suite_walk import Trees
from pipeline.languages.sources.suites import EXACT, NOTHING, PART, PRESENCE, RELATION, Check, Words
from pipeline.languages.sources.syntax_trees import line_of, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tree_sitter import Node

FUNCTIONS: Final = frozenset({"arrow_function", "function_expression", "function_declaration", "generator_function"})
_STRENGTH: Final = strengths(
    exact="toBe toEqual toStrictEqual toBeNull toBeUndefined toBeNaN toBeCloseTo toHaveBeenCalledWith "
    "toHaveBeenLastCalledWith toHaveBeenNthCalledWith toHaveReturnedWith toThrowError "
    "toHaveBeenCalledTimes toHaveBeenCalledOnce equal eql equals eq true false null undefined closeTo "
    "members strictEqual deepEqual deepStrictEqual calledWith approximately assertions",
    part="toMatchObject toContain toContainEqual toMatch toHaveLength toHaveProperty toBeInstanceOf toThrow "
    "toMatchSnapshot toBeTypeOf toMatchInlineSnapshot toThrowErrorMatchingSnapshot toSatisfy "
    "toThrowErrorMatchingInlineSnapshot toMatchFileSnapshot include includes contain match throw throws "
    "rejects lengthOf length property instanceof instanceOf keys empty oneOf a an string "
    "partialDeepStrictEqual snapshot fileSnapshot toHaveTextContent",
    relation="toBeGreaterThan toBeGreaterThanOrEqual toBeLessThan toBeLessThanOrEqual above below least most "
    "greaterThan lessThan within gt lt notEqual notStrictEqual notDeepEqual notDeepStrictEqual "
    "doesNotMatch toBeFalsy isFalse isNull isUndefined ifError",
    presence="toBeTruthy toBeDefined ok exist exists toHaveBeenCalled called toHaveReturned doesNotThrow "
    "doesNotReject toBeInTheDocument isOk isTrue hasAssertions",
)
_THIRD: Final[dict[str, Literal["digits", "deviation"]]] = {
    "toBeCloseTo": "digits",
    "closeTo": "deviation",
    "approximately": "deviation",
}
_WITH_MESSAGE: Final = frozenset({"toThrow", "toThrowError", "throw", "throws", "rejects"})
_EQUAL: Final = frozenset({"toBe", "toEqual", "toStrictEqual", "equal", "strictEqual", "deepEqual", "deepStrictEqual"})
_TRUE: Final = frozenset({"toBeTruthy", "ok", "isOk", "isTrue", "assert", "true"})
_FALSE: Final = frozenset({"toBeFalsy", "isFalse", "false"})
_ASSERT: Final = re.compile(r"(?:\w+\.)?assert(?:\.strict)?|strict")
_MAY_FAIL: Final = frozenset({"fail", "throw", "done", "expect", "assert"})
_NOTHING_MISSING: Final = frozenset({"toBeNull", "toBeUndefined", "null", "undefined", "toBeFalsy", "toThrow", "empty"})


class JavaScript(Trees):
    """The implementation of one JavaScript file; `imported` are node's `assert` functions called by their own names."""

    atoms = frozenset({"string", "template_string", "regex"})
    branch = "if_statement"
    failures = re.compile(r"\b(?:fail|throw|done)\b")

    def __init__(self, imported: frozenset[str] = frozenset()) -> None:
        self.imported = imported

    def words(self, node: Node | None) -> Words:
        """Return the tokens of a node, without `await`."""
        return tuple(word for word in super().words(node) if word not in {"await", ";"})

    def bindings(self, node: Node) -> Iterator[tuple[Sequence[str], Words]]:
        """Yield the names that a declaration or assignment binds, with the tokens of their values."""
        field = {"variable_declarator": ("name", "value"), "assignment_expression": ("left", "right")}.get(node.type)
        target, value = (node.child_by_field_name(one) for one in field) if field is not None else (None, None)
        if target is not None and value is not None and target.type != "member_expression":
            yield names_of(target), self.words(value)

    def loop(self, node: Node) -> tuple[Sequence[str], Words] | None:
        """Return the names that a `for` or `forEach` binds, with the tokens of what it iterates over; else None."""
        if node.type == "for_in_statement":
            return names_of(node.child_by_field_name("left")), self.words(node.child_by_field_name("right"))
        function = node.child_by_field_name("function") if node.type == "call_expression" else None
        if function is None or text(function.child_by_field_name("property")) not in {"forEach", "map", "flatMap"}:
            return None
        given = without_comments(node.child_by_field_name("arguments"))
        names = parameters(given[0]) if given and given[0].type in FUNCTIONS else ()
        return names, self.words(function.child_by_field_name("object"))

    def checks(self, node: Node, made: Callable[[Words], Words]) -> Iterator[Check]:
        """Yield the checks of an expectation, an assertion, or an error thrown on a condition."""
        if node.type == "if_statement" and "throw" in self.words(node.child_by_field_name("consequence")):
            yield from conditions(
                made(self.words(node.child_by_field_name("condition"))), {}, line_of(node), must=False
            )
        elif node.type not in {"call_expression", "member_expression"}:
            return
        elif (node.text or b"").startswith(b"expect"):
            if not _is_part(node):
                yield from self._expected(node, made)
        elif node.type == "call_expression":
            function = node.child_by_field_name("function")
            given = self.arguments(node)
            name = text(function)
            if function is not None and function.type == "member_expression":
                is_assert = _ASSERT.fullmatch(text(function.child_by_field_name("object"))) is not None
                name = text(function.child_by_field_name("property")) if is_assert else ""
            elif name != "assert" and name not in self.imported:
                name = ""
            if given and (name in _STRENGTH or name == "assert"):
                yield from _compared(name, [*map(made, given)], line_of(node))

    def _expected(self, node: Node, made: Callable[[Words], Words]) -> Iterator[Check]:
        """Yield the checks of `expect(subject).words.matcher(arguments)`; chai's properties have no arguments."""
        words, line = self.words(node), line_of(node)
        at = words.index("(") if "(" in words else 0
        is_own = words[1:2] == (".",) and words[2:3] not in (("soft",), ("poll",))
        subject = () if is_own else group(words, at)
        rest = words[1:] if is_own else words[at + len(subject) + 2 :]
        named = [rest[i + 1] for i, word in enumerate(rest[:-1]) if word == "." and _depth(rest, i) == 0]
        name = next((word for word in reversed(named) if word in _STRENGTH), named[-1] if named else "")
        behind = rest[len(rest) - 1 - rest[::-1].index(name) :] if name else ()
        given = [made(one) for one in split(group(behind, 1), ",")] if behind[1:2] == ("(",) else []
        given = given if name in _THIRD else joined(given)
        is_promise = bool({"resolves", "rejects"} & set(named))
        if not name:
            return
        if is_promise and node.parent is not None and node.parent.type == "expression_statement":
            yield Check(words, "nothing", NOTHING, line=line)  # nobody waits for it
            return
        for check in _compared(name, [*([made(subject)] if subject else []), *given], line):
            yield _negated(check) if "not" in named else check

    def marks(self, node: Node) -> Iterator[str]:
        """Yield a sentence if a failing assertion below a node would be caught and ignored."""
        if node.type == "try_statement":
            handler = self.words(node.child_by_field_name("handler"))
            if handler and self._may_fail(node.child_by_field_name("body")) and _MAY_FAIL.isdisjoint(handler):
                yield "a failing assertion is swallowed"
        elif node.type == "call_expression":
            function = node.child_by_field_name("function")
            if function is not None and text(function.child_by_field_name("property")) == "catch":
                handler = self.words(node.child_by_field_name("arguments"))
                if self._may_fail(function.child_by_field_name("object")) and _MAY_FAIL.isdisjoint(handler):
                    yield "a failing assertion is swallowed"

    def _may_fail(self, node: Node | None) -> bool:
        return not _MAY_FAIL.isdisjoint(self.words(node))


def without_comments(node: Node | None) -> tuple[Node, ...]:
    """Return the child nodes of a node without comments."""
    return tuple(child for child in node.named_children if child.type != "comment") if node is not None else ()


def names_of(pattern: Node | None) -> list[str]:
    """Return the names that a pattern binds."""
    if pattern is None or pattern.type in {"identifier", "shorthand_property_identifier_pattern"}:
        return [text(pattern)] if pattern is not None else []
    return [name for child in pattern.named_children for name in names_of(child)]


def parameters(function: Node) -> list[str]:
    """Return the names of a function's parameters; those of a destructured one are joined."""
    alone = function.child_by_field_name("parameter")
    given = without_comments(function.child_by_field_name("parameters")) if alone is None else (alone,)
    return [name for one in given for name in names_of(one.child_by_field_name("pattern") or one)]


def _compared(name: str, given: list[Words], line: int) -> Iterator[Check]:
    """Yield the checks of a matcher or assertion by its name and arguments, the subject first."""
    boolean = given[1:2] if name in _EQUAL else []
    is_true, is_false = (name in _TRUE or boolean == [("true",)]), (name in _FALSE or boolean == [("false",)])
    if given and (is_true or is_false) and (name not in {"true", "false"} | _EQUAL or _is_condition(given[0])):
        yield from conditions(given[0], {}, line, must=is_true)
    elif name in _EQUAL and len(given) > 1:
        check = compared(given[0], "==", given[1], EXACT, line)
        yield Check(check.words, name if check.strength else check.kind, check.strength, line=line)
    else:
        strength = _STRENGTH.get(name, PART)
        with_message = name in _WITH_MESSAGE and len(given) > 1
        yield said(
            given, name, EXACT if with_message else PART if name in _WITH_MESSAGE else strength, line, _THIRD.get(name)
        )


def _is_condition(words: Words) -> bool:
    return any(word in {"===", "==", "!==", "!=", "<", "<=", ">", ">=", "&&", "||"} for word in words)


def _negated(check: Check) -> Check:
    strength = PRESENCE if check.kind in _NOTHING_MISSING else min(RELATION, check.strength)
    return Check(check.words, f"not {check.kind}", strength, check.tolerance, check.line)


def _is_part(node: Node) -> bool:
    """Return whether a node is an inner part of a longer expectation."""
    above = node.parent
    if above is None or above.type not in {"member_expression", "call_expression"}:
        return False
    return node in {above.child_by_field_name("object"), above.child_by_field_name("function")}


def _depth(words: Words, at: int) -> int:
    return sum((word in "([{") - (word in ")]}") for word in words[:at])
