"""Reads configuration files, and finds the line that sets each key (contract 4).

The repository's file is read by the caller, from the start commit if it is tracked there: what an agent or a checkout
leaves in the worktree cannot change the run that is under way.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

from pipeline.errors import UserError
from pipeline.judge.policy.paths import TRACKER, tracker_fault
from pipeline.outcomes import Reason
from pipeline.toml_text import toml_table
from pipeline.trees import read_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeline.config.keys import KeyPath

OWN_FILE: Final = "redfirst.toml"
SHARED_FILE: Final = "pyproject.toml"
SHARED_TABLE: Final = ("tool", "redfirst")
LARGEST: Final = 1 << 20
"""The largest configuration file of a repository, in bytes."""

_TABLE = re.compile(r"\s*\[([^\[\]]+)\]\s*(#.*)?")
_ENTRY = re.compile(r"\s*\[\[([^\[\]]+)\]\]\s*(#.*)?")
_ASSIGNMENT = re.compile(r"\s*([A-Za-z0-9_\"'-]+(?:\s*\.\s*[A-Za-z0-9_\"'-]+)*)\s*=")


class Layer(StrEnum):
    """The layers of the configuration, from the weakest to the strongest."""

    DEFAULT = "default"
    REPOSITORY = "repository"
    USER = "user"
    ENVIRONMENT = "environment"
    FLAG = "flag"


@dataclass(frozen=True)
class Origin:
    """Where a value comes from: a file with its line, a variable, a flag; the source of a default is empty."""

    layer: Layer
    source: str = ""
    line: int | None = None

    def __str__(self) -> str:
        if not self.source:
            return self.layer.value
        return f"{self.source}:{self.line}" if self.line else self.source


@dataclass(frozen=True)
class RepositoryFile:
    """The configuration file of a repository: `redfirst.toml` or `pyproject.toml`.

    `tracked`: `content` is the start commit's.
    """

    name: str
    content: bytes
    tracked: bool


@dataclass(frozen=True)
class Document:
    """A parsed configuration file. Relative paths in it start at `folder`; `prefix` is the path of our table in it."""

    layer: Layer
    source: str
    folder: Path
    text: str
    prefix: KeyPath
    table: Mapping[str, Any]

    def line_of(self, path: KeyPath) -> int | None:
        """Return the line, from 1, that sets *path* or the nearest table above it; None if it is unknown."""
        whole = (*self.prefix, *path)
        return next((line for end in range(len(whole), 0, -1) if (line := self._lines.get(whole[:end]))), None)

    @cached_property
    def _lines(self) -> Mapping[KeyPath, int]:
        return _lines_of(self.text)

    def origin(self, path: KeyPath) -> Origin:
        """Return the origin of the key at *path*: this document and the line."""
        return Origin(self.layer, self.source, self.line_of(path))


def repository_file(worktree: Path, at_start: Callable[[str], bytes | None]) -> RepositoryFile | None:
    """Return the repository's configuration file, None if there is none.

    Args:
        worktree: The top of the worktree; a file that is not tracked is read from here.
        at_start: Returns the bytes of a path in the start commit, or None when it is not tracked there; raises
            ValueError where it has more than `LARGEST`.

    Raises:
        UserError: `redfirst.toml` and `[tool.redfirst]` are both there, or a file cannot be read or is too large.
    """
    found = [file for name in (OWN_FILE, SHARED_FILE) if (file := _either(worktree, name, at_start)) and _speaks(file)]
    if len(found) > 1:
        raise UserError(
            f"{OWN_FILE} and [tool.redfirst] in {SHARED_FILE} both configure this repository. Keep one of them. "
            f"Move the keys of that table to {OWN_FILE} and remove it.",
            Reason.CONFIG,
            path=OWN_FILE,
            details={"files": [OWN_FILE, SHARED_FILE]},
        )
    return found[0] if found else None


def tracker_advice(folder: Path) -> str:
    """Return the command that leads on where a tracker cannot be read: a file of the project may have its name."""
    return "redfirst config set tracker.folder issues" if folder.is_file() else "redfirst issue lint"


def tracker_folder(
    worktree: Path, at_start: Callable[[str], bytes | None] = lambda _: None, *, or_refuse: bool = False
) -> str:
    """Return the name of the folder of the issues; the usual one where a broken file cannot name another.

    Args:
        worktree: As `repository_file` takes it.
        at_start: The same; by default the file counts as it is in the worktree.
        or_refuse: Raise where the file names a folder that cannot be one: nothing is to be filed elsewhere.

    Raises:
        UserError: the same, if *or_refuse*.
    """
    try:
        file = repository_file(worktree, at_start)
        found = parse_repository(file, worktree).table["tracker"]["folder"] if file is not None else TRACKER
    except (UserError, LookupError, TypeError):
        return TRACKER
    fault = tracker_fault(found) if isinstance(found, str) else f"{found!r} is no text"
    if fault is not None and or_refuse and file is not None:
        raise UserError(
            f"{file.name}: tracker.folder: {fault}. Name a folder at the top of the repository, or take the key out.",
            Reason.CONFIG,
            path=file.name,
            pointer="/tracker/folder",
        )
    return found if isinstance(found, str) and fault is None else TRACKER


def _either(worktree: Path, name: str, at_start: Callable[[str], bytes | None]) -> RepositoryFile | None:
    try:
        content = at_start(name)
        if content is not None:
            return RepositoryFile(name, content, tracked=True)
        return RepositoryFile(name, file_content(worktree / name), tracked=False)
    except ValueError:
        raise UserError(
            f"{name} is larger than {LARGEST >> 20} MiB, which no configuration is.", Reason.CONFIG, path=name
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UserError(f"cannot read {name}: {error.strerror}.", Reason.CONFIG, path=name) from error


def file_content(path: Path) -> bytes:
    """Return a file's content if it is a regular file of limited size; a link may lead to an endless device.

    Raises:
        OSError: it cannot be read, or is no regular file.
        ValueError: it is larger than any configuration.
    """
    content = read_regular(path.resolve(), LARGEST)
    if len(content) > LARGEST:
        raise ValueError(f"{path} has more than {LARGEST} bytes")
    return content


def _speaks(file: RepositoryFile) -> bool:
    if file.name == OWN_FILE:
        return True
    try:
        return _own_table(file.content) is not None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        # A broken pyproject.toml is its owner's to mend; it is ours only when it may hold our table.
        return b"tool.redfirst" in file.content


def same_words(file: RepositoryFile, worktree: Path) -> bool:
    """Return whether the file in *worktree* has the same settings as *file*; of a shared file only our table counts.

    A file that is gone there, or cannot be read, does not.
    """
    try:
        here = file_content(worktree / file.name)
    except (OSError, ValueError):
        return False
    if here == file.content or file.name == OWN_FILE:
        return here == file.content
    try:
        return _own_table(here) == _own_table(file.content)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False


def _own_table(content: bytes) -> object:
    tools: object = toml_table(content.decode()).get("tool")
    return cast("dict[str, object]", tools).get("redfirst") if isinstance(tools, dict) else None


def parse_repository(file: RepositoryFile, worktree: Path) -> Document:
    """Return the parsed configuration file of the repository.

    Raises:
        UserError: it is not TOML, not UTF-8, or `[tool.redfirst]` is not a table.
    """
    shared = file.name == SHARED_FILE
    return _parse(Layer.REPOSITORY, file.name, worktree, file.content, SHARED_TABLE if shared else ())


def parse_user(path: Path, content: bytes | None = None) -> Document | None:
    """Return the parsed configuration file of the user, None if there is none.

    Args:
        path: The file.
        content: What it is about to be; by default what is in it.

    Raises:
        UserError: it cannot be read, or it is not TOML in UTF-8.
    """
    try:
        content = path.read_bytes() if content is None else content
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}.", Reason.CONFIG, path=str(path)) from error
    return _parse(Layer.USER, str(path), path.parent, content, ())


def _parse(layer: Layer, source: str, folder: Path, content: bytes, prefix: KeyPath) -> Document:
    try:
        text = content.decode()
        table: object = toml_table(text)
    except UnicodeDecodeError as error:
        raise UserError(f"{source} is not UTF-8 text.", Reason.CONFIG, path=source) from error
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{source} is not valid TOML: {error}.", Reason.CONFIG, path=source) from error
    for word in prefix:
        table = cast("dict[str, object]", table).get(word, {}) if isinstance(table, dict) else table
    if not isinstance(table, dict):
        pointer = "/" + "/".join(prefix)
        raise UserError(f"{source}: [tool.redfirst] is not a table.", Reason.CONFIG, path=source, pointer=pointer)
    return Document(layer, source, folder, text, prefix, cast("dict[str, Any]", table))


def _lines_of(text: str) -> Mapping[KeyPath, int]:
    """Return the line, from 1, on which each key and table appears first."""
    # tomllib keeps no positions. A line is for people: where the scan cannot tell (a key inside an inline table), it
    # gives the table; it never decides anything.
    found: dict[KeyPath, int] = {}
    table: KeyPath = ()
    entries: Counter[KeyPath] = Counter()
    for number, line in enumerate(text.splitlines(), start=1):
        if entry := _ENTRY.fullmatch(line):
            name = _words(entry[1])
            table = here = (*name, str(entries[name]))
            entries[name] += 1
        elif header := _TABLE.fullmatch(line):
            table = here = _words(header[1])
        elif assignment := _ASSIGNMENT.match(line):
            here = (*table, *_words(assignment[1]))
        else:
            continue
        found.setdefault(here, number)
    return found


def _words(key: str) -> KeyPath:
    return tuple(word.strip().strip("\"'") for word in key.split("."))
