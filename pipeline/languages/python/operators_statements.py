"""What can be changed in a Python statement."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.python.operators_expressions import ARITHMETIC, decided, replaced
from pipeline.languages.python.operators_skipped import is_docstring, name_of
from pipeline.languages.sources.faults.mutant import Edit, Rank, quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pipeline.languages.python.operators_text import Text

_PASS: Final = b"pass"


def statement(node: ast.stmt, text: Text, known: Collection[str]) -> Iterator[Edit]:
    """Yield the changes of a statement itself, not of what is in it.

    Args:
        node: The statement.
        text: The file.
        known: The names of the function that have a value already: an assignment to one of them can be left out.
    """
    match node:
        case ast.If():
            yield from decided(node.test, text, "the branch")
        case ast.While():
            if not isinstance(node.test, ast.Constant):
                yield replaced(node.test, text, b"False", "the loop is never entered", Rank.EFFECT)
        case ast.For():
            yield replaced(node.iter, text, b"()", "the loop is never entered", Rank.EFFECT)
        case ast.Try() | ast.TryStar():
            yield from (_raised_again(handler, text) for handler in node.handlers if not _raises_only(handler))
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield _of_whole(node, text, replaced(value, text, b"None", "returns None", Rank.DECISION))
        case _:
            yield from _left_out(node, text, known)


def _left_out(node: ast.stmt, text: Text, known: Collection[str]) -> Iterator[Edit]:
    match node:
        case ast.Raise():
            yield _without(node, text, Rank.DECISION)
        case ast.Return() | ast.Continue() | ast.Break() | ast.Delete():
            if not isinstance(node, ast.Return) or node.value is None:
                yield _without(node, text, Rank.EFFECT)
        case ast.Assert():
            yield _without(node, text, Rank.VALUE)
        case ast.Expr(value=ast.Call() | ast.Await()) if not is_docstring(node):
            yield _without(node, text, Rank.EFFECT)
        case ast.Assign(targets=targets) if all(_can_stay(target, known) for target in targets):
            yield _without(node, text, Rank.EFFECT)
        case ast.AugAssign():
            yield _without(node, text, Rank.EFFECT)
            yield from _other_step(node, text)
        case ast.AnnAssign(target=ast.Attribute() | ast.Subscript(), value=ast.expr()):
            yield _without(node, text, Rank.EFFECT)
        case _:
            pass


def _without(node: ast.stmt, text: Text, rank: Rank) -> Edit:
    start, end = text.start(node), text.end(node)
    what = f"{quoted(text.source[start:end])} is left out"
    return Edit(start, end, _PASS, what, rank, text.line(start), text.line(end - 1))


def _of_whole(node: ast.stmt, text: Text, edit: Edit) -> Edit:
    """Return an edit that is about all lines of a statement."""
    first, last = text.line(text.start(node)), text.line(text.end(node) - 1)
    return Edit(edit.start, edit.end, edit.replacement, edit.what, edit.rank, first, last)


def _can_stay(target: ast.expr, known: Collection[str]) -> bool:
    """Return whether the code goes on where nothing is assigned to a target: there is an older value."""
    match target:
        case ast.Attribute() | ast.Subscript():
            return True
        case ast.Name(id=name):
            return name in known
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(_can_stay(part, known) for part in parts)
        case _:
            return False


def _other_step(node: ast.AugAssign, text: Text) -> Iterator[Edit]:
    old, new = ARITHMETIC.get(type(node.op), (b"", b""))
    span = text.operator(node.target, node.value, re.compile(re.escape(old + b"="))) if old else None
    if span is not None and not isinstance(node.value, ast.Constant | ast.JoinedStr | ast.List | ast.Tuple):
        line = text.line(span[0])
        yield Edit(*span, new + b"=", f"`{old.decode()}=` becomes `{new.decode()}=`", Rank.VALUE, line, line)


def _raises_only(handler: ast.ExceptHandler) -> bool:
    return all(isinstance(part, ast.Raise) for part in handler.body)


def _raised_again(handler: ast.ExceptHandler, text: Text) -> Edit:
    start, end = text.start(handler.body[0]), text.end(handler.body[-1])
    caught = quoted(text.of(handler.type)) if handler.type is not None else "it"
    what = f"what `except` catches is raised again: {caught}"
    return Edit(start, end, b"raise", what, Rank.DECISION, handler.lineno, text.line(end - 1))


def stored(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement gives a value to, at its own level."""
    match node:
        case ast.Assign(targets=targets):
            yield from (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            yield name
        case ast.For(target=target) | ast.AsyncFor(target=target):
            yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))
        case _:
            pass


def arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """Return the names of a function's parameters."""
    found = node.args
    named = (*found.posonlyargs, *found.args, *found.kwonlyargs, found.vararg, found.kwarg)
    return frozenset(each.arg for each in named if each is not None)


def is_text_for_people(node: ast.stmt) -> bool:
    """Return whether the texts in a statement are messages: what is raised, what an assertion says."""
    return isinstance(node, ast.Raise | ast.Assert) or (isinstance(node, ast.Expr) and name_of(node.value) == "print")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
