"""The overlay view: the run's checkout below, an empty sized tmpfs above, both out of an agent's reach.

What an agent changed is what the upper layer holds, so a dispatch costs what it changed and not what the repository
holds, and there is nothing to remove afterwards: the namespace that has the mounts lives by our descriptors of it, and
ends with them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.boxes.helper_process import helper_command, received_descriptors, tool
from pipeline.process import BoxError, Mount, Namespaces
from pipeline.trees import opened_parent, read_regular
from pipeline.views.manifest import compare, without
from pipeline.views.overlay import Layered, Touched, lower_entry
from pipeline.views.manifest import EntryKind, Limits
from pipeline.views.view import Survey

if TYPE_CHECKING:
    from collections.abc import Callable

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
            without(compare(touched.before, touched.after), self.ignored),
        )

    def read(self, path: str) -> bytes:
        """Return the present content of a regular file.

        Raises:
            OSError: it is no regular file, is too large or cannot be read.
        """
        return _read(self.merged, path, self.limits.file_bytes)

    def pristine(self, path: str) -> bytes | None:
        """Return the content that a file had when the view was made, None if there was no such file."""
        entry = lower_entry(self.lower, path)
        if entry is None or entry.kind is not EntryKind.FILE:
            return None
        with opened_parent(self.lower, path) as (parent, name):
            return read_regular(name, entry.size, parent)

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


def _read(top: int, path: str, limit: int) -> bytes:
    with opened_parent(top, path) as (parent, name):
        content = read_regular(name, limit, parent)
    if len(content) > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return content
