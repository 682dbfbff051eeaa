"""The evidence of a task in `evidence/task-<id>.json`: which tests were RED, which are GREEN, what probes showed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from pipeline.data_types import Frozen
from pipeline.judge.evidence.freeze import digest
from pipeline.judge.evidence.red_tests import RedTests
from pipeline.judge.reports.proofs import Edit
from pipeline.judge.reports.work_reports import ShownCriterion


class RevertEvidence(Frozen):
    """The result of the revert check: the accepted tests over the production of RED.

    `held` are the ids that are RED there still; `problems` say of each other one of the ledger what it shows; `passing`
    are ids that came with the candidate and pass on the old code too, so that they say nothing about the task. `unsure`
    says why that could not be measured: tests and code of one file cannot be told apart for certain. `measured` is the
    tree, where RED was measured over these very bytes, so that it was not again.
    """

    production: str
    held: tuple[str, ...] = ()
    problems: Mapping[str, str] = Field(default_factory=dict[str, str])
    passing: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    measured: str = ""


class Survivor(Frozen):
    """A fault that no test detected. `line` counts from 1; `what` and `source` contain pieces of the code."""

    path: str
    line: int
    what: str
    source: str


class TriedFaults(Frozen):
    """The results of small faults that were put into code, one at a time; `survivors` are those that no test noticed.

    `unfit` are those that did not compile, or could not be imported: they say nothing. `trouble` says why nothing was
    tried.
    """

    killed: int = 0
    survivors: tuple[Survivor, ...] = ()
    unfit: int = 0
    seconds: float = 0.0
    trouble: str = ""

    @property
    def tried(self) -> int:
        """Return how many faults were tried with a result."""
        return self.killed + len(self.survivors)


class MutationEvidence(TriedFaults):
    """The results of faults in the changed lines.

    `uncompiled` are those in code that the build leaves out. `not_tried` is what the time was not enough for.
    `not_chosen` are possible ones beyond the number that was to be tried, as far as they were counted. `asked` is how
    many tests were run over each survivor. `unnoticed` are the changed functions of which no test notices anything,
    where enough was tried. `engine` is what older runs could choose.
    """

    engine: str = "builtin"
    uncompiled: int = 0
    not_tried: int | None = 0  # None in runs with another engine
    not_chosen: int = 0
    asked: int = 0
    unnoticed: tuple[str, ...] = ()


class NoticingEvidence(TriedFaults):
    """Which of the tests that pass over the code as it is notice small faults in what they look at.

    `tests` are their functions, with the number of faults that each noticed by its own judgement, not since the code
    threw. With the faults that are `unfit` nothing but that happened; `thrown` are those of them that are known.
    `edits` are the edits that proved findings, by their ids, which were tried first. `about` are the files of the
    subject, whose faults came next.
    """

    tests: Mapping[str, int]
    thrown: tuple[Survivor, ...] = ()
    not_tried: int = 0
    edits: Mapping[str, Edit] = Field(default_factory=dict[str, Edit])
    about: tuple[str, ...] = ()

    @property
    def notices(self) -> bool:
        """Return whether any of the tests notices a fault."""
        return any(self.tests.values())

    @property
    def blind(self) -> tuple[str, ...]:
        """Return the tests that notice none."""
        return tuple(function for function, count in self.tests.items() if not count)


class ReachEvidence(Frozen):
    """The result of the reach probe: which of the changed files the task's tests enter.

    `entering` is how many enter a function of such a file, or may; `elsewhere` are the ids of those that do not.
    """

    changed: tuple[str, ...]
    entering: int
    elsewhere: tuple[str, ...] = ()


class RepeatEvidence(Frozen):
    """The result of measuring GREEN again. `unstable` has the outcomes of each test whose runs disagree.

    The first run is that of all tests, each further one of the task's own tests only.
    """

    runs: int
    unstable: Mapping[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])


class OldEvidence(Frozen):
    """The result of repeating old tests near the change; `asked` is their number.

    `unstable` has how each that passes only sometimes ended, run by run; all of them passed each time over the code
    that the run began with. `doubtful` are those that did not.
    """

    asked: int = 0
    unstable: Mapping[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    doubtful: tuple[str, ...] = ()


class ProbeEvidence(Frozen):
    """The results of all probes. None means not requested or not reached: an unstable GREEN ends the probes.

    `measured` is the tree that all but `revert` were measured over, where that is not the candidate: the task's work
    before it was put over what was accepted meanwhile, none of which its tests stand on.
    """

    repeated: RepeatEvidence | None = None
    old: OldEvidence | None = None
    revert: RevertEvidence | None = None
    reach: ReachEvidence | None = None
    mutation: MutationEvidence | None = None
    measured: str = ""
    quarantine: tuple[str, ...] = ()
    """One line for each quarantined test and each entry that no longer counts."""

    @property
    def unstable(self) -> tuple[str, ...]:
        """Return the tests whose runs on the candidate disagree: the task's, and old ones that held still before."""
        return tuple(entry for one in (self.repeated, self.old) if one is not None for entry in one.unstable)

    @property
    def unnoticed(self) -> tuple[str, ...]:
        """Return the changed functions in which no test detected any fault."""
        return self.mutation.unnoticed if self.mutation is not None else ()


class GreenEvidence(Frozen):
    """The measurement of the accepted candidate."""

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


class TaskEvidence(Frozen):
    """The evidence of one task. `production` is the tree whose production files RED was measured over."""

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
