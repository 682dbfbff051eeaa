"""The disposable workspace of one dispatch: made from a tree, given to an agent, compared, removed.

The branch and the user's worktree are never in it, nor are `.workflow` and the real `.git`.
`ShadowView` is the portable form, a plain copy; an overlay can stand behind the same protocol.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pipeline.process import Mount
from pipeline.sandbox.views.manifest import Entry, EntryKind, Limits, Manifest, compare, read_at
from pipeline.trees import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeline.judge.policy.rights import Change
    from pipeline.sandbox.views.shadow import Shadow


@dataclass(frozen=True)
class Survey:
    """The base of a view, its present content, and the changes between them."""

    base: Mapping[str, Entry]
    after: Mapping[str, Entry]
    changes: tuple[Change, ...]


class View(Protocol):
    """A workspace: its folder on the host, and its path in the box."""

    @property
    def mount(self) -> Mount:
        """Return the mount that shows the view in a box."""
        ...

    def survey(self) -> Survey:
        """Return the changes of the view from its base; no process may be active in it."""
        ...

    def read(self, path: str) -> bytes:
        """Return the present content of a regular file.

        Raises:
            OSError: it is no regular file, is too large or cannot be read.
        """
        ...

    def pristine(self, path: str) -> bytes | None:
        """Return the content that a file had when the view was made, None if there was no such file."""
        ...

    def close(self) -> None:
        """Remove the view; a second call does nothing."""
        ...


@dataclass
class ShadowView:
    """A view that is a copy of a tree, used for one dispatch.

    Args:
        shadow: The copy; it is handed over already.
        workspace: Where the box shows it.
        writable: Whether the box lets the agent write there.
        release: Is told at the end what the last survey found, None if there was none.
        limits: What a dispatch may add.
    """

    shadow: Shadow
    workspace: Path
    writable: bool
    release: Callable[[Manifest | None], None]
    limits: Limits = field(default_factory=Limits)
    _after: Manifest | None = None
    _changed: tuple[str, ...] = ()
    _pristine: dict[str, bytes] = field(default_factory=dict[str, bytes])
    _open: bool = True

    @property
    def host(self) -> Path:
        """Return the view's folder on the host."""
        return self.shadow.files

    @property
    def mount(self) -> Mount:
        """Return the mount that shows the view in a box."""
        return Mount(self.host, self.workspace, writable=self.writable)

    def survey(self) -> Survey:
        """Return the changes of the view from its base; untouched files are not read again."""
        self._after = self.shadow.scan(self.limits)
        changes = compare(self.shadow.base, self._after, self.shadow.over)
        self._changed = tuple(change.path for change in changes if self._is_file(change.path))
        return Survey(self.shadow.base, self._after, changes)

    def read(self, path: str) -> bytes:
        """Return the present content of a regular file.

        Raises:
            OSError: it is no regular file, is too large or cannot be read.
        """
        with opened(self.host) as top:
            return read_at(top, path, self.limits.file_bytes)

    def pristine(self, path: str) -> bytes | None:
        """Return the content that a file had when the view was made, None if there was no such file."""
        if not self._is_file(path):
            return None
        if path not in self._pristine:  # who asks for one changed file asks for all of them
            self._pristine |= self.shadow.decoy.contents({path, *self._changed})
        return self._pristine[path]

    def _is_file(self, path: str) -> bool:
        entry = self.shadow.base.get(path)
        return entry is not None and entry.kind is EntryKind.FILE

    def close(self) -> None:
        """Close the view; a second call does nothing."""
        if self._open:
            self._open = False
            self.release(self._after)
