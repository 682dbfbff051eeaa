"""Splits Rust source into tokens with matched delimiters, by the lexical rules that all editions share.

Where a string or a comment ends decides which code is compiled. tree-sitter reads some ends otherwise than rustc (that
of a literal with a suffix), and rustc itself ends a raw C string elsewhere in edition 2018 than in 2021. What could be
read in two ways is a fault here, so a place found in these tokens is the same place for the compiler.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pipeline.policy.characters import HIDDEN, escaped

MAX_BYTES: Final = 256 * 1024
"""The largest source that is read, in bytes: people write smaller files, and larger nonsense takes the parser
seconds."""

MAX_DEPTH: Final = 200
"""The deepest nesting of delimiters that is read; it keeps every later pass linear."""

_WHITE: Final = "\t\n\r"
_CLOSERS: Final = {b"(": b")", b"[": b"]", b"{": b"}"}

_TOKEN: Final = re.compile(
    rb"""
      (?P<space>[ \t\r\n]++)
    | (?P<line>//[^\n]*+)
    | (?P<block>/\*)
    | (?P<raw>b?r(?P<hashes>\#*+)".*?"(?P=hashes))
    | (?P<string>[bc]?"(?:[^"\\]|\\.)*+")
    | (?P<char>b?'(?:[^'\\\x00-\x1f\x80-\xff]|[\xc2-\xf4][\x80-\xbf]{1,3}
                    |\\(?:[nrt0\\'"]|x[0-9A-Fa-f]{2}|u\{[0-9A-Fa-f_]{1,12}\}))')
    | (?P<lifetime>'[A-Za-z_]\w*+(?!'))
    | (?P<word>(?:r\#)?[A-Za-z_]\w*+)
    | (?P<number>[0-9]\w*+)
    | (?P<mark>[!\#-&(-/:-@\[-^`{-~])
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENED: Final = re.compile(rb"/\*|\*/")
_STRUNG: Final = frozenset({"raw", "string", "char"})
_SUFFIX: Final = re.compile(rb"\w")
_RAW_OPENING: Final = re.compile(rb'#*+"')


class TokenKind(StrEnum):
    """The kind of a token; documentation comments count as attributes, other comments are no tokens."""

    WORD = "word"
    MARK = "mark"
    LITERAL = "literal"
    LIFETIME = "lifetime"
    OUTER_DOC = "outer doc"
    INNER_DOC = "inner doc"


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its text as written, and its start and end in bytes."""

    kind: TokenKind
    text: bytes
    start: int
    end: int


@dataclass(frozen=True)
class SourceFault:
    """The reason why a source is not read: the place in bytes, and the end of a sentence that begins with the line."""

    at: int
    why: str


@dataclass(frozen=True)
class Tokens:
    """The tokens of a source. `partner[i]` is the index of token `i`'s matching delimiter, -1 for others."""

    all: tuple[Token, ...]
    partner: tuple[int, ...]

    def text(self, index: int) -> bytes:
        """Return the text of a token, empty after the last one."""
        return self.all[index].text if index < len(self.all) else b""

    def has_word(self, index: int) -> bool:
        """Return whether the token at an index exists and is a word."""
        return index < len(self.all) and self.all[index].kind is TokenKind.WORD


def read_tokens(source: bytes) -> Tokens | SourceFault:
    """Return the tokens of a Rust source, or the fault that makes it uncertain. Never raises."""
    if fault := _unreadable(source):
        return fault
    found: list[Token] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            return SourceFault(at, "has a character or an unfinished literal that Rust does not have there")
        kind = match.lastgroup or ""
        end = match.end()
        if kind == "block":
            end = _end_of_comment(source, at)
            if end < 0:
                return SourceFault(at, "begins a comment that does not end")
        elif kind in _STRUNG and _SUFFIX.match(source, end):
            return SourceFault(at, "has a literal with a suffix, which is read in more than one way")
        elif match[0] in {b"r", b"br", b"cr"} and _RAW_OPENING.match(source, end):
            return SourceFault(at, "begins a raw string that does not end, or a raw C string, which editions differ on")
        if token := _token(kind, source, at, end):
            found.append(token)
        at = end
    return _paired(found)


def line_of(source: bytes, at: int) -> int:
    """Return the number of the line, from 1, that contains the byte at `at`."""
    return source.count(b"\n", 0, at) + 1


def _unreadable(source: bytes) -> SourceFault | None:
    if len(source) > MAX_BYTES:
        return SourceFault(0, f"begins a file of more than {MAX_BYTES} bytes")
    try:
        text = source.decode("utf-8")
    except UnicodeDecodeError as error:
        return SourceFault(error.start, "is not UTF-8")
    hidden = next((found for found in HIDDEN.finditer(text) if found[0] not in _WHITE), None)
    if hidden is not None:
        at = len(text[: hidden.start()].encode())
        return SourceFault(at, f"contains the invisible character {escaped(hidden[0])}")
    bare = re.search(rb"\r(?!\n)", source)
    if bare is not None:
        return SourceFault(bare.start(), "contains a carriage return that ends no line")
    if source.startswith(b"#!") and not source.startswith(b"#!["):
        return SourceFault(0, "is a line for the shell")
    return None


def _end_of_comment(source: bytes, at: int) -> int:
    depth = 0
    for mark in _OPENED.finditer(source, at):
        depth += 1 if mark[0] == b"/*" else -1
        if depth == 0:
            return mark.end()
    return -1


def _token(kind: str, source: bytes, start: int, end: int) -> Token | None:
    text = source[start:end]
    match kind:
        case "space":
            return None
        case "line" | "block":
            doc = _documents(text)
            return Token(doc, text, start, end) if doc is not None else None
        case "word":
            return Token(TokenKind.WORD, text, start, end)
        case "mark":
            return Token(TokenKind.MARK, text, start, end)
        case "lifetime":
            return Token(TokenKind.LIFETIME, text, start, end)
        case _:
            return Token(TokenKind.LITERAL, text, start, end)


def _documents(comment: bytes) -> TokenKind | None:
    if comment.startswith((b"//!", b"/*!")):
        return TokenKind.INNER_DOC
    line = comment.startswith(b"///") and not comment.startswith(b"////")
    block = comment.startswith(b"/**") and not comment.startswith((b"/***", b"/**/"))
    return TokenKind.OUTER_DOC if line or block else None


def _paired(found: list[Token]) -> Tokens | SourceFault:
    partner = [-1] * len(found)
    opened: list[int] = []
    for index, token in enumerate(found):
        if token.kind is not TokenKind.MARK:
            continue
        if token.text in _CLOSERS:
            opened.append(index)
            if len(opened) > MAX_DEPTH:
                return SourceFault(token.start, f"nests deeper than {MAX_DEPTH} levels")
        elif token.text in {b")", b"]", b"}"}:
            if not opened or _CLOSERS[found[opened[-1]].text] != token.text:
                return SourceFault(token.start, f"has a `{token.text.decode()}` that closes nothing")
            partner[index] = opened.pop()
            partner[partner[index]] = index
    if opened:
        last = found[opened[-1]]
        return SourceFault(last.start, f"has a `{last.text.decode()}` that nothing closes")
    return Tokens(tuple(found), tuple(partner))
