"""Judges whether a tool of ours may run a command: one literal argv, a listed beginning, listed options.

This is advice for agents whose tool loop is ours: an early answer, with what to do instead. The box and the gate hold
what a command does; any other agent runs its commands itself, and there they hold alone.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pipeline.characters import HIDDEN, escaped
from pipeline.judge.policy.listed_commands import ANY_NUMBER, HINTS, READING_COMMANDS, ListedCommand

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class CommandRule(StrEnum):
    """The ids of the rules that allow or refuse a command."""

    ALLOWED = "listed-command"
    SHELL = "shell"
    EMPTY = "no-command"
    TOO_LONG = "too-long"
    CHARACTERS = "characters"
    ONE_COMMAND = "one-command"
    REDIRECT = "redirect"
    EXPANSION = "expansion"
    ASSIGNMENT = "env-prefix"
    QUOTING = "quoting"
    SYNTAX = "syntax"
    PROGRAM = "program-not-listed"
    PROGRAM_PATH = "program-path"
    SUBCOMMAND = "subcommand-not-listed"
    OPTION = "option-not-listed"
    VALUE = "option-value"
    REQUIRED = "option-missing"
    PATH = "path"
    OPERAND = "operand"
    ARGUMENT_FILE = "argument-file"
    SELECTOR = "test-selector"


@dataclass(frozen=True)
class CommandRuling:
    """The ruling on one command. `argv` is what to execute, without a shell; empty when refused."""

    allowed: bool
    rule: str
    why: str
    argv: tuple[str, ...] = ()


MOST_CHARACTERS: Final = 8_000

_LITERAL: Final = re.compile(r"""(?:[A-Za-z0-9_@%+=:,./ -]|'[^']*'|"[^"$`\\!]*")*""")
"""Text that bash and `shlex` split into the same words."""

_ASSIGNMENT: Final = re.compile(r" *[A-Za-z_]\w*\+?=")
_GIVES_PATTERN: Final = frozenset({"-e", "--regexp", "--files"})
_OPERATORS: Final = {
    ";&|()": (
        CommandRule.ONE_COMMAND,
        "give exactly one command: no ; & && | ( ). Call the tool once for each command",
    ),
    "<>": (CommandRule.REDIRECT, "the output comes back by itself: leave out < > >> 2>&1 and <<"),
    "$`": (CommandRule.EXPANSION, "no shell reads the command, so $ and ` mean nothing. Write the value itself"),
    "*?[]{}~^!": (
        CommandRule.EXPANSION,
        "no shell reads the command, so * ? [ ] { } ~ ^ ! mean nothing. Write what is meant, or put it in '...'",
    ),
    "#": (CommandRule.SYNTAX, "leave out the comment, or quote the #"),
}


def judge_command(text: str, brought: Iterable[ListedCommand], *, shell: bool) -> CommandRuling:
    """Return the ruling on the command line `text`, with the argv to run. Total: every text has a ruling.

    Args:
        text: What a model wrote.
        brought: The commands that the languages bring.
        shell: Whether the role may run commands (`RoleSpec.shell`).
    """
    if not shell:
        return _no_shell()
    words = literal_words(text)
    return words if isinstance(words, CommandRuling) else judge_argv(words, brought, shell=shell)


def judge_argv(argv: Sequence[str], brought: Iterable[ListedCommand], *, shell: bool) -> CommandRuling:
    """Return the ruling on a program with its arguments, given as an argv, so that no quoting is guessed.

    Args:
        argv: The program's name and its words.
        brought: The commands that the languages bring.
        shell: Whether the role may run commands.
    """
    if not shell:
        return _no_shell()
    return _form_refusal(argv) or _listed(tuple(argv), (*brought, *READING_COMMANDS))


def judge_selectors(selectors: Sequence[str], *, shell: bool) -> CommandRuling:
    """Return the ruling on test ids that the harness is to put behind a test command."""
    if not shell:
        return _no_shell()
    for word in selectors:
        if why := _unprintable(word) or _outside(word):
            return _refuse(CommandRule.SELECTOR, f"{why}; give test ids such as tests/test_a.py::test_b")
    return CommandRuling(allowed=True, rule=CommandRule.ALLOWED, why="tests of the workspace", argv=tuple(selectors))


def literal_words(text: str) -> tuple[str, ...] | CommandRuling:
    """Return the words of `text` if every shell splits it into exactly these, else the refusal."""
    if len(text) > MOST_CHARACTERS:
        return _refuse(CommandRule.TOO_LONG, f"the command is longer than {MOST_CHARACTERS} characters")
    if why := _unprintable(text):
        return _refuse(CommandRule.CHARACTERS, why)
    if _ASSIGNMENT.match(text):
        return _refuse(CommandRule.ASSIGNMENT, "the environment is fixed: leave out NAME=value")
    literal = _LITERAL.match(text)
    rest = text[literal.end() :] if literal else text
    return _not_literal(rest) if rest else tuple(shlex.split(text))


def _not_literal(text: str) -> CommandRuling:
    """Return the refusal of a text that does not begin with a literal."""
    quoted = re.match(r'"[^"$`\\!]*([$`\\!])', text)
    sign = quoted[1] if quoted else text[0]
    if sign in "'\"":
        return _refuse(CommandRule.SYNTAX, f"the quote {sign} is not closed")
    for signs, (rule, why) in _OPERATORS.items():
        if sign in signs:
            return _refuse(rule, why)
    return _refuse(CommandRule.QUOTING, f"put the whole word in '...', because of the {sign}")


def _unprintable(text: str) -> str | None:
    """Return a sentence about the first invisible or unusual space character, None if there is none."""
    for char in text:
        if char != " " and (unicodedata.category(char)[0] in "CZ" or HIDDEN.match(char)):
            if char in "\n\r":
                return f"the text has a line break ({escaped(char)}); give one command on one line"
            return f"the character {escaped(char)} is invisible or an odd space; use plain spaces and letters"
    return None


def _refuse(rule: CommandRule, why: str) -> CommandRuling:
    return CommandRuling(allowed=False, rule=rule, why=why)


def _no_shell() -> CommandRuling:
    return _refuse(CommandRule.SHELL, "this role runs no commands; it answers by its report alone")


def _form_refusal(argv: Sequence[str]) -> CommandRuling | None:
    if not argv:
        return _refuse(CommandRule.EMPTY, "there is no command")
    if sum(map(len, argv)) > MOST_CHARACTERS:
        return _refuse(CommandRule.TOO_LONG, f"the command is longer than {MOST_CHARACTERS} characters")
    for word in argv:
        if why := _unprintable(word):
            return _refuse(CommandRule.CHARACTERS, why)
        if word.startswith("@"):
            why = f"{word!r} would be read as a file of arguments; write them out"
            return _refuse(CommandRule.ARGUMENT_FILE, why)
    return None


def _listed(argv: tuple[str, ...], commands: Sequence[ListedCommand]) -> CommandRuling:
    """Return the ruling by the longest listed beginning that matches the argv, after those of wrappers."""
    words, wrapper = argv, ""
    while True:
        fitting = [command for command in commands if words[: len(command.words)] == command.words]
        command = max(fitting, key=lambda command: len(command.words), default=None)
        if command is None:
            return _not_listed(words, commands, wrapper)
        words = words[len(command.words) :]
        if not command.is_wrapper:
            break
        wrapper = command.beginning
        while words and words[0] in command.values:
            words = words[1:]
    refusal = refusal_of(command, words)
    why = f"`{command.beginning}` with these words is on the list"
    return refusal or CommandRuling(allowed=True, rule=CommandRule.ALLOWED, why=why, argv=argv)


def _not_listed(words: tuple[str, ...], commands: Sequence[ListedCommand], wrapper: str) -> CommandRuling:
    program = words[0] if words else ""
    if wrapper and (not program or program.startswith("-")):
        return _refuse(CommandRule.OPTION, f"`{wrapper}` is followed by a listed command, not by {program!r}")
    if "/" in program:
        return _refuse(CommandRule.PROGRAM_PATH, f"{program!r} is a path; give the name of a listed program")
    hint = HINTS.get(program)
    beginnings = sorted(command.beginning for command in commands if command.words[0] == program)
    if beginnings:
        instead = f"; or {hint}" if hint else ""
        return _refuse(CommandRule.SUBCOMMAND, f"of {program} only this is listed: {', '.join(beginnings)}{instead}")
    programs = ", ".join(sorted({command.words[0] for command in commands}))
    instead = f": {hint}" if hint else ""
    return _refuse(CommandRule.PROGRAM, f"{program!r} is not listed{instead}. Listed are: {programs}")


def refusal_of(command: ListedCommand, words: Sequence[str]) -> CommandRuling | None:
    """Return the refusal of a listed command with the arguments `words`, None if it may run.

    A word that begins with a dash is always an option, never a value or an operand: then no two readers can disagree
    about which word belongs to which (pytest looks for `-p` everywhere, behind `--` as well).
    """
    at = words.index("--") if "--" in words else len(words)
    pending, behind = list(words[:at]), list(words[at + 1 :])
    operands: list[str] = []
    while pending:
        word = pending.pop(0)
        if not word.startswith("-"):
            operands.append(word)
        elif refusal := _option_refusal(command, word, pending):
            return refusal
    if command.required and not set(command.required.split()) & set(words):
        return _refuse(CommandRule.REQUIRED, f"`{command.beginning}` needs one of these: {command.required}")
    if command.rest is None:
        operands += behind
    elif refusal := refusal_of(command.rest, behind):
        return refusal
    if command.is_search and not any(word.partition("=")[0] in _GIVES_PATTERN for word in words[:at]):
        pattern, operands = operands[:1], operands[1:]
        if pattern and pattern[0].startswith("-"):
            return _refuse(CommandRule.OPERAND, f"{pattern[0]!r}: a pattern begins with another character, as [-]")
    return next((refusal for word in operands if (refusal := _operand_refusal(command, word))), None)


def _option_refusal(command: ListedCommand, word: str, pending: list[str]) -> CommandRuling | None:
    """Return the refusal of the option `word`, None if it is allowed; its value is taken from `pending`."""
    if word in command.values or (re.fullmatch(r"-\d{1,6}", word) and ANY_NUMBER in command.values):
        value = command.values.get(word)
        if value is None:
            return None
        if not pending:
            return _refuse(CommandRule.VALUE, f"{word} needs a value")
        return _value_refusal(word, value.pattern, pending.pop(0))
    name, equals, text = word.partition("=")
    if equals and name in command.values:
        value = command.values[name]
        if value is None or not (name.startswith("--") or command.has_single_dash_values):
            return _refuse(CommandRule.VALUE, f"{name} is not written with =")
        return _value_refusal(name, value.pattern, text)
    if _is_joined(command, word):
        return None
    why = f"{word!r} is not among the options of `{command.beginning}`, spelled in full: {', '.join(command.values)}"
    return _refuse(CommandRule.OPTION, f"{why}. Leave it out, or use a tool such as `run_tests`")


def _value_refusal(name: str, pattern: str, text: str) -> CommandRuling | None:
    if not text.startswith(("-", "@")) and re.fullmatch(pattern, text):
        return None
    return _refuse(CommandRule.VALUE, f"{name} is not allowed with {text!r}")


def _is_joined(command: ListedCommand, word: str) -> bool:
    """Return whether `word` is a short option with its value (`-n5`), or several that stand alone (`-qx`)."""
    if value := command.values.get(word[:2]):
        return value.is_joinable and _value_refusal(word[:2], value.pattern, word[2:]) is None
    flags = {name for name, value in command.values.items() if value is None}
    return len(word) > len("-x") and flags.issuperset(f"-{letter}" for letter in word[1:])


def _operand_refusal(command: ListedCommand, word: str) -> CommandRuling | None:
    if not re.fullmatch(command.operands, word):
        return _refuse(CommandRule.OPERAND, f"`{command.beginning}` takes no {word!r}")
    why = _outside(word)
    return _refuse(CommandRule.PATH, why) if why else None


def _outside(word: str) -> str | None:
    """Return why `word` is no path in the workspace, or test in one (`path::name[case]`); None if it is.

    Versions of pytest differ in where the path ends, at `[` or at `::`; whichever it is, it stays inside.
    """
    if not word or word.startswith(("/", "~", "-", "@")):
        return f"{word!r} is not a path relative to the workspace"
    return f"{word!r}: a path here has no '..' in it" if ".." in re.split(r"/|\[|::", word) else None
