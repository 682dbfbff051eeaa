"""Plays one agent after the other in a run that stands before its task: the real program, box, gate, git and tests.

Plan and split are the same for all, so they are played once; the run waits at the gate `split`, as a person may let it.
Every play starts from a copy of that moment at the same place, with a task file of its own, and goes on from there.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kit import PLAIN, PLAN_ACCEPTED, SPLIT_ACCEPTED, WITH_PLUGINS, judge, make_project

from pipeline.judge.reports.drafts import SplitReport
from pipeline.judge.reports.taskfile import task_md
from pipeline.judge.reports.tasks import tasks_from_split

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from cheats.repositories import Files, Repository
    from kit import Entry, Project

RUN: Final = "run-GAL-1"
ISSUE: Final = "GAL-1"
NO_SECOND_CHANCE: Final = """
[limits]
stub_retry = 0
test_rewrite = 0
test_design = 0
make_retry = 0
scope_amend = 0
unnoticed_faults = 0
reask = 0
final_review = 1
[final_review]
on_blockers = "park"
[agents.simplify]
backend = "off"
"""
"""A refused answer goes to @check at once: nobody has to play it twice, and a blocker parks the run."""

READY: Final[Mapping[str, Any]] = {"verdict": "TESTS_READY"}
COMPLETE: Final[Mapping[str, Any]] = {"result": "COMPLETE", "summary": "done, all tests pass"}
FAULTS_ACCEPTED: Final = {"task": "1", "id": "faults", "met": True, "note": "nothing that matters"}
_OUT: Final = {"severity": "HIGH", "title": "This is no work", "problem": "It is not.", "evidence": "seen in the diff"}


@dataclass(frozen=True)
class Part:
    """What one play is about: who writes what, who says what, in which task.

    Args:
        tests: What @test writes; None deletes.
        code: What @make writes.
        ready: The report of @test.
        made: The report of @make.
        task: What its task says differently.
        check: Whether @check accepts what is shown to it; a @check that was told turns it down.
        config: More of the user's configuration.
        plugins: Whether the project's environment has more than pytest.
        more: Answers to further questions.
    """

    tests: Files
    code: Files
    ready: Mapping[str, Any]
    made: Mapping[str, Any]
    task: Mapping[str, Any]
    check: bool
    config: str = ""
    plugins: bool = False
    more: tuple[Mapping[str, Any], ...] = ()


class Stage:
    """A repository whose run waits before its task, to be played from as often as wanted, one at a time."""

    def __init__(self, folder: Path, repository: Repository, path: str = "") -> None:
        self.repository = repository
        self._path = path
        self._place = folder / "place"
        self._kept = folder / "kept"
        self._place.mkdir()
        self._project = make_project(self._place, dict(repository.files))
        self._project.probed = True
        self._prologue: list[Entry] = [
            {"when": {"kind": "plan"}, "report": _plan(repository)},
            PLAN_ACCEPTED,
            {"when": {"kind": "split"}, "report": {"tasks": [dict(repository.task)]}},
            SPLIT_ACCEPTED,
        ]
        self._start = self._project.git("rev-parse", "HEAD")
        self._use_path(plugins=False)
        self._project.use_script(self._prologue, NO_SECOND_CHANCE + repository.config)
        parked = self._project.run("--approve", "split")
        assert parked.get("reason") == "approval", (parked.get("error"), parked["_stderr"])
        _copy(self._place, self._kept)

    def play(self, part: Part) -> Played:
        """Put everything back as it was before the task, play the part, and return what came of it."""
        shutil.rmtree(self._place)
        _copy(self._kept, self._place)
        self._use_path(plugins=part.plugins)
        project = self._project
        (task,) = _tasks({**self.repository.task, **part.task})
        (project.run_folder() / "task-1.md").write_text(task_md(task), encoding="utf-8")
        project.use_script(
            [*self._prologue, *_answers(part)], NO_SECOND_CHANCE + (part.config or self.repository.config)
        )
        document = project.document("approve", ISSUE)
        assert "outcome" in document, (document.get("error"), document["_stderr"])
        return _read(project, document, self._start)

    def _use_path(self, *, plugins: bool) -> None:
        self._project.env["PATH"] = ":".join(filter(None, [self._path, WITH_PLUGINS if plugins else PLAIN]))


@dataclass(frozen=True)
class Played:
    """What came of a play; read at once, because the next one begins at the same place.

    Args:
        outcome: How the run stands, with the reason.
        rows: The rows of the matrix that fired since the gate.
        basis: What each of these decisions was based on: notes, evidence in words, answers.
        violations: Path and rule of what the gate refused.
        shown: All texts among the artifacts that @check was given since the gate, but for patches.
        is_published: Whether the work is on the branch.
        is_untouched: Whether branch, index and worktree are as they were; the tracker's own note apart.
        published: The files of the branch that differ from where it began.
        log: What redfirst said.
    """

    outcome: str
    rows: tuple[str, ...]
    basis: tuple[str, ...]
    violations: frozenset[tuple[str, str]]
    shown: str
    is_published: bool
    is_untouched: bool
    published: Mapping[str, str]
    log: str

    def said(self, row: str) -> str:
        """Return everything that the decisions of a row were based on."""
        return "\n".join(text for fired, text in zip(self.rows, self.basis, strict=True) if fired == row)

    def __str__(self) -> str:
        return f"{self.outcome}: {', '.join(self.rows)}"


def _read(project: Project, document: Mapping[str, Any], start: str) -> Played:
    lines = project.journal()
    answered = next(number for number, line in enumerate(lines) if line["kind"] == "gate_answered")
    since = [(line["kind"], line["data"]) for line in lines[answered:]]
    decisions = [data for kind, data in since if kind == "decision" and data["step"] != "gate"]
    refused = [data["violations"] for kind, data in since if kind == "change_rejected"]
    changed = project.git("diff", "--name-only", "--diff-filter=d", start, "HEAD").splitlines()
    return Played(
        outcome=f"{document['outcome']} ({document['reason']})",
        rows=tuple(data["row"] for data in decisions),
        basis=tuple(_basis(project, data["event"]) for data in decisions),
        violations=frozenset((one["path"], one["rule"]) for found in refused for one in found),
        shown=_shown(
            project,
            [data["dispatch"] for kind, data in since if kind == "dispatch_started" and data["role"] == "check"],
        ),
        is_published=document["outcome"].startswith("completed"),
        is_untouched=not changed and not project.git("status", "--porcelain", "--", ".", ":!TODO"),
        published={path: project.git("show", f"HEAD:{path}") for path in changed},
        log=document["_stderr"],
    )


def _basis(project: Project, event: Mapping[str, Any]) -> str:
    files = [project.run_folder() / name for name in event.get("evidence") or ()]
    return "\n".join([event.get("note") or "", *(file.read_text(encoding="utf-8") for file in files if file.is_file())])


def _shown(project: Project, dispatches: Iterable[str]) -> str:
    folders = [project.run_folder() / "dispatches" / name / "artifacts" for name in dispatches]
    files = [file for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()]
    return "\n".join(file.read_text(encoding="utf-8") for file in files if file.suffix != ".patch")


def _plan(repository: Repository) -> dict[str, Any]:
    files = [{**file, "why": "it is there"} for file in repository.task["files"]]
    behaviours = [{"action": text, "outcome": text} for text in repository.task["acceptance_criteria"]]
    return {
        "problem": repository.task["description"],
        "approach": "The smallest change.",
        "files": files,
        "test_design": {"behaviours": behaviours},
    }


def _tasks(draft: Mapping[str, Any]) -> tuple[Any, ...]:
    tasks = tasks_from_split(SplitReport.model_validate_json(json.dumps({"tasks": [draft]})), ["1"])
    assert isinstance(tasks, tuple), tasks
    return tasks


def _answers(part: Part) -> list[Entry]:
    """Return what everybody says; @check finds nothing, or turns everything down that it is asked about."""
    verdict: dict[str, Any] = {"verdict": "ACCEPTABLE"} if part.check else {"verdict": "BLOCK", "findings": [_OUT]}
    ended = judge("diagnose", diagnosis="environment", notes="no work to go on with")
    return [
        *(dict(entry) for entry in part.more),
        {"when": {"kind": "write-tests"}, "files": dict(part.tests), "report": dict(part.ready)},
        {"when": {"kind": "implement"}, "files": dict(part.code), "report": dict(part.made)},
        judge("tests", **verdict),
        judge("not_testable", accepted=part.check),
        judge("amend", accepted=part.check),
        ended,
        {"when": {"kind": "review-result"}, "report": {**verdict, "criteria": [FAULTS_ACCEPTED]}},
    ]


def _copy(source: Path, target: Path) -> None:
    # the box may run as another user, whose files stay theirs
    subprocess.run(["cp", "--archive", "--no-target-directory", str(source), str(target)], check=True)
