"""Where the nodes of a Python syntax tree stand in the bytes of its file."""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import ast

_BOM: Final = b"\xef\xbb\xbf"
_BETWEEN: Final = re.compile(rb"(?:[\s()\\]|#[^\r\n]*)*")
_BLANKS: Final = re.compile(rb"(?:[\s\\]|#[^\r\n]*)*")
_UTF_8: Final = frozenset({"utf-8", "utf-8-sig"})


class Placed(Protocol):
    """A node that knows its place."""

    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


def readable(source: bytes) -> bool:
    """Return whether the columns that the parser gives are bytes of the file: it counts those of UTF-8."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    except SyntaxError:
        return False
    return source.isascii() or encoding in _UTF_8


class Text:
    """A source file that knows where its lines begin."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        shift = len(_BOM) if source.startswith(_BOM) else 0
        self._starts = [shift]
        at = 0
        for line in source.splitlines(keepends=True):  # of bytes: these end where Python's lines do
            at += len(line)
            self._starts.append(at)

    def start(self, node: Placed) -> int:
        """Return the offset of a node's first byte."""
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: Placed) -> int:
        """Return the offset behind a node's last byte."""
        line, column = node.end_lineno, node.end_col_offset
        if line is None or column is None:
            raise ValueError("the parser gives every node an end")
        return self._starts[line - 1] + column

    def of(self, node: Placed) -> bytes:
        """Return the source of a node."""
        return self.source[self.start(node) : self.end(node)]

    def line(self, offset: int) -> int:
        """Return the line, from 1, of an offset."""
        return max(1, bisect_right(self._starts, offset))

    def operator(self, left: ast.expr, right: ast.expr, pattern: re.Pattern[bytes]) -> tuple[int, int] | None:
        """Return the span of the operator between two operands, past brackets and comments; None if it is another."""
        at = self.past(self.end(left), _BETWEEN)
        found = pattern.match(self.source, at, self.start(right))
        return found.span() if found is not None else None

    def past(self, offset: int, what: re.Pattern[bytes] = _BLANKS) -> int:
        """Return where blanks and comments end that begin at an offset."""
        found = what.match(self.source, offset)
        return found.end() if found is not None else offset
