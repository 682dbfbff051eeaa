"""`redfirst agents try`: one dispatch to one role, judged by the gate, with nothing applied (contract 1)."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Annotated, Any, Final

import anyio
import typer

from pipeline.cli.arguments import AgentFlags, AsDocument, ValueFlags
from pipeline.errors import UserError
from pipeline.git import Repository
from pipeline.outcomes import Outcome, Reason, exit_code
from pipeline.policy.characters import visible
from pipeline.reports.kinds import KINDS
from pipeline.routing.vocabulary import Question, Role, Signal
from pipeline.service.run_config import RunOptions, refuse_recursion
from pipeline.service.trial import trial_document, try_role
from pipeline.terminal import visible_lines

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
    agent: AgentFlags = None,
    values: ValueFlags = None,
    as_document: AsDocument = False,
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
    options = RunOptions(issue, agents=tuple(agent or ()), values=tuple(values or ()))
    with tempfile.TemporaryDirectory(prefix="redfirst-try-") as place:
        result, log = anyio.run(
            try_role,
            repository,
            options,
            role,
            kind,
            question,
            tuple(write or ()),
            _named(artifact or []),
            Path(place),
            _say,
        )
    document = trial_document(result, log)
    typer.echo(json.dumps(document, indent=2) if as_document else _text(document))
    if result.signal is not None:
        raise typer.Exit(_ENDS.get(result.signal, exit_code(Outcome.PARKED, Reason.AGENT_UNUSABLE)))


def _say(text: str) -> None:
    typer.echo(visible(text), err=True)


def _named(artifacts: list[str]) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for item in artifacts:
        name, _, file = item.partition("=")
        path = Path(file)
        if not name or not path.is_file():
            raise UserError(f"--artifact takes NAME=FILE with an existing file, not {item!r}.", Reason.USAGE)
        found.setdefault(name, []).append(path)
    return found


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
    return "\n".join(map(visible_lines, lines))


def _usage(usage: dict[str, Any]) -> str:
    cost = f"{usage['cost_usd']:.4f} USD" if usage["cost_usd"] is not None else "cost unknown"
    tokens = (usage["input_tokens"], usage["output_tokens"])
    return f"{cost}, " + ("tokens unknown" if None in tokens else f"{tokens[0]} tokens in, {tokens[1]} out")
