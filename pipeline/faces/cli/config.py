"""`redfirst config` and `redfirst trust`: every value and where it comes from, and what is allowed (contract 4)."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pipeline.app.recipe_choice import recipes_of
from pipeline.app.run_config import file_at, set_in_repository, set_in_user_file, uncounted
from pipeline.app.trust_requests import projects_here, widening_in
from pipeline.characters import visible
from pipeline.config import keys
from pipeline.config import trust as store
from pipeline.config.layers import Flags, key_path
from pipeline.config.load import Loaded, load
from pipeline.config.problems import did_you_mean
from pipeline.config.sources import Layer, Origin
from pipeline.config.trust import Widening, as_json, is_trusted
from pipeline.config.user_folders import state_folder
from pipeline.errors import UserError
from pipeline.faces.cli.arguments import AsDocument, repository_here
from pipeline.faces.cli.text import print_text
from pipeline.outcomes import Reason
from pipeline.repo import Repository
from pipeline.run.files import locked
from pipeline.terminal import print_json
from pipeline.testing.languages.projects.combined import TOP

SCHEMA: Final = "redfirst.config/1"
VALUE_SCHEMA: Final = "redfirst.config-value/1"
SET_SCHEMA: Final = "redfirst.config-set/1"
_HIDDEN: Final = "(hidden)"
_ENV: Final = ".env."
_UNSET: Final = {"hidden": False, "layer": Layer.DEFAULT.value}

app = typer.Typer(help="Show and change the configuration.", no_args_is_help=True)
Key = Annotated[str, typer.Argument(metavar="KEY", help="With dots, such as budget.cost_usd.")]


@app.command()
def show(
    assignments: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="As if set.")] = None,
    agents: Annotated[list[str] | None, typer.Option("--agent", metavar="[ROLE=]NAME", help="As if chosen.")] = None,
    as_document: AsDocument = False,
) -> None:
    """Show every value and where it comes from.

    Examples:
      redfirst config show

      redfirst config show --set budget.cost_usd=5 --agent make=human
    """
    repository = Repository.find(Path.cwd())
    flags = Flags.parse(assignments or (), agents or ())
    loaded = load(repository.worktree, environ=os.environ, repo_file=file_at(repository, "HEAD"), flags=flags)
    widening = widening_in(repository, loaded, os.environ)
    trusted = is_trusted(widening, repository.common_dir, os.environ)
    notes = uncounted(repository, os.environ)
    projects = projects_here(repository, loaded.config)
    if as_document:
        found = [{"toolchain": one.name, "folder": one.folder or TOP} for one in projects]
        document = {"schema": SCHEMA, "values": _facts(loaded), "widening": as_json(widening), "trusted": trusted}
        print_json({**document, "projects": found, "notes": notes})
    else:
        several = len(projects) > 1 or any(one.folder for one in projects)
        names = ", ".join(visible(f"{one.name} in {one.folder or TOP}") for one in projects)
        lines = [f"measured: {names}"] if several else []
        lines += [f"note: {visible(note)}" for note in notes]
        print_text("\n".join([_text(loaded, widening, trusted=trusted), *lines]))


@app.command()
def get(key: Key, as_document: AsDocument = False) -> None:
    """Print the value of a key, and on stderr where it comes from.

    Of a table all keys are printed. A value that is not set is an empty line, and null with --json.

    Examples:
      redfirst config get budget.cost_usd

      redfirst config get agents.make --json
    """
    repository = Repository.find(Path.cwd())
    loaded = load(repository.worktree, environ=os.environ, repo_file=file_at(repository, "HEAD"))
    found = _of_key(loaded, key)
    if as_document:
        print_json({"schema": VALUE_SCHEMA, "ok": True, "key": key, "values": found})
        return
    for name, facts in found.items():
        value = _HIDDEN if facts["hidden"] else facts["value"]
        shown = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        typer.echo(visible(shown if name == key else f"{name} = {shown}"))
        origin = ":".join(str(part) for part in (facts["source"] or facts["layer"], facts["line"]) if part is not None)
        if name == key:
            print_text(visible(f"{name} comes from {origin}"), err=True)
    for note in uncounted(repository, os.environ):
        print_text(visible(f"note: {note}"), err=True)


@app.command("set")
def set_value(
    key: Key,
    value: Annotated[str, typer.Argument(metavar="VALUE", help='A word, or a TOML value: 5, true, ["a", "b"].')],
    user: Annotated[bool, typer.Option("--user", help="In your own file, for all repositories.")] = False,
    repo: Annotated[bool, typer.Option("--repo", help="In the repository's file. That is the default.")] = False,
    as_document: AsDocument = False,
) -> None:
    """Set one value in a configuration file.

    Comments and order stay. A value that a run would refuse is not written.

    Examples:
      redfirst config set limits.make_retry 3

      redfirst config set agents.make.model large --user

      redfirst config set toolchains.pytest.command '["uv", "run", "pytest"]'
    """
    if user and repo:
        raise UserError("Give --user or --repo, not both.", Reason.USAGE)
    if user:
        done = set_in_user_file(key, value, os.environ, repository_here())
    else:
        done = set_in_repository(key, value, os.environ, Repository.find(Path.cwd()))
    if as_document:
        hidden = _ENV in key
        facts = {
            "hidden": hidden,
            "path": str(done.path),
            "needs_trust": done.needs_trust,
            "overruled_by": done.overruled_by or None,
        }
        print_json({"schema": SET_SCHEMA, "ok": True, "key": key, "value": None if hidden else done.value, **facts})
        return
    shown = _HIDDEN if _ENV in key else json.dumps(done.value, ensure_ascii=False)
    print_text(visible(f"{key} = {shown} in {done.path}"))
    if done.overruled_by:
        print_text(visible(f"note: {done.overruled_by} says something else, and that counts"))
    if not user:
        print_text("a run takes what is committed")
        file = shlex.quote(os.path.relpath(done.path))
        following = [f"git add {file} && git commit -m 'configure redfirst'"]
        following += ["redfirst trust"] if done.needs_trust else []
        for command in following:
            print_text(visible(f"next: {command}"))


def _of_key(loaded: Loaded, key: str) -> dict[str, dict[str, Any]]:
    """Return the facts of a key, or of all keys of a table.

    Raises:
        UserError: there is no such key.
    """
    path, every = key_path(key), _facts(loaded)
    below = {name: facts for name, facts in every.items() if name == key or name.startswith(f"{key}.")}
    if below:
        return below
    if keys.find(path) is not None:  # a role's that it inherits, or one that is not set
        general = keys.dotted((path[0], *path[2:]))
        return {key: every.get(general) or dict.fromkeys(("value", "source", "line"), None) | _UNSET}
    known = dict.fromkeys(keys.dotted(leaf[:depth]) for leaf in keys.LEAVES for depth in range(1, len(leaf) + 1))
    near = did_you_mean(key, list(known))
    raise UserError(
        f'"{key}" is no key of the configuration.{f" Did you mean {near}?" if near else ""}',
        Reason.CONFIG,
        details={"did_you_mean": near},
        actions=("redfirst config show",),
    )


def _facts(loaded: Loaded) -> dict[str, dict[str, Any]]:
    values: dict[str, dict[str, Any]] = {}
    for key, value in loaded.values().items():
        origin = loaded.origins[key]
        hidden = _is_hidden(key, origin)
        values[key] = {
            "value": None if hidden else value,
            "hidden": hidden,
            "layer": origin.layer.value,
            "source": origin.source or None,
            "line": origin.line,
        }
    return values


def _text(loaded: Loaded, widening: tuple[Widening, ...], *, trusted: bool) -> str:
    """Return the values with their origins, one line each."""
    rows: list[tuple[str, str]] = []
    for key, value in loaded.values().items():
        origin = loaded.origins[key]
        shown = _HIDDEN if _is_hidden(key, origin) else "(not set)" if value is None else json.dumps(value)
        rows.append((visible(f"{key} = {shown}"), visible(str(origin))))
    width = max(len(left) for left, _ in rows)
    lines = [f"{left:<{width}}  {origin}" for left, origin in rows]
    if not trusted:
        keys = ", ".join(visible(item.key) for item in widening)
        lines += ["", f"Not trusted yet, so that a run is refused: {keys}. See: redfirst trust"]
    return "\n".join(lines)


def _is_hidden(key: str, origin: Origin) -> bool:
    # What a repository hands to agents is no secret of the user's; what the user's own layers hand over may be one.
    return _ENV in key and origin.layer is not Layer.REPOSITORY


TRUST_SCHEMA: Final = "redfirst.trust/1"


def trust(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Forget what was allowed.")] = False,
    as_document: AsDocument = False,
) -> None:
    """Show what this repository asks for, and allow it.

    It is asked once for all worktrees, and again when one of the values changes.

    Examples:
      redfirst trust

      redfirst trust --revoke
    """
    repository = Repository.find(Path.cwd())
    worktree, common_dir = repository.worktree, repository.common_dir
    kept = state_folder(os.environ)
    kept.mkdir(parents=True, exist_ok=True)
    if revoke:
        with locked(kept):  # of two words at once none is lost
            forgotten = store.revoke(common_dir, os.environ)
        _answer(worktree, (), as_document=as_document, told="Forgotten." if forgotten else "Nothing was allowed.")
        return
    loaded = load(worktree, environ=os.environ, repo_file=file_at(repository, "HEAD"))
    recipes = recipes_of(repository, repository.resolve("HEAD"), os.environ)
    widening = (*widening_in(repository, loaded, os.environ), *recipes)
    if not widening:
        told = "\n".join(["This repository asks for nothing that needs trust.", *uncounted(repository, os.environ)])
        _answer(worktree, (), as_document=as_document, told=told)
        return
    shown = _lines(widening)
    if store.is_recorded(widening, common_dir, os.environ):
        told = "\n".join([*shown, "Allowed already, until one of these values changes. To forget it: --revoke"])
        _answer(worktree, widening, as_document=as_document, told=told)
        return
    if not yes:
        _ask(worktree, widening)
        shown = ()  # the person has just read them
    with locked(kept):
        store.grant(widening, common_dir, os.environ)
    told = "\n".join([*shown, "Allowed, until one of these values changes."])
    _answer(worktree, widening, as_document=as_document, told=told)


def _ask(worktree: Path, widening: tuple[Widening, ...]) -> None:
    if not sys.stdin.isatty():
        raise UserError(
            "\n".join(["There is no terminal to ask on. Read what this repository asks for:", *_lines(widening)]),
            Reason.USAGE,
            path=str(worktree),
            details={"widening": store.as_json(widening), "sha256": store.fingerprint(widening)},
            actions=("redfirst trust --yes",),
        )
    asked = [f"{worktree} asks for:", *_lines(widening), *store.instead(widening)]
    print_text("\n".join(map(visible, asked)), err=True)
    if not typer.confirm("Allow this?", err=True):
        raise UserError("Not allowed. Nothing was changed.", Reason.UNTRUSTED, path=str(worktree))


def _lines(widening: tuple[Widening, ...]) -> tuple[str, ...]:
    return tuple(visible(f"{item.key} = {json.dumps(item.value, default=str)}  ({item.why})") for item in widening)


def _answer(worktree: Path, widening: tuple[Widening, ...], *, as_document: bool, told: str) -> None:
    if not as_document:
        print_text(told)
        return
    said = {"widening": as_json(widening), "sha256": store.fingerprint(widening) if widening else None}
    print_json({"schema": TRUST_SCHEMA, "repository": str(worktree), "trusted": bool(widening), **said})
