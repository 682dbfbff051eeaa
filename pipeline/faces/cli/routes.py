"""`redfirst routes` and `redfirst simulate`: the routing matrix, printed and walked with no agent (contract 1)."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path  # noqa: TC003  (typer reads it)
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline.app.recipe_files import files_here
from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.faces.cli.arguments import AsDocument, repository_here, text_given
from pipeline.faces.cli.text import columned, print_text, terminal_width
from pipeline.matrix.recipes import simulation as of_steps
from pipeline.matrix.recipes.next_steps import RecipeMachine
from pipeline.matrix.recipes.plan import inputs_of, phases_of
from pipeline.matrix.routing import render, simulation
from pipeline.matrix.routing.matrix import GATES
from pipeline.matrix.routing.simulation import SignalsError, Walk
from pipeline.matrix.routing.state import EVERYBODY, Settings
from pipeline.outcomes import Reason
from pipeline.terminal import print_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Format(StrEnum):
    """How the matrix is printed."""

    TABLE = "table"
    MD = "md"
    MERMAID = "mermaid"
    JSON = "json"


class Diagram(StrEnum):
    """Which diagram is drawn."""

    PIPELINE = "pipeline"
    PHASE7 = "phase7"
    ISSUE = "issue"


_DIAGRAMS: Final[Mapping[Diagram, Callable[[], str]]] = {
    Diagram.PIPELINE: render.pipeline_mermaid,
    Diagram.PHASE7: render.phase7_mermaid,
    Diagram.ISSUE: render.issue_lifecycle_mermaid,
}


def routes(
    form: Annotated[Format, typer.Option("--format", help="How to print it.")] = Format.TABLE,
    diagram: Annotated[Diagram | None, typer.Option(help="One diagram only. Default: all of them.")] = None,
    as_document: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Print the routing matrix: what follows what, how often, and what then.

    Examples:
      redfirst routes

      redfirst routes --format mermaid --diagram phase7
    """
    form = Format.JSON if as_document else form
    if diagram is not None and form is not Format.MERMAID:
        raise UserError(
            f"--diagram {diagram} needs --format mermaid.",
            Reason.USAGE,
            actions=(f"redfirst routes --format mermaid --diagram {diagram}",),
        )
    match form:
        case Format.TABLE:
            print_text(routes_text(terminal_width(sys.stdout)))
        case Format.MD:
            typer.echo(f"{render.table_markdown()}\n\n{render.bounds_markdown()}")
        case Format.MERMAID:
            typer.echo(_drawn(diagram))
        case Format.JSON:
            print_json(render.as_json())


def routes_text(width: int | None) -> str:
    """Return the matrix for a person: a block for each step, and the limits."""
    return "\n\n".join("\n".join([title, *columned(rows, width)]) for title, rows in render.groups())


def _drawn(diagram: Diagram | None) -> str:
    """Return one diagram as it is, or all of them as Markdown, since a Mermaid file holds only one."""
    if diagram is not None:
        return _DIAGRAMS[diagram]()
    return "\n\n".join(f"```mermaid\n{draw()}\n```" for draw in _DIAGRAMS.values())


def simulate(
    signals: Annotated[
        Path, typer.Option("--signals", metavar="FILE", help="A YAML or JSON list of signals. - is stdin.")
    ],
    approve: Annotated[
        str, typer.Option("--approve", metavar="POINTS", help="Approval points, with commas: plan,split,commit.")
    ] = "",
    recipe: Annotated[
        str,
        typer.Option("--recipe", metavar="RECIPE", help="The recipe that it goes by."),
    ] = "issue",
    parallel: Annotated[
        int, typer.Option("--parallel", metavar="N", min=1, max=12, help="So many tasks side by side.")
    ] = 1,
    as_document: AsDocument = False,
) -> None:
    """Walk the routing matrix with signals from a file.

    Each line says a decision, what it cost, and how the run stands.

    An entry is a signal, or keys: signal, role, tree, tasks, blockers, reason, note, task. The last says which of the
    tasks that are worked on side by side reports it. The split needs its tasks:
    {signal: DRAFTED, tasks: [{id: "1"}, {id: "2", depends_on: ["1"]}]}. RESUMED resumes a run that is parked.

    Of a recipe with steps of its own an entry is what a step reports: signal, step, items, areas, open_seams, blockers,
    note. Without `step` it is the first that can report; {step: angles, signal: ANSWERED, items: {look: 2}} makes two
    of the `for_each` step `look`.

    Examples:
      echo '[OK, CLAIMED, DRAFTED, NEEDS_WORK]' | redfirst simulate --signals -

      redfirst simulate --recipe quick --signals signals.yaml

      redfirst simulate --recipe research --signals steps.yaml
    """
    name = "stdin" if str(signals) == "-" else str(signals)
    gates = _gates(approve)
    text = text_given(str(signals))
    try:
        walk = _walk(recipe, text, gates, parallel)
    except SignalsError as error:
        raise UserError(
            f"{name}: {error}",
            Reason.USAGE,
            path=name,
            pointer=error.pointer or None,
            details={"accepted": list(error.accepted)},
            actions=("redfirst routes", "redfirst simulate --help"),
        ) from error
    if as_document:
        print_json(simulation.walk_value(walk))
    else:
        print_text(visible(simulation.walk_text(walk), keep="\n"))


def _gates(words: str) -> frozenset[str]:
    found = [word.strip() for word in words.split(",") if word.strip()]
    for word in found:
        if word not in GATES:
            raise UserError(
                f"--approve: {word} is no approval point. Accepted: {', '.join(GATES)}.",
                Reason.USAGE,
                details={"accepted": list(GATES)},
                actions=("redfirst simulate --help",),
            )
    return frozenset(found)


def _walk(word: str, text: str, gates: frozenset[str], parallel: int) -> Walk:
    """Return the walk of a recipe.

    Raises:
        UserError: there is no such recipe, or it is not sound.
        SignalsError: an entry cannot be taken.
    """
    from pipeline.app.recipe_choice import chosen

    settings = Settings(gates=gates, parallel=parallel, phases=EVERYBODY)
    if word == "issue":
        return simulation.simulate(text, settings)
    recipe = chosen(files_here(repository_here()), word).recipe
    if phases := phases_of(recipe):
        return simulation.simulate(text, replace(settings, phases=phases))
    return of_steps.simulate(text, RecipeMachine(recipe, inputs_of(recipe, {}, complete=False)[0]))
