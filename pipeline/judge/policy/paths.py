"""Classifies paths for every role: valid, protected, scratch, ignored, special, customary for what serves tests.

A path here is a text relative to the top of the tree, with `/` between its parts. Names are judged for every platform
that may check the result out, not only for this one: `.GIT` is harmless on Linux and a repository on macOS.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from pipeline.characters import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterable

_GIT_SHORT_NAMES: Final = frozenset({"git~1", ".git"})
_OURS: Final = frozenset({".workflow"})
TRACKER: Final = "TODO"
"""The tracker's folder where `[tracker] folder` names no other."""

SCRATCH: Final[tuple[str, ...]] = (
    "__pycache__", "*.pyc", ".pytest_cache", ".ruff_cache", ".mypy_cache", ".hypothesis", "*.egg-info", ".coverage",
    ".coverage.*", "htmlcov", ".DS_Store", "*.swp",
)  # fmt: skip
"""Patterns of files that tools leave behind; the gate drops them instead of refusing the work."""


@dataclass(frozen=True)
class PathFault:
    """The reason why a path is refused for every role: a stable rule id and a sentence."""

    rule: str
    why: str


def protected(path: str) -> PathFault | None:
    """Return why nobody may touch `path`, whether it exists or not; None if it is not protected."""
    for part in path.split("/"):
        name = canonical(part)
        if is_git_folder(part):
            return PathFault(
                "git-alias", f"{part!r} in {path!r} is git's own folder, or becomes it on another platform"
            )
        if name in _OURS:
            return PathFault("workflow-folder", f"{path!r}: .workflow belongs to the run; answer in the report instead")
    return None


def is_git_folder(part: str) -> bool:
    """Return whether a part of a path is git's own folder, or becomes it on some platform; no tree may contain it."""
    return canonical(part) in _GIT_SHORT_NAMES


def used_by_git(path: str, places: Iterable[str]) -> PathFault | None:
    """Return the fault of a `path` at or below `places`, which git has for itself (room `repo`); None if elsewhere."""
    parts = [canonical(part) for part in path.split("/")]
    for place in places:
        wanted = [canonical(part) for part in place.split("/")]
        if parts[: len(wanted)] == wanted:
            what = f"{place!r} is a submodule, or the user's git runs or obeys what is in it"
            return PathFault("obeyed-by-git", f"{path!r}: {what}; nobody changes it here")
    return None


def nameless(path: str) -> PathFault | None:
    """Return why no report can name `path`, None if one can."""
    way = "so no report can name it: use another name, and leave a file that has this one as it is"
    if any("\ud800" <= char <= "\udfff" for char in path):
        return PathFault("path-encoding", f"{path!r} is not valid UTF-8, {way}")
    if HIDDEN.search(path) or "\\" in path:
        return PathFault("path-characters", f"{path!r} contains control or invisible characters or a backslash, {way}")
    return None


def malformed(path: str) -> PathFault | None:
    """Return why `path` is no valid name for a new file, None if it is."""
    if not path or path.startswith("/"):
        return PathFault("path-form", f"{path!r} is not a path relative to the workspace")
    if (fault := nameless(path)) is not None:
        return fault
    if unicodedata.normalize("NFC", path) != path:
        return PathFault("path-unicode", f"{path!r} is not in Unicode form NFC; write the composed letters")
    for part in path.split("/"):
        if part in {"", ".", ".."}:
            return PathFault("path-form", f"{path!r} has an empty part, '.' or '..' in it")
        if part[-1] in " ." or part[0] == " " or ":" in part:
            return PathFault("path-characters", f"{part!r} in {path!r} is not the same name on every platform")
    return None


def collision_key(path: str) -> str:
    """Return a key that is equal for two paths which some file system takes for the same file.

    Decomposed, or a Greek letter with two marks keeps its case (Unicode 3.13, D145).
    """
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", path).casefold())


def scratch_pattern(path: str) -> str | None:
    """Return the entry of `SCRATCH` that matches `path`, None if none does."""
    for part in path.split("/"):
        for pattern in SCRATCH:
            if fnmatchcase(part, pattern):
                return pattern
    return None


def is_tracker(path: str, folder: str) -> bool:
    """Return whether `path` lies in the tracker `folder`, which only our library writes."""
    return path.split("/", 1)[0] == folder


def tracker_fault(folder: str) -> str | None:
    """Return why a tracker cannot lie in a `folder` of this name; None if it can."""
    fault = protected(folder) or malformed(folder)
    if fault is None and "/" in folder:
        return f"{folder!r} is no name of a folder at the top of the repository"
    return None if fault is None else fault.why


def is_inside(path: str, folder: str) -> bool:
    """Return whether `path` lies below `folder`; every path lies below the empty folder."""
    return not folder or path.startswith(folder + "/")


def parent(path: str) -> str:
    """Return the folder of `path`, empty at the top."""
    return path.rpartition("/")[0]


def ways(path: str) -> tuple[str, ...]:
    """Return the folders above a path, the outermost first, and the path itself."""
    parts = path.split("/")
    return tuple("/".join(parts[:end]) for end in range(1, len(parts) + 1))


def canonical(part: str) -> str:
    """Return a form of a name that is equal for all names that some file system takes for the same."""
    # HFS+ ignores format characters, NTFS trailing dots, spaces and stream names; both ignore case.
    visible = "".join(char for char in unicodedata.normalize("NFKC", part) if unicodedata.category(char) != "Cf")
    return visible.casefold().split(":", 1)[0].rstrip(". ")


# pytest, jest, vitest, insta, go and their users have habits; what a runner counts as its own is in its `Layout`.
_FOLDERS: Final = re.compile(
    r"__(?:tests|mocks|snapshots|fixtures|image_snapshots)__"
    r"|(?:test|tests|spec|specs)[-_]?(?:data|fixtures|files|assets|resources|cases|helpers|support|utils)"
    r"|(?:tests?|specs?|snapshots|fixtures|golden|goldens|testdata|cassettes)"
)
_NAMES: Final = re.compile(r"conftest\.py|.+\.(?:snap|snap\.new|ambr|golden|approved\.[^./]+|raw)")


def lies_among_tests(path: str) -> bool:
    """Return whether a folder of the file, or its own name, is customary for test support."""
    *folders, name = path.casefold().split("/")
    return _NAMES.fullmatch(name) is not None or any(_FOLDERS.fullmatch(folder) for folder in folders)
