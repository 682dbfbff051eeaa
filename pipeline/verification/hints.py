"""Hints at what a user of `tdd` may have missed: a name still to come, a test that hides others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.evidence.red_classes import RedClass
from pipeline.languages.table import language_of

if TYPE_CHECKING:
    from pipeline.evidence.observation import Fault, Observation
    from pipeline.evidence.red import RedFacts

_DOUBLED: Final = re.compile(r"\b(?P<word>\w+): (?P=word): ")
_NAME: Final = re.compile(r"[^\W\d][\w.:]*")


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
        f"does not compile: {name} does not exist yet, and so hides the file's other tests. Commit a stub of it (with "
        f"the body {language.toolchain.stub}) and compare with that: --base HEAD. Or put the new test into a new file "
        "of tests"
    )
