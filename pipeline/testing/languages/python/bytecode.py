"""Caches the project's bytecode: the baseline's is reused for files with the same bytes.

Python, and older versions of pytest for the tests that they rewrite, believe a compiled file whose source has the size
and the second that are noted in it. Two trees can hold different bytes of one size, written in one second, at one path.
So what the project compiles to is taken out of the shared cache after the warm run, and given out anew to each process,
only for sources whose sha256 is the same. It lies in a private folder then, with links to the shared one, which is
read-only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from pipeline.trees import Files, remove_tree

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

_OWN: Final = ".own"
_INDEX: Final = "index.json"
_COMPILED: Final = re.compile(r"(?P<stem>.+)\.(?:cpython|pypy|graalpy)\d*-.*\.pyc")
_HEADER: Final = 16
_WORD: Final = 0xFFFFFFFF
_BY_HASH: Final = (-1, -1)
_LIMIT: Final = 64 << 20
"""The largest source file in bytes whose bytecode is reused."""
_CONFIGURATION: Final = (
    "pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg",
)  # fmt: skip
"""Files that may configure how pytest compiles, or turn compiler warnings into errors."""


@dataclass(frozen=True)
class Place:
    """A folder of sources: its path for the tests, and its files. Compiled code may contain the path."""

    inside: Path
    files: Files

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the parts of the folder's path."""
        return self.inside.parts[1:]


def keep(cache: Path, places: Sequence[Place], foreign: Collection[Path]) -> None:
    """Move the project's bytecode out of a cache filled by a warm run, and record the sources that it belongs to.

    Args:
        cache: A copy of what was `PYTHONPYCACHEPREFIX`, without links.
        places: Where the project's sources are; the first is the project itself.
        foreign: Folders inside of places that are not the project's: an environment in the checkout.
    """
    own = cache / _OWN
    remove_tree(own)
    own.mkdir()
    files: list[dict[str, str]] = []
    for place in places:
        top = cache.joinpath(*place.parts)
        for folder, name in _compiled(cache, place.parts, {cache.joinpath(*at.parts[1:]) for at in foreign}):
            found = _COMPILED.fullmatch(name)
            source = "" if found is None else str(folder.relative_to(top) / f"{found['stem']}.py")
            sha256 = _written_for(folder / name, place.files, source) if source else None
            if sha256 is None:
                (folder / name).unlink()
                continue
            kept = f"{len(files)}.pyc"
            compiled = str(folder.relative_to(top) / name)
            (folder / name).rename(own / kept)
            files.append(
                {"place": str(place.inside), "source": source, "compiled": compiled, "sha256": sha256, "kept": kept}
            )
        _prune(top)
    index = {"configuration": _configuration(places[0].files), "files": files}
    (own / _INDEX).write_text(json.dumps(index), encoding="utf-8")


def lay_out(cache: Path, places: Sequence[Place], prefix: Path) -> None:
    """Fill the empty folder *prefix* as one measurement's cache: links to the shared one, and the project's bytecode.

    Args:
        cache: What `keep` has left; nothing is taken from a cache that no warm run has filled.
        places: Where the project's sources are now; the first is the project itself.
        prefix: What will be `PYTHONPYCACHEPREFIX`; the tests may write into it.
    """
    index = cache / _OWN / _INDEX
    if not index.exists():
        return
    known = json.loads(index.read_text(encoding="utf-8"))
    by_path = {str(place.inside): place for place in places}
    files = [entry for entry in known["files"] if entry["place"] in by_path]
    folders = {(entry["place"], PurePosixPath(entry["compiled"]).parent) for entry in files}
    inner = (by_path[top].parts + folder.parts for top, folder in folders)
    _graft(cache, prefix, [*inner, *(place.parts for place in places)])
    if known["configuration"] != _configuration(places[0].files):
        return
    for entry in files:
        place = by_path[entry["place"]]
        kept = cache / _OWN / entry["kept"]
        _give(kept, (place.files, entry["source"]), entry["sha256"], prefix.joinpath(*place.parts, entry["compiled"]))


def _compiled(cache: Path, parts: tuple[str, ...], foreign: Collection[Path]) -> Iterator[tuple[Path, str]]:
    """Yield (folder, name) of the compiled files below a folder."""
    for at, folders, names in os.walk(cache.joinpath(*parts)):
        folder = Path(at)
        folders[:] = [name for name in folders if folder / name not in foreign]
        yield from ((folder, name) for name in names)


def _prune(top: Path) -> None:
    """Remove the empty folders below a folder, and the folder itself if it is empty."""
    for at, _, _ in os.walk(top, topdown=False):
        with contextlib.suppress(OSError):
            Path(at).rmdir()


def _written_for(compiled: Path, files: Files, source: str) -> str | None:
    """Return the sha256 of the source that a compiled file belongs to; None if it belongs to none.

    One that notes its source's hash is checked against it when it is loaded; only the version that wrote it knows how.
    """
    found, noted = _read(files, source), _noted(compiled)
    return found[1] if found is not None and noted in {found[0], _BY_HASH} else None


def _read(files: Files, source: str) -> tuple[tuple[int, int], str] | None:
    """Return a source's modification second and size, and its sha256; None if it is no file or too large."""
    try:
        with files.opened(source) as file:
            status = os.fstat(file.fileno())
            if status.st_size > _LIMIT:
                return None
            return (int(status.st_mtime) & _WORD, status.st_size), hashlib.sha256(file.read(_LIMIT)).hexdigest()
    except OSError:
        return None


def _noted(compiled: Path) -> tuple[int, int] | None:
    """Return the source's second and size by a compiled file's header, or `_BY_HASH`; None if it is none."""
    with compiled.open("rb") as file:
        header = file.read(_HEADER)
        whole = len(header) == _HEADER and os.fstat(file.fileno()).st_size <= _LIMIT
    if not whole:
        return None
    if header[4:8] != bytes(4):
        return _BY_HASH
    return int.from_bytes(header[8:12], "little"), int.from_bytes(header[12:16], "little")


def _give(kept: Path, source: tuple[Files, str], sha256: str, target: Path) -> None:
    """Copy a compiled file to where Python looks for it, if the source still has the same bytes."""
    noted, found = _noted(kept), _read(*source)
    if noted is None or found is None or found[1] != sha256:
        return
    now = found[0]
    target.parent.mkdir(parents=True, exist_ok=True)
    if noted in {now, _BY_HASH}:
        target.symlink_to(kept)
        return
    code = kept.read_bytes()  # the same bytes, checked out at another time
    target.write_bytes(code[:8] + b"".join(value.to_bytes(4, "little") for value in now) + code[_HEADER:])


def _graft(source: Path, target: Path, apart: Iterable[tuple[str, ...]]) -> None:
    """Link the content of *source* into *target*; folders on the way to those of *apart* become real ones."""
    paths = [parts for parts in apart if parts]
    for entry in os.scandir(source):
        inner = [parts[1:] for parts in paths if parts[0] == entry.name]
        if entry.name == _OWN:
            continue
        if inner and entry.is_dir(follow_symlinks=False):
            (target / entry.name).mkdir()
            _graft(Path(entry.path), target / entry.name, inner)
        else:
            (target / entry.name).symlink_to(entry.path)


def _configuration(project: Files) -> dict[str, str]:
    """Return the sha256 of each file at the project's top that may configure pytest."""
    found = {name: _read(project, name) for name in _CONFIGURATION}
    return {name: seen[1] for name, seen in found.items() if seen is not None}
