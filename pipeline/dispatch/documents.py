"""Builds the document of one dispatch (contract 5), with the artifacts' paths in the box."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.dispatch.prompt import DispatchDocument, WriteGrant, build_prompt
from pipeline.policy.scope import Writes
from pipeline.reports.kinds import report_schema

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pipeline.dispatch.prompt import Template
    from pipeline.dispatch.request import Request
    from pipeline.policy.roles import RoleSpec
    from pipeline.process import Box
    from pipeline.runs.info import DispatchRecord

ARTIFACTS: Final = Path("/run/redfirst/artifacts")
SEVERAL: Final = frozenset(
    {
        *("tasks", "done_tasks", "previous_tasks", "evidence", "remarks", "findings", "feedback", "diagnosis"),
        *("test_output", "inputs", "outcomes"),
    }
)
"""The artifacts that are a list in the document even if there is only one."""


@dataclass(frozen=True)
class Artifacts:
    """The artifacts that an agent may read: copies in the dispatch's folder."""

    shown: Mapping[str, str | tuple[str, ...]]
    known: tuple[str, ...] = ()
    """Those of it that are only to be looked up."""

    @classmethod
    def copied(
        cls, artifacts: Mapping[str, Sequence[Path]], folder: Path, box: Box, known: Collection[Path] = ()
    ) -> Artifacts:
        """Copy *artifacts* into the dispatch's folder and return them; of *known* ones it is said that they are."""
        root = folder / "artifacts"
        root.mkdir()
        shown = box.inside(root, ARTIFACTS)
        found: dict[str, str | tuple[str, ...]] = {}
        for name, paths in artifacts.items():
            for path in paths:
                target = root / name / path.name
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(path, target)
            inside = tuple(str(shown / name / path.name) for path in paths)
            if name in SEVERAL or len(inside) > 1:
                found[name] = inside
            elif inside:
                found[name] = inside[0]
        looked_up = (shown / name / path.name for name, paths in artifacts.items() for path in paths if path in known)
        return cls(found, tuple(map(str, looked_up)))


def document_of(
    record: DispatchRecord,
    request: Request,
    *,
    run_id: str,
    issue: str | None,
    workspace: Path,
    artifacts: Artifacts,
    spec: RoleSpec,
    template: Template,
    phase: str,
    why: str,
    instructions: Sequence[str],
) -> DispatchDocument:
    """Return the document of a dispatch, its prompt included.

    Args:
        record: What the journal says of the dispatch.
        request: What the step asks.
        run_id: The run.
        issue: The id of its issue, if it has one.
        workspace: Where the agent sees the view.
        artifacts: What it may read.
        spec: The role.
        template: What it is asked.
        phase: The number of the step's phase.
        why: The row of the matrix that led here.
        instructions: Files of the project that speak to agents, relative to the workspace.
    """
    document = DispatchDocument(
        run_id=run_id,
        issue=issue,
        dispatch=record.dispatch,
        step=record.step,
        phase=phase,
        role=request.role,
        kind=request.kind,
        question=request.question,
        task=record.task,
        attempt=record.attempt,
        reask=record.reask,
        workspace=str(workspace),
        artifacts=dict(artifacts.shown),
        write=_write_list(spec, request),
        area=tuple(one.text for one in request.area or ()),
        known=artifacts.known,
        to_answer=request.to_answer,
        report_schema=report_schema(
            request.kind, request.role, request.question, asks=request.asks, without=request.without
        ),
    )
    prompt = build_prompt(spec, template, document, why=why, extra=request.extra, instructions=instructions)
    return document.model_copy(update={"prompt": prompt})


def _write_list(spec: RoleSpec, request: Request) -> tuple[WriteGrant, ...]:
    match spec.writes:
        case Writes.TASK:
            grants = request.grants
        case Writes.TESTS:
            grants = request.tests.files if request.tests is not None else ()
        case _:
            grants = ()
    return tuple(WriteGrant(path=grant.path, action=grant.action) for grant in grants)
