"""How the words of a command line are to be read: options, what follows them, and everything else.

The vocabulary of `command_tables`, and the reader that applies one of its entries.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING, Final, assert_never

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


AS_NUMBER: Final = "-\0"
"""The key of the old form `-20`; nobody can write it as a word."""


class Arity(Enum):
    """What stands behind an option. A wrong entry would shift what is taken for a path."""

    FLAG = auto()
    VALUE = auto()
    """`--name value`, `--name=value`, `-n value`."""
    OPTIONAL = auto()
    """`--name` or `--name=value`: the next word is never its value."""


@dataclass(frozen=True)
class Option:
    """One option: what may follow it (a pattern for the whole value), and whether a short one may be joined (`-n5`)."""

    arity: Arity = Arity.FLAG
    value: str = ""
    joined: bool = False


Options = Mapping[str, Option]


class Operands(Enum):
    """What the words are that are no options."""

    NONE = auto()
    PATHS = auto()
    TESTS = auto()
    """pytest's node ids: a path, then `::` and names."""
    NAMES = auto()
    """Parts of test names."""
    PACKAGES = auto()
    """Go's package patterns, relative ones."""
    PATTERN_THEN_PATHS = auto()
    """All are paths when an option gives the pattern."""


class Danger(StrEnum):
    """Why a known option is left out."""

    CODE = "option-loads-code"
    CONFIG = "option-changes-configuration"
    WRITES = "option-writes-files"
    EXECUTES = "option-runs-programs"
    ELSEWHERE = "option-leaves-the-workspace"
    HIDES = "option-hides-tests"


@dataclass(frozen=True)
class Tool:
    """One program, or one subcommand of it.

    Args:
        options: Everything that may begin with a dash.
        operands: What the other words are.
        rest: Judges what stands after `--`; None where `--` only ends the options.
        required: Options of which one must be there.
        pattern_options: With one of these, each operand is a path (`PATTERN_THEN_PATHS`).
        bundles: Whether `-ab` stands for `-a -b`, and `-n5` for `-n 5`.
        short_equals: Whether `-name=value` is a form (Go).
        refused: Known options that are left out: the danger, by name.
    """

    options: Options
    operands: Operands = Operands.PATHS
    rest: Tool | None = None
    required: frozenset[str] = frozenset()
    pattern_options: frozenset[str] = frozenset()
    bundles: bool = True
    short_equals: bool = False
    refused: Mapping[str, Danger] = field(default_factory=dict[str, Danger])


def flags(*names: str) -> dict[str, Option]:
    """Return options that stand alone."""
    return {name: Option() for name in names}


def value(pattern: str, *names: str, joined: bool = False) -> dict[str, Option]:
    """Return options with a value that matches `pattern` as a whole."""
    return {name: Option(Arity.VALUE, pattern, joined=joined) for name in names}


def optional(pattern: str, *names: str) -> dict[str, Option]:
    """Return options that may have a value, behind `=` only."""
    return {name: Option(Arity.OPTIONAL, pattern) for name in names}


def refused(danger: Danger, *names: str) -> dict[str, Danger]:
    """Return options that are left out for the same reason."""
    return dict.fromkeys(names, danger)


class WordRule(StrEnum):
    """Why a word is refused, for reasons that no single option has."""

    OPTION = "option-not-listed"
    VALUE = "option-value"
    REQUIRED = "option-missing"
    PATH = "path"
    OPERAND = "operand"


@dataclass(frozen=True)
class WordFault:
    """Why the words of a command are refused: a stable rule id and a sentence."""

    rule: str
    why: str


_DANGERS: Final[Mapping[Danger, str]] = {
    Danger.CODE: "makes the tool import or run other code",
    Danger.CONFIG: "changes the configuration; the project's own counts",
    Danger.WRITES: "writes or removes files",
    Danger.EXECUTES: "starts other programs",
    Danger.ELSEWHERE: "reads what the command does not name, or works in another folder",
    Danger.HIDES: "leaves tests out",
}
_SEPARATOR: Final = "--"


def fault_in(tool: Tool, words: Sequence[str]) -> WordFault | None:
    """Return why `tool` may not be run with `words`, or None.

    A word that begins with a dash is always an option, never a value or an operand: then no two readers can disagree
    about which word belongs to which (pytest looks for `-p` everywhere, behind `--` as well).
    """
    at = words.index(_SEPARATOR) if _SEPARATOR in words else len(words)
    head, tail = words[:at], words[at + 1 :]
    operands: list[str] = []
    pending = deque(head)
    while pending:
        word = pending.popleft()
        if not word.startswith("-"):
            operands.append(word)
        elif fault := _option_fault(tool, word, pending):
            return fault
    if tool.required and tool.required.isdisjoint(words):
        return WordFault(WordRule.REQUIRED, f"one of these is needed: {', '.join(sorted(tool.required))}")
    if tool.rest is None:
        operands += tail
    elif fault := fault_in(tool.rest, tail):
        return fault
    return _operands_fault(tool, operands, {word.partition("=")[0] for word in head})


def path_fault(word: str) -> str | None:
    """Return why `word` is no path inside the workspace, or None."""
    if not word or word.startswith(("/", "~", "-", "@")):
        return f"{word!r} is not a path relative to the workspace"
    if ".." in word.split("/"):
        return f"{word!r}: a path here has no '..' in it"
    return None


def node_fault(word: str) -> str | None:
    """Return why `word` is no test id (`path`, `path::name`, `path::name[case]`) inside the workspace, or None.

    Versions of pytest differ in where the path ends, at `[` or at `::`; whichever it is, it stays inside.
    """
    if fault := path_fault(word):
        return fault
    return f"{word!r}: a test id here has no '..' in it" if ".." in re.split(r"/|\[|::", word) else None


def _option_fault(tool: Tool, word: str, pending: deque[str]) -> WordFault | None:
    """Return why the option `word` is refused; takes its value from `pending`."""
    name, equals, text = word.partition("=")
    key = AS_NUMBER if re.fullmatch(r"-\d{1,6}", word) and word not in tool.options else name
    option = tool.options.get(key)
    if option is None:
        return None if _is_joined(tool, word) else _unlisted(tool, word)
    if equals and (option.arity is Arity.FLAG or not (name.startswith("--") or tool.short_equals)):
        return WordFault(WordRule.VALUE, f"{name} is not written with =")
    if option.arity is not Arity.VALUE and not equals:
        return None
    if not equals:
        if not pending:
            return WordFault(WordRule.VALUE, f"{name} needs a value")
        text = pending.popleft()
    return None if _matches(option, text) else WordFault(WordRule.VALUE, f"{name} is not allowed with {text!r}")


def _matches(option: Option, text: str) -> bool:
    return not text.startswith(("-", "@")) and re.fullmatch(option.value, text) is not None


def _is_joined(tool: Tool, word: str) -> bool:
    """Return whether `word` is a short option with its value (`-n5`), or a bundle of flags (`-qx`)."""
    if word.startswith("--") or not tool.bundles:
        return False
    first = tool.options.get(word[:2])
    if first is not None and first.joined and _matches(first, word[2:]):
        return True
    letters = [tool.options.get(f"-{letter}") for letter in word[1:]]
    return len(letters) > 1 and all(option is not None and option.arity is Arity.FLAG for option in letters)


def _unlisted(tool: Tool, word: str) -> WordFault:
    name = word.partition("=")[0]
    short = [] if word.startswith("--") or not tool.bundles else [f"-{letter}" for letter in word[1:]]
    known = next((name for name in (name, *short) if name in tool.refused), None)
    if known is None:
        return WordFault(WordRule.OPTION, f"{word!r} is not among the options that this tool allows, spelled in full")
    danger = tool.refused[known]
    return WordFault(danger, f"{known} {_DANGERS[danger]}")


def _operands_fault(tool: Tool, operands: Sequence[str], given: set[str]) -> WordFault | None:
    match tool.operands:
        case Operands.NONE:
            wrong = operands[:1]
            return WordFault(WordRule.OPERAND, f"{wrong[0]!r}: this takes options only") if wrong else None
        case Operands.NAMES:
            return _each(operands, WordRule.OPERAND, _name_fault)
        case Operands.PACKAGES:
            return _each(operands, WordRule.PATH, _package_fault)
        case Operands.TESTS:
            return _each(operands, WordRule.PATH, node_fault)
        case Operands.PATHS:
            return _each(operands, WordRule.PATH, path_fault)
        case Operands.PATTERN_THEN_PATHS:
            if not tool.pattern_options.isdisjoint(given):
                return _each(operands, WordRule.PATH, path_fault)
            return _each(operands[:1], WordRule.OPERAND, _pattern_fault) or _each(
                operands[1:], WordRule.PATH, path_fault
            )
        case _:
            assert_never(tool.operands)


def _each(words: Sequence[str], rule: WordRule, fault_of: Callable[[str], str | None]) -> WordFault | None:
    return next((WordFault(rule, fault) for word in words if (fault := fault_of(word))), None)


def _name_fault(word: str) -> str | None:
    return None if re.fullmatch(r"[\w:]+", word) else f"{word!r} is not part of a test's name"


def _package_fault(word: str) -> str | None:
    if re.fullmatch(r"\.(/[\w.-]+)*/?", word):
        return path_fault(word)
    return f"{word!r} is not a package of this workspace; write ./name or ./..."


def _pattern_fault(word: str) -> str | None:
    return f"{word!r}: a pattern here begins with another character, such as [-]" if word.startswith("-") else None
