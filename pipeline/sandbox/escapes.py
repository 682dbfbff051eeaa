"""Detects a dispatch or measurement that changed something outside its view, whatever the box.

It compares what makes git run programs or see other content, by hashes, with how it stood before, our own refs and
records of this run with what we wrote last (`run.folder`), and after a dispatch the private checkout. What the user
may do meanwhile is no escape: edits, commits, fetches, `git gc`, another run. So left out is what the user and git
itself change at any time: index, files, branches, tags, stashes, packs, `FETCH_HEAD`, `gc.pid`, `info/refs`,
`info/sparse-checkout`, sample hooks, settings that run nothing, and what is new altogether (a submodule, a worktree).
What cannot be told from an escape (a hook installed, a setting that names a program) ends the run all the same, since
the user's next git command would run it; then nothing of theirs is touched, and what was accepted so far is kept. Of
dispatches side by side nobody can tell whose escape it is: it is that of all of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.matrix.engine.journal import JOURNAL
from pipeline.repo import GitError, Repository, Setting
from pipeline.repo.settings import HOOKS, hooks_folder, included
from pipeline.run.store import claim_ref, is_claim_of, issue_of, publish_ref, run_ref

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

    import anyio

    from pipeline.run.checkout import PrivateCheckout
    from pipeline.run.folder import Standing, Written

_REPLACE_REFS: Final = "refs/replace/"
_SHOWN: Final = 4


@dataclass(frozen=True)
class EscapePart:
    """A change outside the view: its part and path, the hash before and after ("" = missing), and the settings."""

    part: str
    path: str
    before: str
    after: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Escape:
    """An escape: what changed outside the view, in words and as evidence."""

    why: str
    parts: tuple[EscapePart, ...]

    def document(self) -> dict[str, object]:
        """Return the document that is stored as `escape.json`."""
        return {"schema": "redfirst.escape/1", "why": self.why, "parts": [asdict(part) for part in self.parts]}


class EscapeError(Exception):
    """Project code changed something outside the view, so that the measurement is void."""

    def __init__(self, escape: Escape) -> None:
        super().__init__(escape.why)
        self.escape = escape


class Alarm:
    """Cancels all running dispatches once one finds an escape: nobody can tell which one caused it."""

    def __init__(self) -> None:
        self.escape: Escape | None = None
        self._at_work: set[anyio.CancelScope] = set()

    def ring(self, escape: Escape) -> None:
        """Record an escape and cancel all running dispatches; later results do not count either."""
        self.escape = escape
        for scope in self._at_work:
            scope.cancel()

    @contextlib.contextmanager
    def cancelling(self, scope: anyio.CancelScope) -> Generator[None]:
        """Cancel *scope* when an escape is found during the context, or was before."""
        self._at_work.add(scope)
        if self.escape is not None:
            scope.cancel()
        try:
            yield
        finally:
            self._at_work.discard(scope)


@contextlib.contextmanager
def without_escape(repository: Repository, written: Written | None = None) -> Generator[None]:
    """Check that no protected part of the user's repository changes during the context, a measurement.

    The private checkout is not looked at: it is large, and who changes it is found after the next dispatch, before
    anything that came of it counts.

    Args:
        repository: The user's.
        written: What we wrote last of the run whose refs and records count too; None outside of one.

    Raises:
        EscapeError: something has changed, also where what ran has failed.
    """
    before = Fingerprint.take(repository, written)
    try:
        yield
    except Exception:
        _refuse(before.differs(repository))
        raise
    _refuse(before.differs(repository))


def _refuse(escape: Escape | None) -> None:
    if escape is not None:
        raise EscapeError(escape)


@dataclass(frozen=True)
class Fingerprint:
    """The state of the protected parts of a repository at one moment.

    Args:
        configs: Contents of the configuration files, so that a difference can be named by its settings.
        files: Hashes by part and path.
        own: Names of the refs that only this run writes; the claim is one while the run holds it.
        refs: These refs, and those that replace objects.
        hooks: Where git looks for hooks, by default and now.
        tracked: Files there that are part of the user's worktree, and theirs to change.
        modules: The git folders of submodules.
        written: What we wrote last of the run, and go on writing; None outside of one.
        records: How the run's own records stood.
    """

    configs: Mapping[Path, bytes]
    files: Mapping[tuple[str, Path], str]
    own: tuple[str, ...]
    refs: Mapping[str, str]
    hooks: tuple[Path, ...]
    tracked: frozenset[str]
    modules: tuple[Path, ...]
    written: Written | None
    records: Standing | None

    @classmethod
    def take(cls, repository: Repository, written: Written | None) -> Fingerprint:
        """Return the present state; the private checkout is sealed already."""
        common = repository.common_dir
        settings = repository.settings()
        hooks = tuple({common / "hooks": None, hooks_folder(repository, settings): None})
        modules = submodule_folders(common)
        configs = config_contents(common, modules)
        configs |= {path: content_of(path) for path in included(settings, tuple(configs))}
        own, refs = _own_refs(repository, written.run_id if written is not None else None)
        tracked = frozenset[str]().union(*(repository.tracked_in(folder.resolve()) for folder in hooks))
        return cls(
            configs,
            dict(_files(repository, hooks, tracked, modules)),
            own,
            refs,
            hooks,
            tracked,
            modules,
            written,
            written.standing() if written is not None else None,
        )

    def differs(self, repository: Repository, checkout: PrivateCheckout | None = None) -> Escape | None:
        """Return the escape if a protected part has changed since, else None.

        Args:
            repository: The user's.
            checkout: Of the dispatch that ended; None after a measurement.
        """
        found = [
            *self._settings(repository),
            *self._hashes(repository),
            *self._recorded(),
            *self._moved(repository),
        ]
        if not found and checkout is not None and not checkout.is_intact():
            found = [EscapePart("private checkout", str(checkout.tree), "intact", "changed")]
        who = "the agent" if checkout is not None else "code of the project"
        run_id = self.written.run_id if self.written is not None else None
        return Escape(_told(found, repository, run_id, who), tuple(found)) if found else None

    def _settings(self, repository: Repository) -> Iterator[EscapePart]:
        for path, before in self.configs.items():
            now = content_of(path)
            if now == before:
                continue
            then_loud, now_loud = (repository.settings_in(content) for content in (before, now))
            if then_loud is None or now_loud is None:
                keys: tuple[str, ...] = ("not a configuration file",)
            else:
                old, new = affecting_git(then_loud), affecting_git(now_loud)
                if path.parent in self.modules and "core.worktree" not in new:
                    old.pop("core.worktree", None)  # `git submodule deinit` takes it away
                keys = tuple(sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key)))
            if keys:
                yield EscapePart("config", str(path), _sha256(before), _sha256(now), keys)

    def _recorded(self) -> Iterator[EscapePart]:
        if self.written is None or self.records is None:
            return
        hashes = self.written.journal()
        if hashes is not None:
            yield EscapePart("records of the run", str(self.written.folder / JOURNAL), *hashes)
        for path in self.written.changed(self.records):
            yield EscapePart("records of the run", str(path), "as we left it", digest_of(path))

    def _hashes(self, repository: Repository) -> Iterator[EscapePart]:
        now = dict(_files(repository, self.hooks, self.tracked, self.modules))
        for part, path in sorted(now.keys() | self.files.keys()):
            before, after = self.files.get((part, path), NO_FILE), now.get((part, path), NO_FILE)
            if before != after:
                yield EscapePart(part, str(path), before, after)

    def _moved(self, repository: Repository) -> Iterator[EscapePart]:
        try:
            now = repository.refs(*self.own, _REPLACE_REFS)
        except GitError:  # of a configuration that git cannot read; then no ref is ours any more
            now = {}
        known = self.refs
        if self.written is not None and self.records is not None:
            known = self.written.refs(known, self.records)
        for ref in sorted(now.keys() | known.keys()):
            before, after = known.get(ref, NO_FILE), now.get(ref, NO_FILE)
            if before != after:
                yield EscapePart(
                    "replace refs" if ref.startswith(_REPLACE_REFS) else "refs of the run", ref, before, after
                )


def _files(
    repository: Repository, hooks: tuple[Path, ...], tracked: frozenset[str], modules: tuple[Path, ...]
) -> Iterator[tuple[tuple[str, Path], str]]:
    common, own = repository.common_dir, repository.git_dir
    for folder in hooks:
        if folder.is_symlink():
            yield ("hooks", folder), digest_of(folder)
        # elsewhere git runs what lies in the folder itself; what is below may be anything
        deep = folder == common / "hooks" and not folder.is_symlink()
        for path, digest in folder_hashes(folder.resolve(), deep=deep, leave_out=tracked):
            if folder != repository.worktree or path.name in HOOKS:
                yield ("hooks", path), digest
    for folder in {common / "info", own / "info"}:
        for path, digest in info_hashes(folder):
            yield ("info", path), digest
    links = [repository.worktree / ".git", *(own / name for name in ("commondir", "gitdir"))]
    links = [path for path in links if not path.is_dir()]
    objects = [common / "objects" / "info" / name for name in ("alternates", "http-alternates")]
    for part, paths in (("links", links), ("alternates", objects)):
        for path in paths:
            yield (part, path), digest_of(path)
    for module in modules:
        for path, digest in folder_hashes(module / "hooks", deep=True):
            yield ("submodule", path), digest
        for path, digest in info_hashes(module / "info"):
            yield ("submodule", path), digest


def _own_refs(repository: Repository, run_id: str | None) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Return the names of the refs that only the run writes, and the targets of these and of replace refs."""
    if run_id is None:
        return (), repository.refs(_REPLACE_REFS)
    claim = claim_ref(issue_of(run_id) or run_id)
    own = (run_ref(repository, run_id), publish_ref(repository, run_id))
    refs = repository.refs(*own, claim, _REPLACE_REFS)
    if claim in refs and is_claim_of(repository, refs[claim], run_id):
        return (*own, claim), refs
    return own, {name: oid for name, oid in refs.items() if name != claim}


def _told(parts: list[EscapePart], repository: Repository, run_id: str | None, who: str) -> str:
    names: dict[str, list[str]] = {}
    for part in parts:
        known = (repository.common_dir, repository.worktree)
        base = next((top for top in known if Path(part.path).is_relative_to(top)), None)
        shown = str(Path(part.path).relative_to(base)) if base else part.path
        names.setdefault(part.part, []).append(", ".join(part.keys) if part.keys else shown)
    what = "; ".join(
        f"{part} ({', '.join(found[:_SHOWN])}{' ...' if len(found) > _SHOWN else ''})" for part, found in names.items()
    )
    then = "ask again"
    if run_id is not None:
        then = "nothing is lost: what was accepted so far is in work.patch and on the run's ref; start again: redfirst "
        then += f"run {issue_of(run_id) or run_id}"
    return (
        f"While {who} ran, this changed outside its view: {what} of {repository.common_dir}. If it was you (a hook "
        f"installed, a setting changed), {then}. If it was not, undo it before you use git here."
    )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest() if content else NO_FILE


NO_FILE: Final = ""
"""The hash of a missing file."""

_MOST: Final = 8 << 20  # bytes of a file that count, besides its size: nothing of an agent may fill our memory

_HARMLESS_SECTIONS: Final = frozenset({
    "advice", "author", "branch", "color", "column", "commit", "committer", "fetch", "gc", "index", "init", "log",
    "maintenance", "pull", "push", "rebase", "remote", "rerere", "stash", "status", "submodule", "tag", "user",
    "worktree",
})  # fmt: skip
_HARMLESS_KEYS: Final = frozenset({
    "core.sparsecheckout", "core.sparsecheckoutcone", "core.untrackedcache", "extensions.worktreeconfig",
    "gui.geometry", "gui.wmstate", "lfs.repositoryformatversion",
})  # fmt: skip
_HARMLESS_LFS: Final = ("access", "locksverify")
_RUNNING: Final = {
    "gc": frozenset({"recentobjectshook"}),
    "remote": frozenset({"vcs", "uploadpack", "receivepack", "proxy", "proxyauthmethod"}),
    "submodule": frozenset({"update"}),
}
"""Settings in otherwise harmless sections that name a program or a way to one."""

_REGENERATED: Final = frozenset({"refs", "sparse-checkout"})


def affects_git(key: str) -> bool:
    """Return whether a git setting can run a program or change what git sees; unknown settings count."""
    section, _, rest = key.partition(".")
    last = rest.rpartition(".")[2]
    if section in _HARMLESS_SECTIONS:
        return last in _RUNNING.get(section, frozenset())
    return key not in _HARMLESS_KEYS and not (section == "lfs" and last in _HARMLESS_LFS)


def affecting_git(settings: Iterable[Setting]) -> dict[str, tuple[str, ...]]:
    """Return the values, by key, of settings that can run a program or change what git sees."""
    found: dict[str, tuple[str, ...]] = {}
    for setting in settings:
        if affects_git(setting.key):
            found[setting.key] = (*found.get(setting.key, ()), setting.value)
    return found


def submodule_folders(common: Path) -> tuple[Path, ...]:
    """Return the git folders of the repository's submodules, nested ones included."""
    found: list[Path] = []
    pending = [common / "modules"]
    while pending:
        folder = pending.pop()
        for child in _children(folder):
            if child.is_symlink() or not child.is_dir():
                continue
            if (child / "HEAD").exists():
                found.append(child)
                pending.append(child / "modules")
            else:
                pending.append(child)  # a name with slashes
    return tuple(sorted(found))


def config_contents(common: Path, module_folders: Iterable[Path]) -> dict[Path, bytes]:
    """Return the contents of the git configuration files of the repository, its worktrees and submodules."""
    folders = [common, *_children(common / "worktrees")]
    files = [common / "config", *(folder / "config.worktree" for folder in folders)]
    files += [folder / name for folder in module_folders for name in ("config", "config.worktree")]
    return {path: content_of(path) for path in files}


def folder_hashes(folder: Path, *, deep: bool, leave_out: frozenset[str] = frozenset()) -> Iterator[tuple[Path, str]]:
    """Yield path and hash of the entries of a folder of programs or rules; a link counts by its target."""
    for path in _children(folder):
        if path.name.endswith(".sample") or str(path) in leave_out:
            continue
        if deep and path.is_dir() and not path.is_symlink():
            yield from folder_hashes(path, deep=True, leave_out=leave_out)
        else:
            yield path, digest_of(path)


def info_hashes(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield path and hash of the files in an `info` folder: attributes, excludes, grafts."""
    return ((path, digest) for path, digest in folder_hashes(folder, deep=True) if path.name not in _REGENERATED)


def digest_of(path: Path) -> str:
    """Return a hash of kind, permissions and content; `NO_FILE` if the file is missing."""
    try:
        status = path.lstat()
    except OSError:
        return NO_FILE
    content = b""
    if stat.S_ISLNK(status.st_mode):
        content = os.fsencode(path.readlink())
    elif stat.S_ISREG(status.st_mode):
        content = f"{status.st_size} ".encode() + content_of(path)
    return hashlib.sha256(f"{status.st_mode:o} ".encode() + content).hexdigest()


def content_of(path: Path) -> bytes:
    """Return the first bytes of a regular file, empty if there is none."""
    if not path.is_file():
        return b""
    try:
        with path.open("rb") as stream:
            return stream.read(_MOST)
    except OSError as error:
        return str(error.strerror).encode()


def _children(folder: Path) -> tuple[Path, ...]:
    try:
        return tuple(sorted(folder.iterdir()))
    except OSError:
        return ()
