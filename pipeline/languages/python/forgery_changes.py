"""Python code that changes what is not its own: functions of other modules, and files of tests. See `forgery`.

A runner and its tests share the interpreter with the code: whoever puts another `ast.parse` or `TestReport` in its
place decides what they see. And whoever writes where tests are decides what they compare with.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

IMPORTERS: Final = frozenset({"__import__", "import_module"})
_RUNNERS: Final = frozenset({"pytest", "_pytest", "pluggy", "redfirst_evidence"}) | sys.stdlib_module_names
"""What a runner is made of. A folder of that name makes none of it the project's own."""
_EVERYDAY: Final = frozenset({"sys.stdin", "sys.stdout", "sys.stderr", "sys.path", "sys.excepthook"})
_TOLD_ALREADY: Final = frozenset({"sys.modules", "sys.argv", "sys.meta_path", "sys.path_hooks", "sys.pycache_prefix"})
_SETTERS: Final = frozenset({"setattr", "delattr", "__setattr__", "__delattr__"})
_OF_TESTS: Final = re.compile(
    r"tests?|__tests__|testdata|__snapshots__|goldens?|conftest\.py|test_\w*(?:\.py)?|\w+_test\.py"
)
_WRITES: Final = frozenset(
    {"renames", "rmtree", "move", "mkdir", "makedirs", "rmdir", "removedirs", "unlink", "symlink", "symlink_to"}
    | {"hardlink_to", "link", "copyfile", "copytree", "copy2", "write_text", "write_bytes", "truncate", "touch"}
)
_WRITES_IN: Final[Mapping[str, str]] = {"rename": "os", "replace": "os", "remove": "os", "copy": "shutil"}
"""Names that text, lists and tables have as well."""
_MODES: Final = re.compile(r"[rwaxbt+U]*[wax+][rwaxbt+U]*")


def changes(nodes: Sequence[ast.AST], own: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield what a module changes that is not its own, with the line.

    Args:
        nodes: All nodes of the module, as `ast.walk` yields them.
        own: First names of the project's own modules.
    """
    names = _Names(nodes, own)
    plain = {id(target) for node in nodes for target in _given_a_constant(node)}
    for node in nodes:
        match node:
            case ast.Attribute(value=owner, attr=attribute, ctx=ast.Store() | ast.Del()):
                yield from names.told(owner, attribute, node.lineno, is_plain=id(node) in plain)
            case ast.Call(func=function, args=[owner, ast.Constant(value=str(attribute)), *_]) if (
                _called(function) in _SETTERS
            ):
                yield from names.told(owner, attribute, node.lineno, is_plain=False)
            case ast.Subscript(value=table, slice=ast.Constant(value=str(attribute)), ctx=ast.Store() | ast.Del()):
                if (owner := _table_of(table)) is not None:
                    yield from names.told(owner, attribute, node.lineno, is_plain=False)
            case _:
                pass
    yield from _written(nodes)


@dataclass(frozen=True)
class _Bound:
    """What an imported name stands for. `is_thing`: it came out of a module, so that it may be any object."""

    dotted: str
    is_thing: bool


class _Names:
    """The names that a module has from others which are not the project's own."""

    def __init__(self, nodes: Sequence[ast.AST], own: Collection[str]) -> None:
        self._own = own
        self._bound: dict[str, _Bound] = {}
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    self._bound[alias.asname or top] = _Bound(alias.name if alias.asname else top, is_thing=False)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
                for alias in node.names:
                    self._bound[alias.asname or alias.name] = _Bound(f"{node.module}.{alias.name}", is_thing=True)
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name() | ast.Attribute() as value):
                    found = self._resolved(value)
                    if name not in self._bound and found is not None and _top(found.dotted) in _RUNNERS:
                        self._bound[name] = found
                case _:
                    pass

    def told(self, owner: ast.expr, attribute: str, line: int, *, is_plain: bool) -> Iterator[tuple[str, int]]:
        """Yield the change of an attribute, unless its owner is the project's, or a value that is there to be set."""
        found = self._resolved(owner)
        if found is None or f"{found.dotted}.{attribute}" in _EVERYDAY | _TOLD_ALREADY:
            return
        top = _top(found.dotted)
        if top not in _RUNNERS and (
            top in self._own or is_plain or (found.is_thing and not any(map(_is_class, found.dotted.split("."))))
        ):
            return
        yield f"changes {found.dotted}.{attribute} (what is not the project's own)", line

    def _resolved(self, value: ast.expr) -> _Bound | None:
        match value:
            case ast.Name(id=name):
                return self._bound.get(name)
            case ast.Attribute(value=owner, attr=name):
                found = self._resolved(owner)
                return None if found is None else _Bound(f"{found.dotted}.{name}", found.is_thing)
            case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]) if _called(function) in IMPORTERS:
                return _Bound(name, is_thing=False)
            case _:
                return None


def _top(dotted: str) -> str:
    return dotted.partition(".")[0]


def _is_class(name: str) -> bool:
    return name[:1].isupper()


def _given_a_constant(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what is set to a constant: a switch or a key, and no function."""
    if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
        yield from node.targets if isinstance(node, ast.Assign) else [node.target]


def _table_of(table: ast.expr) -> ast.expr | None:
    """Return whose names a table holds: `vars(ast)`, `ast.__dict__`."""
    match table:
        case ast.Attribute(value=owner, attr="__dict__") | ast.Call(func=ast.Name(id="vars"), args=[owner]):
            return owner
        case _:
            return None


def _called(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _written(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, int]]:
    """Yield the calls that write, rename or remove what a path with a name of tests in it stands for."""
    writing = [node for node in nodes if isinstance(node, ast.Call) and _is_writing(node)]
    if not writing:
        return
    given = [
        ({target.id for target in node.targets if isinstance(target, ast.Name)}, node.value)
        for node in nodes
        if isinstance(node, ast.Assign)
    ]
    of_tests: set[str] = set()
    while more := {name for names, value in given if _names_tests(value, of_tests) for name in names} - of_tests:
        of_tests |= more
    for call in writing:
        if _names_tests(call, of_tests):
            yield f"calls {_called(call.func)} on a path of tests", call.lineno


def _is_writing(call: ast.Call) -> bool:
    name = _called(call.func)
    if name in _WRITES_IN:
        return isinstance(call.func, ast.Attribute) and (
            (isinstance(call.func.value, ast.Name) and call.func.value.id == _WRITES_IN[name])
            or (name in {"rename", "replace"} and len(call.args) == 1 and not call.keywords)
        )
    if name == "open":
        at = 0 if isinstance(call.func, ast.Attribute) else 1
        modes = [*call.args[at : at + 2], *(each.value for each in call.keywords if each.arg == "mode")]
        said = [mode.value for mode in modes if isinstance(mode, ast.Constant)]
        return any(isinstance(mode, str) and _MODES.fullmatch(mode) for mode in said)
    return name in _WRITES


def _names_tests(value: ast.expr, of_tests: Collection[str]) -> bool:
    for part in ast.walk(value):
        match part:
            case ast.Constant(value=str(text)) if any(map(_OF_TESTS.fullmatch, text.split("/"))):
                return True
            case ast.Name(id=name) if name in of_tests:
                return True
            case _:
                pass
    return False
