"""`run --dry-run`: what a run would do, in words or as a document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pipeline.cli.recipes_text import agent_lines, most_line, step_lines
from pipeline.cli.text import print_text
from pipeline.policy.characters import visible
from pipeline.terminal import echo

if TYPE_CHECKING:
    from pipeline.git import Repository
    from pipeline.service.dry_run import DryRun
    from pipeline.service.run_config import RunOptions


def print_dry_run(repository: Repository, options: RunOptions, *, worktree: bool, as_document: bool) -> None:
    """Print what `run` would do with these options."""
    from pipeline.service.dry_run import dry_run  # noqa: PLC0415  (heavy; not on the path of --help)

    found = dry_run(repository, options, worktree=worktree)
    if as_document:
        echo(json.dumps(found.document(), indent=2))
    else:
        print_text("\n".join(_lines(found)))


def _lines(found: DryRun) -> list[str]:
    recipe = found.recipe
    inputs = ", ".join(f"{name}={value}" for name, value in found.inputs.items() if value)
    lines = [visible(f"{recipe.recipe.name} ({recipe.file.path}){f': {inputs}' if inputs else ''}")]
    lines += [*step_lines(found.shown), *agent_lines(found.agents)]
    publishes = f" Publishes on {found.branch}." if found.branch and found.in_the_way is None else ""
    if found.asked_gates:
        lines.append(f"Waits for you at approval points: {', '.join(found.asked_gates)}.")
    lines.append(visible(f"{most_line(found.shown, found.limit)}{publishes} Nobody was asked, nothing was written."))
    if found.in_the_way is not None:
        lines.append(visible(f"It would not begin here. {found.in_the_way}"))
    if found.refused is not None:
        lines.append(visible(f"It cannot be run: {found.refused}."))
    elif not found.trusted:
        lines.append("It is the repository's, and runs after: redfirst trust")
    return lines
