"""`redfirst recipes save` and `recipes new`: recipes that redfirst writes, for people to run again and to change."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.arguments import AsDocument
from pipeline.cli.text import print_text
from pipeline.errors import UserError
from pipeline.git import Repository
from pipeline.outcomes import Reason
from pipeline.policy.characters import visible
from pipeline.service import recipe_writing
from pipeline.service.run_config import pairs

if TYPE_CHECKING:
    from pipeline.service.recipe_writing import Written

Theirs = Annotated[
    bool, typer.Option("--repository", help="Into .redfirst/recipes of the repository, not among yours.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace a recipe of that name.")]


def save(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run, or its issue.")],
    name: Annotated[str, typer.Option("--as", metavar="NAME", help="What the recipe is called.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=VALUE", help="Make an input of this value. Repeatable."),
    ] = None,
    theirs: Theirs = False,
    force: Force = False,
    as_document: AsDocument = False,
) -> None:
    """Write the recipe of a run as one of yours, to be run again.

    --input topic=VALUE makes an input. Each place in prompts and inputs where VALUE stands becomes what the next run is
    given as topic.

    Examples:
      redfirst recipes save run-research --as audit

      redfirst recipes save run-research --as audit --input topic="names"
    """
    here = Repository.find(Path.cwd())
    place = recipe_writing.Place(name, here, theirs, force, dict(os.environ))
    _tell(recipe_writing.save_run(place, here, run, pairs(inputs or [])), as_document=as_document)


def new(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="What it is called. With --from the file says it by default.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="A SKILL.md or a prompt: one step that asks it.")
    ] = None,
    theirs: Theirs = False,
    force: Force = False,
    as_document: AsDocument = False,
) -> None:
    """Write a recipe to begin with, or one that asks what a skill or a prompt says.

    Without --from it is a template with comments; with it, one step that reads.

    Examples:
      redfirst recipes new audit

      redfirst recipes new --from .claude/skills/audit/SKILL.md
    """
    if name is None and source is None:
        raise UserError("Say what the recipe is called, or what it is made from: --from FILE.", Reason.USAGE)
    called = name or (recipe_writing.name_in(source) if source is not None else "")
    try:
        here = Repository.find(Path.cwd())
    except UserError:
        here = None
    place = recipe_writing.Place(called, here, theirs, force, dict(os.environ))
    written = recipe_writing.new_recipe(place) if source is None else recipe_writing.recipe_of_prompt(place, source)
    _tell(written, as_document=as_document)


def _tell(written: Written, *, as_document: bool) -> None:
    if as_document:
        places = {name: list(found) for name, found in written.places.items()}
        document = {"name": written.name, "path": written.path, "inputs": list(written.inputs), "places": places}
        head = {"schema": "redfirst.recipe-written/1", "ok": True}
        typer.echo(json.dumps({**head, **document, "notes": list(written.notes)}, indent=2))
        return
    lines = [f"{written.path}: the recipe {written.name}"]
    lines += [f"  {name} in {', '.join(dict.fromkeys(found))}" for name, found in written.places.items()]
    lines += [f"  {note}" for note in written.notes]
    meant = shlex.quote(written.path) if written.notes else written.name  # a note says why its name is not enough yet
    lines.append(f"  look at it: redfirst recipes show {meant}")
    print_text(visible("\n".join(lines), keep="\n"))
