"""The evidence of a task: per test id what was RED, why, and what is GREEN (`evidence/task-<id>.json`)."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from pipeline.evidence.freeze import digest
from pipeline.evidence.red_tests import RedTests
from pipeline.measure.probes.evidence import ProbeEvidence
from pipeline.reports.work import ShownCriterion


class GreenEvidence(BaseModel):
    """What was measured on the accepted candidate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tree: str
    passed: tuple[str, ...]
    new_ids: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    stub_failures: tuple[str, ...] = ()
    compared_with: str
    kept: int
    controls: tuple[str, ...] = ()
    """What the task changed by name that controls how tests run, and files whose test regions are not certain."""


class TaskEvidence(BaseModel):
    """One task's evidence. `production` is the tree whose production files RED was measured over."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: str = Field(default="redfirst.evidence/1", alias="schema")
    task: str
    tests_tree: str
    production: str
    test_paths: tuple[str, ...]
    command: tuple[str, ...]
    ledger: RedTests | None = None
    changed_old: tuple[str, ...] = ()
    """Tests that existed and were changed or removed without leave of the task; CHECK_TESTS may agree."""
    loosened: tuple[str, ...] = ()
    """What the change of tests no longer notices, in words; @check sees it with the evidence."""
    criteria: tuple[ShownCriterion, ...] = ()
    """Which tests show which acceptance criterion, by @test's account; each test that it names is there."""
    reworked: tuple[str, ...] = ()
    """The same against tests of this run that @check sent back: rewritten on order, so that it accuses nobody."""
    not_testable: Mapping[str, object] | None = None
    judged_by: str | None = None
    green: GreenEvidence | None = None
    probes: ProbeEvidence | None = None

    def red_digest(self) -> str:
        """Return the digest that the commit's Red-Evidence trailer names."""
        if self.ledger is not None:
            return self.ledger.digest()
        return digest({"task": self.task, "not_testable": self.not_testable or {}})


def name_of(task: str) -> str:
    """Return the artifact's name."""
    return f"evidence/task-{task}.json"
