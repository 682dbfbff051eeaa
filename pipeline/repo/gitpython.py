"""GitPython as this program uses it: loaded without a process, and its reader of objects with hardened options."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final, cast

from pipeline.repo.values import HARDENED_SETTINGS, GitError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_QUIET: Final = {"GIT_PYTHON_REFRESH": "quiet", "GIT_PYTHON_GIT_EXECUTABLE": os.devnull}
"""With these GitPython does not start git twice, to ask for its version, when it is loaded."""

os.environ.update(_QUIET)
try:
    from git import Git
    from git.exc import GitCommandNotFound
finally:
    for _name in _QUIET:
        del os.environ[_name]

__all__ = ["Git", "GitCommandNotFound", "ObjectReader"]

_HEADER_WORDS: Final = 3
_CHUNK: Final = 1 << 20


class _HardenedGit(Git):
    """GitPython's persistent `cat-file`, for names of objects of any length and for paths in any encoding."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__()
        self.set_persistent_git_options(C=str(folder), c=HARDENED_SETTINGS, no_optional_locks=True)
        self.update_environment(**environment)

    def execute(self, command: Any, *args: Any, **options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        # Ctrl-C at a terminal is for the driver, which knows a safe point
        return cast("Any", super().execute(command, *args, **options, process_group=0))

    def _prepare_ref(self, ref: object) -> bytes:
        return os.fsencode(f"{ref}\n")

    def _parse_object_header(self, header_line: bytes) -> tuple[str, str, int]:  # pyright: ignore[reportIncompatibleMethodOverride]
        if not header_line.endswith(b"\n"):
            raise EOFError
        words = header_line.split()  # "<name> <kind> <size>", else "<revision> missing" or "... ambiguous"
        if len(words) != _HEADER_WORDS or not words[2].isdigit():
            raise ValueError(header_line)
        return words[0].decode(), words[1].decode(), int(words[2])


class ObjectReader:
    """A reader of the objects of a repository. Threads may share it: they ask one after the other."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._git = _HardenedGit(folder, environment)
        weakref.finalize(self, self._git.clear_cache)  # also where it goes with a cycle, or with the program
        self._asking = threading.Lock()

    def name_of(self, revision: str) -> str | None:
        """Return the name of the object that a revision names; None if there is none."""
        found = self._read(revision, 0)
        return found and found[0]

    def content(self, revision: str, limit: int) -> bytes | None:
        """Return the content of an object; None where there is none, or where it is no blob.

        Raises:
            ValueError: it has more bytes than *limit*.
        """
        found = self._read(revision, limit)
        if found is None or found[1] != "blob":
            return None
        if found[2] is None:
            raise ValueError(f"{revision} has more than {limit} bytes")
        return found[2]

    def _read(self, revision: str, limit: int) -> tuple[str, str, bytes | None] | None:
        """Return name, kind and content of an object, without the content where it is larger than *limit*."""
        with self._asking:
            try:
                name, kind, size, stream = self._git.stream_object_data(revision)
            except ValueError:
                return None
            except (EOFError, BrokenPipeError) as error:
                self._git.clear_cache()
                raise GitError(("cat-file", "--batch"), 1, "it ended while it was asked") from error
            content = stream.read(size) if size <= limit else None
            while stream.read(_CHUNK):
                pass  # what is not wanted would be the answer to the next question
            if content is not None and len(content) < size:
                self._git.clear_cache()
                raise GitError(("cat-file", "--batch"), 1, "it ended while it was read")
            return name, kind, content
