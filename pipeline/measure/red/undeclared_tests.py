"""Finds Rust tests that are not compiled because the earlier production has no `mod` line for their file.

In Rust tests stand in the file of the code. Over a tree that does not have this file yet, what is left of it is its
test modules, and no `mod` leads to it, so that the compiler says nothing at all. It is to these tests what a failing
import is elsewhere: the behaviour is missing, and none of them can be run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.evidence.observation import CollectionError, Fault, Missing, Observation, Raised, RunState
from pipeline.evidence.red_classes import MISSING_FILE
from pipeline.measure.composed_trees import shares_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.measure.composed_trees import HasRepository


def with_undeclared(
    ctx: HasRepository, seen: Observation, composed: str, production: str, paths: Iterable[str]
) -> Observation:
    """Return the run with an error for each file with tests that production neither has nor declares.

    Args:
        ctx: What has the repository.
        seen: The run.
        composed: The tree that was measured.
        production: The tree that everything but the tests is of.
        paths: Files in question; what is no such file, as the id of a test, is passed over.
    """
    if seen.state is RunState.UNUSABLE:
        return seen
    shared = [path for path in paths if shares_file(path, seen.layout)]
    there = {entry.path for entry in ctx.repository.entries(composed, *shared)} if shared else set[str]()
    before = {entry.path for entry in ctx.repository.entries(production, *shared)} if shared else set[str]()
    known = {record.path for record in seen.records.values()} | seen.unread
    errors = [_error(path) for path in sorted(there - before - known)]
    return seen.model_copy(update={"collection_errors": (*seen.collection_errors, *errors)}) if errors else seen


def _error(path: str) -> CollectionError:
    said = "is in a file that the code does not have, and that no module declares"
    raised = Raised(kind=MISSING_FILE, bases=("ImportError",), message=said)
    return CollectionError(path=path, fault=Fault(chain=(raised,), missing=Missing(name=path)))
