"""Hashes the parts of a repository that a dispatch must not change: programs that git runs, and its settings.

Left out is what the user and git itself change at any time: index, files, branches, tags, stashes, packs, `FETCH_HEAD`,
`gc.pid`, `info/refs`, `info/sparse-checkout`, sample hooks, settings that run nothing, and what is new altogether (a
submodule, a worktree).
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pipeline.git import Setting

NO_FILE: Final = ""
"""The hash of a missing file."""

_MOST: Final = 8 << 20  # bytes of a file that count, besides its size: nothing of an agent may fill our memory

_HARMLESS_SECTIONS: Final = frozenset({
    "advice", "author", "branch", "color", "column", "commit", "committer", "fetch", "gc", "index", "init", "log",
    "maintenance", "pull", "push", "rebase", "remote", "rerere", "stash", "status", "submodule", "tag", "user",
    "worktree",
})  # fmt: skip
_HARMLESS_KEYS: Final = frozenset({
    "core.sparsecheckout", "core.sparsecheckoutcone", "core.untrackedcache", "extensions.worktreeconfig",
    "gui.geometry", "gui.wmstate", "lfs.repositoryformatversion",
})  # fmt: skip
_HARMLESS_LFS: Final = ("access", "locksverify")
_RUNNING: Final = {
    "gc": frozenset({"recentobjectshook"}),
    "remote": frozenset({"vcs", "uploadpack", "receivepack", "proxy", "proxyauthmethod"}),
    "submodule": frozenset({"update"}),
}
"""Settings in otherwise harmless sections that name a program or a way to one."""

_REGENERATED: Final = frozenset({"refs", "sparse-checkout"})


def affects_git(key: str) -> bool:
    """Return whether a git setting can run a program or change what git sees; unknown settings count."""
    section, _, rest = key.partition(".")
    last = rest.rpartition(".")[2]
    if section in _HARMLESS_SECTIONS:
        return last in _RUNNING.get(section, frozenset())
    return key not in _HARMLESS_KEYS and not (section == "lfs" and last in _HARMLESS_LFS)


def affecting_git(settings: Iterable[Setting]) -> dict[str, tuple[str, ...]]:
    """Return the values, by key, of settings that can run a program or change what git sees."""
    found: dict[str, tuple[str, ...]] = {}
    for setting in settings:
        if affects_git(setting.key):
            found[setting.key] = (*found.get(setting.key, ()), setting.value)
    return found


def modules(common: Path) -> tuple[Path, ...]:
    """Return the git folders of the repository's submodules, nested ones included."""
    found: list[Path] = []
    pending = [common / "modules"]
    while pending:
        folder = pending.pop()
        for child in _children(folder):
            if child.is_symlink() or not child.is_dir():
                continue
            if (child / "HEAD").exists():
                found.append(child)
                pending.append(child / "modules")
            else:
                pending.append(child)  # a name with slashes
    return tuple(sorted(found))


def configs(common: Path, module_folders: Iterable[Path]) -> dict[Path, bytes]:
    """Return the contents of the git configuration files of the repository, its worktrees and submodules."""
    folders = [common, *_children(common / "worktrees")]
    files = [common / "config", *(folder / "config.worktree" for folder in folders)]
    files += [folder / name for folder in module_folders for name in ("config", "config.worktree")]
    return {path: content_of(path) for path in files}


def hashes(folder: Path, *, deep: bool, leave_out: frozenset[str] = frozenset()) -> Iterator[tuple[Path, str]]:
    """Yield path and hash of the entries of a folder of programs or rules; a link counts by its target."""
    for path in _children(folder):
        if path.name.endswith(".sample") or str(path) in leave_out:
            continue
        if deep and path.is_dir() and not path.is_symlink():
            yield from hashes(path, deep=True, leave_out=leave_out)
        else:
            yield path, digest_of(path)


def info(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield path and hash of the files in an `info` folder: attributes, excludes, grafts."""
    return ((path, digest) for path, digest in hashes(folder, deep=True) if path.name not in _REGENERATED)


def digest_of(path: Path) -> str:
    """Return a hash of kind, permissions and content; `NO_FILE` if the file is missing."""
    try:
        status = path.lstat()
    except OSError:
        return NO_FILE
    content = b""
    if stat.S_ISLNK(status.st_mode):
        content = os.fsencode(path.readlink())
    elif stat.S_ISREG(status.st_mode):
        content = f"{status.st_size} ".encode() + content_of(path)
    return hashlib.sha256(f"{status.st_mode:o} ".encode() + content).hexdigest()


def content_of(path: Path) -> bytes:
    """Return the first bytes of a regular file, empty if there is none."""
    if not path.is_file():
        return b""
    try:
        with path.open("rb") as stream:
            return stream.read(_MOST)
    except OSError as error:
        return str(error.strerror).encode()


def _children(folder: Path) -> tuple[Path, ...]:
    try:
        return tuple(sorted(folder.iterdir()))
    except OSError:
        return ()
