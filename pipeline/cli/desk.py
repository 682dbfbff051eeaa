"""`redfirst desk`: go to the desk at which a run waits for a person (backend `human`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline.cli.text import print_text, terminal_width
from pipeline.config.folders import short
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.policy.characters import visible
from pipeline.reports.forms import deciding, entries
from pipeline.routing.vocabulary import Role  # noqa: TC001  (typer reads it)
from pipeline.service import human_answer
from pipeline.service.report_form import came_back
from pipeline.terminal import visible_lines

if TYPE_CHECKING:
    from pipeline.backends.desk import Asked, Desk

_DESK: Final = "desk: "
_SEVERITY: Final = '"severity"'


def desk(
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="The run. Not needed where one desk waits."),
    ] = None,
    role: Annotated[Role | None, typer.Option("--role", help="Which desk, where a run has two.")] = None,
    only_print: Annotated[bool, typer.Option("--print", help="Only print the desk's folder.")] = False,
) -> None:
    """Go to the desk where a run waits for your work.

    It says what is asked, and opens a shell in your copy of the files. `exit` brings you back. In a pipe it opens none.

    Examples:
      redfirst desk

      redfirst desk GAL-39 --role check

      cd "$(redfirst desk --print)"
    """
    found, asked = human_answer.waiting_desk(run, role, "desk")
    found.put(found.shown, asked.token)
    if only_print:
        typer.echo(str(found.files))
        return
    print_text(visible_lines(_brief(found, asked)))
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    if Path.cwd().is_relative_to(found.files.resolve()):
        print_text("You are at this desk already.")
        return
    shell = os.environ.get("SHELL") or "/bin/sh"
    print_text(f"\nA shell at the desk: {visible(shell)}. Hand in from here with redfirst hand-in; exit goes back.")
    try:
        subprocess.run([shell], cwd=found.files, check=False)
    except OSError as error:
        raise UserError(
            f"{visible(shell)} cannot be started: {error.strerror}. Name another one in $SHELL, or go there: "
            'cd "$(redfirst desk --print)"',
            Reason.USAGE,
        ) from error
    handed = " It is handed in." if found.report.exists() else " Nothing is handed in yet: redfirst hand-in"
    print_text(f"Back from the desk of {asked.dispatch}.{handed}")


def _brief(found: Desk, asked: Asked) -> str:
    """Return where the desk is, and what is asked there."""
    place, width = short(found.files, os.environ), terminal_width(sys.stdout)
    if width is not None and len(_DESK + place) > width:  # nobody types a path that is broken
        place = f'cd "$(redfirst desk {asked.run_id} --role {asked.role} --print)"'
    lines = [f"{asked.dispatch} of {asked.run_id}: you play @{asked.role}", _DESK + place]
    tests = (
        ", run-tests (the tests, as the run runs them)"
        if found.tests.exists()
        else "; no run-tests: that is for who writes tests or code"
    )
    lines.append(f"beside it: PROMPT.md (all that an agent is told){tests}")
    word = deciding(asked.report_schema)
    if word is not None and word.words:
        lines.append(f"hand in: redfirst hand-in; the word that decides ({word.name}): {', '.join(word.words)}")
        lines += [asked.said_by_acceptable] if asked.said_by_acceptable else []
    why, told = came_back(asked), [human_answer.request_of(found).rstrip(), *_lists(asked)]
    return "\n".join([*lines, "", *told, *([""] if why else []), *why])


def _lists(asked: Asked) -> list[str]:
    """Return what an entry of each list of the report looks like, for who fills in a copy of the template."""
    shapes = entries(asked.report_schema)
    lines = [f"* {name}: {shape}" for name, shape in shapes.items()]
    if _SEVERITY in shapes.get("findings", ""):
        lines += ["", "A BLOCK or HIGH finding without `evidence` counts as MEDIUM."]
    return ["", "Entries of the report's lists (`?`: may be left out):", "", *lines] if lines else []
