"""`redfirst gc`: what runs have left and nobody needs (contract 1)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline.errors import UserError
from pipeline.faces.cli.arguments import AsDocument
from pipeline.faces.cli.text import print_result
from pipeline.outcomes import Reason
from pipeline.repo import Repository

if TYPE_CHECKING:
    from pipeline.app.gc import GcDocument


_AGE: Final = re.compile(r"(?P<number>[0-9]{1,6})(?P<unit>[smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_WORDS: Final = {"removed": "removed", "would_remove": "would go", "kept": "stays"}


def gc(
    apply: Annotated[bool, typer.Option("--apply", help="Remove it.")] = False,
    older_than: Annotated[
        str,
        typer.Option("--older-than", metavar="AGE", help="How long ago a run ended whose record and worktree may go."),
    ] = "30d",
    refs: Annotated[
        bool, typer.Option("--refs", help="The refs of such runs, too. `verify` reads their evidence there.")
    ] = False,
    as_document: AsDocument = False,
) -> None:
    """Show what runs have left behind that nobody needs any more.

    These are checkouts and claims of runs that have ended, and caches of those that wait. Records and worktrees go once
    the result has landed or was given up. Each line says why it may go, or until when it is kept. With --apply it
    is removed.

    Examples:
      redfirst gc

      redfirst gc --apply --older-than 7d
    """
    from pipeline.app.gc import swept

    here = Repository.find(Path.cwd())
    document = swept(here, os.environ, older_than_s=_seconds(older_than), refs=refs, apply=apply)
    print_result(document, gc_text, as_document=as_document)


def _seconds(age: str) -> int:

    match = _AGE.fullmatch(age)
    if match is None:
        raise UserError(f"--older-than {age}: write a number with s, m, h or d, such as 30d.", Reason.USAGE)
    return int(match["number"]) * _SECONDS[match["unit"]]


def gc_text(document: GcDocument) -> str:
    """Return the document in lines: what goes, then what stays."""
    goes = [line for line in document.things if line.status != "kept"]
    every = (*goes, *(line for line in document.things if line.status == "kept"))
    lines = [f"{_WORDS[one.status]:<8}  {one.kind.replace('_', ' ')}  {one.what}: {one.why}" for one in every]
    if not goes:
        return "\n".join([*lines, "Nothing is to be removed."])
    count = f"{len(goes)} thing{'' if len(goes) == 1 else 's'}"
    end = f"Removed {count}." if document.applied else f"{count} would be removed: redfirst gc --apply"
    return "\n".join([*lines, end])
