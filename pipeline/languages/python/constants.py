"""Constants and tables of a Python file, and what of them a change takes away; `python_uses` says who uses them.

A constant is a name that a module or a class gives to a value, by whatever statements. Layout, and the order of the
entries of a set or a dictionary, are no part of it; a list that only grows takes nothing away.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.languages.python.asserts import source
from pipeline.languages.python.tables import entries
from pipeline.languages.sources.suites import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_ADDS: Final = frozenset({"append", "extend", "add", "update"})
_CHANGES: Final = _ADDS | {"clear", "pop", "remove", "discard", "insert", "sort", "reverse", "popitem", "setdefault"}
_NO_CONSTANTS: Final = frozenset({"pytestmark", "pytest_plugins"})


@dataclass
class Constant:
    """One name, with all that a file does to it outside of functions.

    Args:
        line: Where it is first given a value.
        value: What it is; None where more than an addition to it is done, or it is taken apart.
        steps: Every statement, as source.
    """

    line: int
    value: ast.expr | None
    steps: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Changed:
    """A constant that is not what it was.

    Args:
        name: Its name, within its class.
        what: How it differs, in words.
        line: Where it is given its value now.
    """

    name: str
    what: str
    line: int


def constants_in(module: ast.Module) -> dict[str, Constant]:
    """Return the constants of a file, those of classes as `Class.NAME`."""
    found: dict[str, Constant] = {}
    _collect(module.body, "", found)
    return {name: one for name, one in found.items() if name not in _NO_CONSTANTS and not name.startswith("__")}


def values_of(constants: Mapping[str, Constant]) -> dict[str, ast.expr]:
    """Return what the constants of the module itself are, as far as they are one value."""
    return {name: one.value for name, one in constants.items() if one.value is not None and "." not in name}


def changed(old: Mapping[str, Constant], new: Mapping[str, Constant]) -> Iterator[Changed]:
    """Yield the constants that both files have, where something of the old one is gone."""
    for name, before in old.items():
        now = new.get(name)
        what = _difference(name, before, now) if now is not None else None
        if now is not None and what is not None:
            yield Changed(name, what, now.line)


def _collect(body: Sequence[ast.stmt], above: str, found: dict[str, Constant]) -> None:
    for node in body:
        match node:
            case ast.ClassDef(name=name, body=inside):
                _collect(inside, f"{above}{name}.", found)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    _assigned(target, value, node, above, found)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                _assigned(target, value, node, above, found)
            case ast.AugAssign(target=ast.Name(id=name), op=operator, value=value):
                _added(f"{above}{name}", node, value if isinstance(operator, ast.Add) else None, found)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) as call):
                if method in _CHANGES:
                    _added(f"{above}{name}", node, _more(method, call), found)
            case ast.Delete(targets=targets):
                for target in targets:
                    _added(f"{above}{_base(target)}", node, None, found)
            case ast.If() | ast.For() | ast.While() | ast.With() | ast.Try():
                _conditional(node, above, found)
            case _:
                pass


def _assigned(target: ast.expr, value: ast.expr, node: ast.stmt, above: str, found: dict[str, Constant]) -> None:
    match target:
        case ast.Name(id=name):
            known = found.get(f"{above}{name}")
            if known is None:
                found[f"{above}{name}"] = Constant(node.lineno, value, [source(value)])
            else:  # the last one holds, and something may have used the first
                known.value = None
                known.steps.append(source(value))
        case ast.Tuple(elts=names) if isinstance(value, ast.Tuple) and len(value.elts) == len(names):
            for name, part in zip(names, value.elts, strict=True):
                _assigned(name, part, node, above, found)
        case ast.Tuple(elts=names) | ast.List(elts=names):
            for at, name in enumerate(names):
                part = ast.Subscript(value=value, slice=ast.Constant(value=at), ctx=ast.Load())
                _assigned(name, part, node, above, found)
        case ast.Subscript() | ast.Attribute():
            _added(f"{above}{_base(target)}", node, None, found)
        case _:
            pass


def _added(name: str, node: ast.stmt, more: ast.expr | None, found: dict[str, Constant]) -> None:
    known = found.get(name)
    if known is None:
        return
    known.steps.append(source(node))
    whole = known.value is not None and more is not None and entries(known.value) is not None
    if whole and known.value is not None and more is not None and not isinstance(known.value, ast.Dict):
        known.value = ast.BinOp(left=known.value, op=ast.Add(), right=more)
    else:
        known.value = None


def _more(method: str, call: ast.Call) -> ast.expr | None:
    """Return the list that a call adds to a table."""
    if method not in _ADDS or len(call.args) != 1:
        return None
    return ast.List(elts=[call.args[0]], ctx=ast.Load()) if method in {"append", "add"} else call.args[0]


def _conditional(
    node: ast.If | ast.For | ast.While | ast.With | ast.Try, above: str, found: dict[str, Constant]
) -> None:
    """Note what is done on a condition, or again and again: what comes of it is not known."""
    inside: dict[str, Constant] = {name: Constant(one.line, None) for name, one in found.items()}
    bodies: list[list[ast.stmt]] = [getattr(node, part, []) for part in ("body", "orelse", "finalbody")]
    bodies += [handler.body for handler in getattr(node, "handlers", [])]
    for body in bodies:
        _collect(body, above, inside)
    for name, one in inside.items():
        if one.steps:
            known = found.setdefault(name, Constant(one.line, None))
            known.value = None
            known.steps += one.steps


def _base(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _difference(name: str, old: Constant, new: Constant) -> str | None:
    if old.steps == new.steps:
        return None
    if old.value is None or new.value is None:
        gone = list((Counter(old.steps) - Counter(new.steps)).elements()) or old.steps[-1:]
        come = list((Counter(new.steps) - Counter(old.steps)).elements()) or new.steps[-1:]
        return f"constant {name}: {shown(gone[-1])} is {shown(come[-1])} now"
    before, after = entries(old.value), entries(new.value)
    if before is None or after is None:
        one, other = source(old.value), source(new.value)
        return f"constant {name}: {shown(one)} is {shown(other)} now" if one != other else None
    is_ordered = not isinstance(old.value, ast.Set | ast.Dict)
    return _missing(name, [source(one) for one in before], [source(one) for one in after], is_ordered=is_ordered)


def _missing(name: str, old: list[str], new: list[str], *, is_ordered: bool) -> str | None:
    gone = list((Counter(old) - Counter(new)).elements())
    if gone:
        return f"table {name}: {len(gone)} of {len(old)} values are gone or changed, such as {shown(gone[0])}"
    rest = iter(new)
    if is_ordered and not all(one in rest for one in old):
        return f"table {name}: the same values in another order"
    return None
