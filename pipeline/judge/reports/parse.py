"""Parses an agent's answer into a typed report, or explains in one sentence what is wrong with it."""

from __future__ import annotations

import codecs
import contextlib
import json
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import TypeAdapter, ValidationError

from pipeline.judge.reports.decode import JsonObject, Malformed, Missing, decode_object
from pipeline.judge.reports.kinds import report_schema, report_type
from pipeline.judge.reports.schema_errors import Fault, explain, place_of, step
from pipeline.progress import few

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pydantic_core import ErrorDetails

    from pipeline.judge.reports.fields import Report
    from pipeline.vocabulary import Question, Role

_MOST_FAULTS: Final = 5
_BEGIN: Final = re.compile(r"^(?:[ \t\ufeff]|\x1b\[[0-9;]*m)*\{", re.MULTILINE)
_JSON: Final = json.JSONDecoder()
_TEXT: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*')
_WINDOW: Final = 4096
_LONGEST_WORD: Final = 16
"""No word of JSON that the end of a window can cut, texts apart, has more characters: `\\ud83d\\ude00` has twelve."""
_INSIDE: Final = 400
"""How many characters an object surely has that is given up for its depth, or for the length of a number."""

_SEVERAL: Final = (
    "There were two different reports on stdout. Write the one that counts to the file $REDFIRST_REPORT, or print "
    "nothing else that could be taken for it."
)


def extract_report(
    file_bytes: bytes | None, stdout: bytes, counts: Callable[[JsonObject], bool], *, several: str = _SEVERAL
) -> JsonObject | Missing | Malformed:
    """Return an agent's report: the report file, or else the last JSON object that begins a line of stdout.

    The object may span lines, stand in a fence and have a BOM or colour codes before it; what is behind it is a log.
    An empty report file counts as none. A file that is there and not a JSON object is Malformed: the agent meant it.
    On stdout stands what the agent read, too. So that nothing quoted can pass for the answer, two objects that would
    both count and differ are Malformed: which of them the agent means, only the agent knows.

    Args:
        file_bytes: The content of the report file, None if there is none.
        stdout: What the agent printed.
        counts: Whether an object would be a report of this dispatch.
        several: What is said of two such objects.
    """
    if file_bytes is not None and file_bytes.strip():
        return decode_object(file_bytes)
    objects = [decode_object(text) for text in _objects(stdout)]
    if not objects:
        return Missing()
    found = objects.pop()
    others = (value for value in objects if not isinstance(value, Malformed) and value != found)
    if not isinstance(found, Malformed) and any(counts(value) for value in others):
        return Malformed(several)
    return found


def report_of_person(content: bytes, counts: Callable[[JsonObject], bool]) -> JsonObject | Malformed:
    """Return the report in a file that a person hands in: the whole file, or as it would be taken from stdout.

    What is JSON, or begins like it, is meant as a whole: a part of it is never taken for the report.
    """
    plain = content.removeprefix(codecs.BOM_UTF8)
    whole = decode_object(plain)
    if not isinstance(whole, Malformed) or plain.lstrip()[:1] in {b"{", b"["}:
        return whole
    found = extract_report(None, content, counts, several="There are two different reports in it; leave one.")
    return whole if isinstance(found, Missing) else found


def _objects(stdout: bytes) -> Iterator[bytes]:
    """Yield each JSON object that begins a line and is in no other, in the order of stdout.

    What is inside an object that breaks off is no object of its own: reading goes on where the fault is. So nothing is
    read twice, however much was printed.
    """
    text = stdout.decode(errors="surrogateescape")
    at = 0
    while (begin := _BEGIN.search(text, at)) is not None:
        start = begin.end() - 1
        at, whole = _read(text, start)
        if whole:
            with contextlib.suppress(UnicodeEncodeError):  # bytes that are not UTF-8 are no JSON
                yield text[start:at].encode()


def _read(text: str, start: int) -> tuple[int, bool]:
    """Return where the JSON object that begins at *start* ends, or where it breaks off, and whether it is whole.

    It is read out of a window that grows, since an error counts all lines before it.
    """
    size = _WINDOW
    while True:
        window = text[start : start + size]
        is_cut = start + size < len(text)
        try:
            return start + _JSON.raw_decode(window)[1], True
        except json.JSONDecodeError as error:
            text_ends = found.end() if (found := _TEXT.match(window, error.pos)) is not None else error.pos
            if is_cut and text_ends > size - _LONGEST_WORD:
                size *= 2
                continue
            return start + max(error.pos, 1), False
        except (ValueError, RecursionError):  # a number of thousands of digits, thousands of levels
            return start + _INSIDE, False


def parse_report(
    kind: str, role: Role, question: Question | None, raw: bytes | str | Mapping[str, object]
) -> Report | Malformed:
    """Return the report in `raw`, typed by kind, role and question, or why it is none.

    In an optional field `null` means "left out": backends that force every key to be present write it so.

    Raises:
        LookupError: nobody may be asked this.
    """
    try:
        document = decode_object(raw if isinstance(raw, bytes | str) else json.dumps(dict(raw)))
    except (TypeError, ValueError, RecursionError):  # an object that never was JSON, or holds itself
        return Malformed("The report is not made of JSON values.")
    if isinstance(document, Malformed):
        return document
    found = read_report(kind, role, question, document)
    return found.report or found.malformed


@dataclass(frozen=True)
class ReadReport:
    """A document as the report that was asked for.

    Args:
        document: It, without nulls that stand for omitted keys.
        report: The report in it; None if it is none.
        errors: Why it is none, as pydantic says it.
        schema: Returns the schema that it was held to.
    """

    document: JsonObject
    report: Report | None
    errors: ValidationError | None
    schema: Callable[[], dict[str, Any]]

    @property
    def faults(self) -> list[Fault]:
        """Return why it is none, each with its place; empty if it is one."""
        return explain(self.errors.errors(), self.document, self.schema()) if self.errors is not None else []

    @property
    def malformed(self) -> Malformed:
        """Return why it is none in one sentence."""
        faults = self.faults
        texts = few((f"at {fault.pointer or '/'}: {fault.text}" for fault in faults), _MOST_FAULTS, "; ")
        return Malformed(f"The report breaks its schema {texts}.", faults[0].pointer)


def read_report(kind: str, role: Role, question: Question | None, document: JsonObject) -> ReadReport:
    """Validate a document, which stays as it is.

    Raises:
        LookupError: nobody may be asked this.
    """
    adapter, copy = report_type(kind, role, question), cast("JsonObject", json.loads(json.dumps(document)))
    found = _validate(adapter, copy)
    if isinstance(found, ValidationError):
        nulls = [place_of(fault, copy) for fault in found.errors() if _is_null(fault)]
        for place in nulls:
            _drop(copy, place)
        found = _validate(adapter, copy) if nulls else found
    report, errors = (None, found) if isinstance(found, ValidationError) else (found, None)
    return ReadReport(copy, report, errors, partial(report_schema, kind, role, question))


def _validate(adapter: TypeAdapter[Report], document: JsonObject) -> Report | ValidationError:
    try:
        return adapter.validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        return error


def _is_null(fault: ErrorDetails) -> bool:
    return fault["input"] is None and fault["type"] not in {"missing", "extra_forbidden"}


def _drop(document: JsonObject, place: tuple[str | int, ...]) -> None:
    holder: object = document
    for part in place[:-1]:
        holder = step(holder, part)
    if place and isinstance(holder, dict):
        cast("JsonObject", holder).pop(str(place[-1]), None)
