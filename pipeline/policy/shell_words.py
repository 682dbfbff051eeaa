"""A command line that says one thing only: one program with literal words (ADR-R38).

tree-sitter-bash parses the text; every node must then be spelled so that it stands for itself in any shell. What is
left is an argv that is executed as it is. No shell ever reads the text, so no difference between two parsers of bash
can be used against us.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Final

from pipeline.policy.characters import HIDDEN, escaped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tree_sitter import Language, Node


class Syntax(StrEnum):
    """Why a text is not one literal command."""

    EMPTY = "no-command"
    TOO_LONG = "too-long"
    CHARACTERS = "characters"
    ONE_COMMAND = "one-command"
    REDIRECT = "redirect"
    EXPANSION = "expansion"
    ASSIGNMENT = "env-prefix"
    QUOTING = "quoting"
    OTHER = "syntax"


@dataclass(frozen=True)
class NotLiteral:
    """Why the text is refused, with a sentence to act on."""

    rule: Syntax
    why: str


_SHOWN: Final = 80
MOST_CHARACTERS: Final = 8_000
"""The parser is quadratic in some texts (`a|a|a|...`); up to here that is half a second."""

_PLAIN: Final = r"[A-Za-z0-9_@%+=:,./-]"
_RAW: Final = r"'[^']*'"
_QUOTED: Final = r'"[^"$`\\!]*"'
_WORD: Final = re.compile(f"(?:{_PLAIN}|{_RAW}|{_QUOTED})+")
_PART: Final = re.compile(f"({_PLAIN}+)|({_RAW}|{_QUOTED})")
_COMPARISON: Final = re.compile(rb"(?<= )==(?= |$)")

_ARGUMENTS: Final = frozenset({"word", "number", "string", "raw_string", "concatenation"})
_ONE_COMMAND: Final = (
    Syntax.ONE_COMMAND,
    "give exactly one command: no ; & && | ( ) { } if for, no second line. Call the tool once for each command",
)
_EXPANSION: Final = (
    Syntax.EXPANSION,
    "no shell reads the command, so $ ` <( ) and $(( )) mean nothing. Write the value itself",
)
_REDIRECT: Final = (Syntax.REDIRECT, "the output comes back by itself: leave out < > >> 2>&1 and <<")
_ASSIGNMENT: Final = (Syntax.ASSIGNMENT, "the environment is fixed: leave out NAME=value")
_COMMENT: Final = (Syntax.OTHER, "leave out the comment, or quote the #")
_CONSTRUCTS: Final = {
    "command_substitution": _EXPANSION,
    "process_substitution": _EXPANSION,
    "expansion": _EXPANSION,
    "simple_expansion": _EXPANSION,
    "arithmetic_expansion": _EXPANSION,
    "brace_expression": _EXPANSION,
    "ansi_c_string": _EXPANSION,
    "translated_string": _EXPANSION,
    "$": _EXPANSION,
    "file_redirect": _REDIRECT,
    "heredoc_redirect": _REDIRECT,
    "herestring_redirect": _REDIRECT,
    "variable_assignment": _ASSIGNMENT,
    "variable_assignments": _ASSIGNMENT,
    "declaration_command": _ASSIGNMENT,
    "comment": _COMMENT,
    "list": _ONE_COMMAND,
    "pipeline": _ONE_COMMAND,
    "negated_command": _ONE_COMMAND,
    "subshell": _ONE_COMMAND,
    "compound_statement": _ONE_COMMAND,
    "&": _ONE_COMMAND,
    ";": _ONE_COMMAND,
}


def literal_words(text: str) -> tuple[str, ...] | NotLiteral:
    """Return the words of the one simple command that `text` is, or why it is not.

    Total: every text has an answer.
    """
    if len(text) > MOST_CHARACTERS:
        return NotLiteral(Syntax.TOO_LONG, f"the command is longer than {MOST_CHARACTERS} characters")
    if fault := unprintable(text):
        return NotLiteral(Syntax.CHARACTERS, fault)
    source = text.strip(" ").encode()
    if not source:
        return NotLiteral(Syntax.EMPTY, "there is no command")
    nodes = _simple_command(source)
    if isinstance(nodes, NotLiteral):
        return nodes
    words: list[str] = []
    end = 0
    for node in nodes:
        # Neighbours without a space between them would be one word to bash and two to us.
        if source[end : node.start_byte].strip(b" ") or (words and end == node.start_byte):
            return NotLiteral(Syntax.OTHER, "this is not understood; write one program and its words, nothing else")
        word = source[node.start_byte : node.end_byte].decode()
        if not _WORD.fullmatch(word):
            return _not_a_word(word)
        words.append("".join(plain or quoted[1:-1] for plain, quoted in _PART.findall(word)))
        end = node.end_byte
    return tuple(words)


def unprintable(text: str) -> str | None:
    """Return a sentence on the first character that is invisible, or a space other than the plain one; None if none."""
    for char in text:
        if char != " " and (unicodedata.category(char)[0] in "CZ" or HIDDEN.match(char)):
            if char in "\n\r":
                return f"the text has a line break ({escaped(char)}); give one command on one line"
            return f"the character {escaped(char)} is invisible or an odd space; use plain spaces and letters"
    return None


def _simple_command(source: bytes) -> Sequence[Node] | NotLiteral:
    """Return the nodes of the words, the program first, if `source` is one simple command and nothing else."""
    from tree_sitter import Parser  # noqa: PLC0415  (a parser that only commands need)

    # The grammar takes a bare == for an operator, which to bash it is only inside [[ ]]. Only places are used below.
    root = Parser(_bash()).parse(_COMPARISON.sub(b"ee", source)).root_node
    for node in _below(root):
        if construct := _CONSTRUCTS.get(node.type):
            return NotLiteral(*construct)
    command = root.children[0] if len(root.children) == 1 else root
    whole = (command.start_byte, command.end_byte) == (0, len(source))
    if root.has_error or command.type != "command" or not whole:
        return NotLiteral(Syntax.OTHER, "bash does not read this as one simple command; give a program and its words")
    name, *arguments = command.children
    if name.type != "command_name" or any(node.type not in _ARGUMENTS for node in arguments):
        return NotLiteral(*_ONE_COMMAND)
    return command.children


@cache
def _bash() -> Language:
    import tree_sitter_bash  # noqa: PLC0415  (as above)
    from tree_sitter import Language  # noqa: PLC0415

    return Language(tree_sitter_bash.language())


def _below(root: Node) -> Iterator[Node]:
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending += reversed(node.children)


def _not_a_word(word: str) -> NotLiteral:
    odd = next((char for char in _PART.sub("", word) if char not in "'\""), "quotes")
    shown = word[:_SHOWN]
    if odd in "*?[]":
        return NotLiteral(Syntax.EXPANSION, f"{shown}: no pattern is expanded; name the files, or put it in '...'")
    if odd == "$":
        return NotLiteral(*_EXPANSION)
    if odd in "~{}!^":
        return NotLiteral(Syntax.EXPANSION, f"{shown}: {odd} is not expanded; to mean it literally, put it in '...'")
    return NotLiteral(Syntax.QUOTING, f"{shown}: put the whole word in '...', because of the {odd}")
