"""The kinds of requests: who can be asked, with which artifacts, and the form of the answer (contract 5).

The reports by which a role answers a step of a recipe are here. Each is a claim: whether a payload is what was asked
for, and its quotes stand where it says, is looked at by us (`payloads.py`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field, JsonValue, TypeAdapter, WithJsonSchema

from pipeline.judge.reports import reviews, work_reports
from pipeline.judge.reports.drafts import PlanAndTasks, PlanReport, SplitReport
from pipeline.judge.reports.fields import HonouredSeam, Prose, Report
from pipeline.vocabulary import Question, Role

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Payload = Annotated[
    JsonValue,
    WithJsonSchema({"type": "string", "description": "a JSON value of the form that is asked for, or its text"}),
]
"""A payload, declared as text: products that force a schema cannot declare a value of any form
(`payloads.read_payload`)."""


class _Answer(Report):
    payload: Payload = None
    seams: tuple[HonouredSeam, ...] = ()


class Answered(_Answer):
    """Kind `answer`: the question is answered."""

    result: Literal["ANSWERED"]
    output: Prose
    limitations: str = ""


class Unsure(_Answer):
    """Kind `answer`: the question is answered in part; `limitations` says what is missing."""

    result: Literal["UNSURE"]
    output: Prose
    limitations: Prose


class Questions(Report):
    """Kind `answer`: a person must answer `questions` first."""

    result: Literal["QUESTIONS"]
    questions: Prose


class Unanswerable(Report):
    """Kind `answer`: the question lacks something, so nothing was tried."""

    result: Literal["CANNOT_PROCEED"]
    missing: Prose
    why: str = ""


_WRITE_TESTS: Final = Annotated[
    work_reports.ReadyTests | work_reports.NotTestable | work_reports.Blocked, Field(discriminator="verdict")
]
_MAKE: Final = Annotated[
    work_reports.Complete | work_reports.Incomplete | work_reports.CannotProceed, Field(discriminator="result")
]
_BUILD: Final = Annotated[
    work_reports.Built | work_reports.Unbuilt | work_reports.BuiltUntested, Field(discriminator="result")
]
_CHANGE: Final = Annotated[
    work_reports.Changed | work_reports.Incomplete | work_reports.CannotProceed, Field(discriminator="result")
]
_ANSWER: Final = Annotated[Answered | Unsure | Questions | Unanswerable, Field(discriminator="result")]


@dataclass(frozen=True)
class Kind:
    """A kind of request, a row of contract 5.

    Args:
        name: The word in the dispatch document.
        required: Artifacts that every dispatch of this kind carries.
        optional: Artifacts that it carries when there are any.
        by_role: The report's type for each role that can be asked; a `judge` is answered by question instead.
        by_question: The report's type for each question; only `judge` has questions.
    """

    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    by_role: Mapping[Role, Any] = field(default_factory=dict[Role, Any])
    by_question: Mapping[Question, Any] = field(default_factory=dict[Question, Any])

    @property
    def roles(self) -> tuple[Role, ...]:
        """Return the roles that can be asked this kind; only @check is asked questions."""
        return tuple(self.by_role) or (Role.CHECK,)


_AGAIN: Final = ("open_findings", "changes")
_CUT: Final = ("tasks", "differences", *_AGAIN)
_MEASURED: Final = ("evidence", "probes", "quarantine", "suspicions", "work_notes", "not_testable")
_RESULT: Final = ("plan", "tasks", *_MEASURED, *_AGAIN)
_BUILT: Final = ("remarks", "red", "impacted_tests", "diagnosis", "measured", "candidate_patch")
_REVIEWERS: Final[Mapping[Role, Any]] = {Role.CHECK: reviews.StepReview, Role.SIMPLIFY: reviews.SimplifyReview}

KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            Kind(
                "plan",
                ("issue", "baseline"),
                ("answers", "findings", "feedback", "previous_plan", "previous_patch"),
                {Role.ORCHESTRATOR: PlanReport},
            ),
            Kind(
                "plan-and-tasks",
                ("issue", "baseline"),
                ("answers", "findings", "feedback", "previous_plan", "previous_patch"),
                {Role.ORCHESTRATOR: PlanAndTasks},
            ),
            Kind(
                "split",
                ("issue", "plan", "baseline"),
                ("remarks", "answers", "findings", "feedback", "previous_tasks", "done_tasks"),
                {Role.ORCHESTRATOR: SplitReport},
            ),
            Kind("review-plan", ("issue", "plan"), _CUT, {**_REVIEWERS, Role.CHECK: reviews.SplitReview}),
            Kind(
                "review-split", ("issue", "plan", "tasks"), ("differences", *_AGAIN), {Role.CHECK: reviews.SplitReview}
            ),
            Kind("review-result", ("issue", "diff"), _RESULT, {**_REVIEWERS, Role.CHECK: reviews.ResultReview}),
            Kind(
                "review-step",
                ("request",),
                ("inputs", "outcomes", "diff", "answer", "measured", "suspicions", *_AGAIN),
                _REVIEWERS,
            ),
            Kind("write-tests", ("task", "plan", "baseline"), ("remarks", "findings"), {Role.TEST: _WRITE_TESTS}),
            Kind("stub", ("task",), ("remarks", "diagnosis"), {Role.MAKE: _MAKE}),
            Kind("seam", ("task", "plan"), ("report", "diagnosis"), {Role.MAKE: _MAKE}),
            Kind("implement", ("task",), _BUILT, {Role.MAKE: _MAKE}),
            Kind("build", ("issue", "task", "baseline"), ("findings", "feedback", "measured"), {Role.MAKE: _BUILD}),
            Kind(
                "judge",
                ("task",),
                ("issue", "plan", "answers", "tests_diff", "candidate_patch", "report", "refusals", "test_output"),
                by_question={
                    Question.TESTS: reviews.SuiteJudgement,
                    Question.NOT_TESTABLE: reviews.Acceptance,
                    Question.DIAGNOSE: reviews.Diagnosis,
                    Question.AMEND: reviews.Acceptance,
                },
            ),
            Kind("follow-ups", ("items", "existing_issues"), (), {Role.PM: reviews.FollowUps}),
            Kind(
                "answer",
                ("request",),
                ("inputs", "outcomes", "findings", "feedback", "payload_schema"),
                dict.fromkeys((Role.CHECK, Role.SIMPLIFY, Role.EXPLORE), _ANSWER),
            ),
            Kind(
                "change", ("request",), ("inputs", "outcomes", "findings", "feedback", "measured"), {Role.MAKE: _CHANGE}
            ),
        )
    }
)
"""All kinds by name."""


def report_type(kind: str, role: Role, question: Question | None = None) -> TypeAdapter[Report]:
    """Return the validator for the answer to a kind.

    Raises:
        LookupError: nobody may be asked this; the caller built an impossible dispatch.
    """
    return _adapter(kind, Role(role), None if question is None else Question(question))


def report_schema(
    kind: str,
    role: Role,
    question: Question | None = None,
    *,
    asks: bool = False,
    without: Collection[str] = (),
) -> dict[str, Any]:
    """Return the JSON Schema of the answer, as the agent gets it.

    Args:
        kind: What is asked.
        role: Of whom.
        question: For kind `judge`.
        asks: Whether the answer may be a question to a person (`question`).
        without: Optional fields of the report that this request does not ask for.

    Raises:
        LookupError: nobody may be asked this.
    """
    schema: dict[str, Any] = json.loads(_schema(kind, Role(role), None if question is None else Question(question)))
    for name in (*without, *(() if asks else ("question",))):
        schema.get("properties", {}).pop(name, None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


@cache
def _schema(kind: str, role: Role, question: Question | None) -> str:
    """Return the JSON Schema of all that may be answered, as text, which is read a hundred times faster than made."""
    return json.dumps(_adapter(kind, role, question).json_schema(by_alias=True))


@cache
def _adapter(kind: str, role: Role, question: Question | None) -> TypeAdapter[Report]:
    row = KINDS[kind]
    if role not in row.roles:
        raise LookupError(f"{role} is not asked {kind}")
    if (question is None) == bool(row.by_question):
        raise LookupError(f"{kind} with question {question}: a question belongs to judge, and only to it")
    return TypeAdapter[Report](row.by_role[role] if question is None else row.by_question[question])
