"""Reads objects through one long-running `git cat-file --batch`."""

from __future__ import annotations

import subprocess
import threading
import weakref
from typing import IO, TYPE_CHECKING, Final, cast

from pipeline.git.values import GitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ARGV: Final = ("cat-file", "--batch")
_AT_ONCE: Final = 400  # names of objects: fewer bytes than a pipe takes, so that writing them never waits
_ANSWER_WORDS: Final = 3
_SMALL: Final = 1 << 20  # bytes that are read, although nobody wants them, rather than start another process


class ObjectReader:
    """A reader of objects over one `git cat-file` process, started when it is first needed and ended with the program.

    Threads may share it: they ask one after the other, for an answer says by its place alone to which question it is.

    Args:
        start: Starts git with some arguments, its standard input and output as pipes.
    """

    def __init__(self, start: Callable[[tuple[str, ...]], subprocess.Popen[bytes]]) -> None:
        self._start = start
        self._stop: Callable[[], object] = lambda: None
        self._process: subprocess.Popen[bytes] | None = None
        self._asking = threading.RLock()

    def name_of(self, revision: str) -> str | None:
        """Return the name of the object that a revision names; None if there is none."""
        with self._asking:
            return self._name_of(revision)

    def _name_of(self, revision: str) -> str | None:
        answers = self._asked([revision])
        header = self._header(answers)
        if header is None:
            return None
        name, _, size = header
        if size > _SMALL:
            self.close()
        elif len(answers.read(size + 1)) <= size:
            self._gone()
        return name

    def contents(self, revisions: Iterable[str], limit: int) -> list[bytes | None]:
        """Return the content of each object; None where there is none, or where it is no blob.

        Raises:
            ValueError: together they have more than *limit* bytes.
        """
        with self._asking:
            return self._contents(list(revisions), limit)

    def _contents(self, wanted: list[str], limit: int) -> list[bytes | None]:
        found: list[bytes | None] = []
        left = limit
        for first in range(0, len(wanted), _AT_ONCE):
            some = wanted[first : first + _AT_ONCE]
            answers = self._asked(some)
            for revision in some:
                header = self._header(answers)
                if header is None:
                    found.append(None)
                    continue
                _, kind, size = header
                left -= size
                if left < 0:
                    self.close()
                    raise ValueError(f"{revision} has {size} bytes")
                content = answers.read(size + 1)
                if len(content) <= size:
                    self._gone()
                found.append(content[:-1] if kind == "blob" else None)
        return found

    def close(self) -> None:
        """End the process; the next question starts another one."""
        with self._asking:
            self._stop()
            self._process = None

    def _asked(self, revisions: list[str]) -> IO[bytes]:
        if self._process is None:
            self._process = self._start(_ARGV)
            self._stop = weakref.finalize(self, _end, self._process)
        questions, answers = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)
        try:
            questions.write("".join(f"{revision}\n" for revision in revisions).encode(errors="surrogateescape"))
            questions.flush()
        except BrokenPipeError:
            self._gone()
        return answers

    def _header(self, answers: IO[bytes]) -> tuple[str, str, int] | None:
        line = answers.readline()
        if not line.endswith(b"\n"):
            self._gone()
        words = line.split()  # "<name> <kind> <size>", else "<revision> missing" or "... ambiguous"
        if len(words) != _ANSWER_WORDS or not words[2].isdigit():
            return None
        return words[0].decode(), words[1].decode(), int(words[2])

    def _gone(self) -> None:
        process = self._process
        self.close()
        raise GitError(_ARGV, process.returncode if process is not None else 1, "it ended while it was asked")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process by closing its input; kill it if it does not end."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
