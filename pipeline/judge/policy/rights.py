"""Decides which role may change what: the pure function `judge` rules on one change, and the gate calls it for each.

Every ruling carries a stable rule id and a sentence that the agent can act on. Unknown means refused.

A dispatch may be held to path patterns instead of a task's files. A pattern never covers a file that controls tests or
builds: such a file is named, or is not changed. Nor does it cover a test, unless one writer makes tests and code.

A file tool of ours is judged by the same rules before it writes; the gate judges the result again. The tool is stricter
in one point: what a path may look like is asked of existing files too. Here the path is a model's word, no scan's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, assert_never

from pipeline.judge.policy.control_files import is_control
from pipeline.judge.policy.paths import (
    TRACKER,
    collision_key,
    is_inside,
    is_tracker,
    malformed,
    nameless,
    parent,
    protected,
    used_by_git,
    ways,
)
from pipeline.judge.policy.roles import Writes

if TYPE_CHECKING:
    from collections.abc import Iterable


_WILDCARD: Final = re.compile(r"[*?\[]")
_MAKE_NEEDS: Final = "to ask for it, answer INCOMPLETE or CANNOT_PROCEED with it in `needs`"
_TEST_NEEDS: Final = "to ask for it, answer BLOCKED with it in `needs`"
_ASKING: Final = tuple(f"; {needs}" for needs in (_MAKE_NEEDS, _TEST_NEEDS))
_TEST_FOLDERS: Final = frozenset({"test", "tests", "__tests__"})


class Action(StrEnum):
    """The change that a task permits on one path."""

    MODIFY = "modify"
    CREATE = "create"
    DELETE = "delete"
    RENAME = "rename"


class ChangeKind(StrEnum):
    """The kind of difference between a path in the view and in the tree that the view was made from."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    MODE = "mode"
    TYPE = "type"
    SYMLINK = "symlink"
    HARDLINK = "hardlink"
    SPECIAL = "special"
    REPOSITORY = "repository"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Change:
    """A changed path in a view.

    Args:
        path: Relative to the top of the tree, `/` between parts.
        kind: The difference; a file whose content and mode changed is MODE.
        collides_with: An existing path that only differs by case or Unicode form.
        test_regions_only: The content differs only inside regions that are tests (`#[cfg(test)]`), as measured.
        detail: What the scan saw, for the kinds that have no content (`a FIFO`, `Permission denied`).
        region_fault: Where test regions were looked at and something else differs: the sentence that says what.
        tests_differ: Tests inside of the file, beside its code, are not what they were.
    """

    path: str
    kind: ChangeKind
    collides_with: str | None = None
    test_regions_only: bool = False
    detail: str | None = None
    region_fault: str | None = None
    tests_differ: bool = False


@dataclass(frozen=True)
class Grant:
    """A path that the task names, with the permitted action. `from_path` is the old path of a rename."""

    path: str
    action: Action
    from_path: str | None = None

    def allows(self, change: Change) -> bool:
        """Return whether the grant permits the change.

        A created or renamed file may be changed again: the next attempt starts from the candidate that has it.
        """
        match self.action:
            case Action.CREATE:
                kinds = {ChangeKind.ADDED, ChangeKind.MODIFIED}
            case Action.MODIFY:
                kinds = {ChangeKind.MODIFIED}
            case Action.DELETE:
                kinds = {ChangeKind.DELETED}
            case Action.RENAME:
                if change.path == self.from_path:
                    return change.kind is ChangeKind.DELETED
                kinds = {ChangeKind.ADDED, ChangeKind.MODIFIED}
            case _:
                assert_never(self.action)
        return change.path == self.path and change.kind in kinds


@dataclass(frozen=True)
class TestScope:
    """The paths that count as tests in a tree, and the tests of the current task.

    Args:
        files: The task's test files with their actions.
        folders: Where the toolchain looks for tests (pytest's `testpaths`, patterns included); empty means that it did
            not say, then names decide.
        code: Production files; a folder of `folders` that holds one has tests beside the code, and there names decide.
        names: Patterns of test file names, or of paths where they have a `/`.
        known: Files that the toolchain did collect tests from.
        writable: Whether a dispatch that has an area may change tests as well as code.
    """

    __test__: ClassVar[bool] = False  # keeps pytest from collecting it by its name

    files: tuple[Grant, ...] = ()
    folders: tuple[str, ...] = ()
    code: frozenset[str] = frozenset()
    names: tuple[str, ...] = ("test_*.py", "*_test.py")
    known: frozenset[str] = frozenset()
    writable: bool = False

    def covers(self, path: str) -> bool:
        """Return whether `path` is a test file or lies among tests."""
        if path in self.known or any(path in {grant.path, grant.from_path} for grant in self.files):
            return True
        folders = [folder for folder in self.folders if folder.strip("/.")]
        around = [folder for folder in folders if lies_in(path, folder)]
        if folders and not around:
            return False
        if any(not any(lies_in(file, folder) for file in self.code) for folder in around):
            return True
        return not _TEST_FOLDERS.isdisjoint(path.split("/")[:-1]) or self._is_named_so(path)

    def takes(self, path: str) -> bool:
        """Return whether the toolchain would collect a new file at `path` as a test, or as a helper among tests.

        Where it names no folder, a name alone is not enough: `src/test_backdoor.py` would be a module of the package.
        There must be tests in that folder already, or in a folder above it that is named for tests.
        """
        if any(folder.strip("/.") for folder in self.folders):
            return self.covers(path)
        homes = {parent(known) for known in (*self.known, *(grant.path for grant in self.files))}
        among = any(is_inside(path, home) and not _TEST_FOLDERS.isdisjoint(home.split("/")) for home in homes)
        return among or (parent(path) in homes and self._is_named_so(path))

    def _is_named_so(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        return any(fnmatchcase(path if "/" in pattern else name, pattern) for pattern in self.names)

    def is_beside(self, path: str) -> bool:
        """Return whether `path` lies in the folder of one of the task's test files, or below it."""
        return any(is_inside(path, parent(grant.path)) for grant in self.files)


def lies_in(path: str, pattern: str) -> bool:
    """Return whether `path` is, or lies below, a path that matches an entry of `testpaths`."""
    plain = pattern.removeprefix("./").strip("/")
    if not path.startswith(_WILDCARD.split(plain, maxsplit=1)[0]):  # most do not: this is asked of whole trees
        return False
    return any(fnmatchcase(way, plain) for way in ways(path))


def judge(
    writes: Writes,
    change: Change,
    grants: tuple[Grant, ...] = (),
    tests: TestScope | None = None,
    *,
    area: tuple[Covering, ...] | None = None,
    places: tuple[str, ...] = (),
    tracker: str = TRACKER,
) -> Ruling:
    """Return the ruling on `change` by a role with write permission `writes`.

    Args:
        writes: The role's permission.
        change: One difference between the view and its base.
        grants: The files that the task names for production code.
        tests: What counts as a test; without it nothing does but what its name says.
        area: The patterns that the dispatch is held to.
        places: Folders and files of the tree that git has for itself: its hooks, its configuration, submodules.
        tracker: The folder of the issues.
    """
    scope = tests or TestScope()
    fault = protected(change.path) or used_by_git(change.path, places)
    if fault is None:
        fault = malformed(change.path) if change.kind is ChangeKind.ADDED else nameless(change.path)
    if fault is not None:
        return refused(fault.rule, fault.why)
    if refusal := _refuse_by_role(writes, change, tracker) or _refuse_by_kind(change):
        return refusal
    match writes:
        case Writes.TASK:
            return _judge_production(change, grants, scope)
        case Writes.AREA:
            return judge_area(change, area or (), is_test=scope.covers(change.path), tests_too=scope.writable)
        case Writes.TESTS:
            return _judge_tests(change, scope)
        case Writes.NOTHING:
            return refused("read-only-role", f"{change.path!r}: this role changes no file")
        case _:
            assert_never(writes)


def _refuse_by_role(writes: Writes, change: Change, tracker: str) -> Ruling | None:
    if writes is Writes.NOTHING:
        return refused("read-only-role", f"{change.path!r} is {change.kind}: this role changes no file; report instead")
    if is_tracker(change.path, tracker):
        return refused("tracker-file", f"{change.path!r} is {change.kind}: the tracker is written by the program only")
    return None


def _refuse_by_kind(change: Change) -> Ruling | None:
    path, detail = change.path, change.detail
    match change.kind:
        case ChangeKind.SYMLINK:
            return refused("symlink", f"{path!r} is a new or changed symbolic link; write a regular file")
        case ChangeKind.HARDLINK:
            return refused("hard-link", f"{path!r} is a hard link; copy the file instead")
        case ChangeKind.SPECIAL:
            return refused("special-file", f"{path!r} is {detail or 'not a regular file'}; remove it")
        case ChangeKind.REPOSITORY:
            return refused("nested-repository", f"{path!r} makes its folder a git repository of its own; remove it")
        case ChangeKind.TYPE:
            return refused("type-change", f"{path!r} was {detail or 'of another type'}; keep the type of what exists")
        case ChangeKind.MODE:
            return refused("mode-change", f"{path!r} changed its permissions; put them back with chmod")
        case ChangeKind.UNREADABLE:
            return refused("unreadable", f"{path!r} could not be read by the gate: {detail or 'unknown reason'}")
        case ChangeKind.ADDED | ChangeKind.MODIFIED | ChangeKind.DELETED:
            pass
        case _:
            assert_never(change.kind)
    if change.collides_with is not None:
        return refused(
            "path-collision",
            f"{path!r} is the same file as {change.collides_with!r} where case or Unicode form is ignored",
        )
    return None


def _judge_production(change: Change, grants: tuple[Grant, ...], scope: TestScope) -> Ruling:
    if scope.covers(change.path):
        return refused("test-file", f"{change.path!r} is a test: this role never changes tests; escalate instead")
    return _judge_named(change, grants, "task-file") or _refuse_unnamed(change, grants, _MAKE_NEEDS)


def _judge_tests(change: Change, scope: TestScope) -> Ruling:
    named = _judge_named(change, scope.files, "test-file")
    if named is not None:
        return named
    if change.kind is ChangeKind.MODIFIED and change.test_regions_only and not is_control(change.path):
        return Ruling(allowed=True, rule="test-region", why=f"{change.path!r} differs only inside its test regions")
    if change.kind is not ChangeKind.ADDED or is_control(change.path):
        return _refuse_unnamed(change, scope.files, _TEST_NEEDS)
    if scope.is_beside(change.path) and scope.takes(change.path):
        why = f"{change.path!r} is new, beside the task's test files"
        note = f"{change.path} is new beside the tests, and the task does not name it"
        return Ruling(allowed=True, rule="beside-tests", why=why, note=note)
    return _refuse_unnamed(change, scope.files, _TEST_NEEDS)


def _judge_named(change: Change, grants: tuple[Grant, ...], rule: str) -> Ruling | None:
    grant = next((grant for grant in grants if grant.allows(change)), None)
    if grant is None:
        return None
    why = f"the task names {change.path!r} ({grant.action})"
    if is_control(change.path):
        note = f"{change.path} controls tests or builds and was {change.kind}; the task names it"
        return Ruling(allowed=True, rule="control-file-named", why=why, note=note)
    return Ruling(allowed=True, rule=rule, why=why)


def without_asking(why: str) -> tuple[str, bool]:
    """Return a refusal without how an agent asks for the file, and whether it said so: a person has a form."""
    told = why
    for asking in _ASKING:
        told = told.replace(asking, "")
    return told, told != why


def _refuse_unnamed(change: Change, grants: tuple[Grant, ...], needs: str) -> Ruling:
    path = change.path
    listed = ", ".join(f"{grant.path} ({grant.action})" for grant in grants) or "none"
    if change.kind is ChangeKind.DELETED:
        return refused("deletion-not-named", f"{path!r} was deleted, which the task does not name; put it back")
    if any(path in {grant.path, grant.from_path} for grant in grants):
        return refused("action-not-named", f"{path!r} was {change.kind}, but the task allows: {listed}")
    if is_control(path):
        return refused("control-file", f"{path!r} controls tests or builds; {needs}")
    regions = f". In its test modules you may change it, but {change.region_fault}" if change.region_fault else ""
    why = f"{path!r} was {change.kind}, but the task names only: {listed}; {needs}{regions}"
    return refused("outside-task", why)


@dataclass(frozen=True)
class Ruling:
    """A ruling on one change. `note` tells @check why an allowed change deserves a look."""

    allowed: bool
    rule: str
    why: str
    note: str | None = None


def refused(rule: str, why: str) -> Ruling:
    """Return a ruling that refuses the change."""
    return Ruling(allowed=False, rule=rule, why=why)


class Covering(Protocol):
    """The protocol of a path pattern (`scheduling.patterns`); `text` is how its author wrote it."""

    @property
    def text(self) -> str:
        """Return the pattern as it was written."""
        ...

    def covers(self, path: str) -> bool:
        """Return whether the pattern covers a file's path."""
        ...


def effective_writes(writes: Writes, area: tuple[Covering, ...] | None) -> Writes:
    """Return AREA instead of TASK as a role's write permission where the dispatch has an area."""
    return Writes.AREA if area is not None and writes is Writes.TASK else writes


def judge_area(change: Change, area: tuple[Covering, ...], *, is_test: bool, tests_too: bool = False) -> Ruling:
    """Return the ruling on a change in an area; files that control tests or builds must be named in full.

    Args:
        change: The change.
        area: The patterns.
        is_test: Whether its path is a test's.
        tests_too: Whether tests may be changed as well.
    """
    path = change.path
    if is_test and not tests_too:
        return refused("test-file", f"{path!r} is a test: this role never changes tests, whatever the area covers")
    pattern = next((one.text for one in area if one.covers(path)), None)
    listed = ", ".join(one.text for one in area) or "none"
    if pattern is None:
        return refused("outside-area", f"{path!r} was {change.kind}, but the area is: {listed}")
    if change.tests_differ and not tests_too:
        return refused("test-region", f"{path!r} has other tests in it: this role never changes tests, nor adds any")
    if not is_control(path):
        return Ruling(allowed=True, rule="in-area", why=f"{pattern!r} covers {path!r}")
    if any(one.text == path for one in area):
        note = f"{path} controls tests or builds and was {change.kind}; the area names it"
        return Ruling(allowed=True, rule="control-file-named", why=f"the area names {path!r}", note=note)
    return refused("control-file", f"{path!r} controls tests or builds; no pattern covers it, only its own name would")


def refuse_form(path: str, grants: tuple[Grant, ...], tests: TestScope | None) -> Ruling | None:
    """Return the refusal of a path that a model wrote for its form, or as another spelling of a named one."""
    if fault := protected(path) or malformed(path):
        return refused(fault.rule, fault.why)
    named = _other_spelling(path, (*grants, *(tests.files if tests else ())))
    if named is None:
        return None
    why = f"{path!r} is not {named!r}, which the task names, though some file systems take it for the same; write that"
    return refused("path-collision", why)


def _other_spelling(path: str, grants: Iterable[Grant]) -> str | None:
    """Return the granted path that differs from `path` only in case or Unicode form, None if there is none."""
    named = {name for grant in grants for name in (grant.path, grant.from_path) if name is not None}
    if path in named:
        return None
    return next((name for name in sorted(named) if collision_key(name) == collision_key(path)), None)
