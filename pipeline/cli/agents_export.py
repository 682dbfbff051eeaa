"""`redfirst agents export`: our roles as another product's own agent files (contract 1)."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  (typer reads it)
from typing import Annotated

import typer

from pipeline.cli.arguments import AsDocument
from pipeline.cli.text import print_text
from pipeline.service.agent_files import ExportDocument, Target, export_roles
from pipeline.terminal import print_document, visible_lines


def export(
    to: Annotated[Target, typer.Option("--to", help="The product.")],
    folder: Annotated[
        Path | None, typer.Option("--dir", metavar="DIR", help="Where to. By default the product's folder here.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that differ.")] = False,
    as_document: AsDocument = False,
) -> None:
    """Write the roles as agent files of another product.

    It says what those files cannot keep.

    Examples:
      redfirst agents export --to opencode

      redfirst agents export --to claude --dir ~/.claude/agents --json
    """
    document = export_roles(to, folder, force=force)
    if as_document:
        print_document(document)
    else:
        print_text(visible_lines(_text(document)))


def _text(document: ExportDocument) -> str:
    """Return what a person reads."""
    lines: list[str] = []
    for role in document.roles:
        lines.append(f"{role.state:<9}  {role.file}")
        lines += [f"{'':<11}not kept: {key.key} = {key.value} ({key.why})" for key in role.ignored]
    return "\n".join((*lines, document.note))
