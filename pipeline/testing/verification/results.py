"""Defines what a check found as documents (contract 1): `verify --json`, `tdd check-red|check-green --json`."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

from pydantic import Field

from pipeline.data_types import Frozen
from pipeline.testing.measure.task_evidence import MutationEvidence

Over: TypeAlias = Literal["parent", "start", "seam", "stubs", "stand-ins", "signatures"]
"""Over which code tests were measured to see them fail: see `CommitCheck`."""


class Status(StrEnum):
    """What is known of a commit now."""

    VERIFIED = "verified"
    REFUTED = "refuted"
    UNCHECKED = "unchecked"
    NOT_TESTABLE = "not_testable"
    """Nothing is lost, and no test was RED: the run said that none could be written."""
    NOTHING_LOST = "nothing_lost"
    """A recipe's commit, which has no test of its own to show: whatever passed before passes with it."""
    NOTHING_CLAIMED = "nothing_claimed"


class TestLine(Frozen):
    """One id of the evidence: what was recorded and what was measured now, before the change and after it.

    `recorded` is a class of RED, or GUARD for a test that passes before and after; `granularity` is `file` for a test
    file that could not be imported before.
    """

    __test__ = False

    id: str
    granularity: Literal["id", "file"]
    recorded: str
    measured: str | None
    before_holds: bool
    after_holds: bool


class Problem(Frozen):
    """What does not hold, and of which test or file; `id` is empty where it is about the commit as a whole."""

    id: str = ""
    why: str

    def __str__(self) -> str:
        return f"{self.id}: {self.why}" if self.id else self.why


class CommitCheck(Frozen):
    """One commit. `why` says why it is unchecked; `problems` why it is refuted.

    `evidence` is where the evidence was found, `red_over` which code the tests were measured over to see them fail:
    the parent's, that of the start of the run (a fix of tests alone), stubs of what the run introduced (such a fix,
    where the start lacks what its tests are compiled with), the seam that the commit itself brings, or the parent's
    with stand-ins for new names that an old file of tests imports, or with the signatures of a commit of one writer.
    """

    commit: str
    subject: str
    status: Status
    why: str = ""
    run_id: str | None = None
    task: str | None = None
    evidence: str | None = None
    red_over: Over | None = None
    tests: tuple[TestLine, ...] = ()
    kept: int = 0
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


class VerifyDocument(Frozen):
    """What `verify --json` prints. `ok`: every commit that claims evidence is verified, and there is one.

    The exit code is 0 then, 7 where something is refuted, 8 where all that is claimed is that nothing is lost, else 2:
    unchecked, not testable, nothing claimed.
    """

    schema_: Literal["redfirst.verify/1"] = Field(default="redfirst.verify/1", alias="schema")
    ok: bool
    status: Status
    exit_code: Literal[0, 2, 7, 8]
    asked: str
    commits: tuple[CommitCheck, ...]


class JudgedTest(Frozen):
    """One test that was judged. `measured` is a class of RED, or how the test ended."""

    id: str
    measured: str
    holds: bool
    why: str = ""


class TddDocument(Frozen):
    """What `tdd check-red --json` and `tdd check-green --json` print. `base` is the commit that was compared with.

    `mutation` is there with `--probes`: which small faults in the changed lines no test notices.
    """

    schema_: Literal["redfirst.tdd/1"] = Field(default="redfirst.tdd/1", alias="schema")
    ok: bool
    exit_code: Literal[0, 7]
    check: Literal["red", "green"]
    base: str
    tests: tuple[JudgedTest, ...]
    kept: int = 0
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    mutation: MutationEvidence | None = None
