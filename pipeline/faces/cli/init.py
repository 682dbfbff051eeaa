"""`redfirst init`: a starting configuration for the agents that are here (contract 1)."""

from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pipeline.agents.backends.discovery import api_version, find_agents, find_servers, with_versions
from pipeline.app.init_config import COMMAND, HUMAN, NOTICES, Start, names, preset, start_called, starts, toml
from pipeline.app.issue_records import claims_of
from pipeline.app.run_config import add_to_user_file, file_at
from pipeline.app.trust_requests import as_tables, projects_here, widening_in
from pipeline.characters import visible
from pipeline.config.load import load
from pipeline.config.model import Config
from pipeline.config.problems import did_you_mean
from pipeline.config.sources import OWN_FILE, RepositoryFile, repository_file, tracker_advice, tracker_folder
from pipeline.errors import UserError
from pipeline.faces.cli.arguments import AsDocument
from pipeline.faces.cli.issue import next_id, user_errors
from pipeline.faces.cli.text import print_text
from pipeline.judge.policy.paths import TRACKER
from pipeline.outcomes import Reason
from pipeline.repo import Repository
from pipeline.run.files import disk
from pipeline.terminal import print_json
from todo import FolderSource, Tracker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCHEMA: Final = "redfirst.init/1"
_INDEX: Final = "# Issues\n\n## Core\n"


def init(
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            help=f"One of {', '.join(names())}. Default: the best here.",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The model's name, for agents that need one.")
    ] = None,
    tracker: Annotated[bool, typer.Option("--tracker", help="Also make the folder of the issues.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the file and write nothing.")] = False,
    argv: Annotated[
        str | None,
        typer.Option("--argv", metavar="COMMAND", help="For --agent command and --notify email: the program."),
    ] = None,
    notify: Annotated[
        str | None,
        typer.Option(
            "--notify",
            metavar="NAME",
            help=f"Only add who is told of runs to your own configuration: {', '.join(NOTICES)}.",
        ),
    ] = None,
    as_document: AsDocument = False,
) -> None:
    """Write a starting redfirst.toml for the agents that are installed here.

    A file that is there is never touched. Agents are looked for on PATH, and model servers on ports of this machine. No
    secret is read.

    Examples:
      redfirst init

      redfirst init --agent codex --model gpt-5-codex

      redfirst init --agent command --argv "python3 /opt/bot/agent.py"

      redfirst init --agent human --dry-run

      redfirst init --notify desktop
    """
    environ = os.environ
    repository = Repository.find(Path.cwd())
    if notify is not None:
        if agent is not None or model is not None or tracker:
            raise UserError("--notify is a call of its own. --argv, --dry-run and --json go with it.", Reason.USAGE)
        _add_notice(repository.worktree, notify, _split(argv), dry_run=dry_run, as_document=as_document)
        return
    if agent is not None and agent not in names():
        raise _no_agent(agent)
    if not dry_run:
        _refuse_second(repository, _same(agent or _usual(environ), model, argv, tracker=tracker))
    known = _known(environ, model)
    start = _chosen(agent, known, environ, model, _words(agent, argv))
    text = toml(start) + as_tables(projects_here(repository, Config()))
    # it is loaded: a file that does not load is no start
    file = RepositoryFile(OWN_FILE, text.encode(), tracked=False)
    asks = bool(widening_in(repository, load(repository.worktree, environ=environ, repo_file=file), environ))
    lacks = {"your program, at argv": start.lacks("argv"), "the model's name, at model": start.lacks("model")}
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "ok": True,
        "agent": start.name,
        "path": str(repository.worktree / OWN_FILE),
        "written": not dry_run,
        "tracker": False,
        "text": text,
        "found": [each.name for each in known],
        "to_write": [what for what, is_lacking in lacks.items() if is_lacking and not dry_run],
        "next": [_same(agent, model, argv, tracker=tracker)],
    }
    if not dry_run:
        _write_new(repository.worktree / OWN_FILE, text)
        document["tracker"] = made = tracker and _make_tracker(repository.worktree / TRACKER)
        document["next"] = _next(repository, start, asks=asks, tracker=made)
    if as_document:
        print_json(document)
    elif document["written"]:
        print_text(_text(document))
    else:
        typer.echo(_text(document))  # a file's content


def _add_notice(here: Path, name: str, argv: Sequence[str], *, dry_run: bool, as_document: bool) -> None:
    """Add who is told of runs to the user's own configuration."""
    values = preset(name, argv)
    path, text = add_to_user_file(("notify", name), values, os.environ, here, write=not dry_run)
    variable = values.get("url_env")
    following = [f"export {variable}=URL   # the address that the service gave you"] if variable else []
    following.append(f"redfirst notify --test {name}")
    if as_document:
        said = {"path": str(path), "written": not dry_run, "text": text, "next": following}
        print_json({"schema": SCHEMA, "ok": True, "notify": name, **said})
    elif dry_run:
        typer.echo(text.rstrip("\n"))
    else:
        wrote = f"wrote [notify.{name}] into {visible(str(path))}"
        print_text("\n".join([wrote, "next:", *(f"  {step}" for step in following)]))


def _known(environ: Mapping[str, str], model: str | None) -> tuple[Start, ...]:
    agents = with_versions(find_agents(environ), environ.get("PATH", os.defpath))
    return starts(agents, find_servers(), api_version(), environ, model)


def _usual(environ: Mapping[str, str]) -> str | None:
    """Return the agent to be named where none was: a person, where nothing else is here; else none."""
    known = starts(find_agents(environ), find_servers(), api_version(), environ, None)
    return HUMAN if known[0].name == HUMAN else None


def _words(agent: str | None, argv: str | None) -> list[str]:
    """Return the words of a command as a shell divides them."""
    if argv is not None and agent != COMMAND:
        raise UserError("--argv names the program of --agent command: give both.", Reason.USAGE)
    return _split(argv)


def _split(argv: str | None) -> list[str]:
    if argv is None:
        return []
    try:
        words = shlex.split(argv)
    except ValueError as error:
        raise UserError(f"--argv {argv}: {error}. Quote it as for a shell.", Reason.USAGE) from None
    if not words:
        raise UserError("--argv is empty: name a program, or leave it out and write it into the file.", Reason.USAGE)
    return words


def _chosen(
    agent: str | None,
    known: tuple[Start, ...],
    environ: Mapping[str, str],
    model: str | None,
    argv: Sequence[str],
) -> Start:
    if agent is None:
        if known[0].name == HUMAN:
            others = (name for name in names() if name not in {HUMAN, COMMAND})
            raise UserError(
                "No agent that redfirst knows is installed here, no local model server answers, and no key for a model "
                "service is set.",
                Reason.CONFIG,
                actions=(
                    "npm install -g @anthropic-ai/claude-code && redfirst init",
                    "redfirst init --agent human   # do the work yourself, with the same gate",
                    "redfirst init --agent command --argv PROGRAM   # a program of your own",
                    f"redfirst init --agent NAME   # for one that you will install: {', '.join(others)}",
                    "redfirst demo   # see the whole way with scripted agents",
                ),
            )
        return known[0]
    chosen = start_called(agent, known, environ, model, argv)
    if chosen is None:
        raise _no_agent(agent)
    return chosen


def _no_agent(agent: str) -> UserError:
    near = did_you_mean(agent, names())
    hint = f" Did you mean {near}?" if near else ""
    return UserError(
        f"--agent {agent} is no agent.{hint} Accepted: {', '.join(names())}. llamacpp is one where its server "
        "answers on port 8080.",
        Reason.USAGE,
        details={"accepted": list(names())},
    )


def _refuse_second(repository: Repository, again: str) -> None:
    # What counts is the committed file; what lies there uncommitted is the user's all the same.
    found = file_at(repository, "HEAD") or repository_file(repository.worktree, lambda _: None)
    if found is not None or os.path.lexists(repository.worktree / OWN_FILE):
        name = found.name if found is not None else OWN_FILE
        raise UserError(
            f"This repository is configured already, in {name}. Nothing was written. Change it there, or remove the "
            "file first.",
            Reason.USAGE,
            path=str(repository.worktree / name),
            actions=(
                "redfirst config show",
                f"{again} --dry-run   # shows what it would have been",
            ),
        )


def _write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet: whole, or not at all, and never over another."""
    with disk(path):
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                os.fchmod(file.fileno(), 0o644)
                file.flush()
                os.fsync(file.fileno())
            os.link(temporary, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                Path(temporary).unlink()


def _make_tracker(folder: Path) -> bool:
    if os.path.lexists(folder):
        return False
    with disk(folder):
        folder.mkdir()
    _write_new(folder / "README.md", _INDEX)
    return True


def _next(repository: Repository, start: Start, *, asks: bool, tracker: bool) -> list[str]:
    steps = [start.install] if start.install is not None else []
    made = f"{OWN_FILE} {tracker_folder(repository.worktree)}" if tracker else OWN_FILE
    steps.append(f"git add {made} && git commit -m 'configure redfirst'")
    steps += ["redfirst trust"] if asks or start.lacks("argv") else []
    return [*steps, "redfirst doctor --agents", *_to_run(repository)]


def _to_run(repository: Repository) -> list[str]:
    """Return what runs the first issue that is ready; where none is, what files one comes before."""
    folder = repository.worktree / tracker_folder(repository.worktree)
    try:
        with user_errors(folder):
            tracker = Tracker(FolderSource(folder))
            ready = tracker.ready() if folder.exists() else []
            if folder.exists() and not tracker.issues() and tracker.unreadable():
                return ["redfirst issue lint"]  # nothing of it can be read: another issue would not mend that
        free = [issue.id for issue in ready if issue.id not in claims_of(repository.worktree)]
        if free:
            return [f"redfirst run {free[0]} --worktree"]
        new = next_id(folder)
    except UserError:
        return [tracker_advice(folder)]
    return [
        f"redfirst issue new --title TITLE --edit && git add {shlex.quote(folder.name)} && git commit -m 'file {new}'",
        f"redfirst run {new} --worktree",
    ]


def _same(agent: str | None, model: str | None, argv: str | None, *, tracker: bool) -> str:
    """Return the command that was given, without --dry-run."""
    given = {"--agent": agent, "--model": model, "--argv": argv}
    words = [word for flag, value in given.items() if value is not None for word in (flag, value)]
    return shlex.join(["redfirst", "init", *words, *(["--tracker"] if tracker else [])])


def _text(document: dict[str, Any]) -> str:
    if not document["written"]:
        return str(document["text"]).rstrip("\n")
    others = [name for name in document["found"] if name not in {document["agent"], HUMAN}]
    also = f" (also here: {', '.join(others)})" if others else ""
    lines = [f"wrote {visible(document['path'])} for {document['agent']}{also}"]
    lines += [f"made {TRACKER}/"] if document["tracker"] else []
    lines += [f"write {each} there, without the #" for each in document["to_write"]]
    return "\n".join([*lines, "next:", *(f"  {step}" for step in document["next"])])
