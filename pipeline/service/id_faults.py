"""Holds the ids in a person's report on tests against the suite before it is handed in: behind it a try would be lost.

The tests of the run's start are known; those that were written since are not, until they are measured. So an id is told
only where its own name stands in no file at the desk, or where several tests of files that nobody changed end in it. A
name can be made while tests are collected: handed in once more, the same report goes to the run, which measures it.
"""

from __future__ import annotations

from difflib import get_close_matches
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pipeline.backends.layout import Difference
from pipeline.evidence.observation import Observation
from pipeline.evidence.written_ids import meant, own_name, words_of, wrong
from pipeline.reports.schema_errors import Fault
from pipeline.steps.asking.criteria import named_ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.backends.desk import Asked, Desk
    from pipeline.reports.work import ReadyTests

_BASELINE: Final = "evidence/baseline-full.json"
_MOST_FILES: Final = 5_000
_NEAR: Final = 3


def id_faults(desk: Desk, asked: Asked, report: ReadyTests) -> list[Fault]:
    """Return what is wrong with the ids of a report on tests, as far as it can be known; nothing the second time.

    Args:
        desk: Where the tests are.
        asked: What is asked there.
        report: What is about to be handed in.
    """
    place = asked.run_folder / _BASELINE
    if not place.exists():
        return []
    suite = Observation.model_validate_json(place.read_bytes())
    difference = Difference.at(desk.files, desk.manifest(), asked.named)
    touched = {*difference.changed, *difference.removed}
    names = named_ids(report, is_changed=bool(touched))
    if suite.collection_errors or not suite.records or not names:
        return []
    kept = {entry: one for entry, one in suite.records.items() if one.path not in touched}
    texts = list(_texts(desk, {PurePosixPath(one.path).suffix for one in suite.records.values()}, difference))
    words = {word for text in texts for word in words_of(text)}
    found: dict[str, Fault] = {}
    for pointer, name in names:
        several, own = len(meant(name, kept)) > 1, own_name(name)
        if name in found or not (why := wrong(name, kept)) or (not several and any(own in text for text in texts)):
            continue
        close = [] if several else get_close_matches(own, words, _NEAR)
        near = f"; names near it in the files here: {', '.join(close)}" if close else ""
        found[name] = Fault(
            pointer,
            f"{name!r}: {why}{near}. Any end of an id that only one test has is enough. If it is right as it is, hand "
            "the same report in again: the run measures it then",
        )
    told = "\n".join(fault.text for fault in found.values())
    if not found or _was_told(desk, told):
        return []
    desk.put(desk.folder / "ids-told", told)
    return list(found.values())


def _was_told(desk: Desk, told: str) -> bool:
    try:
        return (desk.folder / "ids-told").read_text(encoding="utf-8") == told
    except FileNotFoundError:
        return False


def _texts(desk: Desk, endings: set[str], difference: Difference) -> Iterator[str]:
    """Yield the texts in which a test may have its name: sources of tests' languages, and whatever was changed."""
    paths = (path for path in desk.manifest() if PurePosixPath(path).suffix in endings)
    removed = {*difference.removed}
    for path in dict.fromkeys((*difference.changed, *islice(paths, _MOST_FILES))):
        file = desk.files / path
        if path not in removed and file.is_file() and not file.is_symlink():
            yield file.read_text(encoding="utf-8", errors="replace")
