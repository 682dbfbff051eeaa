"""Finds the tests that a written id means: people and agents name a test as their runner prints it.

A suite calls it by a longer name: `greet::lib::v1::tests::works` is `v1::tests::works` to cargo, and to nextest
`greet v1::tests::works`. So the end of an id is enough, from one of its boundaries on, where only one test has it; the
project may stand before it. Of several tests nobody guesses which one is meant.

It imports nothing of ours as it runs: `languages/runners/chosen_tests.py` loads it where it is alone in a box.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pipeline.judge.evidence.observation import TestRecord

_BOUNDARY: Final = re.compile(r"::| > |[/.$ ]+")
_WORD: Final = re.compile(r"[^\W\d]\w+")
_TOLD: Final = 5
_NEAR: Final = 3
_CASE: Final = re.compile(r"(?P<name>.*?)(?P<case>\[.*\]|\(\))?", re.DOTALL)


def meant(name: str, records: Mapping[str, TestRecord]) -> tuple[str, ...]:
    """Return the ids or functions that a written id may mean: itself where it is one, else each that ends in it.

    Args:
        name: The id, as it was written.
        records: The tests of the suite, by id.
    """
    if any(name in {record.id, record.function, record.path} for record in records.values()):
        return (name,)
    endings = {PurePosixPath(record.path).suffix for record in records.values()} - {""}
    return ending_in(name, {entry: record.function for entry, record in records.items()}, endings)


def ending_in(name: str, functions: Mapping[str, str], endings: Iterable[str]) -> tuple[str, ...]:
    """Return the functions that end in a written id, or those of their cases that it names.

    Args:
        name: The id, as it was written.
        functions: The function of each test, by id.
        endings: Those of files that hold tests: nobody writes them out.
    """
    written, case = _parted(name, endings)
    if not written:
        return ()
    found = [one for one in dict.fromkeys(functions.values()) if _is_end(written, _parted(one, endings)[0])]
    if not case or case == "()":
        return tuple(found)
    return tuple(entry for entry, function in functions.items() if function in found and entry.endswith(case))


def wrong(name: str, records: Mapping[str, TestRecord]) -> str | None:
    """Return what is wrong with a written id: that no test has it, or several end in it; None if one has.

    Args:
        name: The id, as it was written.
        records: The tests of the suite, by id.
    """
    found = meant(name, records)
    if len(found) == 1:
        return None
    if found:
        return several("it", found)
    close = ", ".join(near(name, sorted({record.function for record in records.values()})))
    return f"there is no such test (near it: {close})" if close else "there is no such test"


def several(name: str, found: Sequence[str]) -> str:
    """Return in words which tests end in a written id."""
    more = f" and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
    return f"{len(found)} tests end in {name}: {', '.join(found[:_TOLD])}{more}"


def near(name: str, functions: Iterable[str]) -> list[str]:
    """Return the functions whose end is most like a written id: its length decides how much of theirs is compared."""
    written = _BOUNDARY.split(_split(name.strip())[0])
    ends: dict[str, list[str]] = {}
    for function in functions:
        ends.setdefault("/".join(_BOUNDARY.split(function)[-len(written) :]), []).append(function)
    close = get_close_matches("/".join(written), ends, _NEAR)
    return [function for end in close for function in ends[end]][:_NEAR]


def own_name(name: str) -> str:
    """Return the last part of a written id, without its case: what the test itself is called."""
    parts = [part for part in re.split(r"::| > ", _split(name.strip())[0]) if part]
    return parts[-1].strip() if parts else name


def words_of(text: str) -> set[str]:
    """Return the words of a source that could be names."""
    return set(_WORD.findall(text))


def forms(ids: Iterable[str], projects: Collection[str] = ()) -> list[str]:
    """Return one id of each form that a suite has: by its boundaries, its kind of target, with cases or without.

    Args:
        ids: The ids of the suite.
        projects: What the ids of each project have in front: each project has forms of its own.
    """
    found: dict[tuple[str, ...], str] = {}
    for entry in sorted(ids):
        name, case = _split(entry)
        # how deep a module or a class is makes no form; what stands before and between the names does
        marks = dict.fromkeys(mark[0].strip() for mark in _BOUNDARY.finditer(name) if mark[0].strip())
        kind = name.split("::")[1].partition("/")[0] if name.count("::") > 1 else ""
        whose = max((mark for mark in projects if entry.startswith(mark)), key=len, default="")
        found.setdefault((whose, *marks, kind if kind.islower() else "", "[]" if case else ""), entry)
    return list(found.values())


def _split(text: str) -> tuple[str, str]:
    parts = _CASE.fullmatch(text)
    return (text, "") if parts is None else (parts["name"], parts["case"] or "")


def _parted(text: str, endings: Iterable[str]) -> tuple[list[str], str]:
    """Return the parts of a test's name without the endings of files, and its case."""
    name, case = _split(text.strip())
    for ending in endings:
        name = re.sub(rf"{re.escape(ending)}(?=::|/|[ $]|$)", "", name)
    return [part for part in _BOUNDARY.split(name.replace("-", "_")) if part], case


def _is_end(written: list[str], whole: list[str]) -> bool:
    """Return whether the parts are the end of the whole name, or its first part and its end."""
    if whole[-len(written) :] == written:
        return True
    head, *rest = written
    return bool(rest) and whole[:1] == [head] and whole[1:][-len(rest) :] == rest
