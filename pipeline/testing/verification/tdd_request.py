"""Reads what `tdd` is asked about: the paths and ids as they were given, and which of them there are."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.judge.evidence.named_tests import path_of
from pipeline.judge.evidence.written_ids import meant, wrong
from pipeline.outcomes import Reason
from pipeline.testing.measure.composed_trees import with_other_regions
from pipeline.testing.measure.measuring import changed_paths
from pipeline.testing.verification.results import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeline.judge.evidence.observation import Layout, Observation, TestRecord
    from pipeline.testing.verification.context import VerificationContext


@dataclass(frozen=True)
class Question:
    """What is asked about.

    Args:
        base: The commit to compare the worktree with.
        paths: The files and folders that serve tests; empty: told by the test runner's layout.
        ids: The tests to judge, by id, function or file; empty: those that the base does not have so.
        new: What is still to be written: a name, or the path of a file.
        may_change: Tests of the base that may change or go, by id, function or file.
    """

    base: str
    paths: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    may_change: tuple[str, ...] = ()


def located(ctx: VerificationContext, question: Question) -> Question:
    """Return the question with each path as the repository has it, once all of them are known to be there.

    Raises:
        UserError: reason `usage`: a path is outside of the repository, or neither the base nor the worktree has it.
    """
    trees = (ctx.repository.tree_of(question.base), ctx.repository.worktree_tree())
    there = {entry.path for tree in trees for entry in ctx.repository.entries(tree)}

    def ids(option: str, entries: Sequence[str]) -> tuple[str, ...]:
        return tuple(_id(ctx, option, entry, there) for entry in entries)

    return replace(
        question,
        paths=tuple(_path(ctx, "--tests", path, there) for path in question.paths),
        ids=ids("--ids", question.ids),
        may_change=ids("--may-change", question.may_change),
    )


def _id(ctx: VerificationContext, option: str, entry: str, there: set[str]) -> str:
    """Return an id whose file is there, or the end of one; cargo and go name packages instead of files."""
    head, mark, rest = entry.partition("::")
    if head not in there and any(path.endswith(f"/{head}") for path in there):
        return entry
    is_path = head.endswith(tuple(ctx.toolchain.sources)) or Path(head).is_absolute() or head.startswith(("./", "../"))
    return f"{_path(ctx, option, head, there)}{mark}{rest}" if is_path else entry


def _path(ctx: VerificationContext, option: str, asked: str, there: set[str]) -> str:
    top = ctx.repository.worktree
    try:
        path = Path(os.path.normpath(top / asked)).relative_to(os.path.normpath(top)).as_posix()
    except ValueError:
        raise UserError(f"{option} {asked}: that is outside of the repository.", Reason.USAGE, path=asked) from None
    if path != "." and path not in there and not any(other.startswith(f"{path}/") for other in there):
        raise UserError(f"{option} {asked}: neither the base nor the worktree has it.", Reason.USAGE, path=asked)
    return path


def test_paths(ctx: VerificationContext, question: Question, old: str, new: str, layout: Layout) -> tuple[str, ...]:
    """Return the files that are taken from the worktree when its tests are put over the base."""
    changed = changed_paths(ctx, old, new)
    if not question.paths:
        beside = with_other_regions(ctx, old, new, changed, layout)
        return (*(path for path in changed if layout.is_test_side(path)), *beside)
    there = {entry.path for tree in (old, new) for entry in ctx.repository.entries(tree)}
    return tuple(sorted(path for path in there if any(_is_below(path, asked) for asked in question.paths)))


def _is_below(path: str, asked: str) -> bool:
    return asked in {".", path} or path.startswith(f"{asked}/")


def is_meant(record: TestRecord, ids: Sequence[str]) -> bool:
    """Return whether a test is named: by id, by function or by file."""
    return not {record.id, record.function, record.path}.isdisjoint(ids)


def spelled_out(question: Question, *seen: Observation) -> Question:
    """Return the question with its ids as the suite has them, where they are an end of one alone.

    Args:
        question: What is asked.
        seen: The suite, over the base, over the worktree or both.
    """
    records = {entry: record for each in seen for entry, record in each.records.items()}

    def whole(entry: str) -> str:
        found = meant(entry, records)
        return found[0] if len(found) == 1 else entry

    return replace(question, ids=tuple(map(whole, question.ids)), may_change=tuple(map(whole, question.may_change)))


def unknown(ctx: VerificationContext, question: Question, seen: Observation) -> list[Problem]:
    """Return a problem for each test to judge that there is not, or that may be several."""
    missing = [entry for entry in question.ids if not _is_known(ctx, entry, seen)]
    return [Problem(id=entry, why=wrong(entry, seen.records) or "there is no such test") for entry in missing]


def unknown_leave(
    ctx: VerificationContext, question: Question, before: Observation, after: Observation
) -> tuple[str, ...]:
    """Return a note for each test that may change and that neither run has; a file that serves tests is one, too."""
    there = [
        entry
        for entry in question.may_change
        if "::" not in entry and ctx.repository.entries(ctx.repository.tree_of(question.base), entry)
    ]
    return tuple(
        f"--may-change {entry}: there is no such test at the base"
        for entry in question.may_change
        if entry not in there and not any(_is_known(ctx, entry, seen) for seen in (before, after))
    )


def _is_known(ctx: VerificationContext, entry: str, seen: Observation) -> bool:
    """Return whether there is such a test, or its file is there and cannot be collected."""
    path = path_of(entry, seen.records, ctx.toolchain.sources)
    broken = any(error.path == path for error in seen.collection_errors)
    return broken or any(is_meant(record, (entry,)) for record in seen.records.values())


def without(seen: Observation, ids: Iterable[str]) -> Observation:
    """Return the observation as if these tests were not there: who asks for a test means it, new or not."""
    dropped = set(ids)
    return seen.model_copy(update={"records": {e: r for e, r in seen.records.items() if e not in dropped}})


def only(ctx: VerificationContext, seen: Observation, ids: Iterable[str], asked: Sequence[str]) -> Observation:
    """Return the observation with these tests only, and the files of those that could not be collected."""
    files = {path_of(entry, seen.records, ctx.toolchain.sources) for entry in asked}
    return seen.model_copy(
        update={
            "records": {entry: seen.records[entry] for entry in ids},
            "collection_errors": tuple(error for error in seen.collection_errors if error.path in files),
        }
    )
