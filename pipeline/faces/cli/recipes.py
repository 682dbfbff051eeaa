"""`redfirst recipes`: workflows that are written in a file: checked, looked at, and written."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.app import recipe_files
from pipeline.app.recipe_choice import chosen, unsound
from pipeline.app.recipe_files import BUILTIN, Origin, RecipeFile, RecipeFiles, files_here
from pipeline.app.run_config import pairs
from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.faces.cli.arguments import AsDocument, repository_here
from pipeline.faces.cli.text import columned, print_text, terminal_width
from pipeline.matrix.recipes.check import checked_source
from pipeline.matrix.recipes.model import Kind
from pipeline.matrix.recipes.plan import Planned, Preview, inputs_of, mermaid, preview, why_not
from pipeline.matrix.recipes.rules import not_for_agents
from pipeline.outcomes import Reason
from pipeline.progress import counted
from pipeline.repo import Repository
from pipeline.terminal import echo, print_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.app.recipe_files import Written
    from pipeline.matrix.recipes.reading import Problem


app = typer.Typer(
    name="recipes",
    help="List, check and show recipes: workflows that are written in a file.",
    no_args_is_help=True,
)
Recipe = Annotated[
    str,
    typer.Argument(metavar="RECIPE", help="A recipe's name, or the path of its file."),
]


@app.command(name="list")
def list_recipes(as_document: AsDocument = False) -> None:
    """List the recipes that can be named here, and where each is.

    Of one name the repository's counts, then yours; builtin:NAME is the one that comes with redfirst.

    Examples:
      redfirst recipes list

      redfirst recipes list --json
    """
    library = files_here(repository_here())
    found = [_listed(library, name, origin) for name, origin in library.all()]
    seen: set[str] = set()
    for one in found:
        one["counts"] = one["name"] not in seen
        seen.add(str(one["name"]))
    if as_document:
        print_json({"schema": "redfirst.recipes/1", "ok": True, "recipes": found})
        return
    for line in columned([(_named(one), _said(one)) for one in found], terminal_width(sys.stdout), indent=0):
        echo(line)


def _listed(library: RecipeFiles, name: str, origin: Origin) -> dict[str, object]:
    facts: dict[str, object] = {"name": name, "origin": origin.value, "path": None, "description": "", "problems": 0}
    facts["runs"] = False
    try:
        file = library.read(name, origin)
    except UserError as error:
        return {**facts, "path": error.path, "ok": False, "description": error.message, "problems": 1}
    found = checked_source(file, library)
    facts |= {"path": file.path, "ok": found.recipe is not None, "problems": len(found.problems)}
    if found.recipe is not None:
        runs = why_not(found.recipe) is None
        facts |= {"version": found.recipe.version, "description": found.recipe.description, "runs": runs}
    return facts


def _named(one: dict[str, object]) -> str:
    is_exact = not one["counts"] and one["origin"] == Origin.BUILTIN.value
    return visible(f"{BUILTIN}{one['name']}" if is_exact else str(one["name"]))


def _said(one: dict[str, object]) -> str:
    said = str(one["description"])
    if not one["ok"] and not said:
        said = f"cannot be used: redfirst recipes lint {shlex.quote(str(one['name']))}"
    if one["ok"] and not one["runs"]:
        said = f"{said} Cannot be run.".strip()
    where = "" if one["origin"] == Origin.BUILTIN.value else f" ({one['path']})"
    return visible(f"{said}{where}".strip())


@app.command(name="lint")
def lint(
    files: Annotated[
        list[str],
        typer.Argument(metavar="RECIPE", help="Recipes: names, or paths of files."),
    ],
    for_agents: Annotated[
        bool, typer.Option("--for-agents", help="Also say what keeps an agent from handing it in as its own.")
    ] = False,
    as_document: AsDocument = False,
) -> None:
    """Say everything that is wrong with recipes.

    The exit code is 2 when there is something.

    Examples:
      redfirst recipes lint research.yaml

      redfirst recipes lint issue
    """
    library = files_here(repository_here())
    found: list[tuple[RecipeFile, tuple[Problem, ...]]] = []
    for word in files:
        file = library.meant(word)
        check = checked_source(file, library)
        more = not_for_agents(check.recipe) if for_agents and check.recipe is not None else ()
        found.append((file, (*check.problems, *more)))
    sound = not any(problems for _, problems in found)
    if as_document:
        shown = [{"path": one.path, "ok": not wrong, "problems": [*map(asdict, wrong)]} for one, wrong in found]
        print_json({"schema": "redfirst.recipe-lint/1", "ok": sound, "files": shown})
    else:
        for file, problems in found:
            for problem in problems:
                print_text(visible(str(problem) if problem.path else f"{file.path}:{problem}"))
        if sound:
            typer.echo("No problems.", err=True)
    if not sound:
        raise typer.Exit(2)


@app.command(name="show")
def show(
    word: Recipe,
    given: Annotated[list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Values of its inputs.")] = None,
    drawn: Annotated[bool, typer.Option("--mermaid", help="Its graph as a Mermaid diagram.")] = False,
    as_document: AsDocument = False,
) -> None:
    """Show the steps of a recipe in their order, what each may write, and the most it can ask.

    Nobody is asked.

    Examples:
      redfirst recipes show issue

      redfirst recipes show research topic=sandboxes --mermaid
    """
    library = files_here(repository_here())
    found = chosen(library, word)
    recipe = found.recipe
    values, wrong = inputs_of(recipe, pairs(given or []), complete=False)
    if wrong:
        raise unsound(word, found.file, wrong)
    shown = preview(recipe, values, tracker=library.tracker)
    if not isinstance(shown, Preview):
        raise unsound(word, found.file, shown)
    if as_document:
        steps = [asdict(step) for step in shown.steps]
        about = {"recipe": {"name": recipe.name, "version": recipe.version}, "steps": steps}
        most = {"dispatches": shown.dispatches, "limit": shown.limit}
        print_json({"schema": "redfirst.recipe-plan/1", "ok": True, **about, **most})
    elif drawn:
        typer.echo(visible(mermaid(shown), keep="\n"))
    else:
        print_text("\n".join([*step_lines(shown), f"{most_line(shown)} Nobody was asked."]))


Theirs = Annotated[
    bool, typer.Option("--repository", help="Into .redfirst/recipes of the repository, not among yours.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace a recipe of that name.")]


@app.command()
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
    place = recipe_files.Place(name, here, theirs, force, dict(os.environ))
    _tell(recipe_files.save_run(place, here, run, pairs(inputs or [])), as_document=as_document)


@app.command()
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
    called = name or (recipe_files.name_in(source) if source is not None else "")
    place = recipe_files.Place(called, repository_here(), theirs, force, dict(os.environ))
    written = recipe_files.new_recipe(place) if source is None else recipe_files.recipe_of_prompt(place, source)
    _tell(written, as_document=as_document)


def _tell(written: Written, *, as_document: bool) -> None:
    if as_document:
        places = {name: list(found) for name, found in written.places.items()}
        document = {"name": written.name, "path": written.path, "inputs": list(written.inputs), "places": places}
        head = {"schema": "redfirst.recipe-written/1", "ok": True}
        print_json({**head, **document, "notes": list(written.notes)})
        return
    lines = [f"{written.path}: the recipe {written.name}"]
    lines += [f"  {name} in {', '.join(dict.fromkeys(found))}" for name, found in written.places.items()]
    lines += [f"  {note}" for note in written.notes]
    meant = shlex.quote(written.path) if written.notes else written.name  # a note says why its name is not enough yet
    lines.append(f"  look at it: redfirst recipes show {meant}")
    print_text(visible("\n".join(lines), keep="\n"))


def step_lines(shown: Preview) -> Iterator[str]:
    """Yield the steps in the order of their start, in lines."""
    for step in shown.steps:
        times = f", at most {step.times} times" if step.times > 1 else ""
        yield visible(f"{step.wave}. {step.id}: {step.who}{times}")
        yield from (visible(f"   {line}") for line in _facts(step))


def agent_lines(agents: Mapping[str, str]) -> list[str]:
    """Return who each role is, those that are the same together."""
    by_agent: dict[str, list[str]] = {}
    for role, agent in agents.items():
        by_agent.setdefault(agent, []).append(f"@{role}")
    return [visible(f"{', '.join(roles)}: {agent}") for agent, roles in by_agent.items()]


def most_line(shown: Preview, limit: int | None = None) -> str:
    """Return what it takes, at least or at most, under the limit that counts."""
    most = limit or shown.limit
    if shown.least is not None:
        return f"{counted(shown.least, 'dispatch')} where the issue is one task and nothing goes wrong; at most {most}."
    if shown.dispatches is None:
        return f"The limit is {counted(most, 'dispatch')}."
    gates = f", {counted(shown.gates, 'approval point')}" if shown.gates else ""
    return f"At most {counted(shown.dispatches, 'dispatch')} of {most}{gates}."


def _facts(step: Planned) -> list[str]:
    if step.kind == Kind.PHASE:  # each comes after the one before it, and writes what the tasks name
        return []
    facts = [f"sees {', '.join(step.sees)}"] if step.sees else []
    facts += [f"may write {', '.join(step.writes)}"] if step.writes else []
    after = (f"after {one.earlier}: both touch {' and '.join(dict.fromkeys(one.patterns))}" for one in step.after)
    return [*facts, *after]
