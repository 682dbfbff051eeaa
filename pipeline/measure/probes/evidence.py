"""The results of the probes of GREEN tests, as part of a task's evidence."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RevertEvidence(_Value):
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


class Survivor(_Value):
    """A fault that no test detected. `line` counts from 1; `what` and `source` contain pieces of the code."""

    path: str
    line: int
    what: str
    source: str


class MutationEvidence(_Value):
    """The results of faults put into the changed lines, one at a time.

    `unfit` are those that did not compile, or could not be imported: they say nothing. `uncompiled` are those in
    code that the build leaves out. `not_tried` is what the time was not enough for. `not_chosen` are possible ones
    beyond the number that was to be tried, as far as they were counted. `trouble` says why nothing was tried.
    `asked` is how many tests were run over each survivor. `unnoticed` are the changed functions of which no test
    notices anything, where enough was tried. `engine` is what older runs could choose.
    """

    engine: str = "builtin"
    killed: int = 0
    survivors: tuple[Survivor, ...] = ()
    unfit: int = 0
    uncompiled: int = 0
    not_tried: int | None = 0  # None in runs with another engine
    not_chosen: int = 0
    seconds: float = 0.0
    trouble: str = ""
    asked: int = 0
    unnoticed: tuple[str, ...] = ()

    @property
    def tried(self) -> int:
        """Return how many faults were tried with a result."""
        return self.killed + len(self.survivors)


class NoticingEvidence(_Value):
    """Which of the tests that pass over the code as it is notice small faults in what they look at.

    `tests` are their functions, with the number of faults that each noticed by its own judgement, not since the code
    threw; `unfit` are faults with which nothing but that happened. The rest is as in `MutationEvidence`.
    """

    tests: Mapping[str, int]
    killed: int = 0
    survivors: tuple[Survivor, ...] = ()
    unfit: int = 0
    not_tried: int = 0
    seconds: float = 0.0
    trouble: str = ""

    @property
    def tried(self) -> int:
        """Return how many faults were tried with a result."""
        return self.killed + len(self.survivors)

    @property
    def notices(self) -> bool:
        """Return whether any of the tests notices a fault."""
        return any(self.tests.values())

    @property
    def blind(self) -> tuple[str, ...]:
        """Return the tests that notice none."""
        return tuple(function for function, count in self.tests.items() if not count)


class ReachEvidence(_Value):
    """The result of the reach probe: which of the changed files the task's tests enter.

    `entering` is how many enter a function of such a file, or may; `elsewhere` are the ids of those that do not.
    """

    changed: tuple[str, ...]
    entering: int
    elsewhere: tuple[str, ...] = ()


class RepeatEvidence(_Value):
    """The result of measuring GREEN again. `unstable` has the outcomes of each test whose runs disagree.

    The first run is that of all tests, each further one of the task's own tests only.
    """

    runs: int
    unstable: Mapping[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])


class OldEvidence(_Value):
    """The result of repeating old tests near the change; `asked` is their number.

    `unstable` has how each that passes only sometimes ended, run by run; all of them passed each time over the code
    that the run began with. `doubtful` are those that did not.
    """

    asked: int = 0
    unstable: Mapping[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    doubtful: tuple[str, ...] = ()


class ProbeEvidence(_Value):
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
    def unnoticed(self) -> tuple[str, ...]:
        """Return the changed functions in which no test detected any fault."""
        return self.mutation.unnoticed if self.mutation is not None else ()
