"""Which test a name stands for, and which file it is in. Only pytest and node write that into the id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.evidence.named import called
from pipeline.measure.composing import shares_file
from pipeline.steps.regression import kept_tests
from pipeline.steps.sanity import baseline_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.evidence.observation import Layout, TestRecord
    from pipeline.reports.fields import OldTest
    from pipeline.steps.context import Context


def path_of(entry: str, records: Mapping[str, TestRecord], sources: Sequence[str]) -> str | None:
    """Return the file of a test that is named by id, by function or by file; None where nothing tells.

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


def own_files(paths: Iterable[str | None], layout: Layout) -> tuple[str, ...]:
    """Return those of *paths* that are test files. Tests beside the code need no leave: the gate sees what changes."""
    return tuple(dict.fromkeys(path for path in paths if path is not None and not shares_file(path, layout)))


def files_of(ctx: Context, tests: Iterable[str]) -> tuple[str, ...]:
    """Return the test files of tests of the baseline and of the tasks accepted so far, where something tells them."""
    records = known_tests(ctx)
    return own_files((path_of(test, records, ctx.toolchain.sources) for test in tests), baseline_of(ctx).layout)


def known_tests(ctx: Context) -> Mapping[str, TestRecord]:
    """Return the tests of the baseline and of the tasks accepted so far, by id."""
    return {**kept_tests(ctx), **baseline_of(ctx).records}


def by_their_names(ctx: Context, tests: Iterable[OldTest]) -> tuple[OldTest, ...]:
    """Return old tests by id or function, where what they are called by fits exactly one; the others as they are."""
    listed = tuple(tests)
    if not listed:  # most tasks list none, and what is known is a large file
        return ()
    records = known_tests(ctx)
    found = ((test, called(test.id, records)) for test in listed)
    return tuple(test.model_copy(update={"id": names[0]}) if len(names) == 1 else test for test, names in found)
