"""`redfirst config show`: every value and where it comes from (contract 4)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pipeline.cli.arguments import AsDocument
from pipeline.cli.text import print_text
from pipeline.config.layers import Flags
from pipeline.config.load import Loaded, load
from pipeline.config.sources import Layer
from pipeline.config.trust import as_json, is_trusted
from pipeline.git import Repository
from pipeline.policy.characters import visible
from pipeline.service.run_config import file_at_head, uncounted
from pipeline.service.trust_requests import widening_in

if TYPE_CHECKING:
    from pipeline.config.sources import Origin
    from pipeline.config.trust import Widening

SCHEMA: Final = "redfirst.config/1"
_HIDDEN: Final = "(hidden)"

app = typer.Typer(help="The configuration.", no_args_is_help=True)


@app.callback()
def _config() -> None:  # pyright: ignore[reportUnusedFunction]  (typer keeps `show` a word of its own)
    """The configuration."""


@app.command()
def show(
    assignments: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="As if set.")] = None,
    agents: Annotated[list[str] | None, typer.Option("--agent", metavar="ROLE=NAME", help="As if chosen.")] = None,
    as_document: AsDocument = False,
) -> None:
    """Show every value and where it comes from.

    Examples:
      redfirst config show

      redfirst config show --set budget.cost_usd=5 --agent make=human
    """
    repository = Repository.find(Path.cwd())
    flags = Flags.parse(assignments or (), agents or ())
    loaded = load(repository.worktree, environ=os.environ, repo_file=file_at_head(repository), flags=flags)
    widening = widening_in(repository, loaded, os.environ)
    trusted = is_trusted(widening, repository.common_dir, os.environ)
    notes = uncounted(repository)
    if as_document:
        typer.echo(json.dumps({**document(loaded, widening, trusted=trusted), "notes": notes}, indent=2))
    else:
        print_text("\n".join([text(loaded, widening, trusted=trusted), *(f"note: {visible(note)}" for note in notes)]))


def document(loaded: Loaded, widening: tuple[Widening, ...], *, trusted: bool) -> dict[str, Any]:
    """Return the values with their origins, for `--json`."""
    values: dict[str, dict[str, Any]] = {}
    for key, value in loaded.values().items():
        origin = loaded.origins[key]
        hidden = _is_hidden(key, origin)
        values[key] = {
            "value": None if hidden else value,
            "hidden": hidden,
            "layer": origin.layer.value,
            "source": origin.source or None,
            "line": origin.line,
        }
    return {"schema": SCHEMA, "values": values, "widening": as_json(widening), "trusted": trusted}


def text(loaded: Loaded, widening: tuple[Widening, ...], *, trusted: bool) -> str:
    """Return the values with their origins, one line each."""
    rows: list[tuple[str, str]] = []
    for key, value in loaded.values().items():
        origin = loaded.origins[key]
        shown = _HIDDEN if _is_hidden(key, origin) else "(not set)" if value is None else json.dumps(value)
        rows.append((visible(f"{key} = {shown}"), visible(str(origin))))
    width = max(len(left) for left, _ in rows)
    lines = [f"{left:<{width}}  {origin}" for left, origin in rows]
    if not trusted:
        keys = ", ".join(visible(item.key) for item in widening)
        lines += ["", f"Not trusted yet, so that a run is refused: {keys}. See: redfirst trust"]
    return "\n".join(lines)


def _is_hidden(key: str, origin: Origin) -> bool:
    # What a repository hands to agents is no secret of the user's; what the user's own layers hand over may be one.
    return ".env." in key and origin.layer is not Layer.REPOSITORY
