"""`redfirst` without words: where you stand, and the command that comes next."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.cli.runs_text import age_words, where_words
from pipeline.cli.text import print_text
from pipeline.config import folders
from pipeline.config.sources import repository_file
from pipeline.errors import UserError
from pipeline.git import Repository
from pipeline.policy.characters import visible
from pipeline.progress import counted
from pipeline.service.standing import standing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.service.runs_document import RunLine
    from pipeline.service.standing import Standing

_SHOWN: Final = 5
_HELP: Final = "All commands: redfirst --help"


def print_standing() -> None:
    """Print where the user stands, in the repository around the working directory."""
    try:
        repository = Repository.find(Path.cwd())
    except UserError:
        print_text(
            "You are in no git repository. Go into one; redfirst then says what comes next.\n"
            f"See it work first: redfirst demo\n{_HELP}"
        )
        return
    found = standing(repository)
    lines = [
        *_runs(found.driven, "goes on", "redfirst watch"),
        *_runs(found.waiting, "waits", "redfirst show"),
        *_landing(found),
        *_issues(found),
    ]
    configured = (folders.config_folder(os.environ) / "config.toml").is_file()
    if not configured and repository_file(repository.worktree, lambda _: None) is None:
        lines.append("No configuration says yet which agents play the roles: redfirst init")
    print_text("\n".join([*lines, _HELP]))


def _runs(lines: Sequence[RunLine], what: str, command: str) -> list[str]:
    shown = [
        visible(f"{line.name} {what}, {where_words(line)}, begun {age_words(line.age_s)} ago: {command} {line.name}")
        for line in lines[:_SHOWN]
    ]
    more = len(lines) - _SHOWN
    return [*shown, *([f"{counted(more, 'more run')}: redfirst runs"] if more > 0 else [])]


def _landing(found: Standing) -> list[str]:
    if not found.landable:
        return []
    runs = counted(len(found.landable), "finished run")
    return [visible(f"{runs} may land on {found.onto}: redfirst land --dry-run")]


def _issues(found: Standing) -> list[str]:
    if not found.has_issues:
        return ["There are no issues here yet. File the first: redfirst issue new --title TEXT"]
    if found.ready is None:
        return [visible(f"{found.problem}. See: redfirst issue lint")]
    if not found.ready:
        return ["No issue is ready. See all: redfirst issue list"]
    first = visible(found.ready[0])
    are = "issue is" if len(found.ready) == 1 else "issues are"
    return [f"{len(found.ready)} {are} ready. Take the first: redfirst run {first} --worktree"]
