"""Collects hints for the reviewer of a whole change: means to recognise or forge tests, values on one side only.

And examples in documentation that were tests: they lie in files that the implementer changes, so nobody asks for leave.
Nothing here decides (ADR-R41): the code under test shares a process with its tests, so who reads the change has to see
where it reaches for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.testing.languages import names, readers
from pipeline.testing.languages.sources import Unspliced, known_answers
from pipeline.testing.languages.table import has_part
from pipeline.testing.measure.composed_trees import both, shares_file
from pipeline.testing.measure.measuring import MeasurementContext, changed_paths

if TYPE_CHECKING:
    from pipeline.judge.evidence.observation import Layout


def means_of_forgery(ctx: MeasurementContext, old: str, new: str, layout: Layout) -> tuple[str, ...]:
    """Return a sentence for each means of forging test results that production files of the second tree add."""
    changed = changed_paths(ctx, old, new)
    packages = [entry.path for entry in ctx.repository.entries(new) if names.is_manifest(entry.path)]
    wanted = any(has_part(path, "compile_time") for path in changed)
    manifests = {path: text for path, _, text in both(ctx, new, new, packages) if text is not None} if wanted else {}
    found: list[str] = []
    for path, before, after in both(ctx, old, new, changed):
        if after is not None and added_lines_by_side(path, before or b"", after, layout)[0]:
            found += readers.means(path, before, after)
            found += names.compile_time_notes(path, manifests)
    return tuple(found)


def added_lines_by_side(
    path: str, before: bytes, after: bytes, layout: Layout
) -> tuple[tuple[tuple[int, str], ...], tuple[tuple[int, str], ...]]:
    """Return the added lines of production and those of tests, with their numbers."""
    lines = known_answers.added(before.decode("utf-8", "replace"), after.decode("utf-8", "replace"))
    if not shares_file(path, layout):
        return ((), lines) if layout.is_test_side(path) else (lines, ())
    regions = readers.regions_of(after)
    if isinstance(regions, Unspliced):
        return lines, lines
    inside = {line for region in regions.values() for line in region.decode("utf-8", "replace").split("\n")}
    return tuple(one for one in lines if one[1] not in inside), tuple(one for one in lines if one[1] in inside)
