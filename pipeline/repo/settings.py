"""Reads the git configuration that holds for the user, their identity, and which files their git obeys.

Beside `.git/config` these are its hooks folder and included configuration files. Both may lie in the tree itself
(`core.hooksPath = .husky/_`, `include.path = ../.gitconfig`). What is changed there runs with the user's next git
command, so nobody's change to it is admitted.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.repo.process import Door
from pipeline.repo.values import GitError, Setting

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

_LIST: Final = ("config", "--list", "--null", "--show-origin")


class SettingsDoor(Door):
    """The repository for git settings; they are read again when a file that they may come from differs."""

    def __init__(self, worktree: Path, git_dir: Path, common_dir: Path) -> None:
        super().__init__(worktree, git_dir, common_dir)
        self._read_once = threading.Lock()
        self._settings: tuple[Setting, ...] = ()
        self._identity: tuple[tuple[Setting, ...], tuple[str, str]] | None = None
        self._sources: Mapping[Path, bytes | None] = {}
        """The files that `_settings` came from, as they were before git read them; empty: not known."""

    def config(self, key: str) -> str | None:
        """Return the value of a git config key, None if it is not set."""
        return next((setting.value for setting in reversed(self.settings()) if setting.key == key), None)

    def settings(self) -> tuple[Setting, ...]:
        """Return every git setting that holds for the user, with its file, the weakest first."""
        with self._read_once:
            return self._settings_now()

    def _settings_now(self) -> tuple[Setting, ...]:
        before = {path: _content(path) for path in self._places(self._settings)}
        if before == self._sources:
            return self._settings
        done = self._start(_LIST, prefix=())
        if done.returncode:
            raise GitError(_LIST[:2], done.returncode, done.stderr.decode(errors="replace"))
        parts = done.stdout.decode(errors="surrogateescape").split("\0")
        pairs = zip(parts[0::2], parts[1::2], strict=False)
        self._settings = tuple(_setting(entry, origin, self.worktree) for origin, entry in pairs)
        # A file that nobody knew of may have changed since git read it: then git is asked once more.
        self._sources = before if before.keys() == self._places(self._settings) else {}
        return self._settings

    def _places(self, settings: Iterable[Setting]) -> frozenset[Path]:
        """Return the files that settings come from, or would if they existed; a branch can select some."""
        env = os.environ
        user, system = env.get("GIT_CONFIG_GLOBAL"), env.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig")
        home = Path(env.get("HOME", "/"))
        mine = [Path(user)] if user else [home / ".gitconfig", _xdg(env, home) / "git" / "config"]
        ours = [self.common_dir / "config", self.git_dir / "config.worktree", self.git_dir / "HEAD"]
        named = [setting.origin for setting in settings if setting.origin is not None]
        return frozenset([*mine, Path(system), *ours, *named, *included(settings)])

    def settings_in(self, content: bytes) -> tuple[Setting, ...] | None:
        """Return the settings in a git configuration file's content, includes not followed; None if it is malformed."""
        done = self._start(("config", "--file", "-", "--no-includes", "--list", "--null"), stdin=content)
        if done.returncode:
            return None
        entries = done.stdout.decode(errors="surrogateescape").split("\0")
        return tuple(_setting(entry) for entry in entries if entry)

    def has_remote(self, url: str) -> bool:
        """Return whether a remote of the repository has this URL."""
        remotes = (one.value for one in self.settings() if one.key.startswith("remote.") and one.key.endswith(".url"))
        return any(one.rstrip("/").removesuffix(".git") == url.rstrip("/").removesuffix(".git") for one in remotes)

    def identity(self) -> tuple[str, str]:
        """Return the name and e-mail address that git would commit with.

        Raises:
            UserError: git has no identity to commit with.
        """
        settings = self.settings()
        known = self._identity
        if known is not None and known[0] == settings:
            return known[1]
        found = self._answers("var", "GIT_AUTHOR_IDENT")
        if found is None:
            raise UserError(
                "git does not know who commits.",
                Reason.CONFIG,
                actions=("git config user.name NAME", "git config user.email ADDRESS"),
            )
        name, _, rest = found.decode(errors="replace").partition(" <")
        person = name, rest.partition(">")[0]
        self._identity = settings, person
        return person


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:  # not there, or no file
        return None


def _xdg(env: Mapping[str, str], home: Path) -> Path:
    named = env.get("XDG_CONFIG_HOME")
    return Path(named) if named else home / ".config"


def _setting(entry: str, origin: str = "", top: Path | None = None) -> Setting:
    key, _, value = entry.partition("\n")
    file = origin.removeprefix("file:") if origin.startswith("file:") else None
    return Setting(key, value, (top or Path()) / file if file is not None else None)


HOOKS: Final = (
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "p4-changelist", "p4-post-changelist", "p4-pre-submit",
    "p4-prepare-changelist", "post-applypatch", "post-checkout", "post-commit", "post-index-change", "post-merge",
    "post-receive", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit",
    "pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout",
    "reference-transaction", "sendemail-validate", "update",
)  # fmt: skip
"""Every name that git runs as a hook (githooks(5))."""


def hooks_folder(repository: SettingsDoor, settings: Sequence[Setting]) -> Path:
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


def paths_git_uses(repository: SettingsDoor) -> tuple[str, ...]:
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
