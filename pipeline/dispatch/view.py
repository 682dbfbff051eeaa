"""The disposable workspace of one dispatch: made from a tree, given to an agent, compared, thrown away.

The branch and the user's worktree are never in it, nor are `.workflow` and the real `.git` (architecture 6, View).
`ShadowView` is the portable form, a plain copy; an overlay can stand behind the same protocol.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, assert_never

from pipeline.dispatch.comparison import compare
from pipeline.dispatch.decoy import Decoy
from pipeline.dispatch.manifest import Entry, EntryKind, Limits, Manifest, scan
from pipeline.dispatch.trees import (
    make_folder,
    opened,
    opened_parent,
    read_regular,
    remove_entry,
    remove_tree,
    write_new,
)
from pipeline.process import Mount, SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pipeline.policy.scope import Change

TOP: Final = "."
"""The path by which a scan names the view itself."""


@dataclass(frozen=True)
class Survey:
    """What the view was made from, what is in it now, and the difference."""

    base: Mapping[str, Entry]
    after: Mapping[str, Entry]
    changes: tuple[Change, ...]


class View(Protocol):
    """A workspace on the host and where the box shows it."""

    @property
    def mount(self) -> Mount:
        """Return how the box shows the view."""
        ...

    def survey(self) -> Survey:
        """Return how the view differs from its base; only meaningful while no process is at work in it."""
        ...

    def read(self, path: str) -> bytes:
        """Return what is in a regular file now.

        Raises:
            OSError: it is no regular file, is too large or cannot be read.
        """
        ...

    def pristine(self, path: str) -> bytes | None:
        """Return what was in the file when the view was made, None if it was none."""
        ...

    def close(self) -> None:
        """Remove the view; closing twice is fine."""
        ...


@dataclass
class ShadowView:
    """A copy of a tree in a folder of its own. Make it with `open`.

    Args:
        host: The folder on the host.
        workspace: Where the box shows it.
        writable: Whether the box lets the agent write there.
        fill: Makes an empty folder hold the base tree; asked again when something has to be put back.
        base: What was in the folder before the agent.
        limits: What a dispatch may add.
    """

    host: Path
    workspace: Path
    writable: bool
    fill: Callable[[Path], None]
    base: Manifest
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def open(cls, fill: Callable[[Path], None], where: Path, *, workspace: Path, writable: bool) -> ShadowView:
        """Return a view of what `fill` writes.

        Args:
            fill: Is given the folder, which is empty.
            where: The folder, which does not exist or is empty; the view owns it from now on.
            workspace: The absolute path at which the box shows it.
            writable: False for a role that changes nothing.

        Raises:
            SandboxError: the folder is not empty or the copy could not be made.
        """
        where.mkdir(parents=True, exist_ok=True)
        if any(where.iterdir()):
            raise SandboxError(f"a view needs an empty folder, and {where} is not")
        try:
            fill(where)
            base = scan(where)
            Decoy(where / ".git", where).make()
        except BaseException:
            remove_tree(where)
            raise
        return cls(where, workspace, writable, fill, base)

    @property
    def mount(self) -> Mount:
        """Return how the box shows the view."""
        return Mount(self.host, self.workspace, writable=self.writable)

    def survey(self) -> Survey:
        """Return how the view differs from its base, by reading all of it."""
        after = scan(self.host, self.base, self.limits)
        return Survey(self.base, after, compare(self.base, after))

    def read(self, path: str) -> bytes:
        """Return what is in a regular file now.

        Raises:
            OSError: it is no regular file, is too large or cannot be read.
        """
        with opened(self.host) as top, opened_parent(top, path) as (parent, name):
            content = read_regular(name, self.limits.file_bytes, parent)
        if len(content) > self.limits.file_bytes:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return content

    def pristine(self, path: str) -> bytes | None:
        """Return what was in the file when the view was made, None if it was none."""
        entry = self.base.get(path)
        if entry is None or entry.kind is not EntryKind.FILE:
            return None
        return (self._copy() / path).read_bytes()

    def restore(self, paths: Iterable[str]) -> None:
        """Put these paths back as they were when the view was made: content, type and execute bit.

        Raises:
            SandboxError: the view is not a folder any more.
        """
        if not stat.S_ISDIR(self.host.lstat().st_mode):
            raise SandboxError(f"{self.host} was replaced by something else")
        self.host.chmod(0o755)
        with opened(self.host) as top:
            for path in sorted(set(paths) - {TOP}):
                self._restore(top, path)

    def close(self) -> None:
        """Remove the view; closing twice is fine."""
        for folder in (self.host, self._spare):
            if folder.is_symlink():
                folder.unlink()
            elif folder.exists():
                remove_tree(folder)

    @property
    def _spare(self) -> Path:
        return self.host.with_name(f".{self.host.name}.pristine")

    def _copy(self) -> Path:
        # Blobs would not do: what a checkout writes can differ from them (line ends, LFS).
        if not self._spare.exists():
            self._spare.mkdir()
            self.fill(self._spare)
        return self._spare

    def _restore(self, top: int, path: str) -> None:
        entry = self.base.get(path)
        if entry is None:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError), opened_parent(top, path) as (parent, name):
                remove_entry(parent, name)
            return
        with opened_parent(top, path, create=True) as (parent, name):
            match entry.kind:
                case EntryKind.FOLDER:
                    make_folder(parent, name)
                case EntryKind.LINK:
                    remove_entry(parent, name)
                    os.symlink(entry.detail, name, dir_fd=parent)
                case EntryKind.FILE:
                    remove_entry(parent, name)
                    write_new(parent, name, (self._copy() / path).read_bytes(), 0o755 if entry.executable else 0o644)
                case EntryKind.SPECIAL | EntryKind.UNREADABLE:
                    raise SandboxError(f"{path!r} cannot be put back: it was {entry.kind} from the start")
                case _:
                    assert_never(entry.kind)
