"""`redfirst agents`: who the roles are, what each may do, one asked for trial, their files elsewhere (contract 1)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import anyio
import typer
from typer.core import TyperCommand

from pipeline.agents.dispatch.gate import with_regions
from pipeline.agents.dispatch.prompt import parse_template
from pipeline.agents.dispatch.roles import WORKFLOW, data_folder, load_roles, load_templates, prompts_hash
from pipeline.app.agent_files import ExportDocument, Target, export_roles
from pipeline.app.run_config import RunOptions, refuse_recursion
from pipeline.characters import visible
from pipeline.config.problems import did_you_mean
from pipeline.config.sources import tracker_folder
from pipeline.errors import UserError
from pipeline.faces.cli.arguments import AgentFlags, AsDocument, ValueFlags, file_given
from pipeline.faces.cli.text import print_result, print_text, say
from pipeline.judge.policy.commands import judge_argv
from pipeline.judge.policy.paths import protected, scratch_pattern
from pipeline.judge.policy.rights import Action, Change, ChangeKind, Grant, Ruling, TestScope, judge
from pipeline.judge.policy.roles import ContractError, Problem, RoleSpec, parse_role
from pipeline.judge.reports.kinds import KINDS
from pipeline.outcomes import Reason
from pipeline.repo import Repository
from pipeline.run.tracker import named_in
from pipeline.terminal import print_json, visible_lines
from pipeline.testing.languages.table import listed_commands
from pipeline.vocabulary import Question, Role

if TYPE_CHECKING:
    from collections.abc import Sequence


SCHEMA: Final = "redfirst.agents/1"
LINT_SCHEMA: Final = "redfirst.agents-lint/1"
_PROBLEMS: Final = 2
_COMMAND: Final = "redfirst.command"
_NO_FILE: Final = "-"
_Content = tuple[bytes | None, bytes | None]
"""What a path holds before and after; None means that there is no file."""

app = typer.Typer(
    name="agents",
    help="Show the roles, what they may do, and by which rule.",
    no_args_is_help=True,
)


@app.command()
def export(
    to: Annotated[Target, typer.Option("--to", help="The product.")],
    folder: Annotated[
        Path | None, typer.Option("--dir", metavar="DIR", help="Where to. By default the product's folder here.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that differ.")] = False,
    as_document: AsDocument = False,
) -> None:
    """Write the roles as agent files of another product.

    It says what those files cannot keep.

    Examples:
      redfirst agents export --to opencode

      redfirst agents export --to claude --dir ~/.claude/agents --json
    """
    document = export_roles(to, folder, force=force)
    print_result(document, _export_text, as_document=as_document)


@app.command("list")
def list_roles(as_document: AsDocument = False) -> None:
    """List the roles with what they are asked and what they may do.

    Examples:
      redfirst agents list

      redfirst agents list --json
    """
    specs = load_roles().values()
    if as_document:
        roles = [spec.model_dump(mode="json", exclude={"prompt"}) for spec in specs]
        print_json({"schema": SCHEMA, "prompts_sha256": prompts_hash(), "roles": roles})
        return
    for spec in specs:
        shell = "shell" if spec.shell else "no shell"
        print_text(f"{spec.name}: writes {spec.writes}, {shell}; {', '.join(spec.kinds)}")
        print_text(f"  {spec.description}")


@app.command()
def lint(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="Role and template files. Default: ours.")
    ] = None,
    as_document: AsDocument = False,
) -> None:
    """Say what is wrong in the files of roles and templates.

    Keys are closed, words are known, and each artifact is named. The exit code is 2 when one is wrong.

    Examples:
      redfirst agents lint

      redfirst agents lint agents/check.md commands/judge-amend.md
    """
    found = [(str(path), problem) for path in files for problem in _lint_file(path)] if files else _lint_ours()
    if as_document:
        problems = [
            {"file": file, "line": problem.line, "message": problem.message, "accepted": problem.accepted}
            for file, problem in found
        ]
        print_json({"schema": LINT_SCHEMA, "ok": not found, "problems": problems})
    else:
        for file, problem in found:
            print_text(visible(f"{file}:{problem.line}: {problem}"))
        typer.echo(f"{len(found)} problems" if found else "no problems")
    if found:
        raise typer.Exit(_PROBLEMS)


def _lint_ours() -> list[tuple[str, Problem]]:
    """Load everything first, for what concerns the set: a file too many or too few."""
    found = [
        (str(entry), problem)
        for folder in ("agents", "commands")
        for entry in data_folder(folder).iterdir()
        if entry.name.endswith(".md")
        for problem in _lint_file(Path(str(entry)))
    ]
    if found:
        return found
    try:
        load_roles()
        load_templates()
    except ContractError as error:
        return [(f"{error.name}.md", problem) for problem in error.problems]
    return []


def _lint_file(path: Path) -> Sequence[Problem]:
    try:
        text = file_given(path).decode()
    except UnicodeDecodeError as error:
        return [Problem(1, f"not UTF-8 at byte {error.start}")]
    if path.name == f"{WORKFLOW}.md":
        return [] if text.strip() else [Problem(1, "the operational rules are empty")]
    parse = parse_role if path.stem in [role.value for role in Role] else parse_template
    try:
        parse(text, path.stem)
    except ContractError as error:
        return error.problems
    return []


class _WithCommand(TyperCommand):
    """Keeps what stands after `--` apart; the parser would take it for further paths."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return what the parser left over of the words before `--`."""
        if "--" in args:
            ctx.meta[_COMMAND] = tuple(args[args.index("--") + 1 :])
            args = args[: args.index("--")]
        return super().parse_args(ctx, args)


@app.command(cls=_WithCommand)
def explain(
    ctx: typer.Context,
    role: Annotated[Role, typer.Argument(metavar="ROLE", help="Who.")],
    path: Annotated[
        str | None, typer.Argument(metavar="PATH", help="A path relative to the repository, or -- and a command.")
    ] = None,
    change: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="OLD NEW", help="Two files: the content before and after. - means absent."),
    ] = None,
    task_files: Annotated[
        list[str] | None, typer.Option("--task-file", metavar="PATH:ACTION", help="As if the task named it.")
    ] = None,
    test_files: Annotated[
        list[str] | None, typer.Option("--test-file", metavar="PATH[:ACTION]", help="A test file of the task.")
    ] = None,
    as_document: AsDocument = False,
) -> None:
    """Say whether a role may change a path or run a command, and by which rule.

    Name the files of a task, else the answer is for a task that names none. Without --change, the path counts as
    modified if it exists here, else as added.

    Examples:
      redfirst agents explain make src/a.py --task-file src/a.py:modify

      redfirst agents explain make src/a.py --change - new.py

      redfirst agents explain test -- pytest -q
    """
    command: tuple[str, ...] | None = ctx.meta.get(_COMMAND)
    if (path is None) == (command is None):
        raise _usage("Give either a PATH, or -- and a command.")
    if command is not None and (change or task_files or test_files):
        raise _usage("--change, --task-file and --test-file belong to a PATH.")
    spec = load_roles()[role]
    if command is not None:
        ruling = _judge_command(spec, command)
    else:
        grants = tuple(_grant(word) for word in task_files or ())
        tests = TestScope(files=tuple(_grant(word, default=Action.CREATE) for word in test_files or ()))
        content = None
        if change is not None:
            before, after = (None if name == _NO_FILE else file_given(Path(name)) for name in change)
            content = (before, after)
        ruling = _judge_path(spec, str(path), content, grants, tests)
    if as_document:
        note = {} if ruling.note is None else {"note": ruling.note}
        typer.echo(json.dumps({"allowed": ruling.allowed, "rule": ruling.rule, "why": ruling.why, **note}))
        return
    print_text(visible(f"{'allowed' if ruling.allowed else 'refused'}  {ruling.rule}: {ruling.why}"))
    if ruling.note is not None:
        print_text(visible(f"note     {ruling.note}"))


def _usage(message: str) -> UserError:
    return UserError(message, Reason.USAGE, actions=("redfirst agents explain --help",))


def _grant(word: str, default: Action | None = None) -> Grant:
    """Return the grant that `PATH:ACTION` or `PATH:rename:FROM` stands for."""
    path, _, rest = word.partition(":")
    action, _, origin = rest.partition(":")
    if not action and default is not None:
        action = default.value
    if not path or action not in [member.value for member in Action] or (action == Action.RENAME) != bool(origin):
        accepted = "PATH:create, PATH:modify, PATH:delete, PATH:rename:FROM"
        raise _usage(f"{word!r} is not one of {accepted}.")
    return Grant(path, Action(action), origin or None)


def _judge_path(
    spec: RoleSpec, path: str, content: _Content | None, grants: tuple[Grant, ...], tests: TestScope
) -> Ruling:
    if path.startswith("/") or ".." in path.split("/"):
        raise _usage(f"{path!r} is not a path relative to the top of the repository.")
    scratch = scratch_pattern(path)
    if scratch is not None and protected(path) is None:
        return Ruling(allowed=True, rule="scratch", why=f"{path!r} ({scratch}) is dropped: it never enters the result")
    if content is None:
        kind = ChangeKind.MODIFIED if Path(path).exists() else ChangeKind.ADDED
    elif content[0] == content[1]:
        return Ruling(allowed=True, rule="no-change", why=f"{path!r} is the same before and after")
    elif content[0] is None:
        kind = ChangeKind.ADDED
    else:
        kind = ChangeKind.MODIFIED if content[1] is not None else ChangeKind.DELETED
    change = Change(path, kind)
    old, new = content or (None, None)
    if spec.test_regions and old is not None and new is not None:
        change = with_regions(change, old, new)
    return judge(spec.writes, change, grants, tests, tracker=tracker_folder(Path.cwd()))


def _judge_command(spec: RoleSpec, command: tuple[str, ...]) -> Ruling:
    if not command:
        raise _usage("There is no command after --.")

    ruling = judge_argv(command, listed_commands(), shell=spec.shell)
    note = (
        "This binds agents whose tools are redfirst's own. The command of any other agent runs in the box: network "
        f"{spec.network}, nothing outside the view is writable. The permission gate judges what it leaves behind. With "
        'sandbox = "none" only that gate holds'
    )
    if Path(command[0]).name == "git":
        note += ". There git sees a throw-away repository of one commit: commits and pushes have no effect on yours"
    return Ruling(ruling.allowed, ruling.rule, ruling.why, f"{note}.")


def _export_text(document: ExportDocument) -> str:
    """Return what a person reads."""
    lines: list[str] = []
    for role in document.roles:
        lines.append(f"{role.state:<9}  {role.file}")
        lines += [f"{'':<11}not kept: {key.key} = {key.value} ({key.why})" for key in role.ignored]
    return "\n".join((*lines, document.note))


@app.command("try")
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
    from pipeline.app.trial import Trial, trial_document, trial_exit_code, try_role

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
    trial = Trial(role, kind, question, tuple(write or ()), _artifacts_of(artifact or []))
    result, log = anyio.run(try_role, repository, options, trial, say)
    document = trial_document(result, log)
    if as_document:
        print_json(document)
    else:
        print_text(_trial_text(document))
    code = trial_exit_code(result)
    if code:
        raise typer.Exit(code)


def _artifacts_of(artifacts: list[str]) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for item in artifacts:
        name, _, file = item.partition("=")
        path = Path(file)
        if not name or not path.is_file():
            raise UserError(f"--artifact takes NAME=FILE with an existing file, not {item!r}.", Reason.USAGE)
        found.setdefault(name, []).append(path)
    return found


def _trial_text(document: dict[str, Any]) -> str:
    agent: dict[str, str | None] = document["agent"] or {}
    lines = ["asked: " + " ".join(word for word in agent.values() if word is not None)]
    lines.append(f"gate: {document['gate']}")
    lines += [f"  {change['kind']} {change['path']}" for change in document["changes"]]
    lines += [f"  dropped {line}" for line in document["dropped"]]
    lines += [f"  refused {v['path']} ({v['rule']}): {v['why']}" for v in document["violations"]]
    lines += [f"  denied {line}" for line in document["denials"]]
    lines.append(f"usage: {_usage_text(document['usage'])}")
    lines.append(f"report: {json.dumps(document['report'], indent=2)}")
    if document["report_error"]:
        lines.append(f"does not count: {document['report_error']}")
    else:
        lines.append("counts: a run would go on with this" if document["ok"] else "does not count: the gate rejects it")
    return "\n".join(map(visible_lines, lines))


def _usage_text(usage: dict[str, Any]) -> str:
    cost = f"{usage['cost_usd']:.4f} USD" if usage["cost_usd"] is not None else "cost unknown"
    tokens = (usage["input_tokens"], usage["output_tokens"])
    return f"{cost}, " + ("tokens unknown" if None in tokens else f"{tokens[0]} tokens in, {tokens[1]} out")
