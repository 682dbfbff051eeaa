"""Hints at what a user of `tdd` may have missed: a name still to come, a test that asserts nothing or hides others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.evidence.red_classes import RedClass
from pipeline.languages.readers import suite_of
from pipeline.languages.sources.weakening import is_read
from pipeline.languages.table import language_of
from pipeline.measure.composed_trees import both
from pipeline.verification.changed_tests import is_called

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.evidence.observation import Fault, Observation, TestRecord
    from pipeline.evidence.red import RedFacts
    from pipeline.verification.context import VerificationContext

_DOUBLED: Final = re.compile(r"\b(?P<word>\w+): (?P=word): ")
_NAME: Final = re.compile(r"[^\W\d][\w.:]*")


def asserts_nothing(ctx: VerificationContext, tree: str, records: Iterable[TestRecord]) -> tuple[str, ...]:
    """Return a note for each test in whose file nothing is found that it asserts; checks of other files are not seen.

    Args:
        ctx: What has the repository.
        tree: The tree with the tests.
        records: The tests in question.
    """
    by_path: dict[str, dict[str, TestRecord]] = {}
    for record in records:
        if is_read(record.path):
            by_path.setdefault(record.path, {}).setdefault(record.function, record)
    found: list[str] = []
    for path, text, _ in both(ctx, tree, tree, sorted(by_path)):
        suite = suite_of(path, text) if text is not None else None
        for name, test in suite.tests.items() if suite is not None else ():
            if test.what == "test" and not test.counting:
                found += [f for f, record in by_path[path].items() if is_called(record, name)]
    return tuple(f"{function}: asserts nothing that can be told from its file" for function in dict.fromkeys(found))


def to_come(verdict: RedFacts, seen: Observation) -> tuple[str, ...]:
    """Return a note for each name that a refused test did not find: it may be misspelt, or still to be written."""
    refused = {refusal.id for refusal in verdict.illegal if refusal.cls in {RedClass.TEST_BROKEN, RedClass.ENV_BROKEN}}
    faults = [
        r.fault for entry in sorted(refused) if (r := seen.records.get(entry)) is not None and r.fault is not None
    ]
    faults += [error.fault for error in seen.collection_errors if error.path in refused]
    return tuple(dict.fromkeys(hint for hint in map(_hint, faults) if hint is not None))


def _hint(fault: Fault) -> str | None:
    missing = fault.missing
    if missing is None or fault.raised.is_a("NameError") or not _NAME.fullmatch(missing.name):
        return None
    return f"if {missing.name} is still to be written: --new {missing.name}"


def in_words(cls: RedClass | None, why: str, path: str) -> str:
    """Return why a test is refused, in words that are true for its language.

    Args:
        cls: What it showed.
        why: What the table of classes says, written for Python.
        path: The file of the test.
    """
    language = language_of(path)
    if cls is not RedClass.IMPORT_HIDES_TESTS or language is None or not language.stub_first:
        return _DOUBLED.sub(r"\g<word>: ", why)
    name = why.removeprefix("imports ").partition(",")[0]
    return (
        f"does not compile: {name} does not exist yet, and so hides the file's other tests; commit a stub of it (with "
        f"the body {language.toolchain.stub}) and compare with that: --base HEAD; or put the new test into a new file "
        "of tests"
    )
