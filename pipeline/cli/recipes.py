"""`redfirst recipes`: workflows that somebody wrote in a file, checked and looked at before any agent is asked."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.arguments import AsDocument
from pipeline.cli.text import counted, print_text
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.policy.characters import visible
from pipeline.recipes.check import checked
from pipeline.recipes.drawing import mermaid
from pipeline.recipes.plan import Planned, Preview, inputs_of, preview
from pipeline.recipes.reading import LARGEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.recipes.problems import Problem

app = typer.Typer(
    name="recipes",
    help="Check workflows that are written in a file, and see what they would do. None can be run yet.",
    no_args_is_help=True,
)
Recipe = Annotated[Path, typer.Argument(metavar="FILE", help="A recipe: a YAML file (docs/recipes.md).")]


@app.command(name="lint")
def lint(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Recipes: YAML files (docs/recipes.md).")],
    as_document: AsDocument = False,
) -> None:
    """Say everything that is wrong with recipes; exit code 2 when there is something.

    Examples:
      redfirst recipes lint research.yaml
    """
    found = [(file, checked(_text(file))[1]) for file in files]
    sound = not any(problems for _, problems in found)
    if as_document:
        shown = [{"path": str(file), "ok": not problems, "problems": _values(problems)} for file, problems in found]
        typer.echo(json.dumps({"schema": "redfirst.recipe-lint/1", "ok": sound, "files": shown}, indent=2))
    else:
        for file, problems in found:
            for problem in problems:
                print_text(visible(f"{file}:{problem}"))
        if sound:
            typer.echo("No problems.", err=True)
    if not sound:
        raise typer.Exit(2)


@app.command(name="show")
def show(
    file: Recipe,
    given: Annotated[list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Values of its inputs.")] = None,
    drawn: Annotated[bool, typer.Option("--mermaid", help="Its graph as a Mermaid diagram.")] = False,
    as_document: AsDocument = False,
) -> None:
    """Show in which order a recipe's steps would run, what each may write, and the most it can ask; nobody is asked.

    Examples:
      redfirst recipes show research.yaml topic=sandboxes

      redfirst recipes show research.yaml topic=sandboxes --mermaid
    """
    recipe, problems = checked(_text(file))
    if recipe is None:
        raise _unsound(file, problems)
    values, wrong = inputs_of(recipe, _inputs(given or []))
    if wrong:
        raise _unsound(file, wrong)
    shown = preview(recipe, values)
    if not isinstance(shown, Preview):
        raise _unsound(file, shown)
    if as_document:
        typer.echo(json.dumps(_document(recipe.name, recipe.version, shown), indent=2))
    elif drawn:
        typer.echo(visible(mermaid(shown), keep="\n"))
    else:
        print_text("\n".join(_lines(shown)))


def _document(name: str, version: int, shown: Preview) -> dict[str, object]:
    steps = [asdict(step) for step in shown.steps]
    return {
        "schema": "redfirst.recipe-plan/1",
        "ok": True,
        "recipe": {"name": name, "version": version},
        "steps": steps,
        "dispatches": shown.dispatches,
        "limit": shown.limit,
    }


def _lines(shown: Preview) -> list[str]:
    lines: list[str] = []
    for step in shown.steps:
        times = f", at most {step.times} times" if step.times > 1 else ""
        lines.append(visible(f"{step.wave}. {step.id}: {step.who}{times}"))
        lines += [visible(f"   {line}") for line in _facts(step)]
    most = (
        "The phases of the issue decide how many dispatches it takes"
        if shown.dispatches is None
        else f"At most {counted(shown.dispatches, 'dispatch')}"
    )
    return [*lines, f"{most}; the limit is {shown.limit}. Nobody was asked."]


def _facts(step: Planned) -> list[str]:
    after = [f"after {one.earlier}: both touch {' and '.join(dict.fromkeys(one.patterns))}" for one in step.after]
    return [
        *([f"sees {', '.join(step.sees)}"] if step.sees else []),
        *([f"may write {', '.join(step.writes)}"] if step.writes else []),
        *after,
    ]


def _text(file: Path) -> str:
    try:
        if not file.is_file():
            raise UserError(f"There is no file {file}.", Reason.USAGE, path=str(file))
        with file.open("rb") as stream:
            return stream.read(4 * LARGEST + 4).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 (byte {error.start}).", Reason.CONFIG, path=str(file)) from None
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.", Reason.CONFIG, path=str(file)) from None


def _inputs(given: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    for name, equals, _ in pairs:
        if not equals:
            raise UserError(f"{name!r} is no input: write NAME=VALUE.", Reason.USAGE)
    return {name: value for name, _, value in pairs}


def _unsound(file: Path, problems: Sequence[Problem]) -> UserError:
    lines = "".join(f"\n{problem}" for problem in problems)
    return UserError(
        f"{file} cannot be used:{lines}",
        Reason.CONFIG,
        path=str(file),
        pointer=problems[0].pointer,
        details={"problems": _values(problems)},
        actions=(f"redfirst recipes lint {shlex.quote(str(file))}",),
    )


def _values(problems: Sequence[Problem]) -> list[dict[str, object]]:
    return [asdict(problem) for problem in problems]
