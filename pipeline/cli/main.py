"""The command line (contract 1): words in, one call, words or one JSON document out. No logic lives here."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline import VERSION, interrupts
from pipeline.cli import completion
from pipeline.cli.arguments import AgentFlags, AsDocumentBesideProgress, GateMeant, MeantRun, Onto, ValueFlags
from pipeline.cli.errors import run_guarded, wants_json
from pipeline.cli.gate_text import answer_rows, near, reading_rows
from pipeline.cli.lazy_commands import LazyCommand, Program, group_of
from pipeline.cli.text import print_text, say, several_lines
from pipeline.errors import UserError
from pipeline.outcomes import Outcome, Reason
from pipeline.policy.characters import visible
from pipeline.terminal import print_document, visible_lines

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from typer.core import TyperGroup

    from pipeline.git import Repository
    from pipeline.service.run_config import RunOptions
    from pipeline.service.run_result import RunDocument
    from pipeline.steps.context import Context

app = typer.Typer(
    name="redfirst",
    cls=Program,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Drive an issue from TODO/ to tested git commits, unattended. RED and GREEN are measured, never believed.",
)
LAZY_COMMANDS: Final = (
    LazyCommand("runs", "pipeline.cli.runs:runs", "List the runs of all worktrees, the newest first."),
    LazyCommand("show", "pipeline.cli.show:show", "Show how a run stands, and what can be done next."),
    LazyCommand("explain", "pipeline.cli.explain:explain", "Say why a run stands where it does."),
    LazyCommand("diff", "pipeline.cli.diff:diff", "Show the run's work so far as a patch against its start."),
    LazyCommand("issue", "pipeline.cli.issue:app", "Read and change the issues in TODO/, without any run."),
    LazyCommand(
        "agents",
        "pipeline.cli.agents:app",
        "The roles: who they are, what they may do, and by which rule.",
        below=(LazyCommand("try", "pipeline.cli.agents_try:try_agent", "Ask one role once, as a run would."),),
    ),
    LazyCommand("verify", "pipeline.cli.verify:verify", "Check again that the tests of a commit were RED before it."),
    LazyCommand("tdd", "pipeline.cli.tdd:app", "Measure RED and GREEN of what you wrote, without any agent."),
    LazyCommand("routes", "pipeline.cli.routes:routes", "Print the routing matrix and its bounds."),
    LazyCommand("simulate", "pipeline.cli.routes:simulate", "Walk the routing matrix with signals from a file."),
    LazyCommand("desk", "pipeline.cli.desk:desk", "Go to the desk where a run waits for you."),
    LazyCommand(
        "recipes",
        "pipeline.cli.recipes:app",
        "Check workflows that are written in a file, and see what they would do. None can be run yet.",
    ),
    LazyCommand("hand-in", "pipeline.cli.hand_in:hand_in", "Hand in what you did at a desk, as the backend `human`."),
    LazyCommand(
        "init", "pipeline.cli.init:init", "Write a starting redfirst.toml for the agents that are installed here."
    ),
    LazyCommand("doctor", "pipeline.cli.doctor:doctor", "Check git, the repository, the sandbox, the tests."),
    LazyCommand("trust", "pipeline.cli.trust:trust", "Allow what this repository asks for."),
    LazyCommand("config", "pipeline.cli.config:app", "The configuration."),
    LazyCommand("schema", "pipeline.cli.schema:schema", "Print a JSON Schema; without a name, list what there is."),
)
"""What is not defined here; each module is imported when its command is asked for."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"redfirst {VERSION}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Drive an issue from TODO/ to tested git commits, unattended."""
    del version


@app.command(name="run")
def run_command(
    issue_id: Annotated[
        str,
        typer.Argument(
            metavar="ISSUE", help="The issue's id: the file TODO/<ISSUE>.md.", autocompletion=completion.issues
        ),
    ],
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="REF", help="The base (main, else master).", autocompletion=completion.branches),
    ] = None,
    agent: AgentFlags = None,
    values: ValueFlags = None,
    tasks: Annotated[str, typer.Option("--tasks", hidden=True)] = "all",
    approve: Annotated[
        str,
        typer.Option(
            "--approve",
            metavar="plan,split,commit",
            help="Park for a person at these gates.",
            autocompletion=completion.gates,
        ),
    ] = "",
    worktree: Annotated[
        bool, typer.Option("--worktree", help="Make a branch and a linked worktree for the issue, and work there.")
    ] = False,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Take an issue to commits on the branch you stand on.

    Examples:
      redfirst run GAL-39

      redfirst run GAL-39 --approve plan,commit --json

      redfirst run GAL-39 --worktree --agent check=scripted
    """
    from pipeline.runs.tracker import named_in  # noqa: PLC0415  (heavy; not on the path of --help)
    from pipeline.service import composition, worktrees  # noqa: PLC0415  (the same)

    if tasks != "all":
        raise UserError(f"--tasks {tasks} is not available in this version; accepted: all.", Reason.USAGE)
    here = repository = _repository()
    issue = named_in(repository.worktree, issue_id)
    options = composition.RunOptions(
        issue=issue, base=base, gates=_gates(approve), agents=tuple(agent or ()), values=tuple(values or ())
    )
    if worktree:
        repository, options = worktrees.create(here, options)
        say(f"made the worktree {repository.worktree}")
    _drive(lambda: composition.start(repository, options, say), here, repository.worktree, as_document=as_document)


@app.command()
def resume(
    name: MeantRun = None,
    onto: Onto = None,
    agent: AgentFlags = None,
    values: ValueFlags = None,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Go on with a parked, cancelled or crashed run: the step of its last unfinished dispatch is asked again.

    Examples:
      redfirst resume

      redfirst resume GAL-39 --set budget.cost_usd=10

      redfirst resume GAL-39 --onto HEAD
    """
    from pipeline.service import composition, gates  # noqa: PLC0415

    options = composition.RunOptions("", agents=tuple(agent or ()), values=tuple(values or ()))
    _answer("resume", name, lambda ctx: gates.resume(ctx, onto), options, as_document)


@app.command()
def approve(
    name: MeantRun = None,
    gate: GateMeant = None,
    agent: AgentFlags = None,
    values: ValueFlags = None,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Approve the gate that a run is parked at; plan.md and task files count as they are on disk now.

    Examples:
      redfirst approve

      redfirst approve GAL-39 --gate plan
    """
    from pipeline.service import composition, gates  # noqa: PLC0415

    _answer(
        "approve",
        name,
        lambda ctx: gates.approve(ctx, gate),
        composition.RunOptions("", agents=tuple(agent or ()), values=tuple(values or ())),
        as_document,
    )


@app.command()
def reject(
    feedback: Annotated[str, typer.Option("--feedback", metavar="TEXT", help="What is wrong; the next draft gets it.")],
    name: MeantRun = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="plan|split|fix",
            help="Where to; by default the gate's own.",
            autocompletion=completion.gate_targets,
        ),
    ] = None,
    gate: GateMeant = None,
    agent: AgentFlags = None,
    values: ValueFlags = None,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Send a run that is parked at a gate back, with feedback.

    Examples:
      redfirst reject --feedback "no new dependency, please"

      redfirst reject GAL-39 --feedback "keep the old signature" --to plan
    """
    from pipeline.service import composition, gates  # noqa: PLC0415

    options = composition.RunOptions("", agents=tuple(agent or ()), values=tuple(values or ()))
    _answer("reject", name, lambda ctx: gates.reject(ctx, feedback, to, gate), options, as_document)


@app.command()
def abandon(name: MeantRun = None, as_document: AsDocumentBesideProgress = False) -> None:
    """End a run without a commit: tracker put back, claim released; the work stays on the run's ref and as a patch.

    Examples:
      redfirst abandon GAL-39
    """
    from pipeline.service import gates  # noqa: PLC0415
    from pipeline.service.elsewhere import located  # noqa: PLC0415

    here = _repository()
    name = _named("abandon", here, name)
    freed = gates.free_orphan(here, name)
    if freed is not None:
        said = f"{freed.issue} is free again: the folder of {freed.run} in {freed.worktree} is gone."
        if Path(freed.worktree) == here.worktree:
            said += " Its file may still say In Progress: git diff TODO"
        freed_document = {"schema": "redfirst.freed/1", "ok": True, "issue": freed.issue}
        if as_document:
            typer.echo(json.dumps(freed_document))
        else:
            print_text(visible(said))
        return
    repository, folder = located(here, name)
    document = _acted(lambda: gates.abandon(repository, folder, say), here, repository.worktree, folder.name)
    _tell(document.model_copy(update={"ok": True, "exit_code": 0}), as_document=as_document)


@app.command()
def demo(
    folder: Annotated[Path | None, typer.Argument(help="Where to make the example repository (a new folder).")] = None,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Make a small real repository and drive an example issue to commits, with scripted agents (no model is asked).

    Examples:
      redfirst demo

      redfirst demo /tmp/shop
    """
    from pipeline.demo.command import run_demo  # noqa: PLC0415

    raise typer.Exit(run_demo(folder, as_document=as_document, say=say))


def _answer(
    command: str, name: str | None, prepare: Callable[[Context], None], options: RunOptions, as_document: bool
) -> None:
    from pipeline.service import composition  # noqa: PLC0415
    from pipeline.service.elsewhere import located  # noqa: PLC0415

    here = _repository()
    repository, folder = located(here, _named(command, here, name))
    options = replace(options, environ=dict(os.environ))
    _drive(
        lambda: composition.go_on(repository, folder, options, say, prepare),
        here,
        repository.worktree,
        folder.name,
        as_document=as_document,
    )


def _drive(
    start: Callable[[], Awaitable[Context]], here: Repository, worktree: Path, run: str = "", *, as_document: bool
) -> None:
    document = _acted(start, here, worktree, run)
    _tell(document, as_document=as_document)
    raise typer.Exit(document.exit_code)


def _acted(act: Callable[[], Awaitable[Context]], here: Repository, worktree: Path, run: str = "") -> RunDocument:
    """Act on a run, in its worktree; return how it stands, with advice as it works where somebody stands."""
    import anyio  # noqa: PLC0415

    from pipeline.service.elsewhere import advice_as_typed, as_typed  # noqa: PLC0415
    from pipeline.service.run_result import run_document  # noqa: PLC0415

    with advice_as_typed(here, worktree, run):
        document = run_document(anyio.run(act))
    actions = as_typed(document.safe_next_actions, here, worktree, document.run_id)
    return document.model_copy(update={"safe_next_actions": actions})


def _tell(document: RunDocument, *, as_document: bool) -> None:
    if as_document:
        print_document(document)
    else:
        print_text(visible_lines(run_text(document)))


def _named(command: str, repository: Repository, name: str | None) -> str:
    """Return the run that a command is to change, and say which one it is where nobody named it."""
    from pipeline.service.meant_run import meant_by  # noqa: PLC0415

    if name is not None:
        return name
    found, why = meant_by(command, repository)
    say(f"{found}: {why}")
    return found


def _gates(text: str) -> tuple[str, ...]:
    gates = tuple(word.strip() for word in text.split(",") if word.strip())
    for gate in gates:
        if gate not in {"plan", "split", "commit"}:
            raise UserError(f"--approve takes plan, split, commit; {gate!r} is none of them.", Reason.USAGE)
    return gates


def _repository() -> Repository:
    from pipeline.git import Repository  # noqa: PLC0415

    return Repository.find(Path.cwd())


def program() -> TyperGroup:
    """Return the whole command line."""
    group = group_of(app)
    for command in LAZY_COMMANDS:
        group.add_command(command)
    return group


def run() -> None:
    """Run the program and leave with its exit code."""
    interrupts.as_ctrl_c()
    call = partial(program(), prog_name="redfirst", standalone_mode=False)
    code = run_guarded(call, json=wants_json(sys.argv[1:]))
    interrupts.ignore()
    sys.exit(code)


def run_text(document: RunDocument) -> str:
    """Return the same for a person."""
    if document.reason is Reason.INTERRUPTED:
        return (
            f"{document.run_id}: interrupted; {several_lines(document.note)}. Go on: redfirst resume {document.run_id}"
        )
    gate = document.at_gate
    how = f"at {gate.place}" if gate else f"({document.reason.value})"
    lines = [f"{document.run_id}: {document.outcome.value} {how}"]
    if document.note and document.outcome not in {Outcome.COMPLETED, Outcome.COMPLETED_WITH_BLOCKERS}:
        lines.append(f"  {several_lines(document.note)}")
    lines += [f"  commit {commit[:12]} on {document.branch}" for commit in document.commits]
    lines += [f"  filed {issue}" for issue in document.follow_ups]
    lines += [f"  blocker on record: {finding}" for finding in document.blockers]
    lines += [f"  {label}: {text}" for label, text in (reading_rows(gate) if gate else ())]
    lines.append(f"  everything is in {near(document.run_dir)}")
    if gate:
        lines += [f"  {label}: {text}" if label else f"        {text}" for label, text in answer_rows(gate)]
    else:
        lines += [f"  next: {action}" for action in document.safe_next_actions]
    return "\n".join(lines)
