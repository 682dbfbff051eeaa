"""A finding's proof, which the harness runs: a test that fails over the work, or a wrong program that tests accept."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from pipeline.judge.reports.fields import RelPath, StrictModel


class Edit(StrictModel):
    """An exact replacement in one file."""

    path: RelPath
    old: str = Field(min_length=1)
    new: str


class ProvingTest(StrictModel):
    """A new test file that fails over the work because a finding is true."""

    path: RelPath
    content: str = Field(min_length=1)


class Proof(StrictModel):
    """What shows that a finding is true: `test` fails over the work, or all tests pass over `edit`, which is wrong."""

    test: ProvingTest | None = None
    edit: Edit | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Proof:
        if (self.test is None) == (self.edit is None):
            raise PydanticCustomError("proof", 'a proof has either "test" {path, content} or "edit" {path, old, new}')
        return self


class MeasuredProof(StrictModel):
    """What came of a proof when the harness ran it.

    Args:
        found: `proved`, `refuted`, or `unproved` where it says neither.
        why: In a sentence.
        tests: Those that fail, of a `test`; those that notice the change, of an `edit`.
        guards: The tests of the file that pass.
        files: The production files that the failing tests reach.
        tree: What it was measured over.
        command: How a person runs it.
    """

    found: Literal["proved", "refuted", "unproved"]
    why: str
    tests: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    tree: str = ""
    command: tuple[str, ...] = ()
