"""`redfirst land` and `redfirst gc`: finished runs onto the base, and away with what runs have left (contract 1)."""

from __future__ import annotations

import os
import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline.errors import UserError
from pipeline.faces.cli.arguments import AsDocument, AsDocumentBesideProgress
from pipeline.faces.cli.status_line import Beating
from pipeline.faces.cli.text import print_result, print_text
from pipeline.outcomes import Reason
from pipeline.repo import Repository
from pipeline.terminal import visible_lines

if TYPE_CHECKING:
    from pipeline.app.gc import GcDocument
    from pipeline.app.land import LandDocument, LandLine


def land(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN", help="Runs, their issues, or prefixes. Default: all that are finished."),
    ] = None,
    onto: Annotated[
        str | None, typer.Option("--onto", metavar="BRANCH", help="The branch. Default: their base.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would land. No test is run, and nothing is changed.")
    ] = False,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Put the commits of finished runs on their base, and measure each again there.

    The order is what their issues depend on, then time. A commit that is copied gets the trailer Rebased-From. A result
    that fails there is not landed, and its issue is ordered again, once.

    Without RUN, on a terminal, it lists what would land and asks before a branch moves. It asks nothing with RUN, with
    --yes, in a pipe or with --json.

    The exit code is 0 when all of them are there, 7 when a result was refused, 4 when one waits.

    Examples:
      redfirst land GAL-39

      redfirst land --dry-run

      redfirst land GAL-39 GAL-40 --onto main --json
    """
    import anyio

    from pipeline.app import land as service
    from pipeline.app.land import chosen_runs
    from pipeline.app.ports import opened_context

    here = Repository.find(Path.cwd())
    choice = chosen_runs(here, names or (), onto)
    tried = dry_run or not choice.candidates
    asks = not (tried or names or yes or as_document) and sys.stdin.isatty() and sys.stdout.isatty()
    document = service.tried(here, choice, os.environ, dry_run=dry_run or asks) if tried or asks else None
    if asks and document is not None:
        print_text(visible_lines(land_text(document)))
        if not typer.confirm(f"Measure them on {choice.onto} and move it?", err=True):
            only = f"redfirst land {document.runs[0].run}   # this one alone"
            raise UserError("Nothing was landed.", Reason.USAGE, actions=(only,))
        document = None
    if document is None:
        beating = Beating("land")
        with opened_context(Path.cwd(), os.environ, beating) as ctx:
            document = anyio.run(beating.during, service.land, ctx, here, choice, os.environ, beating)
    print_result(document, land_text, as_document=as_document)
    raise typer.Exit(document.exit_code)


def land_text(document: LandDocument) -> str:
    """Return the document in lines."""
    lines = [part for line in document.runs for part in _line(line, document)]
    if document.onto is None or not document.runs:
        more = " A run for another branch lands there by its name." if document.onto else ""
        return f"Nothing to land: no finished run has commits that its base lacks.{more}"
    count = sum(line.status in {"landed", "would_land"} for line in document.runs)
    before, after = document.before or "", document.after or ""
    ways = f"{before[:12]} -> {after[:12]}" if before != after else "stays where it is"
    verb = "would land" if document.dry_run else "landed"
    return "\n".join([*lines, f"{document.onto}: {ways}; {verb}: {count} of {len(document.runs)}"])


def _line(line: LandLine, document: LandDocument) -> list[str]:
    words = {
        "landed": f"landed on {document.onto}, {'checked there' if line.commits[1:] else 'which had its code already'}",
        "would_land": f"goes on {document.onto}; its tests were not run there",
        "already": "nothing to do",
        "refused": f"NOT landed, {line.found.value if line.found else ''}",
        "waits": "not landed, it waits",
        "passed_over": "passed over",
    }
    lines = [f"{line.run}: {words[line.status]}"]
    lines += [f"    commit {commit[:12]}" for commit in line.commits]
    lines += [f"    filed {issue}" for issue in line.filed]
    lines += [f"    {why}" for why in line.why]
    lines += [f"    ordered again: {line.order}"] if line.order is not None else []
    return [*lines, *(f"    next: {action}" for action in line.safe_next_actions)]


# --- what runs have left and nobody needs ----------------------------------------------------------------------

_OLD: Final = "30d"
_AGE: Final = re.compile(r"(?P<number>[0-9]{1,6})(?P<unit>[smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_WORDS: Final = {"removed": "removed", "would_remove": "would go", "kept": "stays"}


def gc(
    apply: Annotated[bool, typer.Option("--apply", help="Remove it.")] = False,
    older_than: Annotated[
        str,
        typer.Option("--older-than", metavar="AGE", help="How long ago a run ended whose record and worktree may go."),
    ] = _OLD,
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
    words = f"{'' if older_than == _OLD else f' --older-than {older_than}'}{' --refs' if refs else ''}"
    print_result(document, partial(gc_text, words=words), as_document=as_document)


def _seconds(age: str) -> int:

    match = _AGE.fullmatch(age)
    if match is None:
        raise UserError(f"--older-than {age}: write a number with s, m, h or d, such as 30d.", Reason.USAGE)
    return int(match["number"]) * _SECONDS[match["unit"]]


def gc_text(document: GcDocument, words: str = "") -> str:
    """Return the document in lines: what goes, then what stays; *words* are the options that it was asked with."""
    goes = [line for line in document.things if line.status != "kept"]
    every = (*goes, *(line for line in document.things if line.status == "kept"))
    lines = [f"{_WORDS[one.status]:<8}  {one.kind.replace('_', ' ')}  {one.what}: {one.why}" for one in every]
    if not goes:
        return "\n".join([*lines, "Nothing is to be removed."])
    count = f"{len(goes)} thing{'' if len(goes) == 1 else 's'}"
    end = f"Removed {count}." if document.applied else f"{count} would be removed: redfirst gc --apply{words}"
    return "\n".join([*lines, end])
