"""Compares two states of a view and finds the changes that the gate judges.

The work is proportional to what differs where both states share the entries that do not.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final, assert_never

from pipeline.policy.paths import collision_key
from pipeline.policy.scope import Change, ChangeKind
from pipeline.views.manifest import EntryKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from pipeline.views.manifest import Entry

_REPOSITORY: Final = ("/HEAD", "/objects", "/refs")


def compare(base: Mapping[str, Entry], after: Mapping[str, Entry]) -> tuple[Change, ...]:
    """Return every difference by path. A folder counts only where something else was or is."""
    touched = {path for path, entry in after.items() if base.get(path) is not entry} | (base.keys() - after.keys())
    found = {path: _difference(path, base.get(path), after.get(path)) for path in sorted(touched)}
    found |= {path: Change(path, ChangeKind.REPOSITORY) for path in _bare_repositories(base, after, touched)}
    changes = [change for change in found.values() if change is not None]
    if not any(change.kind is ChangeKind.ADDED for change in changes):
        return tuple(changes)
    collisions = _collisions(after)
    return tuple(
        replace(change, collides_with=_collision(change.path, collisions))
        if change.kind is ChangeKind.ADDED
        else change
        for change in changes
    )


def without(changes: Iterable[Change], ignored: Collection[str]) -> tuple[Change, ...]:
    """Return the changes without those of ignored files that every copy gets beside its tree (`runs.ignored`)."""
    return tuple(change for change in changes if change.path not in ignored)


def _difference(path: str, before: Entry | None, now: Entry | None) -> Change | None:
    if before == now:
        return None
    if now is None:
        return None if before is None or before.kind is EntryKind.FOLDER else Change(path, ChangeKind.DELETED)
    match now.kind:
        case EntryKind.UNREADABLE:
            return Change(path, ChangeKind.UNREADABLE, detail=now.detail)
        case EntryKind.LINK:
            return Change(path, ChangeKind.SYMLINK, detail=now.detail)
        case EntryKind.SPECIAL:
            return Change(path, ChangeKind.SPECIAL, detail=now.detail)
        case EntryKind.FILE | EntryKind.FOLDER:
            pass
        case _:
            assert_never(now.kind)
    if before is not None and before.kind is not now.kind:
        return Change(path, ChangeKind.TYPE, detail=before.kind.value)
    if now.links > (before.links if before else 1):
        return Change(path, ChangeKind.HARDLINK)
    if before is None:
        return None if now.kind is EntryKind.FOLDER else Change(path, ChangeKind.ADDED)
    if before.mode != now.mode:
        return Change(path, ChangeKind.MODE)
    return Change(path, ChangeKind.MODIFIED) if before.sha256 != now.sha256 else None


def _bare_repositories(base: Mapping[str, Entry], after: Mapping[str, Entry], touched: set[str]) -> Iterator[str]:
    """Yield the changes that make a folder a repository without `.git`: git takes it for one from inside."""
    for folder in {path.rpartition("/")[0] for path in touched if path.endswith(_REPOSITORY)}:
        parts = [folder + part for part in _REPOSITORY]
        if all(part in after for part in parts) and after[parts[0]].kind is EntryKind.FILE:
            yield from [part for part in parts if part not in base][:1]


def _collisions(after: Mapping[str, Entry]) -> dict[str, set[str]]:
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for path in after:
        groups[collision_key(path)].add(path)
    return {key: paths for key, paths in groups.items() if len(paths) > 1}


def _collision(path: str, collisions: dict[str, set[str]]) -> str | None:
    """Return another path that some file system takes for `path` or a folder above it; None if there is none."""
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        own = "/".join(parts[:end])
        if others := collisions.get(collision_key(own), set()) - {own}:
            return min(others)
    return None
