"""`redfirst trust`: let the keys and files of this repository count that widen what it may do (contract 4)."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline.cli.arguments import AsDocument
from pipeline.cli.text import print_text
from pipeline.config import trust as store
from pipeline.config.load import load
from pipeline.errors import UserError
from pipeline.git import Repository
from pipeline.outcomes import Reason
from pipeline.policy.characters import visible
from pipeline.service.recipe_choice import recipes_of
from pipeline.service.run_config import file_at_head, uncounted
from pipeline.service.trust_requests import widening_in

if TYPE_CHECKING:
    from pipeline.config.trust import Widening

SCHEMA: Final = "redfirst.trust/1"


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
    if revoke:
        forgotten = store.revoke(common_dir, os.environ)
        _answer(worktree, (), as_document=as_document, told="Forgotten." if forgotten else "Nothing was allowed.")
        return
    loaded = load(worktree, environ=os.environ, repo_file=file_at_head(repository))
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
    document = {
        "schema": SCHEMA,
        "repository": str(worktree),
        "trusted": bool(widening),
        "widening": store.as_json(widening),
        "sha256": store.fingerprint(widening) if widening else None,
    }
    typer.echo(json.dumps(document, indent=2))
