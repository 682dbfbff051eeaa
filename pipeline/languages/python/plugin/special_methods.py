"""Finds the special methods that a class would need for a TypeError of the interpreter not to come."""

from __future__ import annotations

import dis
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CLASS = r"(?P<left>[\w.<>]+)"
_OBJECT = rf"'{_CLASS}' object "
_BINARY = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "@": "matmul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "** or pow()": "pow",
    "**": "pow",
    "divmod()": "divmod",
    "<<": "lshift",
    ">>": "rshift",
    "&": "and",
    "|": "or",
    "^": "xor",
}
_ORDER = {"<": ("lt", "gt"), ">": ("gt", "lt"), "<=": ("le", "ge"), ">=": ("ge", "le")}
_UNARY = {"-": "neg", "+": "pos", "~": "invert", "abs()": "abs"}
_OPERANDS = re.compile(
    r"unsupported operand type\(s\) for (?P<sign>.+?): '(?P<left>[\w.<>]+)' and '(?P<right>[\w.<>]+)'"
)
_INSTANCES = re.compile(
    r"'(?P<sign>[<>]=?)' not supported between instances of '(?P<left>[\w.<>]+)' and '(?P<right>[\w.<>]+)'"
)
_OPERAND = re.compile(rf"bad operand type for (?:unary )?(?P<sign>\S+): '{_CLASS}'$")
_NAMED = tuple(
    (re.compile(said + "$"), methods)
    for said, methods in (
        (rf"object of type '{_CLASS}' has no len\(\)", ("__len__",)),
        (_OBJECT + "is not callable", ("__call__",)),
        (_OBJECT + "is not subscriptable", ("__getitem__",)),
        (rf"type '{_CLASS}' is not subscriptable", ("__class_getitem__",)),
        (_OBJECT + "does not support item assignment", ("__setitem__",)),
        (_OBJECT + "(?:does not|doesn't) support item deletion", ("__delitem__",)),
        (_OBJECT + "is not iterable", ("__iter__", "__getitem__")),
        (rf"cannot unpack non-iterable {_CLASS} object", ("__iter__", "__getitem__")),
        (rf".+ after \* must be an iterable, not {_CLASS}", ("__iter__", "__getitem__")),
        (rf"argument of type '{_CLASS}' is not (?:a container or )?iterable", ("__contains__", "__iter__")),
        (_OBJECT + "is not an iterator", ("__next__",)),
        (_OBJECT + "is not reversible", ("__reversed__",)),
        (_OBJECT + r"does not support the context manager protocol(?: \(.+\))?", ("__enter__", "__exit__")),
        (
            _OBJECT + r"does not support the asynchronous context manager protocol(?: \(.+\))?",
            ("__aenter__", "__aexit__"),
        ),
        (rf"'async for' requires an object with __aiter__ method, got {_CLASS}", ("__aiter__",)),
        (rf"object {_CLASS} can't be used in 'await' expression", ("__await__",)),
        (rf"'{_CLASS}' object can't be awaited", ("__await__",)),
    )
)


def wanted(error: BaseException) -> list[tuple[type, str]]:
    """Return the classes and the special methods of which one would have kept a TypeError away; [] of any other error.

    A message names a class by its last name: all classes that have it count, and what they inherit from. One that a
    `raise` statement raised says nothing about a class.
    """
    if type(error) is not TypeError or _is_raised_by_code(error):
        return []
    methods = methods_of(str(error))
    return [
        (base, method)
        for cls in (_all_classes() if methods else ())
        for method in methods.get(_text_of(cls, "__name__"), ())
        for base in type.__getattribute__(cls, "__mro__")
    ]


def methods_of(message: str) -> dict[str, list[str]]:
    """Return the methods that a message of the interpreter asks for, by the last names of the classes."""
    found: dict[str, list[str]] = {}
    for pattern, asked in _PATTERNS:
        match = pattern.match(message)
        if match is None:
            continue
        for side, methods in zip(("left", "right"), asked(match.groupdict().get("sign", "")), strict=False):
            found.setdefault(match[side].rpartition(".")[2], []).extend(methods)
    return found


def _binary(sign: str) -> tuple[tuple[str, ...], ...]:
    plain = sign if sign in _BINARY else sign.removesuffix("=")
    name = _BINARY.get(plain)
    if name is None:
        return ()
    in_place = (f"__i{name}__",) if plain != sign else ()
    return (*in_place, f"__{name}__"), (f"__r{name}__",)


def _order(sign: str) -> tuple[tuple[str, ...], ...]:
    return tuple((f"__{name}__",) for name in _ORDER[sign])


def _unary(sign: str) -> tuple[tuple[str, ...], ...]:
    return ((f"__{_UNARY[sign]}__",),) if sign in _UNARY else ()


_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[str], tuple[tuple[str, ...], ...]]], ...] = (
    (_OPERANDS, _binary),
    (_INSTANCES, _order),
    (_OPERAND, _unary),
    *((pattern, lambda _, methods=methods: (methods,)) for pattern, methods in _NAMED),
)


def _is_raised_by_code(error: BaseException) -> bool:
    entry: Any = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    if entry is None:
        return True
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
