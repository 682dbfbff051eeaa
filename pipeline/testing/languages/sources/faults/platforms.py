"""Which code does a platform certainly not run? A fault in it is noticed by no test, and says nothing about any.

A language says what it calls the platform, and what its compiler leaves out. What follows is the same for all:
branches that are never taken, and what stands behind one that always leaves. A condition has three answers: None is
that nobody knows it from the text, such as a feature of the build; code below that keeps its faults.
"""

from __future__ import annotations

import platform
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from pipeline.testing.languages.sources.syntax_trees import named_children

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tree_sitter import Language, Node

Truth: TypeAlias = bool | None

_BRANCHES: Final = frozenset(
    {"if_statement", "elif_clause", "if_expression", "ternary_expression", "conditional_expression"}
)
_CHOICES: Final = frozenset({"switch_statement", "expression_switch_statement", "match_statement", "match_expression"})
_CASES: Final = frozenset(
    {"switch_case", "switch_default", "expression_case", "default_case", "case_clause", "match_arm"}
)
_LEAVES: Final = frozenset(
    {"return_statement", "raise_statement", "throw_statement", "continue_statement", "break_statement",
     "return_expression", "continue_expression", "break_expression"}
)  # fmt: skip
_BLOCKS: Final = frozenset({"block", "statement_block", "statement_list", "expression_statement", "else_clause"})
_FALLS: Final = frozenset({"switch_case", "switch_default"})
_CALLS: Final = frozenset({"call", "call_expression"})
_NOT: Final = frozenset({"not_operator", "unary_expression"})
_BOTH: Final = frozenset({"boolean_operator", "binary_expression", "comparison_operator"})
_STRING: Final = rb"\"[^\"\\\n]*\"|'[^'\\\n]*'"
_LISTED: Final = re.compile(rb"[\s(\[{]*(?:" + _STRING + rb")(?:[\s,|]*(?:" + _STRING + rb"))*[\s,)\]}]*")
_COMPARED: Final = re.compile(rb"(?P<left>.+?)\s*(?P<sign>[!=]==?|\bnot\s+in\b|\bin\b)\s*(?P<right>.+)", re.DOTALL)
_BEGINS: Final = re.compile(rb"(?P<what>.+)\.starts[wW]ith(?P<strings>\(.+\))", re.DOTALL)
_LONGEST: Final = 300
_DEEPEST: Final = 100


@dataclass(frozen=True)
class Platform:
    """A system, named as Python does (`linux`, `darwin`, `win32`), and its processor (`x86_64`, `aarch64`)."""

    system: str
    machine: str


def here() -> Platform:
    """Return the platform of this machine, which is that of its boxes."""
    machine = platform.machine().lower()
    return Platform(sys.platform, {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine))


def every(truths: Iterable[Truth]) -> Truth:
    """Return whether all hold: False if one certainly does not."""
    found = list(truths)
    return False if False in found else None if None in found else True


def some(truths: Iterable[Truth]) -> Truth:
    """Return whether any holds: True if one certainly does."""
    return opposite(every(opposite(truth) for truth in truths))


def opposite(truth: Truth) -> Truth:
    """Return the opposite, None of what nobody knows."""
    return None if truth is None else not truth


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What a language has for the platform.

    Args:
        language: What reads it.
        hint: What stands in each source that has any such condition.
        names: What its programs call a system or a processor, with what that is on each of them.
        constants: The query for names that are given a value at the top (`@name`, `@value`), and for all that binds a
            name (`@bound`): one that is bound twice is no constant.
        atom: Whether what only this language has holds.
        uncompiled: The nodes that are not compiled; the top if it is the whole file.
        stop: What no compiler takes, wherever a statement or an item may stand; empty where nothing is compiled first.
        in_parts: Whether the compiler may leave out parts of a file.
    """

    language: Language
    hint: re.Pattern[bytes]
    names: Mapping[bytes, Mapping[str, str]]
    constants: str = ""
    atom: Callable[[Node, Platform], Truth] = lambda _node, _platform: None
    uncompiled: Callable[[str, Node, Platform], Iterable[Node]] = lambda _path, _top, _platform: ()
    stop: bytes = b""
    in_parts: bool = False

    def off(self, path: str, top: Node, on: Platform) -> frozenset[int]:
        """Return the ids of the nodes in which a fault changes nothing on a platform."""
        uncompiled = frozenset(node.id for node in self.uncompiled(path, top, on))
        if top.id in uncompiled or not self.hint.search(top.text or b""):
            return uncompiled
        here = (on.system, on.machine)
        names = {name: known[one] for name, known in self.names.items() for one in here if one in known}
        decided = _Decided(self, on, names)
        decided.learn(top)
        return uncompiled.union(node.id for node in decided.nodes(top))


@dataclass
class _Decided:
    conditions: Conditions
    on: Platform
    names: Mapping[bytes, str]
    _constants: dict[bytes, bool] = field(default_factory=dict[bytes, bool])
    _known: dict[int, Truth] = field(default_factory=dict[int, Truth])

    def learn(self, top: Node) -> None:
        """Keep the constants that the platform decides, in the order of the file."""
        if not self.conditions.constants:
            return
        from tree_sitter import Query, QueryCursor  # noqa: PLC0415  (not before a source is parsed)

        cursor = QueryCursor(Query(self.conditions.language, self.conditions.constants))
        found = [captured for _, captured in cursor.matches(top)]
        bound = [node.text for captured in found for node in captured.get("bound", ())]
        given = [(c["name"][0], c["value"][0]) for c in found if "name" in c and "value" in c]
        for name, value in sorted(given, key=lambda pair: pair[0].start_byte):
            truth = self.truth(value)
            if truth is not None and name.text and bound.count(name.text) == 1:
                self._constants[name.text] = truth
                self._known.clear()

    def nodes(self, top: Node) -> Iterator[Node]:
        """Yield the nodes in which a fault changes nothing, and nothing within them."""
        stack, never = [top], set[int]()
        while stack:
            node = stack.pop()
            if node.id in never or self.truth(node) is not None:
                yield node
                continue
            if node.type in _BRANCHES:
                never.update(one.id for one in self._not_taken(node))
            elif node.type in _CHOICES:
                never.update(one.id for one in self._not_chosen(node))
            stack.extend(reversed(node.children))  # what stands behind a branch is looked at later

    def truth(self, node: Node, depth: int = 0) -> Truth:
        """Return whether a condition holds, None if the platform alone does not decide it."""
        if node.id not in self._known:
            self._known[node.id] = self._truth(node, depth) if depth < _DEEPEST else None
        return self._known[node.id]

    def _truth(self, node: Node, depth: int) -> Truth:
        inner = named_children(node)
        if node.type == "identifier":
            return self._constants.get(node.text or b"")
        if node.type == "parenthesized_expression" and len(inner) == 1:
            return self.truth(inner[0], depth + 1)
        if node.type in _NOT and node.children[0].type in {"not", "!"}:
            return opposite(self.truth(inner[-1], depth + 1))
        if node.type in _BOTH and len(inner) == 2:  # noqa: PLR2004  (left and right)
            sign = (node.children[1].text or b"").strip()
            if sign in {b"and", b"&&", b"or", b"||"}:
                together = every if sign in {b"and", b"&&"} else some
                return together([self.truth(inner[0], depth + 1), self.truth(inner[1], depth + 1)])
            return self._compared(node)
        if node.type in _CALLS:
            return self._begins(node)
        return self.conditions.atom(node, self.on)

    def _compared(self, node: Node) -> Truth:
        said = _COMPARED.fullmatch(_short(node))
        if said is None:
            return None
        left, right, sign = said["left"].strip(), said["right"].strip(), said["sign"]
        if right in self.names and b"in" not in sign:
            left, right = right, left
        strings = _strings(right)
        if left not in self.names or not strings or (b"in" not in sign and len(strings) > 1):
            return None
        return (self.names[left] in strings) is not sign.startswith((b"!", b"not"))

    def _begins(self, node: Node) -> Truth:
        said = _BEGINS.fullmatch(_short(node))
        strings = _strings(said["strings"]) if said is not None else None
        if said is None or not strings or said["what"] not in self.names:
            return None
        return self.names[said["what"]].startswith(tuple(strings))

    def _not_taken(self, branch: Node) -> Iterator[Node]:
        """Yield the side that is not taken, and what stands behind a branch that is taken and always leaves."""
        sides = named_children(branch) if branch.type == "conditional_expression" else ()
        condition = sides[1] if sides else branch.child_by_field_name("condition")
        truth = self.truth(condition) if condition is not None else None
        if truth is None:
            return
        first = sides[0] if sides else branch.child_by_field_name("consequence")
        others = sides[2:] or branch.children_by_field_name("alternative")
        if branch.type == "elif_clause":
            others = [*_behind(branch)]
        yield from others if truth else [first] if first is not None else []
        taken = first if truth else others[0] if len(others) == 1 else None
        if branch.type not in {"elif_clause", "conditional_expression"} and taken is not None and _leaves(taken):
            yield from _behind(branch)

    def _not_chosen(self, choice: Node) -> Iterator[Node]:
        """Yield the cases that are never chosen."""
        asked = choice.child_by_field_name("value") or choice.child_by_field_name("subject")
        if asked is not None and asked.type == "parenthesized_expression":
            asked = (named_children(asked) or [asked])[0]
        said = self.names.get(_short(asked)) if asked is not None else None
        if said is None:
            return
        body = choice.child_by_field_name("body") or choice
        cases = [child for child in body.named_children if child.type in _CASES]
        truths = [_chosen(case, said) for case in cases]
        rest = opposite(some(truth for truth, is_rest in truths if not is_rest))
        falls = False
        for case, (truth, is_rest) in zip(cases, truths, strict=True):
            is_never = (rest if is_rest else truth) is False and not falls
            if is_never:
                yield case
            falls = not is_never and _falls(case)


def _chosen(case: Node, said: str) -> tuple[Truth, bool]:
    """Return whether a case is chosen, and whether it is the one for all the rest."""
    pattern = case.child_by_field_name("value") if case.type != "match_arm" else None
    pattern = pattern or next((child for child in case.named_children if "pattern" in child.type), None)
    if case.type in {"switch_default", "default_case"} or (pattern is not None and pattern.text == b"_"):
        return None, True
    strings = _strings(_short(pattern)) if pattern is not None else None
    return (said in strings if strings else None), False


def _falls(case: Node) -> bool:
    """Return whether a case may go on with the next one."""
    last = (named_children(case) or [case])[-1]
    if case.type in _FALLS:
        return not _leaves(last)
    return any(child.type == "fallthrough_statement" for child in (last, *last.named_children))


def _leaves(node: Node) -> bool:
    """Return whether what stands behind a block is never reached through it."""
    while node.type in _BLOCKS and (inner := named_children(node)):
        node = inner[-1]
    return node.type in _LEAVES


def _behind(node: Node) -> Iterator[Node]:
    """Yield what stands behind a statement, in its block."""
    statement = node.parent if node.parent is not None and node.parent.type == "expression_statement" else node
    while (behind := statement.next_named_sibling) is not None:
        yield behind
        statement = behind


def _short(node: Node) -> bytes:
    size = node.end_byte - node.start_byte
    return node.text or b"" if size <= _LONGEST else b""


def _strings(text: bytes) -> list[str] | None:
    """Return the strings that a text lists, None if there is anything else in it."""
    if not _LISTED.fullmatch(text.strip()):
        return None
    return [one[1:-1].decode("utf-8", "replace") for one in re.findall(_STRING, text)]
