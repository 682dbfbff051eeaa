"""The permission check: judges every change in a view, and admits all of them or none.

It runs after each dispatch, for roles that only read as well. The bytes that were judged are the bytes handed over; a
half of a change that happens to be legal would be a state that nobody wrote.

What tools leave behind in a view and `.gitignore` names is dropped: it goes into no tree, so into no measurement and no
commit, and the work is not refused.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal
from unicodedata import category

from pipeline.judge.policy import rights
from pipeline.judge.policy.control_files import is_control
from pipeline.judge.policy.paths import TRACKER, protected, scratch_pattern, ways
from pipeline.sandbox.views.manifest import EntryKind
from pipeline.testing.languages import names, readers
from pipeline.testing.languages.table import has_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pipeline.sandbox.views.view import Survey, View


_PLAIN: Final = "100644"
_EXECUTABLE: Final = "100755"
_CROWD: Final = 20
"""The number of refused files in one new folder from which only the folder is reported."""
_UNPRINTABLE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


@dataclass(frozen=True)
class Policy:
    """The permissions of one dispatch.

    Args:
        writes: The role's permission.
        grants: The task's production files.
        tests: What counts as a test, and the task's test files.
        test_regions: Whether the role may change tests inside production files.
        filters: Returns, of some paths, those whose content git would store through a foreign filter, and why not.
        ignored: Returns, of some paths (a folder ends with `/`), those that a `.gitignore` of the project names, each
            with its pattern.
        protected: Folders and files of the tree that the user's git obeys: nobody changes them.
        tracker: The folder of the issues.
        area: The patterns that the dispatch is held to.
    """

    writes: rights.Writes
    grants: tuple[rights.Grant, ...] = ()
    tests: rights.TestScope | None = None
    test_regions: bool = False
    filters: Callable[[Sequence[str]], Mapping[str, str]] | None = None
    ignored: Callable[[Sequence[str]], Mapping[str, str]] | None = None
    protected: tuple[str, ...] = ()
    tracker: str = TRACKER
    area: tuple[rights.Covering, ...] | None = None

    def judged(self, change: rights.Change) -> rights.Ruling:
        """Return the ruling on one change."""
        writes = rights.effective_writes(self.writes, self.area)
        return rights.judge(
            writes, change, self.grants, self.tests, area=self.area, places=self.protected, tracker=self.tracker
        )

    def judged_word(self, change: rights.Change) -> rights.Ruling:
        """Return the ruling on a change whose path is a model's word, and no scan's."""
        return rights.refuse_form(change.path, self.grants, self.tests) or self.judged(change)

    def names(self, path: str) -> bool:
        """Return whether the task names `path` for anything."""
        named = (*self.grants, *(self.tests.files if self.tests else ()))
        return any(path in {grant.path, grant.from_path} for grant in named)


@dataclass(frozen=True)
class AdmittedChange:
    """A change to be made to the base tree; content, hash and mode are None for a deletion."""

    path: str
    kind: Literal[rights.ChangeKind.ADDED, rights.ChangeKind.MODIFIED, rights.ChangeKind.DELETED]
    content: bytes | None = None
    sha256: str | None = None
    mode: str | None = None


@dataclass(frozen=True)
class Violation:
    """A refused change: its path, the rule, and what to do about it."""

    path: str
    rule: str
    why: str


@dataclass(frozen=True)
class GateResult:
    """The gate's result for one dispatch.

    Args:
        changes: What is allowed by itself; nothing of it counts as this dispatch's result while there are violations.
        dropped: What tools left behind and was left out, one line each.
        violations: What it may not, with paths fit to be printed.
        offending: The same as paths to restore.
        notes: For @check to read.
        refused: A hash over the refused changes, their bytes too.
    """

    changes: tuple[AdmittedChange, ...]
    dropped: tuple[str, ...]
    violations: tuple[Violation, ...]
    offending: tuple[str, ...]
    notes: tuple[str, ...]
    refused: str = ""

    @property
    def admitted(self) -> bool:
        """Return whether the changes may enter the tree."""
        return not self.violations


def with_regions(change: rights.Change, old: bytes, new: bytes) -> rights.Change:
    """Return the change of a file with what is measured of its test regions."""
    fault = readers.region_fault(change.path, old, new)
    told = fault if has_part(change.path, "test_regions") else None
    return replace(change, test_regions_only=fault is None, region_fault=told)


def inspect(view: View, policy: Policy) -> GateResult:
    """Return the ruling on all changes in `view`. No process may be active in it."""
    return _Inspection(view, policy, view.survey()).result()


@dataclass(frozen=True)
class _Inspection:
    view: View
    policy: Policy
    survey: Survey

    def result(self) -> GateResult:
        changes: list[AdmittedChange] = []
        violations: dict[str, Violation] = {}
        dropped: dict[str, None] = {}
        notes: list[str] = []
        ignored = self._ignored()
        for change in self.survey.changes:
            if scratch := self._scratch(change):
                dropped[scratch] = None
                continue
            ruling = self.policy.judged(self._measured(change))
            if ruling.rule in DROPPED_WHERE_IGNORED and (line := ignored.get(change.path)):
                dropped[line] = None
                continue
            if ruling.note:
                notes.append(ruling.note)
            if ruling.rule == "test-region":
                notes += (f"{change.path}: {note}" for note in self._noted(change))
            made = self._admit(change) if ruling.allowed else Violation(change.path, ruling.rule, ruling.why)
            if isinstance(made, Violation):
                violations[change.path] = made
            else:
                changes.append(made)
                notes += self._forged(made)
        for violation in (*self._half_renames({change.path for change in changes}), *self._filtered(changes)):
            violations.setdefault(violation.path, violation)
        summarised = tuple(self._summarise(violations))
        return GateResult(
            changes=tuple(change for change in changes if change.path not in violations),
            dropped=tuple(dropped),
            violations=tuple(replace(one, path=_printable(one.path), why=_printable(one.why)) for one in summarised),
            offending=tuple(one.path for one in summarised),
            notes=tuple(notes),
            refused=self._hashed(violations),
        )

    def _hashed(self, violations: Mapping[str, Violation]) -> str:
        after = self.survey.after
        each = ((path, one.rule, after[path].sha256 if path in after else None) for path, one in violations.items())
        return hashlib.sha256(ascii(sorted(each, key=str)).encode()).hexdigest()

    def _scratch(self, change: rights.Change) -> str | None:
        """Return the line about a dropped file that tools leave behind; None if the project or task has that path."""
        pattern = scratch_pattern(change.path)
        if pattern is None or change.path in self.survey.base or self.policy.names(change.path):
            return None
        if protected(change.path) is not None:
            return None
        parts = change.path.split("/")
        end = next((end for end in range(1, len(parts) + 1) if scratch_pattern(parts[end - 1])), len(parts))
        return _printable(f"{'/'.join(parts[:end])} ({pattern})")

    def _ignored(self) -> dict[str, str]:
        if self.policy.ignored is None or self.policy.writes is rights.Writes.NOTHING:
            return {}
        found = left_behind(self.survey, self.policy.ignored, self.policy.names)
        return {path: _printable(line) for path, line in found.items()}

    def _measured(self, change: rights.Change) -> rights.Change:
        if change.kind is rights.ChangeKind.MODE and self._became_executable(change.path):
            change = replace(change, kind=rights.ChangeKind.MODIFIED)
        if self.policy.area is not None and has_part(change.path, "test_regions"):
            return replace(change, tests_differ=readers.regions_differ(*self._before_and_after(change.path)))
        regions = self.policy.test_regions and change.kind is rights.ChangeKind.MODIFIED
        contents = self._contents(change.path) if regions else None
        return change if contents is None else with_regions(change, *contents)

    def _forged(self, change: AdmittedChange) -> tuple[str, ...]:
        """Return the means to forge test results that production code adds; measuring alone cannot exclude them."""
        if self.policy.writes is not rights.Writes.TASK or change.content is None:
            return ()
        tests = self.policy.tests
        if tests is not None and tests.writable and tests.covers(change.path):  # one writer's own tests
            return ()
        means = readers.means(change.path, self.view.pristine(change.path), change.content)
        return (*means, *names.compile_time_notes(change.path, self._manifests(change.path)))

    def _manifests(self, path: str) -> Mapping[str, bytes]:
        found: dict[str, bytes] = {}
        for name in names.manifests_above(path):
            with contextlib.suppress(OSError):
                found[name] = self.view.read(name)
        return found

    def _noted(self, change: rights.Change) -> tuple[str, ...]:
        contents = self._contents(change.path)
        return readers.interesting(*contents) if contents is not None else ()

    def _contents(self, path: str) -> tuple[bytes, bytes] | None:
        """Return a file's content before and after, None if either cannot be read."""
        old, new = self._before_and_after(path)
        return (old, new) if old is not None and new is not None else None

    def _before_and_after(self, path: str) -> tuple[bytes | None, bytes | None]:
        try:
            return self.view.pristine(path), self.view.read(path)
        except OSError:
            return self.view.pristine(path), None

    def _became_executable(self, path: str) -> bool:
        """Return whether a script became executable, as one has to that was not when it was created."""
        before, now = self.survey.base[path], self.survey.after[path]
        return now.executable and not before.executable and (self._before_and_after(path)[1] or b"").startswith(b"#!")

    def _admit(self, change: rights.Change) -> AdmittedChange | Violation:
        if change.kind is rights.ChangeKind.DELETED:
            return AdmittedChange(change.path, rights.ChangeKind.DELETED)
        entry = self.survey.after[change.path]
        try:
            content = self.view.read(change.path)
        except OSError as error:
            return Violation(change.path, "unreadable", f"{change.path!r} could not be read: {error.strerror}")
        digest = hashlib.sha256(content).hexdigest()
        if digest != entry.sha256:
            return Violation(change.path, "unstable", f"{change.path!r} changed while it was being judged")
        before = self.survey.base.get(change.path)
        if before is not None:
            kind = rights.ChangeKind.MODIFIED
            executable = before.executable or self._became_executable(change.path)
        else:
            # An execute bit on a new file counts for what is a script, or was executable under its old name.
            kind = rights.ChangeKind.ADDED
            executable = entry.executable and (content.startswith(b"#!") or self._was_executable(change.path))
        return AdmittedChange(change.path, kind, content, digest, _EXECUTABLE if executable else _PLAIN)

    def _renames(self) -> Iterator[tuple[str, str]]:
        grants = (*self.policy.grants, *(self.policy.tests.files if self.policy.tests else ()))
        for grant in grants:
            if grant.action is rights.Action.RENAME and grant.from_path is not None:
                yield grant.from_path, grant.path

    def _was_executable(self, path: str) -> bool:
        origins = (self.survey.base.get(origin) for origin, target in self._renames() if target == path)
        return any(origin is not None and origin.executable for origin in origins)

    def _half_renames(self, changed: set[str]) -> Iterator[Violation]:
        after = self.survey.after
        for origin, target in self._renames():
            if origin in changed and origin not in after and target not in after:
                yield Violation(origin, "rename-incomplete", f"{origin!r} was to become {target!r}, which is not there")
            if target in changed and origin in after and target not in self.survey.base:
                yield Violation(
                    target, "rename-incomplete", f"{target!r} was to replace {origin!r}, which is still there"
                )

    def _filtered(self, changes: Sequence[AdmittedChange]) -> Iterator[Violation]:
        """Yield a violation for each file with a git filter that we may not run; drafts are told of theirs (H015)."""
        stored = [change.path for change in changes if change.content is not None]
        if self.policy.filters is not None and stored:
            for path, why in self.policy.filters(stored).items():
                yield Violation(path, "git-filter", f"{path!r} {why}")

    def _summarise(self, violations: dict[str, Violation]) -> Iterator[Violation]:
        """Yield the violations, with many in one new folder (a build, an environment) reported as that folder."""
        crowds: defaultdict[str, list[Violation]] = defaultdict(list)
        for path, violation in violations.items():
            crowds[self._new_folder(path) or path].append(violation)
        for folder, crowd in crowds.items():
            if len(crowd) > _CROWD:
                why = f"{folder!r} is a new folder with {len(crowd)} refused entries, such as: {crowd[0].why}"
                yield Violation(folder, crowd[0].rule, why)
            else:
                yield from crowd

    def _new_folder(self, path: str) -> str | None:
        outermost = next((folder for folder in ways(path)[:-1] if folder not in self.survey.base), None)
        entry = self.survey.after.get(outermost) if outermost else None
        return outermost if entry is not None and entry.kind is EntryKind.FOLDER else None


def _printable(text: str) -> str:
    """Return a path or sentence with its control characters and line breaks escaped."""
    hidden = (char if category(char) not in _UNPRINTABLE else ascii(char)[1:-1] for char in text)
    return "".join(hidden)


DROPPED_WHERE_IGNORED: Final = frozenset(
    {
        *("outside-task", "outside-area", "test-file", "beside-tests"),
        *("symlink", "hard-link", "special-file", "unreadable"),
    }
)
"""The rulings on new files that are dropped where the project ignores them; whatever else is wrong is refused.

A folder that a tool fills has links and sockets in it. They are not even opened, and lie in a view that is thrown away.
"""


def left_behind(
    survey: Survey, ignored: Callable[[Sequence[str]], Mapping[str, str]], named: Callable[[str], bool]
) -> dict[str, str]:
    """Return what is new and the project ignores, each with a line that says by which pattern.

    Not what the task names, and no file that git, an agent or a tool obeys by its name: that is refused as ever.

    Args:
        survey: What was found in the view.
        ignored: Returns, of some paths (a folder ends with `/`), those that a `.gitignore` names, with the pattern.
        named: Whether the task names a path.
    """
    new = [
        change.path
        for change in survey.changes
        if change.path in survey.after
        and change.path not in survey.base
        and not named(change.path)
        and not is_control(change.path)
    ]
    names_of = {path: _asked(path, survey) for path in new}
    asked = list(dict.fromkeys(name for names in names_of.values() for name in names))
    found: Mapping[str, str] = ignored(asked) if asked else {}
    hits = ((path, next((name for name in names if name in found), None)) for path, names in names_of.items())
    return {path: f"{name.rstrip('/')} ({found[name]})" for path, name in hits if name is not None}


def _asked(path: str, survey: Survey) -> tuple[str, ...]:
    """Return the names to ask about a new path by: its new folders, the outermost first, then itself."""
    folders = ways(path)[:-1]
    is_folder = survey.after[path].kind is EntryKind.FOLDER  # git says nothing of one that holds nothing
    return (*(f"{one}/" for one in folders if one not in survey.base), f"{path}/" if is_folder else path)
