"""The file tools of a model in our own tool loop: read, write, edit, delete.

Each call is judged by the role's policy before it happens and answered in words. Files are reached through folder
descriptors, so no link leads out of the view.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from pipeline.backends.protocol import Mishap, ToolAnswer
from pipeline.languages.readers import region_fault
from pipeline.policy.characters import visible
from pipeline.policy.paths import TRACKER, malformed
from pipeline.policy.scope import judge_deletion, judge_path
from pipeline.trees import NotRegularError, read_regular
from pipeline.views.manifest import Limits
from pipeline.views.view_files import delete_file, is_file, names_in, opened_top, put_file, read_file

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.policy.roles import RoleSpec
    from pipeline.policy.scope import Covering, Grant, TestScope
    from pipeline.process import Box, Mount

LINES: Final = "\r\n\t"
"""The control characters that belong in a text of several lines."""
_READ_BYTES: Final = 400_000
_MOST_LINES: Final = 1000
_MOST_BYTES: Final = Limits().file_bytes

LineNumber = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class FileTools:
    """The file tools of one dispatch.

    A path is relative to the workspace, as policy judges it; the absolute path that a prompt names means the same.

    Args:
        spec: The role.
        view: How the box shows the workspace.
        box: Where commands run.
        grants: The production files that the task names.
        tests: What counts as a test, and the task's test files.
        artifacts: Read-only mounts of what the prompt names by absolute path.
        area: The patterns that the dispatch is held to.
        tracker: The folder of the issues.
    """

    spec: RoleSpec
    view: Mount
    box: Box
    grants: tuple[Grant, ...] = ()
    tests: TestScope | None = None
    artifacts: tuple[Mount, ...] = ()
    area: tuple[Covering, ...] | None = None
    tracker: str = TRACKER

    def read(self, path: str, first: LineNumber = 1, count: LineNumber = _MOST_LINES) -> ToolAnswer:
        """Read a text file, or list what is in a folder.

        Args:
            path: Path, relative to the workspace or as the request names it.
            first: First line, counted from 1.
            count: How many lines at most.
        """
        try:
            top, inner = self._place(path)
            if inner is None:
                return _shown(read_regular(top, _READ_BYTES), first, count)
            if inner != "." and (fault := malformed(inner)):
                return ToolAnswer(fault.why, fault.rule)
            with opened_top(top) as folder:
                names = names_in(folder, inner)
                if names is not None:
                    return ToolAnswer("\n".join(map(visible, names)))
                return _shown(read_file(folder, inner, _READ_BYTES), first, count)
        except OSError as error:
            return _failed(path, error)

    def write(self, path: str, content: str) -> ToolAnswer:
        """Give a file exactly this content; a new file and its folders are made.

        Args:
            path: Path, relative to the workspace or as the request names it.
            content: All of it.
        """
        path = self.relative(path)
        new = _encoded(content)
        if isinstance(new, ToolAnswer):
            return new
        try:
            with opened_top(self.view.reach) as top:
                return self._put(top, path, new)
        except OSError as error:
            return _failed(path, error)

    def edit(self, path: str, old: str, new: str) -> ToolAnswer:
        """Replace a passage that occurs exactly once in a file, blanks and line ends included.

        Args:
            path: Path, relative to the workspace or as the request names it.
            old: The passage as it stands in the file.
            new: What stands there afterwards.
        """
        path = self.relative(path)
        try:
            with opened_top(self.view.reach) as top:
                if not is_file(top, path):
                    # The policy's word first: a file that nobody may make is not there for another reason.
                    return self._refused(top, path, b"") or _failed(path, FileNotFoundError())
                before = read_file(top, path, _MOST_BYTES)
                after = _replaced(before, old, new)
                if isinstance(after, ToolAnswer):
                    return self._refused(top, path, before) or after
                return self._put(top, path, after)
        except OSError as error:
            return _failed(path, error)

    def delete(self, path: str) -> ToolAnswer:
        """Remove a file that the task says is to be deleted or renamed.

        Args:
            path: Path, relative to the workspace or as the request names it.
        """
        path = self.relative(path)
        ruling = judge_deletion(
            self.spec, path, grants=self.grants, tests=self.tests, area=self.area, tracker=self.tracker
        )
        if not ruling.allowed:
            return ToolAnswer(ruling.why, ruling.rule)
        try:
            with opened_top(self.view.reach) as top:
                delete_file(top, path)
        except OSError as error:
            return _failed(path, error)
        return ToolAnswer(f"{path}: deleted")

    @cached_property
    def workspace(self) -> Path:
        """Return the absolute path of the workspace, as the prompt names it."""
        return self.box.inside(self.view.source, self.view.target)

    def relative(self, path: str) -> str:
        """Return the absolute path of the workspace, as the prompt gives it."""
        return "." if path == str(self.workspace) else path.removeprefix(f"{self.workspace}/")

    def _place(self, path: str) -> tuple[Path, str | None]:
        """Return a folder and the path in it for `path`; None as path if the first is a file itself."""
        for mount in self.artifacts:
            shown = str(self.box.inside(mount.source, mount.target))
            if path == shown:
                return mount.reach, "." if mount.reach.is_dir() else None
            if path.startswith(f"{shown}/"):
                return mount.reach, path.removeprefix(f"{shown}/")
        return self.view.reach, self.relative(path)

    def _put(self, top: int, path: str, new: bytes) -> ToolAnswer:
        if len(new) > _MOST_BYTES:
            return ToolAnswer(f"the content is larger than {_MOST_BYTES} bytes", Mishap.CONTENT)
        if refused := self._refused(top, path, new):
            return refused
        put_file(top, path, new)
        return ToolAnswer(f"{path}: {len(new)} bytes written")

    def _refused(self, top: int, path: str, new: bytes) -> ToolAnswer | None:
        exists = is_file(top, path)
        contents = (read_file(top, path, _MOST_BYTES), new) if exists and self.spec.test_regions else None
        ruling = judge_path(
            self.spec,
            path,
            exists=exists,
            grants=self.grants,
            tests=self.tests,
            area=self.area,
            tracker=self.tracker,
            contents=contents,
            regions=region_fault,
        )
        return None if ruling.allowed else ToolAnswer(ruling.why, ruling.rule)

    def _named_files(self) -> tuple[str, ...]:
        """Return the task's files that exist."""
        named = dict.fromkeys(grant.path for grant in (*self.grants, *(self.tests.files if self.tests else ())))
        with opened_top(self.view.reach) as top:
            return tuple(path for path in named if _is_there(top, path))


def _is_there(top: int, path: str) -> bool:
    try:
        return is_file(top, path)
    except OSError:
        return False


def _encoded(content: str) -> bytes | ToolAnswer:
    try:
        return content.encode()
    except UnicodeEncodeError:
        return ToolAnswer("the content has half of a surrogate pair in it, which no text file holds", Mishap.CONTENT)


def _replaced(content: bytes, old: str, new: str) -> bytes | ToolAnswer:
    wanted, put = _encoded(old), _encoded(new)
    if isinstance(wanted, ToolAnswer):
        return wanted
    if isinstance(put, ToolAnswer):
        return put
    count = content.count(wanted) if wanted else 0
    if count == 1:
        return content.replace(wanted, put)
    if count == 0:
        return ToolAnswer("the old text does not occur; read the file, and give it exactly", Mishap.NO_SUCH_TEXT)
    return ToolAnswer(f"the old text occurs {count} times; give more of the lines around it", Mishap.SEVERAL_TEXTS)


def _shown(content: bytes, first: int, count: int) -> ToolAnswer:
    if b"\0" in content:
        return ToolAnswer("this is no text", Mishap.BINARY_FILE)
    whole = visible(content[:_READ_BYTES].decode(errors="replace"), keep=LINES)
    lines = whole.splitlines(keepends=True)
    start = max(first, 1) - 1
    end = min(len(lines), start + max(count, 1))
    if start and start >= len(lines):
        return ToolAnswer(f"the file has {len(lines)} lines", Mishap.NO_SUCH_LINE)
    text = "".join(lines[start:end])
    notes: list[str] = []
    if (start, end) != (0, len(lines)):
        notes.append(f"lines {start + 1} to {end} of {len(lines)}")
    if len(content) > _READ_BYTES:
        notes.append(f"only the first {_READ_BYTES} bytes are shown")
    if not notes:
        return ToolAnswer(text)
    line_end = "" if text.endswith("\n") else "\n"
    return ToolAnswer(f"{text}{line_end}[{'; '.join(notes)}]")


def _failed(path: str, error: OSError) -> ToolAnswer:
    if isinstance(error, FileNotFoundError):
        return ToolAnswer(f"{path!r} is not there", Mishap.NO_SUCH_FILE)
    if isinstance(error, NotRegularError) or error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EISDIR}:
        return ToolAnswer(
            f"{path!r} is no regular file, or is reached through a link; name the file itself", Mishap.FILE_KIND
        )
    return ToolAnswer(f"{path!r}: {error.strerror}", Mishap.FILE_SYSTEM)
