"""`redfirst agents try`: one dispatch to one role, judged by the gate, with nothing applied (contract 1)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from pipeline.cli.arguments import AgentFlags, AsDocument, ValueFlags
from pipeline.cli.text import print_text, say
from pipeline.config.problems import did_you_mean
from pipeline.errors import UserError
from pipeline.git import Repository
from pipeline.outcomes import Reason
from pipeline.reports.kinds import KINDS
from pipeline.routing.vocabulary import Question, Role  # noqa: TC001  (typer reads them)
from pipeline.runs.tracker import named_in
from pipeline.service.run_config import RunOptions, refuse_recursion
from pipeline.service.trial import Trial, trial_document, trial_exit_code, try_role
from pipeline.terminal import visible_lines


def try_agent(
    role: Annotated[Role, typer.Argument(metavar="ROLE", help="Who is asked.")],
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="What is asked, such as implement or review-plan.",
        ),
    ],
    issue: Annotated[
        str,
        typer.Option("--issue", metavar="ID", help="The issue. Its file is an artifact."),
    ],
    write: Annotated[
        list[str] | None, typer.Option("--write", metavar="PATH", help="A path the dispatch may change. Repeatable.")
    ] = None,
    artifact: Annotated[
        list[str] | None, typer.Option("--artifact", metavar="NAME=FILE", help="A further artifact. Repeatable.")
    ] = None,
    question: Annotated[Question | None, typer.Option("--question", help="For kind judge.")] = None,
    agent: AgentFlags = None,
    values: ValueFlags = None,
    as_document: AsDocument = False,
) -> None:
    """Ask one role once, as a run would, and say what the permission gate makes of it.

    Nothing is applied, and no run is made. A role that writes gets what a run gives it: setup is run, and all tests. A
    task file (--artifact task=FILE) grants its paths, too.

    The exit code is 0 if the answer would count. It is 2 where a run could not begin. It is 4 where the gate or the
    report rejects the answer. It is 5 for the budget, 6 for an escape, and 75 for a model service out of reach.

    Examples:
      redfirst agents try make --kind implement --issue GAL-39 --write a.py

      redfirst agents try check --kind judge --question tests --issue GAL-39
    """
    refuse_recursion(os.environ)
    if kind not in KINDS or role not in KINDS[kind].roles:
        kinds = ", ".join(name for name, row in KINDS.items() if role in row.roles)
        near = did_you_mean(kind, kinds.split(", "))
        hint = f" Did you mean {near}?" if near else ""
        raise UserError(f"{role} is not asked {kind!r}. Accepted: {kinds}.{hint}", Reason.USAGE)
    if (question is None) == bool(KINDS[kind].by_question):
        asks = ", ".join(KINDS["judge"].by_question)
        raise UserError(f"--kind judge needs --question ({asks}). No other kind takes one.", Reason.USAGE)
    repository = Repository.find(Path.cwd())
    options = RunOptions(named_in(repository.worktree, issue), agents=tuple(agent or ()), values=tuple(values or ()))
    trial = Trial(role, kind, question, tuple(write or ()), _named(artifact or []))
    result, log = anyio.run(try_role, repository, options, trial, say)
    document = trial_document(result, log)
    if as_document:
        typer.echo(json.dumps(document, indent=2))
    else:
        print_text(_text(document))
    code = trial_exit_code(result)
    if code:
        raise typer.Exit(code)


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
    else:
        lines.append("counts: a run would go on with this" if document["ok"] else "does not count: the gate rejects it")
    return "\n".join(map(visible_lines, lines))


def _usage(usage: dict[str, Any]) -> str:
    cost = f"{usage['cost_usd']:.4f} USD" if usage["cost_usd"] is not None else "cost unknown"
    tokens = (usage["input_tokens"], usage["output_tokens"])
    return f"{cost}, " + ("tokens unknown" if None in tokens else f"{tokens[0]} tokens in, {tokens[1]} out")
