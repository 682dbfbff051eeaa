"""What a stub pass over Python changed that is no stub, read from the syntax trees (ADR-7 of the founding document).

Two texts are compared scope by scope. What a scope defines is known by its name; what it merely runs, by its tree.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.languages.named_definitions import Wanted
from pipeline.languages.protocol import StubFault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.evidence.red_classes import Symbol

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = _Function | ast.ClassDef | ast.Assign | ast.AnnAssign

_TYPING: Final = frozenset({"TypeVar", "ParamSpec", "TypeVarTuple", "NewType", "namedtuple", "NamedTuple", "TypedDict"})
_MAKES_FIELDS: Final = frozenset({"field", "Field", "auto", *_TYPING})
"""Calls that only declare: what they make is a type or a field, and no behaviour."""

_LETS_IN: Final = "__all__"


def stub_faults(
    before: Mapping[str, str], after: Mapping[str, str], symbols: Sequence[Symbol]
) -> tuple[StubFault, ...]:
    """Return what is more or other than a stub; see `protocol.Toolchain.stub_faults`."""
    faults = [StubFault(path, 0, "is gone") for path in before if path not in after]
    modules: dict[str, ast.Module] = {}
    for path, text in after.items():
        old, new = _parse(before.get(path, "")), _parse(text)
        if isinstance(new, SyntaxError):
            faults.append(StubFault(path, new.lineno or 0, f"cannot be parsed: {new.msg}"))
            continue
        modules[path] = new
        if isinstance(old, ast.Module):  # a file that was broken before has nothing to keep
            wanted = Wanted.of(path, symbols)
            faults += _Pass(path, wanted).compared(old.body, new.body, ())
    known = {path: frozenset(_defined(module.body, ())) for path, module in modules.items()}
    faults += [StubFault(path, 0, f"does not define {name}") for path, name in Wanted.missing(known, symbols)]
    return tuple(faults)


def _parse(text: str) -> ast.Module | SyntaxError:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        return error
    except ValueError as error:
        return SyntaxError(str(error))


def _defined(body: Sequence[ast.stmt], above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for node in body:
        for name in _names(node):
            yield (*above, name)
            if isinstance(node, ast.ClassDef):
                yield from _defined(node.body, (*above, name))


@dataclass(frozen=True)
class _Pass:
    path: str
    wanted: Wanted

    def compared(self, old: Sequence[ast.stmt], new: Sequence[ast.stmt], above: tuple[str, ...]) -> Iterator[StubFault]:
        """Yield what differs in a scope and is no stub."""
        were, are = _by_name(old), _by_name(new)
        for name in were.keys() - are.keys():
            yield self._fault(None, f"{_dotted(above, name)} is gone")
        for name, node in are.items():
            place = (*above, name)
            was = were.get(name)
            if was is None:
                yield from self._added(node, place)
            elif ast.dump(was) != ast.dump(node) and name != _LETS_IN:
                yield from self._changed(was, node, place)
        yield from self._runs(old, new)

    def _runs(self, old: Sequence[ast.stmt], new: Sequence[ast.stmt]) -> Iterator[StubFault]:
        left = Counter(ast.dump(node) for node in old if _is_run(node))
        for node in filter(_is_run, new):
            if not left[ast.dump(node)]:
                yield self._fault(node, "runs a statement that was not there")
            left[ast.dump(node)] -= 1
        for _ in (+left).elements():
            yield self._fault(None, "no longer runs a statement that was there")

    def _added(self, node: _Definition, place: tuple[str, ...]) -> Iterator[StubFault]:
        name = ".".join(place)
        if place[-1] == _LETS_IN:
            return
        if not self.wanted.names(place):
            yield self._fault(node, f"adds {name}, which the task does not name")
        elif isinstance(node, _Function):
            if not _is_stub(node):
                yield self._fault(node, f"gives {name} a body that is more than `raise NotImplementedError`")
        elif isinstance(node, ast.ClassDef):
            yield from _Pass(self.path, Wanted((), self.path, everything=True)).compared([], node.body, place)
        elif node.value is not None and not _is_plain(node.value):
            yield self._fault(node, f"gives {name} a value that is computed")

    def _changed(self, was: _Definition, node: _Definition, place: tuple[str, ...]) -> Iterator[StubFault]:
        name = ".".join(place)
        if isinstance(was, _Function) and isinstance(node, _Function):
            if _signature(was) != _signature(node) and not self.wanted.names(place):
                yield self._fault(node, f"changes the signature of {name}, which the task does not name")
            elif _body(was) != _body(node) and not (self.wanted.names(place) and _is_stub(node)):
                yield self._fault(node, f"changes the body of {name}")
        elif isinstance(was, ast.ClassDef) and isinstance(node, ast.ClassDef):
            if _head(was) != _head(node) and not self.wanted.names(place):
                yield self._fault(node, f"changes the bases of {name}, which the task does not name")
            yield from self.compared(was.body, node.body, place)
        elif type(was) is not type(node) or not self.wanted.names(place):
            yield self._fault(node, f"changes {name}")
        else:
            yield from self._added(node, place)

    def _fault(self, node: ast.stmt | None, what: str) -> StubFault:
        return StubFault(self.path, node.lineno if node is not None else 0, what)


def _dotted(above: tuple[str, ...], name: str) -> str:
    return ".".join((*above, name))


def _by_name(body: Sequence[ast.stmt]) -> dict[str, _Definition]:
    return {name: node for node in body if isinstance(node, _Definition) for name in _names(node)}


def _names(node: ast.stmt) -> tuple[str, ...]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Assign(targets=targets):
            return tuple(target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            return (name,)
        case _:
            return ()


def _is_run(node: ast.stmt) -> bool:
    """Return whether a statement does something: definitions, imports, text and `pass` do not."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr(value=ast.Constant()):
            return False
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), body=body, orelse=[]):
            return any(map(_is_run, body))
        case _:
            return not _names(node)


def _is_stub(node: _Function) -> bool:
    match _without_docstring(node.body):
        case [ast.Raise(exc=ast.Name(id="NotImplementedError"), cause=None)]:
            return True
        case [ast.Raise(exc=ast.Call(func=ast.Name(id="NotImplementedError"), args=[], keywords=[]), cause=None)]:
            return True
        case _:
            return False


def _without_docstring(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest
        case _:
            return list(body)


def _signature(node: _Function) -> tuple[object, ...]:
    decorators = [ast.dump(one) for one in node.decorator_list]
    returns = ast.dump(node.returns) if node.returns is not None else ""
    return type(node), decorators, ast.dump(node.args), returns


def _body(node: _Function) -> list[str]:
    return [ast.dump(one) for one in _without_docstring(node.body)]


def _head(node: ast.ClassDef) -> list[str]:
    return [ast.dump(one) for one in (*node.bases, *node.keywords, *node.decorator_list)]


def _is_plain(value: ast.expr) -> bool:
    """Return whether a value is written down and not computed: literals, names, types, declarations."""
    calls = (part for part in ast.walk(value) if isinstance(part, ast.Call))
    computed = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.Await)
    if any(isinstance(part, computed) for part in ast.walk(value)):
        return False
    return all(_called(call) in _MAKES_FIELDS for call in calls)


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
