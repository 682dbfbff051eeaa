"""One dispatch to one role outside of any run, judged by the gate, with nothing applied."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pipeline.backends import BACKENDS
from pipeline.boxes.box import open_box
from pipeline.dispatch.dispatcher import Dispatcher
from pipeline.dispatch.request import Request
from pipeline.dispatch.roles import load_roles, load_templates
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.policy.scope import Action, Grant, TestScope
from pipeline.reports.fields import path_problem
from pipeline.reports.untrusted_text import legible
from pipeline.routing.vocabulary import Question, Role
from pipeline.runs import tracker
from pipeline.runs.checkout import PrivateCheckout
from pipeline.runs.info import DispatchRecord
from pipeline.service.run_config import RunOptions, load_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeline.git import Repository
    from pipeline.runs.info import DispatchResult


SCHEMA = "redfirst.agents-try/1"


async def try_role(
    repository: Repository,
    options: RunOptions,
    role: Role,
    kind: str,
    question: Question | None,
    write: tuple[str, ...],
    artifacts: Mapping[str, list[Path]],
    place: Path,
    say: Callable[[str], None],
) -> tuple[DispatchResult, str]:
    """Ask one role once, as a run would, and return the result and what its program printed.

    Args:
        repository: Where HEAD is what the role is given.
        options: The issue, and the flags of the configuration.
        role: Who is asked.
        kind: What is asked.
        question: For kind judge.
        write: Paths that the dispatch may change.
        artifacts: Further artifacts, by name.
        place: A folder that is thrown away afterwards.
        say: Is told of the progress.

    Raises:
        UserError: there is no commit, no such issue, or no agent.
    """
    tip = repository.resolve("HEAD")
    if tip is None:
        raise UserError("The branch has no commit yet.", Reason.USAGE)
    config = load_config(repository, tip, options)
    backend = config.agent(role).backend.value
    if backend not in BACKENDS:
        raise UserError(f"{role} has no agent to try: its backend is {backend!r}.", Reason.CONFIG)
    for path in write:
        if (problem := path_problem(path)) is not None:
            raise UserError(f"--write {path}: the path {problem}.", Reason.USAGE, path=path)
    tree = repository.tree_of(tip)
    with tracker.as_user_errors():
        issues = tracker.in_tree(repository, tree)
        issues.read(options.issue)
    (place / "issue.md").write_text(legible((issues.raw(f"{options.issue}.md") or b"").decode()), encoding="utf-8")
    named = {"issue": [place / "issue.md"], **artifacts}
    existing = {entry.path for entry in repository.entries(tree)}
    grants = tuple(Grant(path, Action.MODIFY if path in existing else Action.CREATE) for path in write)
    checkout = PrivateCheckout(repository, place / "state")
    checkout.open(tree)
    dispatcher = Dispatcher(
        run_id=f"run-{options.issue}",
        run_folder=place / "run",
        repository=repository,
        checkout=checkout,
        config=config,
        box=await open_box(config.sandbox.value),
        roles=load_roles(),
        templates=load_templates(),
        search_path=options.environ.get("PATH", os.defpath),
        environ=options.environ,
        say=say,
    )
    is_test = role is Role.TEST
    request = Request(
        role,
        kind,
        tree,
        question=question,
        artifacts=named,
        grants=() if is_test else grants,
        tests=TestScope(files=grants if is_test else ()),
    )
    record = DispatchRecord(
        dispatch=f"001-try-{role.value}",
        number=1,
        step="try",
        visit=1,
        resumes=0,
        role=role,
        kind=kind,
        question=question.value if question else None,
        task=None,
        attempt=1,
        reask=None,
        base_tree=tree,
        backend=config.agent(role).backend.value,
    )
    result = await dispatcher.dispatch(record, request, phase="-", why="tried by hand")
    folder = place / "run" / "dispatches" / record.dispatch
    log = "".join(
        (folder / name).read_text(encoding="utf-8", errors="replace") for name in ("stdout.log", "stderr.log")
    )
    return result, log


def trial_document(result: DispatchResult, log: str) -> dict[str, Any]:
    """Return what `agents try --json` prints."""
    return {
        "schema": SCHEMA,
        "ok": result.signal is None,
        "gate": result.gate,
        "changes": [change.model_dump(mode="json", include={"path", "kind", "mode"}) for change in result.changes],
        "dropped": list(result.dropped),
        "violations": [violation.model_dump(mode="json") for violation in result.violations],
        "report": result.report,
        "report_error": result.complaint,
        "agent": result.agent.model_dump(mode="json") if result.agent is not None else None,
        "usage": result.usage.model_dump(mode="json"),
        "steps": result.steps,
        "denials": list(result.denials),
        "log": log,
    }
