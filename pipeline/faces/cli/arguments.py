"""Defines arguments and options that several commands take."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.errors import UserError
from pipeline.faces.cli.commands import WORDS
from pipeline.faces.cli.text import say
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from pipeline.repo import Repository

RunName = Annotated[
    str | None, typer.Argument(metavar="RUN", help="A run, its issue, or a prefix. Default: the newest.")
]
MeantRun = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN", help="A run, its issue, or a prefix. Default: the only one of this worktree that can be meant."
    ),
]
AsDocument = Annotated[bool, typer.Option("--json", help="One JSON document.")]
AsDocumentBesideProgress = Annotated[
    bool, typer.Option("--json", help="One JSON document on stdout, progress on stderr.")
]
Plain = Annotated[bool, typer.Option("--plain", help="Print lines as they come, as where there is no terminal.")]
GateMeant = Annotated[
    str | None,
    typer.Option(
        "--gate", metavar="plan|split|commit", help="Refuse if the run waits at another approval point than this."
    ),
]
StepMeant = Annotated[
    str | None,
    typer.Option("--step", metavar="STEP", help="Of a recipe's run: the step that is answered, where several wait."),
]
NoDrive = Annotated[
    bool, typer.Option("--no-drive", help="Only answer. The run stands queued until somebody resumes it.")
]
Seen = Annotated[
    str | None,
    typer.Option(
        "--seen",
        metavar="DIGEST",
        help="Refuse if another thing is there now than had this digest. It is in show --packet.",
    ),
]
Base = Annotated[
    str | None, typer.Option("--base", metavar="REF", help="The branch that the commits are for (main, else master).")
]
Approve = Annotated[
    list[str] | None,
    typer.Option("--approve", metavar="plan,split,commit", help="Wait for you at these approval points. Repeatable."),
]
RecipeFlag = Annotated[
    str | None,
    typer.Option("--recipe", metavar="RECIPE", help="How it is worked: issue, quick, solo, or a recipe of yours."),
]
AgentFlags = Annotated[
    list[str] | None,
    typer.Option("--agent", metavar="[ROLE=]NAME", help="The agent of one role, or without ROLE= of all. Repeatable."),
]
ValueFlags = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One configuration value. Repeatable.")
]
Onto = Annotated[
    str | None,
    typer.Option("--onto", metavar="REF", help="Put the result on this commit. Files that both changed are merged."),
]


def gates_of(given: list[str] | None) -> tuple[str, ...]:
    """Return the approval points that are named.

    Raises:
        UserError: one is none.
    """
    words = (word.strip() for text in given or () for word in text.split(","))
    gates = tuple(dict.fromkeys(word for word in words if word))
    for gate in gates:
        if gate not in {"plan", "split", "commit"}:
            raise UserError(f"--approve takes plan, split, commit. {gate!r} is none of them.", Reason.USAGE)
    return gates


def text_given(place: str, option: str = "") -> str:
    """Return the text of a file that *option* names, or of standard input where that is `-`.

    Raises:
        UserError: it cannot be read, or is not UTF-8.
    """
    try:
        return (sys.stdin.buffer.read() if place == "-" else Path(place).read_bytes()).decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UserError(f"{option}{place} cannot be read: {why}.", Reason.USAGE, path=place) from None


def file_given(path: Path) -> bytes:
    """Return the content of a file that the command line names.

    Raises:
        UserError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror}.", Reason.USAGE, path=str(path)) from None


def repository_here() -> Repository | None:
    """Return the repository around the working directory, None where there is none."""
    from pipeline.repo import Repository

    try:
        return Repository.find(Path.cwd())
    except UserError:
        return None


def named(ctx: typer.Context, repository: Repository, name: str | None) -> str:
    """Return the run that a command is to change, and say which one it is where nobody named it."""
    if name is not None:
        return name
    from pipeline.app.next_lines import meant_by

    words = [word for word in ctx.meta[WORDS] if word != "--json"]
    found, why = meant_by(str(ctx.info_name), repository, words)
    say(f"{found}: {why}")
    return found
