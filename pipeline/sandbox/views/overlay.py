"""The overlay view: the run's checkout below, an empty sized tmpfs above, both out of an agent's reach.

What an agent changed is what the upper layer holds, so a dispatch costs what it changed and not what the repository
holds, and there is nothing to remove afterwards: the namespace that has the mounts lives by our descriptors of it, and
ends with them.

The work is proportional to the changes and the folders around them. The kernel writes the upper layer as its
documentation says: a removed name is a character device 0:0, a folder that replaces what lies below it is marked
opaque, everything else is the new file or a folder to merge.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pipeline.process import BoxError, Mount, Namespaces
from pipeline.sandbox.boxes.helper_process import helper_command, received_descriptors, tool
from pipeline.sandbox.views.manifest import (
    Account,
    Entry,
    EntryKind,
    Limits,
    compare,
    look,
    look_at,
    read_at,
    unreadable,
)
from pipeline.sandbox.views.view import Survey
from pipeline.trees import opened

_OPAQUE: Final = "user.overlay.opaque"


class Layered(Mapping[str, Entry]):
    """A manifest that lists the paths around changes; other paths are looked up in the lower layer when asked for."""

    def __init__(self, listed: dict[str, Entry], lower: int, gone: frozenset[str]) -> None:
        """Set the `listed` entries, the descriptor of the `lower` layer, and the paths that are `gone`."""
        self._listed = listed
        self._lower = lower
        self._gone = gone

    def __getitem__(self, path: str) -> Entry:
        if path in self._listed:
            return self._listed[path]
        found = None if path in self._gone else look_at(self._lower, path)
        if found is None:
            raise KeyError(path)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)


@dataclass
class Touched:
    """The touched paths of a view's upper layer, read once with `read`.

    Args:
        lower: Descriptor of the layer below, which nobody changes.
        limits: What may have been added.
        before: The touched paths and their neighbours as they were.
        after: The same paths as they are now; what was removed is missing.
    """

    lower: int
    limits: Limits
    before: dict[str, Entry] = field(default_factory=dict[str, Entry])
    after: dict[str, Entry] = field(default_factory=dict[str, Entry])

    def __post_init__(self) -> None:
        self._account = Account(self.limits)

    def read(self, upper: int) -> None:
        """Read the upper layer behind the descriptor, without the `.git` at its top, which is the decoy's."""
        try:
            self._folder(upper, self.lower, "", 1)
        except OSError as error:
            self.after["."] = unreadable(error)

    @property
    def gone(self) -> frozenset[str]:
        """Return the paths that existed before and do not now."""
        return frozenset(self.before.keys() - self.after.keys())

    def _folder(self, upper: int, lower: int | None, path: str, depth: int) -> None:
        """Read one folder of the upper layer; `lower` is the folder it is merged with, None if it hides that."""
        if depth > self.limits.depth:
            raise OverflowError(f"more than {self.limits.depth} folders deep")
        names = sorted(name for name in os.listdir(upper) if path or name != ".git")
        if lower is not None:
            self._neighbours(lower, path, set(names))
        for name in names:
            self._entry(upper, lower, name, f"{path}/{name}" if path else name, depth)

    def _entry(self, upper: int, lower: int | None, name: str, path: str, depth: int) -> None:
        below = self._before(lower, name, path)
        try:
            status = os.stat(name, dir_fd=upper, follow_symlinks=False)
            if _is_whiteout(status):
                self._hidden(lower, name, path, below)
                return
            self._account.take(below, status)
            self.after[path] = look(upper, name, status)
            if self.after[path].kind is not EntryKind.FOLDER:
                self._hidden(lower, name, path, below)
                return
            with opened(name, upper) as folder:
                merged = below is not None and below.kind is EntryKind.FOLDER and not _is_opaque(folder)
                if not merged:
                    self._hidden(lower, name, path, below)
                with opened(name, lower) if merged and lower is not None else contextlib.nullcontext() as under:
                    self._folder(folder, under, path, depth + 1)
        except (OSError, OverflowError) as error:
            self.after[path] = unreadable(error)

    def _before(self, lower: int | None, name: str, path: str) -> Entry | None:
        if lower is None:
            return None
        try:
            found = look(lower, name, os.stat(name, dir_fd=lower, follow_symlinks=False))
        except FileNotFoundError:
            return None
        self.before[path] = found
        return found

    def _hidden(self, lower: int | None, name: str, path: str, below: Entry | None) -> None:
        """Record the lower entries of a folder that is removed or replaced."""
        if lower is None or below is None or below.kind is not EntryKind.FOLDER:
            return
        with opened(name, lower) as folder:
            for inner in os.listdir(folder):  # noqa: PTH208  (a descriptor)
                inner_path = f"{path}/{inner}"
                self._hidden(folder, inner, inner_path, self._before(folder, inner, inner_path))

    def _neighbours(self, lower: int, path: str, touched: set[str]) -> None:
        """List the untouched names of a merged folder: names can collide, and three of them make a repository."""
        with os.scandir(lower) as entries:
            for entry in entries:
                if entry.name in touched or (not path and entry.name == ".git"):
                    continue
                kind = EntryKind.FOLDER if entry.is_dir(follow_symlinks=False) else EntryKind.FILE
                inner = f"{path}/{entry.name}" if path else entry.name
                self.before[inner] = self.after[inner] = Entry(kind)


def _is_whiteout(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _is_opaque(folder: int) -> bool:
    try:
        return os.getxattr(folder, _OPAQUE) == b"y"
    except OSError:
        return False


_SIZE: Final = 1 << 30
_INODES: Final = 250_000
_TIMEOUT_S: Final = 30.0


@dataclass
class OverlayView:
    """A writable layer over a checkout that nobody changes meanwhile. Create it with `open`.

    Args:
        host: The mount point, an empty folder on the host; the view is `host/view` inside the namespaces.
        workspace: Where the box shows it.
        writable: Whether the box lets the agent write there.
        lower: Descriptor of the checkout.
        upper: Descriptor of the layer that takes the changes.
        merged: Descriptor of what the agent sees.
        namespaces: Where the view exists.
        release: Called once at the end.
        ignored: Files that no tree has: what becomes of them is no change.
    """

    host: Path
    workspace: Path
    writable: bool
    lower: int
    upper: int
    merged: int
    namespaces: Namespaces
    release: Callable[[], None]
    ignored: frozenset[str] = frozenset()
    limits: Limits = field(default_factory=Limits)
    _open: bool = True

    @classmethod
    def open(
        cls,
        layers: tuple[Path, ...],
        where: Path,
        *,
        workspace: Path,
        writable: bool,
        owner: int | None = None,
        ignored: frozenset[str] = frozenset(),
        release: Callable[[], None] = lambda: None,
    ) -> OverlayView:
        """Return a view of `layers`, the topmost first; changes are measured against the last one, the checkout.

        Args:
            layers: Folders that nobody changes while the view lives.
            where: An empty folder of ours.
            workspace: The absolute path at which the box shows it.
            writable: False for a role that changes nothing.
            owner: The user that the box's processes run as, if it is not ours.
            ignored: Files of the layers above the checkout that no tree has: what becomes of them is no change.
            release: Called when the view is closed.

        Raises:
            BoxError: this machine does not offer it.
        """
        upper, merged, mount, user = _mounted(layers, where, owner)
        if os.getuid() == 0:  # the namespaces of root's own mounts belong to the host's user namespace
            os.close(user)
            namespaces = Namespaces(mount, merged)
        else:
            namespaces = Namespaces(mount, merged, user)
        lower = os.open(layers[-1], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return cls(where, workspace, writable, lower, upper, merged, namespaces, release, ignored)

    @property
    def mount(self) -> Mount:
        """Return the mount that shows the view in a box."""
        return Mount(self.host / "view", self.workspace, writable=self.writable, within=self.namespaces)

    def survey(self) -> Survey:
        """Return how the view differs from the checkout, by reading the upper layer only."""
        touched = Touched(self.lower, self.limits)
        touched.read(self.upper)
        return Survey(
            Layered(touched.before, self.lower, frozenset()),
            Layered(touched.after, self.lower, touched.gone),
            compare(touched.before, touched.after, self.ignored),
        )

    def read(self, path: str) -> bytes:
        """Return the present content of a regular file.

        Raises:
            OSError: it is no regular file, is too large or cannot be read.
        """
        return read_at(self.merged, path, self.limits.file_bytes)

    def pristine(self, path: str) -> bytes | None:
        """Return the content that a file had when the view was made, None if there was no such file."""
        entry = look_at(self.lower, path)
        if entry is None or entry.kind is not EntryKind.FILE:
            return None
        return read_at(self.lower, path, entry.size)

    def close(self) -> None:
        """Close the view; a second call does nothing."""
        if not self._open:
            return
        self._open = False
        held = (self.lower, self.upper, self.merged, self.namespaces.mount, self.namespaces.user)
        for descriptor in held:
            if descriptor is not None:
                os.close(descriptor)
        with contextlib.suppress(OSError):
            self.host.rmdir()
        self.release()


def overlay_works(folder: Path, owner: int | None) -> str | None:
    """Return why overlay views do not work below `folder`, None if they do: one is tried.

    The trial removes a file, replaces a folder and adds one, since kernels differ in what they can record on a tmpfs.
    """
    with tempfile.TemporaryDirectory(prefix="overlay-", dir=folder) as scratch:
        lower, at = Path(scratch, "lower"), Path(scratch, "at")
        (lower / "folder").mkdir(parents=True)
        at.mkdir()
        for name in ("gone", "kept", "folder/inner"):
            (lower / name).write_text(name)
        try:
            view = OverlayView.open((lower,), at, workspace=Path("/view"), writable=True, owner=owner)
        except BoxError as error:
            return str(error)
        try:
            os.unlink("gone", dir_fd=view.merged)
            os.unlink("folder/inner", dir_fd=view.merged)
            os.rmdir("folder", dir_fd=view.merged)
            os.mkdir("folder", dir_fd=view.merged)
            os.close(os.open("new", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=view.merged))
            seen = {change.path for change in view.survey().changes}
        except OSError as error:
            return f"an overlay view cannot be changed: {error.strerror}"
        finally:
            view.close()
    return None if seen == {"gone", "folder/inner", "new"} else f"an overlay view shows its changes as {sorted(seen)}"


def _mounted(layers: tuple[Path, ...], where: Path, owner: int | None) -> tuple[int, ...]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        order = {
            "do": "overlay",
            "at": str(where),
            "lower": [str(layer) for layer in layers],
            "owner": owner,
            "size": _SIZE,
            "inodes": _INODES,
            "control": theirs.fileno(),
        }
        rights = ("--mount",) if os.getuid() == 0 else ("--user", "--map-root-user", "--mount")
        with helper_command(order) as (stage, told):
            argv = (tool("unshare"), *rights, "--propagation", "private", "--", *stage)
            fds = (told, theirs.fileno())
            ended = subprocess.run(
                argv,
                pass_fds=fds,
                env={},
                cwd="/",
                capture_output=True,
                timeout=_TIMEOUT_S,
                process_group=0,  # Ctrl-C at a terminal is for the driver
                check=False,
            )
        if ended.returncode:
            words = ended.stderr.decode(errors="replace").strip()
            raise BoxError(f"no overlay view: {words or ended.returncode}")
        return received_descriptors(ours, 4)
