"""Whether a command may be run by a tool of ours: one literal argv, one listed program, listed options (ADR-R38).

For agents whose tool loop is ours. Any other agent runs its commands itself, confined in the box, and the gate judges
what they leave behind. The answer is for the model: early, with what to do instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pipeline.policy.command_tables import HINTS, TOOLS, WRAPPERS
from pipeline.policy.command_words import Operands, WordFault, WordRule, fault_in, node_fault
from pipeline.policy.shell_words import MOST_CHARACTERS, NotLiteral, Syntax, literal_words, unprintable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeline.policy.command_words import Tool


class CommandRule(StrEnum):
    """Rule ids beside those of `Syntax`, `WordRule` and `Danger`."""

    ALLOWED = "listed-command"
    SHELL = "shell"
    PROGRAM = "program-not-listed"
    PROGRAM_PATH = "program-path"
    SUBCOMMAND = "subcommand-not-listed"
    ARGUMENT_FILE = "argument-file"
    SELECTOR = "test-selector"


@dataclass(frozen=True)
class CommandRuling:
    """The answer for one command. `argv` is what to execute, without a shell; empty when refused."""

    allowed: bool
    rule: str
    why: str
    argv: tuple[str, ...] = ()


def judge_command(text: str, *, shell: bool) -> CommandRuling:
    """Return whether the command line `text` may be run, and as which argv. Total: every text has a ruling.

    Args:
        text: What a model wrote.
        shell: Whether the role may run commands (`RoleSpec.shell`).
    """
    if not shell:
        return _no_shell()
    words = literal_words(text)
    if isinstance(words, NotLiteral):
        return _refuse(words.rule, words.why)
    return judge_argv(words, shell=shell)


def judge_argv(argv: Sequence[str], *, shell: bool) -> CommandRuling:
    """Return whether the program and its words may be run; for who has an argv already, so that no quoting is guessed.

    Args:
        argv: The program's name and its words.
        shell: Whether the role may run commands.
    """
    if not shell:
        return _no_shell()
    if fault := _form_fault(argv):
        return _refuse(fault.rule, fault.why)
    entry, fault = _listed(tuple(argv))
    if fault is not None:
        return _refuse(fault.rule, fault.why)
    why = f"`{entry}` with these words is on the list"
    return CommandRuling(allowed=True, rule=CommandRule.ALLOWED, why=why, argv=tuple(argv))


def judge_selectors(selectors: Sequence[str], *, shell: bool) -> CommandRuling:
    """Return whether tests may be selected by these ids, as the words behind a test command that the harness makes."""
    if not shell:
        return _no_shell()
    for word in selectors:
        fault = unprintable(word) or node_fault(word)
        if fault:
            return _refuse(CommandRule.SELECTOR, f"{fault}; give test ids such as tests/test_a.py::test_b")
    return CommandRuling(allowed=True, rule=CommandRule.ALLOWED, why="tests of the workspace", argv=tuple(selectors))


def _refuse(rule: str, why: str) -> CommandRuling:
    return CommandRuling(allowed=False, rule=rule, why=why)


def _no_shell() -> CommandRuling:
    return _refuse(CommandRule.SHELL, "this role runs no commands; it answers by its report alone")


def _form_fault(argv: Sequence[str]) -> WordFault | None:
    if not argv:
        return WordFault(Syntax.EMPTY, "there is no command")
    if sum(map(len, argv)) > MOST_CHARACTERS:
        return WordFault(Syntax.TOO_LONG, f"the command is longer than {MOST_CHARACTERS} characters")
    for word in argv:
        if fault := unprintable(word):
            return WordFault(Syntax.CHARACTERS, fault)
        if word.startswith("@"):
            return WordFault(
                CommandRule.ARGUMENT_FILE, f"{word!r} would be read as a file of arguments; write them out"
            )
    return None


def _listed(argv: tuple[str, ...]) -> tuple[str, WordFault | None]:
    """Return the entries of the tables that `argv` falls under and what is wrong with the words behind them."""
    entries: list[str] = []
    while prefix := _prefix_in(WRAPPERS, argv):
        entries += prefix
        argv = argv[len(prefix) :]
        while argv and argv[0] in WRAPPERS[prefix]:
            argv = argv[1:]
    prefix = _prefix_in(TOOLS, argv)
    if prefix is None:
        return "", _unlisted(argv, " ".join(entries))
    shown = " ".join((*entries, *prefix))
    fault = fault_in(TOOLS[prefix], argv[len(prefix) :])
    return shown, fault and WordFault(fault.rule, f"`{shown}`: {fault.why}{_instead(TOOLS[prefix], fault)}")


def _prefix_in(table: Iterable[tuple[str, ...]], argv: tuple[str, ...]) -> tuple[str, ...] | None:
    return next((prefix for prefix in table if argv[: len(prefix)] == prefix), None)


def _instead(tool: Tool, fault: WordFault) -> str:
    if not fault.rule.startswith("option"):
        return ""
    runs_tests = tool.operands in {Operands.TESTS, Operands.NAMES, Operands.PACKAGES}
    return ". Leave it out, or use the tool `run_tests`" if runs_tests else ". Leave it out"


def _unlisted(argv: tuple[str, ...], wrapper: str) -> WordFault:
    program = argv[0] if argv else ""
    if wrapper and (not program or program.startswith("-")):
        return WordFault(WordRule.OPTION, f"`{wrapper}` is followed by a listed command, not by {program!r}")
    if "/" in program:
        return WordFault(CommandRule.PROGRAM_PATH, f"{program!r} is a path; give the name of a listed program")
    mine = sorted(" ".join(prefix) for prefix in (*TOOLS, *WRAPPERS) if prefix[0] == program)
    hint = HINTS.get(program)
    if mine:
        instead = f"; or {hint}" if hint else ""
        return WordFault(CommandRule.SUBCOMMAND, f"of {program} only this is listed: {', '.join(mine)}{instead}")
    listed = ", ".join(sorted({prefix[0] for prefix in (*TOOLS, *WRAPPERS)}))
    instead = f": {hint}" if hint else ""
    return WordFault(CommandRule.PROGRAM, f"{program!r} is not listed{instead}. Listed are: {listed}")
