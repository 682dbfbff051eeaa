"""Asks one role once outside of any run, lets the gate judge the answer, and applies nothing.

What the agent is given is prepared by the code that prepares it in a run: the copy of the tree with its ignored files,
`setup`, the project's tools, and what counts as a test by what the runner collected. Only the steps are missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pipeline.agents.backends import BACKENDS
from pipeline.agents.dispatch.dispatcher import Dispatcher
from pipeline.agents.dispatch.request import InRun, Request
from pipeline.agents.dispatch.roles import load_roles, load_templates
from pipeline.app.ports import box_of, lent_context
from pipeline.app.run_config import RunOptions, load_config
from pipeline.config.load import without_effect
from pipeline.errors import UserError
from pipeline.judge.policy.rights import Action, Writes
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.fields import FileChange, path_problem
from pipeline.judge.reports.taskfile import parse_task_md
from pipeline.judge.reports.tasks import Task
from pipeline.judge.reports.untrusted_text import legible
from pipeline.outcomes import Outcome, Reason, exit_code
from pipeline.reset_times import moment_words
from pipeline.run import tracker
from pipeline.run.info import DispatchRecord, DispatchResult
from pipeline.steps.asking import criteria
from pipeline.steps.asking.grants import production_grants, scope_of
from pipeline.testing.languages.projects.combined import projects_in
from pipeline.testing.measure.baseline import no_baseline
from pipeline.testing.measure.measuring import UnmeasurableError, measure
from pipeline.testing.measure.project_tools import tools_for
from pipeline.vocabulary import Question, Role, Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeline.repo import Repository
    from pipeline.testing.verification.context import VerificationContext


SCHEMA = "redfirst.agents-try/1"
_ENDS = {
    Signal.UNAVAILABLE: exit_code(Outcome.PARKED, Reason.AGENT_UNAVAILABLE),
    Signal.BUDGET: exit_code(Outcome.PARKED, Reason.BUDGET),
    Signal.ESCAPE: exit_code(Outcome.FAILED, Reason.ESCAPE),
}


@dataclass(frozen=True)
class Trial:
    """What one role is asked, once.

    Args:
        role: Who is asked.
        kind: What is asked.
        question: For kind judge.
        write: Paths that the dispatch may change, besides those of a task among the artifacts.
        artifacts: What it is handed besides the issue, by name.
    """

    role: Role
    kind: str
    question: Question | None = None
    write: tuple[str, ...] = ()
    artifacts: Mapping[str, list[Path]] = field(default_factory=dict[str, "list[Path]"])


async def try_role(
    repository: Repository, options: RunOptions, trial: Trial, say: Callable[[str], None]
) -> tuple[DispatchResult, str]:
    """Ask one role once, as a run would, and return the result and what its program printed.

    Args:
        repository: Where HEAD is what the role is given.
        options: The issue, and the flags of the configuration.
        trial: What is asked.
        say: Is told of the progress.

    Raises:
        UserError: there is no commit, no such issue, no agent, or the tests cannot be run here.
    """
    tip = repository.resolve("HEAD")
    if tip is None:
        raise UserError("The branch has no commit yet.", Reason.USAGE)
    loaded = load_config(repository, tip, options.flags, options.environ)
    for line in without_effect(loaded):
        say(line)
    config = loaded.config
    backend = config.agent(trial.role).backend.value
    if backend not in BACKENDS:
        raise UserError(f"{trial.role} has no agent to try: its backend is {backend!r}.", Reason.CONFIG)
    for path in trial.write:
        if (problem := path_problem(path)) is not None:
            raise UserError(f"--write {path}: the path {problem}.", Reason.USAGE, path=path)
    tree = repository.tree_of(tip)
    issues, _ = tracker.read_committed(repository, tip, options.issue, repository.branch() or "HEAD")
    box = await box_of(config)
    with lent_context(repository, config, box, options.environ, say) as lent:
        place = lent.checkout.root.with_name("run")
        place.mkdir()
        issue = place / "issue.md"
        issue.write_text(legible((issues.raw(f"{options.issue}.md") or b"").decode()), encoding="utf-8")
        try:
            request = await _request(lent, trial, tree, issue)
        except UnmeasurableError as error:
            raise UserError(f"A run could not begin here: {error}.", Reason.BASELINE_IMPOSSIBLE) from error
        runners = frozenset(one.name for one in projects_in(lent.toolchain))
        dispatcher = Dispatcher(
            run_id=f"run-{options.issue}",
            issue=options.issue,
            run_folder=place,
            repository=lent.repository,
            checkout=lent.checkout,
            # nobody waits at a terminal for hours
            config=config.model_copy(update={"outage": config.outage.model_copy(update={"wait_s": 0})}),
            box=box,
            roles=load_roles(runners),
            templates=load_templates(runners),
            search_path=lent.search_path,
            environ=options.environ,
            say=say,
        )
        record = DispatchRecord(
            dispatch=f"001-try-{trial.role.value}",
            number=1,
            step="try",
            visit=1,
            resumes=0,
            role=trial.role,
            kind=trial.kind,
            question=trial.question.value if trial.question else None,
            task=None,
            attempt=1,
            reask=None,
            base_tree=tree,
            backend=backend,
        )
        say(f"{record.dispatch}: asking @{trial.role.value} to {trial.kind}, {dispatcher.who(record)}")
        result = await dispatcher.dispatch(record, request, InRun(why="tried by hand"))
        if result.not_before is not None:
            say(f"the limit of the account ends at {moment_words(result.not_before)}; try again then")
        folder = place / "dispatches" / record.dispatch
        logs = (folder / name for name in ("stdout.log", "stderr.log"))
        return result, "".join(log.read_text(encoding="utf-8", errors="replace") for log in logs)


async def _request(lent: VerificationContext, trial: Trial, tree: str, issue: Path) -> Request:
    """Return what the slot is asked: the grants, the tests and the tools that it would have in a run.

    Raises:
        UnmeasurableError: no run could begin with these tests.
    """
    await lent.prepare(tree)
    artifacts = {"issue": [issue], **trial.artifacts}
    request = Request(trial.role, trial.kind, tree, question=trial.question, artifacts=artifacts)
    if load_roles()[trial.role].writes is Writes.NOTHING:
        return request
    baseline = await measure(lent, tree, warm=True, what="baseline, all tests")
    if (why := no_baseline(lent.repository, baseline)) is not None:
        raise UnmeasurableError(why)
    paths = [entry.path for entry in lent.repository.entries(tree)]
    task = _task(trial, frozenset(paths))
    files = [change.path for change in (*task.files, *task.test_files)]
    return replace(
        request,
        grants=production_grants(task),
        tests=scope_of(baseline, task, paths, lent.toolchain.sources),
        tools=await tools_for(lent, files),
        accept=partial(criteria.unshown, task) if trial.role is Role.TEST else None,
    )


def _task(trial: Trial, existing: frozenset[str]) -> Task:
    """Return the task that was handed over, with the paths that may be changed besides; without one only these.

    Raises:
        UserError: the file of the task cannot be read as one.
    """
    files = trial.artifacts.get("task", [])
    task = Task(id="1", title="tried by hand", files=(), test_files=())
    if files:
        found = parse_task_md(files[0].read_text(encoding="utf-8", errors="replace"))
        if isinstance(found, Malformed):
            raise UserError(
                f"--artifact task={files[0]}: {found.sentence}", Reason.USAGE, path=str(files[0]), pointer=found.pointer
            )
        task = found
    named = {change.path for change in (*task.files, *task.test_files)}
    more = tuple(
        FileChange(path=path, action=Action.MODIFY if path in existing else Action.CREATE)
        for path in trial.write
        if path not in named
    )
    where = "test_files" if trial.role is Role.TEST else "files"
    return task.model_copy(update={where: (*getattr(task, where), *more)})


def counts(result: DispatchResult) -> bool:
    """Return whether a run would go on with this: the gate admitted what was changed, and the report counts."""
    return result.signal is None and result.gate == "admitted"


def trial_exit_code(result: DispatchResult) -> int:
    """Return the exit code of a run that ends for the same reason (contract 2); 0 if the answer counts."""
    if counts(result):
        return 0
    unusable = exit_code(Outcome.PARKED, Reason.AGENT_UNUSABLE)
    return unusable if result.signal is None else _ENDS.get(result.signal, unusable)


def trial_document(result: DispatchResult, log: str) -> dict[str, Any]:
    """Return what `agents try --json` prints."""
    return {
        "schema": SCHEMA,
        "ok": counts(result),
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
