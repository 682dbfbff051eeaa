"""Finds what a repository asks of commits that a run could not keep: its messages' form, and hooks that are not run.

A run commits by writing objects, so that no hook of git runs. One counts as handled if a command of `[checks]` names
the tool that it starts, or the hook itself, or if `[commits] hooks` names it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pipeline.config.commits import misfits
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.repo.settings import hooks_folder

if TYPE_CHECKING:
    from pipeline.config.model import Config
    from pipeline.repo import Repository

_HOOKS: Final = ("pre-commit", "prepare-commit-msg", "commit-msg")
_TOOLS: Final = (
    "pre-commit", "prek", "lefthook", "husky", "lint-staged", "commitlint", "gitlint", "overcommit", "commitizen",
)  # fmt: skip
_MOST: Final = 65536


@dataclass(frozen=True)
class Hook:
    """A hook that the user's git would run: its name, its file, and the tool that it starts, where one is known."""

    name: str
    path: str
    tools: frozenset[str]

    def told(self) -> str:
        """Return what is not run, and what to do."""
        tool = ", ".join(sorted(self.tools)) or self.path
        return (
            f"the {self.name} hook ({self.path}) is not run over commits of redfirst. Have what it checks as a command "
            f'of [checks] that names {tool}, or say that you know: [commits] hooks = ["{self.name}"]'
        )


def unrun_hooks(repository: Repository, config: Config) -> tuple[Hook, ...]:
    """Return the hooks of commits that nothing stands in for."""
    folder = hooks_folder(repository, repository.settings())
    found: list[Hook] = []
    words = [word for argv in (*config.checks.commands, *config.checks.fix) for word in argv]
    named = {PurePosixPath(word).name for word in words}
    for name in _HOOKS:
        path = folder / name
        if name in config.commits.hooks or not path.is_file() or not os.access(path, os.X_OK):
            continue
        with path.open("rb") as file:
            text = file.read(_MOST).decode("utf-8", "replace")
        tools = frozenset(tool for tool in _TOOLS if re.search(rf"(?<![\w-]){tool}(?![\w-])", text))
        if not (tools & named or str(path) in words or any(word.endswith(f"/{name}") for word in words)):
            found.append(Hook(name, str(path), tools))
    return tuple(found)


def refuse_misfit(config: Config, issue: str) -> None:
    """Refuse a pattern of subjects that the commits of a run would break, before anybody is asked.

    Raises:
        UserError: the first subject that it refuses.
    """
    broken = misfits(config.commits, issue)
    if broken:
        raise UserError(
            f"[commits] pattern {config.commits.pattern!r} refuses the subject {broken[0]!r} of a run's commits. "
            'Have subjects made so that they fit: [commits] subject = "{issue}: {type}: {title}", or mend the pattern.',
            Reason.USAGE,
            actions=("redfirst config show",),
        )
