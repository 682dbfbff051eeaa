"""`redfirst agents try`: one dispatch to one role, judged by the gate, with nothing applied (contract 1)."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import anyio
import typer

from pipeline.backends import BACKENDS
from pipeline.boxes.box import open_box
from pipeline.dispatch.dispatcher import Dispatcher
from pipeline.dispatch.request import Request
from pipeline.dispatch.roles import load_roles, load_templates
from pipeline.errors import UserError
from pipeline.git import Repository
from pipeline.outcomes import Outcome, Reason, exit_code
from pipeline.policy.scope import Action, Grant, TestScope
from pipeline.reports.fields import path_problem
from pipeline.reports.foreign import legible
from pipeline.reports.kinds import KINDS
from pipeline.routing.vocabulary import Question, Role, Signal
from pipeline.runs.checkout import PrivateCheckout
from pipeline.runs.info import DispatchRecord
from pipeline.service.orders import Order, load_config, refuse_recursion
from pipeline.steps import tracker
from pipeline.terminal import block, plain

if TYPE_CHECKING:
    from pipeline.runs.info import DispatchResult

SCHEMA = "redfirst.agents-try/1"
_ENDS: Final = {
    Signal.UNAVAILABLE: exit_code(Outcome.PARKED, Reason.AGENT_UNAVAILABLE),
    Signal.BUDGET: exit_code(Outcome.PARKED, Reason.BUDGET),
    Signal.ESCAPE: exit_code(Outcome.FAILED, Reason.ESCAPE),
}


def try_agent(
    role: Annotated[Role, typer.Argument(help="Who is asked.")],
    kind: Annotated[str, typer.Option("--kind", help="What is asked, such as implement or review-plan.")],
    issue: Annotated[str, typer.Option("--issue", metavar="ID", help="The issue; its file is an artifact.")],
    write: Annotated[
        list[str] | None, typer.Option("--write", metavar="PATH", help="A path the dispatch may change; repeatable.")
    ] = None,
    artifact: Annotated[
        list[str] | None, typer.Option("--artifact", metavar="NAME=FILE", help="A further artifact; repeatable.")
    ] = None,
    question: Annotated[Question | None, typer.Option("--question", help="For kind judge.")] = None,
    agent: Annotated[
        list[str] | None, typer.Option("--agent", metavar="ROLE=NAME", help="Backend of one role; repeatable.")
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One configuration value; repeatable.")
    ] = None,
    as_document: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Ask one role once, as a run would, and say what the gate makes of it. Nothing is applied, no run is made.

    The exit code is 0 if the answer would count, else that of a run which ends for the same reason: 4 for an answer
    that is none, 5 for the budget, 6 for an escape, 75 for a model service out of reach.
    """
    refuse_recursion(os.environ)
    if kind not in KINDS or role not in KINDS[kind].roles:
        kinds = ", ".join(name for name, row in KINDS.items() if role in row.roles)
        raise UserError(f"{role} is not asked {kind!r}; accepted: {kinds}.", Reason.USAGE)
    if (question is None) == bool(KINDS[kind].by_question):
        asks = ", ".join(KINDS["judge"].by_question)
        raise UserError(f"--kind judge needs --question ({asks}); no other kind takes one.", Reason.USAGE)
    repository = Repository.find(Path.cwd())
    order = Order(issue, agents=tuple(agent or ()), values=tuple(values or ()))
    with tempfile.TemporaryDirectory(prefix="redfirst-try-") as place:
        result, log = anyio.run(
            _dispatch, repository, order, role, kind, question, tuple(write or ()), tuple(artifact or ()), Path(place)
        )
    document = _document(result, log)
    typer.echo(json.dumps(document, indent=2) if as_document else _text(document))
    if result.signal is not None:
        raise typer.Exit(_ENDS.get(result.signal, exit_code(Outcome.PARKED, Reason.AGENT_UNUSABLE)))


async def _dispatch(
    repository: Repository,
    order: Order,
    role: Role,
    kind: str,
    question: Question | None,
    write: tuple[str, ...],
    artifacts: tuple[str, ...],
    place: Path,
) -> tuple[DispatchResult, str]:
    tip = repository.resolve("HEAD")
    if tip is None:
        raise UserError("The branch has no commit yet.", Reason.USAGE)
    config = load_config(repository, tip, order)
    backend = config.agent(role).backend.value
    if backend not in BACKENDS:
        raise UserError(f"{role} has no agent to try: its backend is {backend!r}.", Reason.CONFIG)
    for path in write:
        if (problem := path_problem(path)) is not None:
            raise UserError(f"--write {path}: the path {problem}.", Reason.USAGE, path=path)
    tree = repository.tree_of(tip)
    with tracker.as_user_errors():
        issues = tracker.in_tree(repository, tree)
        issues.read(order.issue)
    (place / "issue.md").write_text(legible((issues.raw(f"{order.issue}.md") or b"").decode()), encoding="utf-8")
    named = {"issue": [place / "issue.md"], **_named(artifacts)}
    existing = {entry.path for entry in repository.entries(tree)}
    grants = tuple(Grant(path, Action.MODIFY if path in existing else Action.CREATE) for path in write)
    checkout = PrivateCheckout(repository, place / "state")
    checkout.open(tree)
    dispatcher = Dispatcher(
        run_id=f"run-{order.issue}",
        run_folder=place / "run",
        repository=repository,
        checkout=checkout,
        config=config,
        box=await open_box(config.sandbox.value),
        roles=load_roles(),
        templates=load_templates(),
        search_path=order.environ.get("PATH", os.defpath),
        environ=order.environ,
        say=_say,
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


def _say(text: str) -> None:
    typer.echo(plain(text), err=True)


def _named(artifacts: tuple[str, ...]) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for item in artifacts:
        name, _, file = item.partition("=")
        path = Path(file)
        if not name or not path.is_file():
            raise UserError(f"--artifact takes NAME=FILE with an existing file, not {item!r}.", Reason.USAGE)
        found.setdefault(name, []).append(path)
    return found


def _document(result: DispatchResult, log: str) -> dict[str, Any]:
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


def _text(document: dict[str, Any]) -> str:
    agent: dict[str, str | None] = document["agent"] or {}
    lines = ["asked: " + " ".join(word for word in agent.values() if word is not None)]
    lines.append(f"gate: {document['gate']}")
    lines += [f"  {change['kind']} {change['path']}" for change in document["changes"]]
    lines += [f"  dropped {line}" for line in document["dropped"]]
    lines += [f"  refused {v['path']} ({v['rule']}): {v['why']}" for v in document["violations"]]
    lines += [f"  denied {line}" for line in document["denials"]]
    lines.append(f"usage: {_usage(document['usage'])}")
    lines.append(f"report: {json.dumps(document['report'], indent=2)}")
    if document["report_error"]:
        lines.append(f"does not count: {document['report_error']}")
    return "\n".join(map(block, lines))


def _usage(usage: dict[str, Any]) -> str:
    cost = f"{usage['cost_usd']:.4f} USD" if usage["cost_usd"] is not None else "cost unknown"
    tokens = (usage["input_tokens"], usage["output_tokens"])
    return f"{cost}, " + ("tokens unknown" if None in tokens else f"{tokens[0]} tokens in, {tokens[1]} out")
