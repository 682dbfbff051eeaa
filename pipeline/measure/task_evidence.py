"""The evidence of a task in `evidence/task-<id>.json`: which tests were RED, why, and which are GREEN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pipeline.evidence.freeze import digest
from pipeline.evidence.red_tests import RedTests
from pipeline.measure.probes.evidence import NoticingEvidence, ProbeEvidence
from pipeline.reports.work import ShownCriterion


class GreenEvidence(BaseModel):
    """The measurement of the accepted candidate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tree: str
    passed: tuple[str, ...]
    new_ids: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    stub_failures: tuple[str, ...] = ()
    compared_with: str
    kept: int
    as_they_were: tuple[str, ...] | None = None
    """What was measured of old tests as they were, in words; None where an earlier version has not asked it."""
    controls: tuple[str, ...] = ()
    """Named changes of the task to files that control tests, and files whose test regions are uncertain."""


class TaskEvidence(BaseModel):
    """The evidence of one task. `production` is the tree whose production files RED was measured over."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: str = Field(default="redfirst.evidence/1", alias="schema")
    task: str
    tests_tree: str
    production: str
    red_tree: str = ""
    """What RED was measured over: the tests, composed with that production. Earlier versions did not say it."""
    test_paths: tuple[str, ...]
    command: tuple[str, ...]
    ledger: RedTests | None = None
    changed_old: tuple[str, ...] = ()
    """Old tests that were changed or removed without the task's permission; CHECK_TESTS may accept it."""
    criteria: tuple[ShownCriterion, ...] = ()
    """The tests that show each acceptance criterion, by @test's account; all of them exist."""
    noticing: NoticingEvidence | None = None
    """What the tests notice that pass over the code as it is; None where a test was RED, or there is none."""
    not_testable: Mapping[str, object] | None = None
    judged_by: str | None = None
    proved_by: str | None = None
    """The finding of the final review whose proof the tests are: nobody was asked to write them."""
    writers: Literal["one"] | None = None
    """`one`: tests and code come from one dispatch, and were parted for the measurement. None: from two roles."""
    green: GreenEvidence | None = None
    probes: ProbeEvidence | None = None
    loosened: tuple[str, ...] = Field(default=(), exclude=True)
    """Like `reworked` what earlier versions said of the text of tests: read, and nothing follows from it."""
    reworked: tuple[str, ...] = Field(default=(), exclude=True)

    def red_digest(self) -> str:
        """Return the digest that the commit's Red-Evidence trailer names."""
        if self.ledger is not None:
            return self.ledger.digest()
        return digest({"task": self.task, "not_testable": self.not_testable or {}})


def name_of(task: str) -> str:
    """Return the name of a task's evidence artifact."""
    return f"evidence/task-{task}.json"
