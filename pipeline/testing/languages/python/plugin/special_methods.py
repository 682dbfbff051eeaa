"""Finds the special methods that a class would need for a TypeError of the interpreter not to come.

The words of the interpreter change with its version. So only the names of classes are taken from a message; what was
done with an object is read from the source of the line that failed, and the class has to lack the method.
"""

from __future__ import annotations

import ast
import builtins
import dis
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_BINARY = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "MatMult": "matmul", "Div": "truediv", "FloorDiv": "floordiv",
    "Mod": "mod", "Pow": "pow", "LShift": "lshift", "RShift": "rshift", "BitAnd": "and", "BitOr": "or",
    "BitXor": "xor",
}  # fmt: skip
_ITERABLE = ("__iter__", "__getitem__")
_COMPARED = {
    "Lt": ("__lt__", "__gt__"), "Gt": ("__gt__", "__lt__"), "LtE": ("__le__", "__ge__"), "GtE": ("__ge__", "__le__"),
    "In": ("__contains__", *_ITERABLE), "NotIn": ("__contains__", *_ITERABLE),
}  # fmt: skip
_UNARY = {"USub": ("__neg__",), "UAdd": ("__pos__",), "Invert": ("__invert__",)}
_SUBSCRIPT = {"Load": ("__getitem__", "__class_getitem__"), "Store": ("__setitem__",), "Del": ("__delitem__",)}
_FUNCTIONS = {
    **{name: ("__" + name + "__",) for name in ("len", "next", "reversed", "abs", "round", "int", "float", "complex")},
    "divmod": ("__divmod__", "__rdivmod__"),
    "pow": ("__pow__", "__rpow__"),
}
_NODES = {
    "For": _ITERABLE, "YieldFrom": _ITERABLE, "Starred": _ITERABLE, "Await": ("__await__",),
    "AsyncFor": ("__aiter__",), "With": ("__enter__", "__exit__"), "AsyncWith": ("__aenter__", "__aexit__"),
}  # fmt: skip
_NAME = re.compile(r"[\w.<>]+(?![\w.<>(])")


def wanted(error: BaseException) -> list[tuple[type, str]]:
    """Return the classes and the special methods of which one would have kept a TypeError away; [] of any other error.

    A message names a class by its last name: all classes that have it count, and what they inherit from. One that a
    `raise` statement raised says nothing about a class.
    """
    entry: Any = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    if type(error) is not TypeError or entry is None or _is_raised_by_code(entry):
        return []
    named = {name.rpartition(".")[2] for name in _NAME.findall(str(error))}
    methods = dict.fromkeys(_asked_for(entry))
    found: list[tuple[type, str]] = []
    for cls in _all_classes():
        if _text_of(cls, "__name__") in named:
            bases = type.__getattribute__(cls, "__mro__")
            # the comparisons of `object` only say that they know nothing
            has = {name for base in bases if base is not object for name in type.__getattribute__(base, "__dict__")}
            found += [(base, method) for method in methods if method not in has for base in bases]
    return found


def _asked_for(entry: Any) -> Iterator[str]:
    """Yield the special methods by which the code of a frame's line works; all of them if there is no source."""
    try:
        tree = ast.parse(Path(entry.tb_frame.f_code.co_filename).read_bytes())
    except (OSError, SyntaxError, ValueError):
        tables = (_COMPARED, _UNARY, _SUBSCRIPT, _FUNCTIONS, _NODES)
        yield from (method for table in tables for methods in table.values() for method in methods)
        yield from ("__call__", *(method for stem in _BINARY.values() for method in _binary(stem, in_place=True)))
        return
    for node in ast.walk(tree):
        # of a loop or a `with` only its head is meant
        heads = [item.context_expr for item in getattr(node, "items", ())] or [getattr(node, "iter", node)]
        if any(getattr(at, "lineno", 0) <= entry.tb_lineno <= getattr(at, "end_lineno", -1) for at in heads):
            yield from _of_node(node, entry.tb_frame)


def _of_node(node: Any, frame: Any) -> Iterator[str]:
    """Yield the special methods that one piece of syntax asks for."""
    kind = type(node).__name__
    yield from _NODES.get(kind, ())
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        yield from _binary(_BINARY[type(node.op).__name__], in_place=isinstance(node, ast.AugAssign))
        yield from _SUBSCRIPT["Load"] if isinstance(getattr(node, "target", None), ast.Subscript) else ()
    elif isinstance(node, ast.Compare):
        yield from (method for sign in node.ops for method in _COMPARED.get(type(sign).__name__, ()))
    elif isinstance(node, ast.UnaryOp):
        yield from _UNARY.get(type(node.op).__name__, ())
    elif isinstance(node, ast.Subscript):
        yield from _SUBSCRIPT[type(node.ctx).__name__]
    elif isinstance(node, ast.comprehension):
        yield from ("__aiter__",) if node.is_async else _ITERABLE
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Tuple, ast.List)):
        yield from _ITERABLE
    elif isinstance(node, ast.Call):
        name = getattr(node.func, "id", "")
        known = {**vars(builtins), **frame.f_globals, **frame.f_locals}
        # what is given to a function may be iterated there
        given = _ITERABLE if node.args or node.keywords else ()
        yield from _FUNCTIONS.get(name, given if callable(known.get(name)) else ("__call__", *(() if name else given)))


def _binary(stem: str, *, in_place: bool) -> Iterator[str]:
    yield from ("__i" + stem + "__",) if in_place else ()
    yield from ("__" + stem + "__", "__r" + stem + "__")


def _is_raised_by_code(entry: Any) -> bool:
    code: bytes = entry.tb_frame.f_code.co_code
    at: int = entry.tb_lasti
    return 0 <= at < len(code) and dis.opname[code[at]] == "RAISE_VARARGS"


def _all_classes() -> Iterator[type]:
    seen: set[int] = set()
    pending: list[type] = [object]
    while pending:
        cls = pending.pop()
        if id(cls) not in seen:  # a metaclass may say what it likes of equality
            seen.add(id(cls))
            pending += type.__subclasses__(cls)
            yield cls


def _text_of(cls: type, name: str) -> str:
    return str(type.__getattribute__(cls, name))


def names_of(cls: type) -> tuple[str, str]:
    """Return the module of a class, and its dotted name in there."""
    return _text_of(cls, "__module__"), _text_of(cls, "__qualname__")
