"""Which tests of a Python file use a name: in their body, their decorators, their parameters, or by way of helpers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from pipeline.languages.python.asserts import name_of
from pipeline.languages.python.checks_of_tests import Function, is_fixture, tests_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pipeline.languages.python.constants import Constant

_SETUPS: Final = frozenset({"setUp", "setUpClass", "asyncSetUp", "setup_method", "setup_class", "tearDown"})
_OF_ALL: Final = frozenset({"setup_module", "setup_function", "setUpModule"})
_NAMING: Final = frozenset({"usefixtures", "parametrize"})


class Uses:
    """The names of one file, with what each is made of; a method or a constant of a class goes by `Class.name`."""

    def __init__(self, module: ast.Module, constants: Mapping[str, Constant]) -> None:
        self._graph: dict[str, set[str]] = {}
        self._classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
        self._for_all: set[str] = set()
        for node in module.body:
            self._add(node, "")
        for name, constant in constants.items():
            steps = [ast.parse(step, mode="eval") for step in constant.steps if _is_expression(step)]
            whole = [*steps, *([constant.value] if constant.value is not None else [])]
            self._graph.setdefault(name, set()).update(ref for part in whole for ref in _references(part, ""))
        defined = tests_in(module)
        self._tests = [name for name, one in defined.items() if not one.is_fixture and name_is_test(name)]

    @property
    def every(self) -> tuple[str, ...]:
        """Return all tests of the file."""
        return tuple(self._tests)

    def tests(self, names: Collection[str]) -> tuple[str, ...]:
        """Return the tests that use one of these names, in the order of the file."""
        wanted = self.reaching(names)
        return tuple(test for test in self._tests if test in wanted or not self._for_all.isdisjoint(wanted))

    def reaching(self, names: Collection[str]) -> set[str]:
        """Return the names that are made of one of these, themselves included; a name may be one of another file."""
        users: dict[str, set[str]] = {}
        for name, refs in self._graph.items():
            for ref in refs:
                users.setdefault(ref, set()).add(name)
        found = set(names)
        stack = list(found)
        while stack:
            more = users.get(stack.pop(), set()) - found
            found |= more
            stack.extend(more)
        return found

    def serves_all(self, names: Collection[str]) -> bool:
        """Return whether one of these serves every test unasked."""
        return not self._for_all.isdisjoint(names)

    def _add(self, node: ast.stmt, above: str) -> None:
        if isinstance(node, Function):
            name = f"{above}{node.name}"
            refs = {*_references(node, above.removesuffix(".")), *_asked(node)}
            if above:
                owner = self._classes.get(above.removesuffix("."))
                refs |= self._of_class(owner, above, node.name) if owner is not None else set()
            self._graph.setdefault(name, set()).update(refs)
            if node.name in _OF_ALL or (is_fixture(node) and _is_autouse(node)):
                self._for_all.add(name)
        elif isinstance(node, ast.ClassDef):
            members = {f"{above}{node.name}.{one}" for one in _members(node)}
            inherited = {
                f"{base.id}.{one}" for base in node.bases if isinstance(base, ast.Name) for one in self._all(base)
            }
            for one in inherited:  # what is not found in a class is looked for in those above it
                own = f"{above}{node.name}.{one.partition('.')[2]}"
                if own not in members:
                    self._graph.setdefault(own, set()).add(one)
            if not node.name.startswith("Test"):
                self._graph.setdefault(f"{above}{node.name}", set()).update(members)
            for child in node.body:
                self._add(child, f"{above}{node.name}.")

    def _all(self, base: ast.Name) -> set[str]:
        node = self._classes.get(base.id)
        return set(_members(node)) if node is not None else set()

    @staticmethod
    def _of_class(owner: ast.ClassDef, above: str, name: str) -> set[str]:
        """Return what a method uses by way of its class: decorators, and set-up that nobody calls."""
        refs = {ref for decorator in owner.decorator_list for ref in _references(decorator, "")}
        return refs | {f"{above}{setup}" for setup in _SETUPS if name.startswith("test")}


def name_is_test(name: str) -> bool:
    """Return whether a function, named within its classes, is collected as a test."""
    return name.rpartition(".")[2].startswith("test")


def _is_expression(step: str) -> bool:
    try:
        ast.parse(step, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _references(node: ast.AST, owner: str) -> Iterator[str]:
    """Yield the names that are read, and those of parameters: fixtures are asked for by them."""
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name) if isinstance(part.ctx, ast.Load):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name) if owner:
                yield f"{owner}.{name}"
            case ast.Attribute(value=ast.Name(id=base), attr=name):
                yield f"{base}.{name}"
            case ast.arg(arg=name):
                yield name
            case _:
                pass


def _asked(function: Function) -> Iterator[str]:
    """Yield the fixtures that decorators name."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and name_of(decorator.func) in _NAMING:
            words = (part.value for part in ast.walk(decorator) if isinstance(part, ast.Constant))
            yield from (word for word in words if isinstance(word, str))


def _is_autouse(function: Function) -> bool:
    calls = (part for part in function.decorator_list if isinstance(part, ast.Call))
    return any(keyword.arg == "autouse" for call in calls for keyword in call.keywords)


def _members(node: ast.ClassDef) -> Iterator[str]:
    for child in node.body:
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case _:
                pass
