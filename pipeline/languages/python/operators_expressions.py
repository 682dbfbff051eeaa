"""What can be changed in a Python expression."""

from __future__ import annotations

import ast
import math
import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.sources.faults.mutant import Edit, Rank, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.languages.python.operators_text import Text

_MOST_BITS: Final = 256

_COMPARED: Final[Mapping[type[ast.cmpop], tuple[re.Pattern[bytes], tuple[bytes, ...]]]] = {
    ast.Lt: (re.compile(rb"<(?![<=])"), (b"<=", b">=")),
    ast.LtE: (re.compile(rb"<="), (b"<", b">")),
    ast.Gt: (re.compile(rb">(?![>=])"), (b">=", b"<=")),
    ast.GtE: (re.compile(rb">="), (b">", b"<")),
    ast.Eq: (re.compile(rb"=="), (b"!=",)),
    ast.NotEq: (re.compile(rb"!="), (b"==",)),
    ast.Is: (re.compile(rb"is\b(?!\s+not\b)"), (b"is not",)),
    ast.IsNot: (re.compile(rb"is\s+not\b"), (b"is",)),
    ast.In: (re.compile(rb"in\b"), (b"not in",)),
    ast.NotIn: (re.compile(rb"not\s+in\b"), (b"in",)),
}
_SIGNS: Final[Mapping[type[ast.unaryop], tuple[bytes, Rank]]] = {
    ast.Not: (b"not", Rank.DECISION),
    ast.USub: (b"-", Rank.VALUE),
}
_OF_COMPARED: Final = (Rank.DECISION, Rank.VALUE)
ARITHMETIC: Final[Mapping[type[ast.operator], tuple[bytes, bytes]]] = {
    ast.Add: (b"+", b"-"),
    ast.Sub: (b"-", b"+"),
    ast.Mult: (b"*", b"/"),
    ast.Div: (b"/", b"*"),
    ast.FloorDiv: (b"//", b"/"),
    ast.Mod: (b"%", b"*"),
    ast.Pow: (b"**", b"*"),
    ast.LShift: (b"<<", b">>"),
    ast.RShift: (b">>", b"<<"),
    ast.BitAnd: (b"&", b"|"),
    ast.BitOr: (b"|", b"&"),
    ast.BitXor: (b"^", b"&"),
}


def expression(node: ast.expr, text: Text) -> Iterator[Edit]:
    """Yield the changes of an expression itself, not of what is in it."""
    match node:
        case ast.Compare():
            yield from _comparison(node, text)
        case ast.BoolOp():
            yield from _conditions(node, text)
        case ast.BinOp():
            yield from _arithmetic(node, text)
        case ast.UnaryOp():
            yield from _unary(node, text)
        case ast.IfExp():
            yield from decided(node.test, text, "the first value")
        case ast.Call():
            yield from _arguments(node, text)
        case ast.Constant():
            yield from _constant(node, text)
        case _:
            yield from _contents(node, text)


def replaced(node: ast.expr, text: Text, new: bytes, what: str, rank: Rank) -> Edit:
    """Return the edit that puts something else in a node's place."""
    start, end = text.start(node), text.end(node)
    return Edit(start, end, new, what, rank, text.line(start), text.line(max(start, end - 1)))


def decided(test: ast.expr, text: Text, then: str) -> Iterator[Edit]:
    """Yield the edits that decide a condition once and for all."""
    if isinstance(test, ast.Constant):
        return
    said = quoted(text.of(test))
    yield replaced(test, text, b"False", f"{then} is never taken: {said} is False", Rank.DECISION)
    yield replaced(test, text, b"True", f"{then} is always taken: {said} is True", Rank.EFFECT)


def _contents(node: ast.expr, text: Text) -> Iterator[Edit]:
    match node:
        case ast.List(elts=[_, *_], ctx=ast.Load()):
            yield replaced(node, text, b"[]", "a list is empty", Rank.VALUE)
        case ast.Dict(keys=[_, *_]):
            yield replaced(node, text, b"{}", "a dictionary is empty", Rank.VALUE)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            for test in (test for part in node.generators for test in part.ifs):
                yield replaced(test, text, b"True", f"{quoted(text.of(test))} leaves nothing out", Rank.DECISION)
        case ast.Yield(value=ast.expr() as value) if not _is_none(value):
            yield replaced(value, text, b"None", "yields None", Rank.EFFECT)
        case _:
            pass


def _comparison(node: ast.Compare, text: Text) -> Iterator[Edit]:
    operands = [node.left, *node.comparators]
    for left, operator, right in zip(operands, node.ops, node.comparators, strict=False):
        pattern, others = _COMPARED[type(operator)]
        span = text.operator(left, right, pattern)
        if span is not None:
            # The first is the boundary, where there is one; the opposite is noticed by whoever looks at all.
            yield from (_swapped(text, span, other, rank) for other, rank in zip(others, _OF_COMPARED, strict=False))


def _swapped(text: Text, span: tuple[int, int], new: bytes, rank: Rank) -> Edit:
    line = text.line(span[0])
    what = f"{quoted(text.source[slice(*span)])} becomes {quoted(new)}"
    return Edit(*span, new, what, rank, line, line)


def _conditions(node: ast.BoolOp, text: Text) -> Iterator[Edit]:
    is_and = isinstance(node.op, ast.And)
    word, other, neutral = (b"and", b"or", b"True") if is_and else (b"or", b"and", b"False")
    pattern = re.compile(word + rb"\b")
    for left, right in zip(node.values, node.values[1:], strict=False):
        span = text.operator(left, right, pattern)
        if span is not None:
            yield _swapped(text, span, other, Rank.DECISION)
    for value in node.values:
        if not isinstance(value, ast.Constant):
            yield replaced(value, text, neutral, f"{quoted(text.of(value))} is left out", Rank.EFFECT)


def _arithmetic(node: ast.BinOp, text: Text) -> Iterator[Edit]:
    if _is_text(node.left) or _is_text(node.right):
        return  # another operator is a TypeError, which every test notices that comes by
    old, new = ARITHMETIC.get(type(node.op), (b"", b""))
    span = text.operator(node.left, node.right, re.compile(re.escape(old))) if old else None
    if span is not None:
        yield _swapped(text, span, new, Rank.VALUE)


def _unary(node: ast.UnaryOp, text: Text) -> Iterator[Edit]:
    start = text.start(node)
    line = text.line(start)
    match node.op:
        case ast.Not():
            end = text.past(start + len(b"not"))
            yield Edit(
                start, end, b"", f"`not` is left out before {quoted(text.of(node.operand))}", Rank.DECISION, line, line
            )
        case ast.USub():
            yield Edit(
                start, start + 1, b"", f"`-` is left out before {quoted(text.of(node.operand))}", Rank.VALUE, line, line
            )
        case _:
            pass


def _arguments(node: ast.Call, text: Text) -> Iterator[Edit]:
    for keyword in node.keywords:
        if keyword.arg is not None:
            yield _dropped(keyword, text)
    last = node.args[-1] if len(node.args) > 1 and not node.keywords else None
    if last is None or isinstance(last, ast.Starred):
        return
    closing = text.past(_past_comma(text, text.end(last)))
    if closing == text.end(node) - 1:  # else it stands in brackets of its own
        yield _dropped(last, text)


def _dropped(argument: ast.keyword | ast.expr, text: Text) -> Edit:
    start, end = text.start(argument), text.end(argument)
    what = f"the argument {quoted(text.source[start:end])} is left out"
    return Edit(start, _past_comma(text, end), b"", what, Rank.EFFECT, text.line(start), text.line(end - 1))


def _past_comma(text: Text, offset: int) -> int:
    at = text.past(offset)
    return at + 1 if text.source[at : at + 1] == b"," else offset


def _constant(node: ast.Constant, text: Text) -> Iterator[Edit]:
    match node.value:
        case bool(value):
            yield replaced(node, text, str(not value).encode(), f"`{value}` becomes `{not value}`", Rank.VALUE)
        case int(value) if value.bit_length() <= _MOST_BITS:
            yield replaced(node, text, str(value + 1).encode(), f"`{value}` becomes `{value + 1}`", Rank.NUMBER)
        case float(value) if math.isfinite(value) and value + 1 != value:
            yield replaced(node, text, repr(value + 1).encode(), f"`{value!r}` becomes `{value + 1!r}`", Rank.NUMBER)
        case str(value):
            new, what = (b'""', "is empty") if value else (b'"x"', "is not empty")
            yield replaced(node, text, new, f"the text {quoted(text.of(node))} {what}", Rank.TEXT)
        case bytes() as value if value:
            yield replaced(node, text, b'b""', f"the bytes {quoted(text.of(node))} are empty", Rank.TEXT)
        case _:
            pass


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
