"""`redfirst diff`: the work of a run so far as a patch (contract 1)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from pipeline.app.patches import DiffDocument, diff_run
from pipeline.app.run_list import find
from pipeline.characters import visible
from pipeline.faces.cli.arguments import AsDocument, RunName
from pipeline.faces.cli.text import say
from pipeline.progress import counted
from pipeline.repo import Repository
from pipeline.run.runs_of_repository import Roster
from pipeline.terminal import Colour, colours, paint, print_document, visible_lines

_COLOURS: Final[tuple[tuple[str, Colour | None], ...]] = (
    ("+++", None), ("---", None), ("+", "green"), ("-", "red"), ("@@", "cyan"),
)  # fmt: skip


def diff(
    name: RunName = None,
    stat: Annotated[bool, typer.Option("--stat", help="The paths and how many lines each gained and lost.")] = False,
    task: Annotated[str | None, typer.Option("--task", metavar="ID", help="Only the work of this task.")] = None,
    as_document: AsDocument = False,
) -> None:
    """Show the work of a run so far, as a patch against its start.

    Your branch and your files are not looked at.

    Examples:
      redfirst diff

      redfirst diff GAL-39 --stat

      redfirst diff GAL-39 --task 2 | git apply --check
    """
    repository = Repository.find(Path.cwd())
    if name is None:
        name = find(Roster(repository), None, of_issue=True).name
        say(f"{name}: the newest run")
    document = diff_run(repository, name, task=task, stat=stat)
    if as_document:
        print_document(document)
        return
    text = diff_text(document)
    typer.echo(text or "No change so far.", nl=not text.endswith("\n"), err=not text)


def diff_text(document: DiffDocument) -> str:
    """Return the patch as it is when a program reads it; on a terminal, controls are shown and lines coloured."""
    if document.patch is None:
        return _stat(document)
    if not sys.stdout.isatty():
        return document.patch
    lines = visible_lines(document.patch).split("\n")
    return "\n".join(map(_painted, lines)) if colours() else "\n".join(lines)


def _painted(line: str) -> str:
    return paint(line, next((colour for start, colour in _COLOURS if line.startswith(start)), None))


def _stat(document: DiffDocument) -> str:
    names = [visible(file.path) for file in document.files]
    width = max(map(len, names), default=0)
    counts = ("binary" if file.added is None else f"+{file.added} -{file.deleted}" for file in document.files)
    lines = [f"{name:{width}}  {count}" for name, count in zip(names, counts, strict=True)]
    if lines:
        added = sum(file.added or 0 for file in document.files)
        deleted = sum(file.deleted or 0 for file in document.files)
        lines.append(f"{counted(len(names), 'file')}, +{added} -{deleted}")
    return "\n".join(lines)
