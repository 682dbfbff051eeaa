"""Puts a change of one tree on another one, path by path, from the list of changes (ADR-R15)."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.repo import PLAIN, Entry, Repository, TreeChange


@dataclass(frozen=True)
class Put:
    """A tree with the change in it; `merged` are the files that others had changed, too, `conflicts` those left out."""

    tree: str
    merged: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


def put_on(repository: Repository, tree: str, before: str, after: str) -> Put:
    """Return *tree* with what differs between *before* and *after*.

    Where others changed a file of it, both changes are taken if they do not touch each other.
    """
    if tree == before:
        return Put(after)
    here = {entry.path: entry for entry in repository.entries(tree)}
    was = {entry.path: entry for entry in repository.entries(before)}
    wanted = repository.diff(before, after)
    stays = here.keys() - {change.path for change in wanted if change.entry is None}
    folders = {folder for path in stays for folder in above(path)}
    changes: list[TreeChange] = []
    merged: list[str] = []
    conflicts: list[str] = []
    for change in wanted:
        path = change.path
        base, theirs, own = was.get(path), here.get(path), change.entry
        if own is not None and (path in folders or not stays.isdisjoint(above(path))):
            conflicts.append(path)  # a file of one side where the other has a folder
        elif theirs in {base, own}:
            changes.append(change)
        elif base is None or theirs is None or own is None:
            conflicts.append(path)
        else:
            both = _merged(repository, base, theirs, own)
            (conflicts if both is None else merged).append(path)
            changes += [] if both is None else [TreeChange(path, both)]
    return Put(repository.build_tree(tree, changes), tuple(merged), tuple(conflicts))


def above(path: str) -> list[str]:
    """Return the folders that a path lies in, the nearest first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts) - 1, 0, -1)]


def _merged(repository: Repository, base: Entry, theirs: Entry, own: Entry) -> Entry | None:
    """Return the file with both changes; None where they touch each other, or it is no plain file."""
    if not {base.mode, theirs.mode, own.mode} <= PLAIN or base.mode not in {theirs.mode, own.mode}:
        return None
    texts = repository.blobs((base.oid, theirs.oid, own.oid))
    both = repository.merged(texts[base.oid], texts[theirs.oid], texts[own.oid])
    if both is None:
        return None
    return Entry(own.path, own.mode if theirs.mode == base.mode else theirs.mode, repository.write_blob(both))
