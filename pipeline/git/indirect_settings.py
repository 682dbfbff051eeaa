"""Files that the user's git obeys besides `.git/config`: its hooks folder, and included configuration files.

Both may lie in the tree itself (`core.hooksPath = .husky/_`, `include.path = ../.gitconfig`). What is changed there
runs with the user's next git command, so nobody's change to it is admitted.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pipeline.git.repository import Repository
    from pipeline.git.values import Setting

HOOKS: Final = (
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "p4-changelist", "p4-post-changelist", "p4-pre-submit",
    "p4-prepare-changelist", "post-applypatch", "post-checkout", "post-commit", "post-index-change", "post-merge",
    "post-receive", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit",
    "pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout",
    "reference-transaction", "sendemail-validate", "update",
)  # fmt: skip
"""Every name that git runs as a hook (githooks(5))."""


def hooks_folder(repository: Repository, settings: Sequence[Setting]) -> Path:
    """Return the folder where the user's git looks for hooks; a relative path counts from the worktree's top."""
    wanted = [setting.value for setting in settings if setting.key == "core.hookspath"]
    if not wanted or not wanted[-1]:
        return repository.common_dir / "hooks"
    return Path(os.path.normpath(repository.worktree / _expanded(wanted[-1])))


def included(settings: Iterable[Setting], by: Collection[Path] | None = None) -> tuple[Path, ...]:
    """Return the configuration files that settings include, whether they exist and their condition holds or not.

    Args:
        settings: Settings with their origins.
        by: Only what these files, or files that they include, ask for; None: whatever any file asks for.
    """
    wanted: dict[Path, None] = {}
    known = None if by is None else {os.path.normpath(path) for path in by}
    for setting in settings:  # git lists what a file includes right after the setting that asks for it
        if setting.origin is None or not _is_include(setting.key):
            continue
        if known is not None and os.path.normpath(setting.origin) not in known:
            continue
        target = Path(os.path.normpath(setting.origin.parent / _expanded(setting.value)))
        wanted[target] = None
        if known is not None:
            known.add(str(target))
    return tuple(wanted)


def paths_git_uses(repository: Repository) -> tuple[str, ...]:
    """Return the paths in the worktree, relative to its top, that the user's git obeys as hooks or configuration.

    A path in the main checkout counts too: what is committed here lands there with the next merge.
    """
    settings = repository.settings()
    hooks = hooks_folder(repository, settings)
    tops = {path for top in (repository.worktree, repository.main_checkout) for path in (top, top.resolve())}
    found: set[str] = set()
    for path in (hooks, hooks.resolve(), *included(settings)):
        for top in tops:
            inside = path.relative_to(top).as_posix() if path.is_relative_to(top) else None
            if inside is None or inside.split("/")[0] == ".git":
                continue
            # hooks right at the top: then these names are meant, not the whole tree
            found.update(HOOKS if inside == "." else (inside,))
    return tuple(sorted(found))


def _is_include(key: str) -> bool:
    return key == "include.path" or (key.startswith("includeif.") and key.endswith(".path"))


def _expanded(value: str) -> str:
    return os.path.expanduser(value) if value.startswith("~") else value  # noqa: PTH111  (git's `~user/` too)
