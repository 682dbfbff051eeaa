"""Reports of the orchestrator role: a plan, and its split into tasks. Our code renders both."""

from __future__ import annotations

from pydantic import Field

from pipeline.judge.reports.fields import (
    Evidence,
    FileChange,
    Line,
    OldTest,
    Prose,
    RelPath,
    Report,
    StrictModel,
    Symbol,
    Symptom,
    Texts,
)


class PlannedFile(FileChange):
    """A file of the plan, with the reason for touching it."""

    why: str = ""


class Behaviour(StrictModel):
    """An action and its observable outcome; hygiene refuses one without the other (H010)."""

    action: str = ""
    outcome: str = ""


class DesignOfTests(StrictModel):
    """The design of the tests: what is to be tested, and what is not."""

    behaviours: tuple[Behaviour, ...] = ()
    edge_cases: Texts = ()
    not_tested: Texts = ()
    testability: Texts = ()


class Snippet(StrictModel):
    """A few lines of existing code that show a seam."""

    path: RelPath
    snippet: Prose


class SplitTask(StrictModel):
    """A task of a split; `depends_on` counts from 1 in the report's list."""

    title: Line
    acceptance_criteria: Texts
    files: tuple[FileChange, ...]
    test_files: tuple[FileChange, ...]
    description: str = ""
    symbols: tuple[Symbol, ...] = ()
    tests_to_change: tuple[OldTest, ...] = ()
    code_context: tuple[Snippet, ...] = ()
    integration_contract: str = ""
    depends_on: tuple[int, ...] = ()
    constraints: Texts = ()
    evidence: Evidence = Evidence.RED
    symptom: Symptom | None = None


class Plan(Report):
    """The fields of every plan."""

    problem: Prose
    files: tuple[PlannedFile, ...]
    approach: str = ""
    risks: Texts = ()
    test_design: DesignOfTests = DesignOfTests()
    question: str = ""


class PlanReport(Plan):
    """Kind `plan`. `task` is the only task, if the whole issue is one."""

    task: SplitTask | None = None


class PlanAndTasks(Plan):
    """Kind `plan-and-tasks`: plan and split in one draft."""

    tasks: tuple[SplitTask, ...] = Field(min_length=1, max_length=100)


class SplitReport(Report):
    """Kind `split`. The run's own limit (`max_tasks`) is hygiene; this one only keeps a flood out."""

    tasks: tuple[SplitTask, ...] = Field(min_length=1, max_length=100)
    question: str = ""
