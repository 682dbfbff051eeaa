"""`redfirst deliver` and `redfirst trigger`: what orders runs from outside (docs/how-to/start-runs-from-outside.md)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.faces.cli.arguments import AsDocument
from pipeline.faces.cli.text import columned, print_text
from pipeline.outcomes import Reason
from pipeline.repo import Repository
from pipeline.terminal import print_document

if TYPE_CHECKING:
    from pipeline.app.triggers import TriggerRecord, TriggersDocument

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Show what orders runs from outside.")

_MOST_HEADERS: Final = 1 << 16
Trigger = Annotated[str, typer.Argument(metavar="NAME", help="The trigger: the NAME of [triggers.NAME].")]


def deliver(
    name: Trigger,
    headers: Annotated[
        Path,
        typer.Option("--headers", metavar="FILE", help="The headers of the request, a line NAME: VALUE for each."),
    ],
    as_document: AsDocument = False,
) -> None:
    """Hand a delivery to a trigger: a webhook's headers, and its body on standard input.

    It is proven, recorded, and ordered if the trigger says so. The same delivery twice is one order. It exits with 0
    where the delivery is taken, also if nothing was to be done.

    Examples:
      redfirst deliver label --headers headers.txt

      redfirst deliver label --headers headers.txt --json
    """
    from pipeline.app.deliver import deliver as take
    from pipeline.app.webhooks import LARGEST

    repository = Repository.find(Path.cwd())
    found = take(repository, os.environ, name, _headers(headers), sys.stdin.buffer.read(LARGEST + 1))
    if as_document:
        print_document(found)
    elif found.order is not None and found.result in {"ordered", "held"}:
        more = f"; it waits for: redfirst queue release {found.order}" if found.result == "held" else ""
        print_text(visible(f"{found.issue} is ordered ({found.order}){more}"))
    else:
        print_text(visible(f"nothing is ordered: {found.note}"))


def _headers(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            lines = file.read(_MOST_HEADERS).decode(errors="replace").splitlines()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.", Reason.USAGE, path=str(path)) from error
    pairs = (line.partition(":") for line in lines)
    return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}


@app.command(name="list")
def list_all(as_document: AsDocument = False) -> None:
    """List the triggers, and how each stands.

    Examples:
      redfirst trigger list

      redfirst trigger list --json
    """
    from pipeline.app.triggers import list_triggers, read_triggers

    repository = Repository.find(Path.cwd())
    found = list_triggers(repository, os.environ, read_triggers(repository, os.environ))
    _tell(found, as_document=as_document)


@app.command()
def resume(name: Trigger, as_document: AsDocument = False) -> None:
    """Let a trigger order again that failures have paused.

    Examples:
      redfirst trigger resume label

      redfirst trigger resume label --json
    """
    from pipeline.app.triggers import resume_trigger

    _tell(resume_trigger(Repository.find(Path.cwd()), os.environ, name), as_document=as_document)


def _tell(found: TriggersDocument, *, as_document: bool) -> None:
    if as_document:
        print_document(found)
        return
    rows = [(f"{one.name}  {one.source}", _standing(one)) for one in found.triggers]
    print_text("\n".join(map(visible, columned(rows, None, indent=0))) or "There is no [triggers.NAME].")


def _standing(one: TriggerRecord) -> str:
    said = ["on" if one.enabled else "off", f"{one.orders} order{'' if one.orders == 1 else 's'}"]
    said += [f"paused after failures: redfirst trigger resume {one.name}"] if one.paused else []
    said += [f"{one.missing} is not set"] if one.missing else []
    return ", ".join(said)
