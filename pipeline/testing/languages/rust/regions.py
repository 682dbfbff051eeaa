"""Finds the test regions of a Rust source: inline modules with exactly the attribute `#[cfg(test)]`.

They count at the top level and in inline modules that carry attributes of the compiler only. Without `--test` rustc
drops such a module before anything in it means anything. Regions are found in tokens that all editions agree on
(`Tokens`), and tree-sitter must see the same modules, or the source is not judged.

Where a string or a comment ends decides which code is compiled. tree-sitter reads some ends otherwise than rustc (that
of a literal with a suffix), and rustc itself ends a raw C string elsewhere in edition 2018 than in 2021. What could be
read in two ways is a fault here, so a place found in these tokens is the same place for the compiler.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pipeline.characters import HIDDEN, escaped
from pipeline.testing.languages.sources.syntax_trees import first_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


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


_KINDS: Final = {
    "space": None, "word": TokenKind.WORD, "mark": TokenKind.MARK, "lifetime": TokenKind.LIFETIME,
}  # fmt: skip


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
    known = _documents(text) if kind in {"line", "block"} else _KINDS.get(kind, TokenKind.LITERAL)
    return Token(known, text, start, end) if known is not None else None


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


_CFG_TEST: Final = (b"cfg", b"(", b"test", b")")

_LINTS: Final = frozenset({b"allow", b"deny", b"expect", b"warn"})
"""Attributes that may stand beside `#[cfg(test)]`. An attribute macro would get the region in every build."""

_COMPILERS: Final = _LINTS | {b"cfg", b"deprecated", b"doc", b"forbid", b"macro_use", b"path"}
"""Attributes that a production module around a region may have, for the same reason."""

_BEYOND: Final = frozenset(
    {
        b"alloc_error_handler", b"export_name", b"global_allocator", b"lang", b"link", b"link_args", b"link_section",
        b"linkage", b"macro_export", b"no_main", b"no_mangle", b"panic_handler", b"path", b"used",
    }
)  # fmt: skip
"""Attributes that affect more than their module: symbols, the linker, other files, the whole crate."""

_MACROS: Final = frozenset({b"asm", b"global_asm", b"include", b"naked_asm"})
"""Macros that insert code which is no Rust or is not in this file; `include_str` and `include_bytes` insert data."""

_SHOWN: Final = 40
"""The most tokens that are quoted of code that reaches beyond a region."""


@dataclass(frozen=True)
class Module:
    """A module that is a test region or may hold some, as indices of tokens: its first attribute, and its braces.

    Args:
        path: The names of the modules around it, outermost first, then its own.
        is_region: Else it is production.
        is_bare: It is `#[cfg(test)] mod name {`, without another attribute, documentation or `pub`.
    """

    first: int
    opening: int
    closing: int
    path: tuple[bytes, ...]
    is_region: bool = False
    is_bare: bool = False


@dataclass(frozen=True)
class RustFile:
    """A source with its tokens, its regions in order, and the production modules that were searched for them."""

    source: bytes
    tokens: Tokens
    regions: tuple[Module, ...]
    around: tuple[Module, ...]

    def inside(self, region: Module) -> tuple[int, int]:
        """Return the start and end of a region's inside, in bytes."""
        return self.tokens.all[region.opening].end, self.tokens.all[region.closing].start

    def start(self, region: Module) -> int:
        """Return the start of a region, in bytes."""
        return self.tokens.all[region.first].start

    def outside(self) -> list[bytes]:
        """Return the source in pieces without the insides of its regions: one piece more than there are regions."""
        insides = [self.inside(region) for region in self.regions]
        return [self.source[start:end] for start, end in _between(insides, len(self.source))]

    def is_before_inner(self, region: Module) -> bool:
        """Return whether inner attributes or documentation follow the region: no item may come before these."""
        behind = region.closing + 1
        if behind < len(self.tokens.all) and self.tokens.all[behind].kind is TokenKind.INNER_DOC:
            return True
        return self.tokens.text(behind) == b"#" and self.tokens.text(behind + 1) == b"!"

    def code(self, *, without: Module | None = None) -> list[bytes]:
        """Return the tokens without the insides of regions, and without the whole of region `without`."""
        left_out = [
            (region.first, region.closing + 1) if region is without else (region.opening + 1, region.closing)
            for region in self.regions
        ]
        kept = (self.tokens.all[start:end] for start, end in _between(left_out, len(self.tokens.all)))
        return [token.text for tokens in kept for token in tokens]

    def reaches(self) -> Iterator[tuple[str, int]]:
        """Yield the code in regions that affects more than the region, with its place in bytes."""
        for region in self.regions:
            for index in range(region.opening + 1, region.closing):
                if what := _reach(self.tokens, index):
                    yield what, self.tokens.all[index].start


def _between(left_out: Sequence[tuple[int, int]], end: int) -> Iterable[tuple[int, int]]:
    """Return the start and end of each piece that is left between others."""
    return zip([0, *(behind for _, behind in left_out)], [*(before for before, _ in left_out), end], strict=True)


def read_rust(source: bytes) -> RustFile | SourceFault:
    """Return a source with its regions, or why they are uncertain."""
    tokens = read_tokens(source)
    if isinstance(tokens, SourceFault):
        return tokens
    from pipeline.testing.languages.rust import sources  # noqa: PLC0415  (a shared library that only Rust projects need)

    top = sources.parse(source)
    if top.has_error:
        error = first_error(top)
        return SourceFault(
            error.start_byte if error is not None else 0,
            "is not understood by the Rust parser; what a test region is would be a guess",
        )
    found = tuple(_modules(tokens))
    regions, around = (tuple(one for one in found if one.is_region is wanted) for wanted in (True, False))
    file = RustFile(source, tokens, regions, around)
    modules = sources.modules(top)
    for region in file.regions:
        if file.inside(region) not in modules:
            return SourceFault(file.start(region), "begins a test region whose end could be read in two ways")
    return file


@dataclass(frozen=True)
class _Head:
    """The beginning of an item: attributes, documentation, `pub`; `opening` is the brace of `mod name {`, if it is one.

    `next` is the first token that was not read.
    """

    attributes: tuple[tuple[bytes, ...], ...]
    is_bare: bool
    opening: int | None
    next: int

    def is_region(self) -> bool:
        others = [attribute for attribute in self.attributes if attribute != _CFG_TEST]
        return len(others) + 1 == len(self.attributes) and all(_name(attribute) in _LINTS for attribute in others)

    def is_production(self) -> bool:
        return all(_name(attribute) in _COMPILERS for attribute in self.attributes)


def _modules(tokens: Tokens) -> Iterator[Module]:
    index = 0
    around: list[Module] = []
    while index < len(tokens.all):
        while around and index > around[-1].closing:
            around.pop()
        head = _head(tokens, index)
        if head.opening is None:
            index = _behind(tokens, head.next)
            continue
        closing = tokens.partner[head.opening]
        path = (*(around[-1].path if around else ()), _plain(tokens.text(head.opening - 1)))
        if head.is_region():
            is_bare = head.is_bare and len(head.attributes) == 1
            yield Module(index, head.opening, closing, path, is_region=True, is_bare=is_bare)
            index = closing + 1
        elif head.is_production():
            around.append(Module(index, head.opening, closing, path))
            yield around[-1]
            index = head.opening + 1
        else:
            index = _behind(tokens, head.opening)


def _head(tokens: Tokens, index: int) -> _Head:
    attributes: list[tuple[bytes, ...]] = []
    is_bare = True
    while index < len(tokens.all):
        if tokens.text(index) == b"#" and tokens.text(index + 1) == b"[":
            closing = tokens.partner[index + 1]
            attributes.append(tuple(token.text for token in tokens.all[index + 2 : closing]))
            index = closing + 1
        elif tokens.all[index].kind is TokenKind.OUTER_DOC:
            is_bare = False
            index += 1
        elif tokens.text(index) == b"pub":
            is_bare = False
            index = tokens.partner[index + 1] + 1 if tokens.text(index + 1) == b"(" else index + 1
        else:
            break
    is_module = tokens.text(index) == b"mod" and tokens.has_word(index + 1) and tokens.text(index + 2) == b"{"
    return _Head(tuple(attributes), is_bare, index + 2 if is_module else None, index)


def _behind(tokens: Tokens, index: int) -> int:
    """Return the index after a token, or after the whole group that it opens."""
    return max(index, tokens.partner[index] if index < len(tokens.all) else index) + 1


def _name(attribute: tuple[bytes, ...]) -> bytes:
    """Return the name of an attribute, empty if the name is a path."""
    return attribute[0] if attribute and attribute[1:2] != (b":",) else b""


def _reach(tokens: Tokens, index: int) -> str | None:
    """Return the code at a token that affects more than the region it is in, None if it does not."""
    here, after = _plain(tokens.text(index)), tokens.text(index + 1)
    if here == b"#" and after == b"!" and tokens.text(index + 2) == b"[":
        return _written(tokens, index, tokens.partner[index + 2])
    if here == b"#" and after == b"[":
        closing = tokens.partner[index + 1]
        return _written(tokens, index, closing) if _reaches_beyond(tokens, index + 2, closing) else None
    if here in _MACROS and after == b"!" and tokens.text(index + 2) in {b"(", b"[", b"{"}:
        return _written(tokens, index, index + 1)
    if here == b"mod" and tokens.has_word(index + 1) and tokens.text(index + 2) == b";":
        return _written(tokens, index, index + 2)
    return None


def _reaches_beyond(tokens: Tokens, start: int, end: int) -> bool:
    words = [_plain(token.text) for token in tokens.all[start:end]]
    # The attributes that these two stand for are among their arguments.
    named = words if words[:1] in ([b"cfg_attr"], [b"unsafe"]) else words[:1]
    return not _BEYOND.isdisjoint(named)


def _plain(word: bytes) -> bytes:
    return word.removeprefix(b"r#")


def _written(tokens: Tokens, first: int, last: int) -> str:
    texts = [token.text.decode("utf-8", "replace") for token in tokens.all[first : min(last + 1, first + _SHOWN)]]
    return (" " if texts[0] == "mod" else "").join(texts)
