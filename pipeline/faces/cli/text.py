"""Wraps text to the terminal, and has the words that several commands print."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Final, TextIO, TypeVar

from pipeline.characters import columns, visible
from pipeline.terminal import echo, print_document, visible_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pydantic import BaseModel

    from pipeline.app.documents import DispatchLine
    from pipeline.run.gates import OpenGate

    _Result = TypeVar("_Result", bound=BaseModel)


_NARROWEST: Final = 20
_DEFAULT_WIDTH: Final = 80
_HANG: Final = 2
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_BULLET: Final = re.compile(r"(?P<indent> *)(?P<bullet>(?:[-*]|->|\d+\.) +)?")
_COMMAND: Final = re.compile(r"`[^`]+`|(?<![\w./-])(?:redfirst|git|cd|chmod) .+?(?=[,;)]+(?:\s|$)|\s+#|$)")
"""A command in a sentence: in backquotes, or up to the end of its clause."""
_PIECE: Final = re.compile(r" +|\(?\d[\d.]* s\b[^ ]*|[^ ]+")
"""A word, or a number of seconds with its unit."""


def print_text(text: str, *, err: bool = False) -> None:
    """Print lines for a person, wrapped to the terminal; in a pipe each is left whole, as git, gh and uv do.

    What strangers wrote is made visible before (`visible`, `visible_lines`).
    """
    width = terminal_width(sys.stderr if err else sys.stdout)
    echo("\n".join(part for line in text.split("\n") for part in wrapped(line, width)), err=err)


def print_result(document: _Result, words: Callable[[_Result], str], *, as_document: bool) -> None:
    """Print what came of a command: as JSON for a program, or in *words* for a person."""
    if as_document:
        print_document(document)
    else:
        print_text(visible_lines(words(document)))


def say(text: str) -> None:
    """Tell the person on stderr how something goes on."""
    print_text(several_lines(text), err=True)


def several_lines(text: str) -> str:
    """Return a message with what is hidden in it as escapes; its further lines, such as git's, are marked.

    What strangers wrote must not look like a line of ours.
    """
    return "\n  | ".join(visible(line, keep="\t") for line in text.strip("\n").split("\n"))


def terminal_width(stream: TextIO) -> int | None:
    """Return the columns of the terminal that *stream* goes to, or None if it goes to a pipe or a file."""
    if not stream.isatty():
        return None
    told = os.environ.get("COLUMNS", "")
    try:
        width = int(told) if told.isdecimal() else os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # a stream of no terminal; a number without end
        width = 0
    return max(width, _NARROWEST) if width else _DEFAULT_WIDTH


def wrapped(line: str, width: int | None, *, hang: int | None = None) -> list[str]:
    """Return a line as lines of at most *width* columns, broken between words only.

    A word that is wider, such as a path or an id, is left whole; so is a command where it fits on a line of its own, or
    is the last of the line, but for a comment: somebody copies it.

    Args:
        line: The line, which may be coloured.
        width: None leaves it whole.
        hang: By how much the following lines are indented; by default two more than the line, or as far as the text
            behind its bullet.
    """
    if width is None or _columns(line) <= width:
        return [line]
    start = _BULLET.match(line)
    indent, bullet = (start["indent"], start["bullet"] or "") if start else ("", "")
    further = hang if hang is not None else len(indent) + (len(bullet) or _HANG)
    if further > width // 2:
        further = len(indent) + _HANG
    lead, lines = " " * further, [indent + bullet]
    gap, begun = "", False
    for piece in _pieces(line[len(indent + bullet) :], width - further):
        if piece.isspace():
            gap = piece
        elif begun and _columns(lines[-1] + gap + piece) > width:
            room = width - _columns(piece)  # less than the indent: a path that fits in no other way
            lines.append((lead[:room] if room >= 0 else lead) + piece)
        else:
            lines[-1] += (gap if begun else "") + piece
        begun = True
    return lines


def columned(rows: Iterable[tuple[str, str]], width: int | None, *, indent: int = 2) -> list[str]:
    """Return rows with their labels in a column, wrapped beside it; a label that repeats is written once."""
    shown = list(rows)
    column = indent + max((len(label) for label, _ in shown), default=0) + 2
    lines: list[str] = []
    before = ""
    for label, text in shown:
        first, *more = text.split("\n")
        name = "" if label == before else label
        lines += wrapped(f"{'':{indent}}{name:{column - indent}}{first}".rstrip(), width, hang=column)
        for line in more:
            deeper = column + len(line) - len(line.lstrip(" "))
            lines += wrapped(f"{'':{column}}{line}", width, hang=deeper)
        before = label
    return lines


def first_rows(rows: Sequence[tuple[str, str]], room: int, width: int | None) -> list[tuple[str, str]]:
    """Return as many rows as *room* lines hold, one at least; the last then says how many more there are."""
    shown = list(rows)
    while len(shown) > 1 and len(columned(_with_rest(rows, shown), width)) > room:
        shown.pop()
    return _with_rest(rows, shown)


def _with_rest(rows: Sequence[tuple[str, str]], shown: list[tuple[str, str]]) -> list[tuple[str, str]]:
    more = len(rows) - len(shown)
    return [*shown, (shown[-1][0], f"and {more} more")] if more else shown


def _pieces(text: str, room: int) -> list[str]:
    """Return the words and the spaces between them; a command that shall be copied is one word."""
    pieces: list[str] = []
    at = 0
    for command in _COMMAND.finditer(text):
        end = command.end() + len(text[command.end() :].partition(" ")[0])  # with the comma or stop behind it
        begin = max(at, text.rfind(" ", 0, command.start()) + 1)  # with the bracket before it
        copied, is_last = text[begin:end], not text[end:].partition("#")[0].strip()
        if is_last or columns(copied) <= room:
            pieces += [*_PIECE.findall(text[at:begin]), copied]
            at = end
    return [*pieces, *_PIECE.findall(text[at:])]


def _columns(text: str) -> int:
    return columns(_COLOUR.sub("", text))


def to_the_second(at: str) -> str:
    """Return a moment of a document, without its fractions of a second."""
    return at[: len("2026-11-20T14:02:07")].replace("T", " ")


def dispatch_text(line: DispatchLine) -> Iterator[str]:
    """Yield one dispatch as lines: what was asked, whether the answer counts, what the gate said and why."""
    question = f" ({line.question})" if line.question else ""
    task = f", task {line.task}" if line.task else ""
    again = f", attempt {line.attempt}" if line.attempt > 1 else ""
    asked = f"{line.dispatch}: @{line.role.value} {line.kind}{question}{task}{again}: "
    if line.state != "finished":
        yield asked + ("running" if line.state == "running" else "no answer: it was cut off")
        return
    yield asked + (f"{line.signal.value}: {visible(line.complaint or '')}" if line.signal else "answered")
    if line.changed:
        yield f"  {'admitted' if line.gate == 'admitted' else 'kept of it'}: {_listed(line.changed)}"
    yield from (f"  refused {visible(v.path)}, rule {visible(v.rule)}: {visible(v.why)}" for v in line.violations)
    if line.dropped:
        yield f"  dropped as scratch: {_listed(line.dropped)}"
    yield from (f"  note: {visible(note)}" for note in line.notes)
    if line.quarantine:
        yield f"  what was refused is kept in {visible(line.quarantine)}/"


def _listed(paths: tuple[str, ...]) -> str:
    return ", ".join(map(visible, paths))


def reading_rows(gate: OpenGate) -> list[tuple[str, str]]:
    """Return what a person reads at the gate, with labels."""
    return [
        *(("may edit", near(path)) for path in gate.edit),
        *(("read", near(path)) for path in gate.read),
        *(("note", visible(note)) for note in gate.notes),
        *(("to commit", visible(subject)) for subject in gate.commits),
    ]


def answer_rows(gate: OpenGate) -> list[tuple[str, str]]:
    """Return each answer, and below it what it does."""
    return [row for one in gate.answers for row in (("next", visible(one.command)), ("", f"  {visible(one.does)}"))]


def near(path: str) -> str:
    """Return a path as it is shortest from here."""
    return visible(min(path, os.path.relpath(path), key=len))
