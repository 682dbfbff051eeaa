"""Reads the git configuration that holds for the user, and their identity."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.git.indirect_settings import included
from pipeline.git.process import Door
from pipeline.git.values import GitError, Setting
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
