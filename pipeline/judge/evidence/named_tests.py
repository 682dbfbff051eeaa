"""Finds the tests that a task's text, a list or a report names.

A test that fails already, and that a task asks to be made to pass, is evidence as it is: nobody has to touch it, so
that nothing new would be found. What names one only adds to what has to pass.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence.observation import Ended, Observation, TestRecord
from pipeline.judge.evidence.written_ids import meant

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


_FAILING: Final = frozenset({Ended.FAILED, Ended.TIMED_OUT, Ended.CRASHED})
_SEPARATOR: Final = re.compile(r"::| > |\.")
_VALUES: Final = re.compile(r"(?:\[.*\]|\(\))$")
"""The case values, or the parentheses of a function, at the end of a test's name."""
_TELLING: Final = re.compile(r"\w*test\w*[_A-Z0-9]\w*", re.IGNORECASE)
"""A name that only a test can have; other names are often words of a sentence."""


def failing_ids(seen: Observation) -> frozenset[str]:
    """Return the ids of the tests that ran and failed."""
    return frozenset(entry for entry, record in seen.records.items() if record.outcome in _FAILING)


def asked_for(texts: Iterable[str], listed: Collection[str], seen: Observation) -> frozenset[str]:
    """Return the ids of the failing tests that a task's texts or list name.

    Args:
        texts: What the task says it is done by: an id, a function or the bare name of a test may be in it.
        listed: Ids and functions that the task lists.
        seen: The tests as they are.
    """
    text = "\n".join(texts)
    return frozenset(
        entry
        for entry in failing_ids(seen)
        if not {entry, seen.records[entry].function}.isdisjoint(listed) or _is_named(seen.records[entry], text)
    )


def claimed_tests(
    named: Collection[str], changed: Collection[str], files: Collection[str], seen: Observation
) -> frozenset[str]:
    """Return the failing tests, and uncollectable files, that a test writer claims as its own.

    Args:
        named: What the report names as RED, by id, function or file.
        changed: The files that were changed; where there are none, and nothing is named, all failing tests of *files*.
        files: The files of the task's own tests.
        seen: The tests before.
    """
    failing = [seen.records[entry] for entry in failing_ids(seen)]
    unread = seen.unread
    found = {r.id for r in failing if not {r.id, r.function, r.path}.isdisjoint(named)} | (unread & set(named))
    hidden = {path for path in unread & set(files) if any(name.startswith(f"{path}::") for name in named)}
    if named or changed:
        return frozenset(found | hidden)
    return frozenset({*(r.id for r in failing if r.path in files), *(unread & set(files))})


def called(name: str, records: Mapping[str, TestRecord]) -> tuple[str, ...]:
    """Return the ids of the tests that a written name means: the exact one, else all that end in it.

    Args:
        name: An id, a function, or a part of one as people write it: without its file or class, with other values.
        records: The tests that are known, by id.
    """
    if len(ends := meant(name, records)) == 1:
        return ends
    functions = {record.function: record for record in records.values()}
    bare = _VALUES.sub("", name)
    exact = next((each for each in (name, bare) if each in records or each in functions), None)
    if exact is not None:
        return (exact,)
    file = bare.partition("::")[0]
    suffixes = {PurePosixPath(record.path).suffix for record in records.values()} - {""}
    in_file = f"/{file}" if "::" in bare and PurePosixPath(file).suffix in suffixes else ""
    return tuple(
        function
        for function, record in functions.items()
        if f"/{record.path}".endswith(in_file) and re.search(rf"(?<!\w){re.escape(_last(function))}$", bare)
    )


def _last(function: str) -> str:
    """Return a test's own name, without its file and its suite."""
    title = function.rpartition(" > ")[2]
    return title if title != function else _SEPARATOR.split(function)[-1]


def _is_named(record: TestRecord, text: str) -> bool:
    name = _SEPARATOR.split(record.function)[-1]
    names = [record.id, record.function, *([name] if _TELLING.fullmatch(name) else [])]
    return any(re.search(rf"(?<![\w:/.]){re.escape(each)}(?!\w)", text) for each in names)


def path_of(entry: str, records: Mapping[str, TestRecord], sources: Sequence[str]) -> str | None:
    """Return the path of a test named by id, by function or by file; None if it is unknown.

    Args:
        entry: What names it.
        records: The tests that are known, by id.
        sources: The endings of the language's files: of a test that is not known, the part before `::` counts if it
            has one of them.
    """
    if entry in records:
        return records[entry].path
    for record in records.values():
        if entry in {record.function, record.path}:
            return record.path
    head = entry.partition("::")[0]
    return head if head.endswith(tuple(sources)) else None
