"""What a change of tests would loosen, in words (issue "freeze"): shown to @check, who decides.

Nothing here says that a change is wrong: a behaviour may have changed. It says what the tests no longer notice. A test
is known by its name within its classes; what it checks is read from its syntax tree, so that reordering and
reformatting are no change. A file that cannot be parsed says nothing. Nothing here performs I/O.
"""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.policy.checks_of_tests import Check, checks_in, is_empty, is_vacuous, swallows, tests_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.policy.checks_of_tests import Definition

_SKIPS: Final = frozenset(
    {"skip", "skipif", "xfail", "importorskip", "skipIf", "skipUnless", "expectedFailure", "skipTest"}
)
_STANDINS: Final = frozenset({"patch", "object", "setattr", "setitem", "delattr", "MagicMock", "Mock", "AsyncMock"})


@dataclass(frozen=True)
class Weakening:
    """One thing that the tests would no longer notice.

    Args:
        test: The test's name within the file; empty for the file as a whole.
        what: In words.
        line: Where, in the new text; in the old one for what is gone.
    """

    test: str
    what: str
    line: int

    def __str__(self) -> str:
        where = f"{self.test}: " if self.test else ""
        return f"{where}{self.what} (line {self.line})"


def weakenings(before: bytes, after: bytes) -> tuple[Weakening, ...]:
    """Return what the new text of a Python test file loosens; what is only in the new one loosens nothing."""
    old, new = _parse(before), _parse(after)
    if old is None or new is None:
        return ()
    return tuple(_found(tests_in(old), tests_in(new), old, new))


def _parse(text: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in somebody's string
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _found(
    old: Mapping[str, Definition], new: Mapping[str, Definition], before: ast.Module, after: ast.Module
) -> Iterator[Weakening]:
    for name, test in old.items():
        if name not in new:
            what = "the fixture is removed" if test.is_fixture else "the test is removed"
            yield Weakening(name, what, test.node.lineno)
        else:
            yield from _loosened(name, test, new[name])
    if _module_skips(after) > _module_skips(before):
        yield Weakening("", "the whole file is skipped, or expected to fail", 1)


def _loosened(name: str, old: Definition, new: Definition) -> Iterator[Weakening]:
    line = new.node.lineno
    if ast.dump(old.node) == ast.dump(new.node):
        return
    if old.is_fixture:
        if is_empty(new.node) and not is_empty(old.node):
            yield Weakening(name, "the fixture is emptied", line)
        return
    for what in (*_fewer_cases(old, new), *_skipped(old, new), *_stood_in(old, new), *_slower(old, new)):
        yield Weakening(name, what, line)
    for node in swallows(new.node)[len(swallows(old.node)) :]:
        yield Weakening(name, "a failing assertion is swallowed", node.lineno)
    for node in is_vacuous(new.node)[len(is_vacuous(old.node)) :]:
        yield Weakening(name, "an assertion can never fail", node.lineno)
    yield from _compared(name, checks_in(old.node), checks_in(new.node))


def _fewer_cases(old: Definition, new: Definition) -> Iterator[str]:
    before, after = old.cases, new.cases
    if before is not None and after is not None and after < before:
        yield f"{before - after} of {before} parametrised cases are dropped"


def _skipped(old: Definition, new: Definition) -> Iterator[str]:
    added = _names(new.node, _SKIPS) - _names(old.node, _SKIPS)
    yield from (f"{name} is added" for name in added)


def _stood_in(old: Definition, new: Definition) -> Iterator[str]:
    added = sum((_names(new.node, _STANDINS) - _names(old.node, _STANDINS)).values())
    if added:
        yield f"{added} more thing{'s are' if added > 1 else ' is'} replaced by a stand-in"


def _slower(old: Definition, new: Definition) -> Iterator[str]:
    before, after = old.timeout, new.timeout
    if before is not None and (after is None or after > before):
        yield f"its time limit is {'gone' if after is None else 'raised'}"


def _names(node: ast.AST, wanted: frozenset[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for part in ast.walk(node):
        match part:
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in wanted:
                found[name] += 1
            case _:
                pass
    return found


def _module_skips(module: ast.Module) -> int:
    marks = [node for node in module.body if isinstance(node, ast.Assign | ast.Expr)]
    return sum(sum(_names(node, _SKIPS).values()) for node in marks)


@dataclass
class _Left:
    """The checks of one test that have no counterpart yet."""

    old: list[Check] = field(default_factory=list[Check])
    new: list[Check] = field(default_factory=list[Check])


def _compared(name: str, old: list[Check], new: list[Check]) -> Iterator[Weakening]:
    """Pair the checks of the old test with those of the new one: the same first, then those about the same thing."""
    left = _Left(list(old), list(new))
    for check in old:
        if check in left.new:
            left.old.remove(check)
            left.new.remove(check)
    for check in list(left.old):
        other = next((each for each in left.new if each.subject == check.subject), None)
        if other is None:
            continue
        left.old.remove(check)
        left.new.remove(other)
        if what := _difference(check, other):
            yield Weakening(name, what, other.line)
    gone = len(left.old) - len(left.new)
    if gone > 0:
        yield Weakening(name, f"{gone} of {len(old)} assertions are gone", left.old[0].line)
    elif left.old:
        yield Weakening(
            name, f"{len(left.old)} of {len(old)} assertions are about something else now", left.new[0].line
        )


def _difference(old: Check, new: Check) -> str | None:
    if new.strength < old.strength:
        return f"an assertion is loosened from {old.kind} to {new.kind}"
    if old.tolerance is not None and new.tolerance is not None and new.tolerance > old.tolerance:
        return "a tolerance is raised"
    if old.tolerance is None and new.tolerance is not None:
        return "a tolerance is added"
    if old.expected != new.expected:
        return f"another value is expected: {new.expected} instead of {old.expected}"
    return None
