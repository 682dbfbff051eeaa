"""The gate at a person's desk: stores a dispatch's rules in a file, and judges the files before they are handed in.

It is a courtesy, by the same judgement: what is handed in is judged once more, from the bytes that are taken over.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from pipeline.agents.dispatch import caches
from pipeline.agents.dispatch.gate import GateResult, Policy, inspect
from pipeline.data_types import Frozen
from pipeline.judge.policy.paths import TRACKER
from pipeline.judge.policy.rights import Grant, TestScope, Writes
from pipeline.matrix.scheduling.patterns import parsed
from pipeline.process import Mount
from pipeline.repo import Repository
from pipeline.run.ignored import ignored_names
from pipeline.sandbox.views.manifest import Entry, EntryKind, Limits, compare
from pipeline.sandbox.views.view import Survey
from pipeline.trees import opened, opened_parent, read_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.agents.backends.layout import Difference
    from pipeline.agents.backends.layout import Manifest as Layout
    from pipeline.run.checkout import PrivateCheckout
    from pipeline.testing.measure.project_tools import Tools

_SCHEMA: Final = "redfirst.desk-rules/1"
_LIMITS: Final = Limits()
_EXECUTABLE: Final = 0o100
"""The executable bit, the only permission that a view keeps of a file."""


class DeskRules(Frozen):
    """The rules on what may be changed at a desk.

    Args:
        writes: The role's permission.
        grants: The task's production files.
        tests: What counts as a test.
        test_regions: Whether tests inside of production files may change.
        protected: What the user's git obeys.
        area: The patterns that the dispatch is held to.
        worktree: The user's.
        base: The tree that the desk is compared with.
        checkout: The run's own files, for the attributes of paths.
        ignored: Files that every copy has beside its tree; what becomes of them is not taken.
    """

    schema_: Literal["redfirst.desk-rules/1"] = Field(default=_SCHEMA, alias="schema")
    writes: Writes
    grants: tuple[Grant, ...]
    tests: TestScope | None
    test_regions: bool
    protected: tuple[str, ...]
    tracker: str = TRACKER
    area: tuple[str, ...] | None = None
    worktree: str
    base: str
    checkout: str
    ignored: tuple[str, ...]

    def ruling(self, files: Path, before: Layout, difference: Difference) -> GateResult:
        """Return the gate's result for the files at a desk.

        Args:
            files: The desk.
            before: What it was.
            difference: What became of it.
        """
        repository, checkout = Repository.find(Path(self.worktree)), Path(self.checkout)
        policy = Policy(
            self.writes,
            self.grants,
            self.tests,
            test_regions=self.test_regions,
            protected=self.protected,
            tracker=self.tracker,
            area=None if self.area is None else tuple(map(parsed, self.area)),
            filters=partial(repository.foreign_filters, checkout) if checkout.is_dir() else None,
            ignored=partial(repository.ignored_paths, checkout) if checkout.is_dir() else None,
        )
        return inspect(_DeskView(files, before, difference, repository, self), policy)


def rules_of(policy: Policy, repository: Repository, base: str, checkout: PrivateCheckout) -> str:
    """Return the rules of a dispatch as the text of a file."""
    rules = DeskRules(
        writes=policy.writes,
        grants=policy.grants,
        tests=policy.tests,
        test_regions=policy.test_regions,
        protected=policy.protected,
        tracker=policy.tracker,
        area=None if policy.area is None else tuple(one.text for one in policy.area),
        worktree=str(repository.worktree),
        base=base,
        checkout=str(checkout.tree),
        ignored=tuple(sorted(ignored_names(checkout.root))),
    )
    return json.dumps(rules.model_dump(mode="json", by_alias=True))


@dataclass(frozen=True)
class _DeskView:
    """A desk's files as a view shows them to the gate: no hard links, plain permissions, no scratch."""

    files: Path
    before: Layout
    difference: Difference
    repository: Repository
    rules: DeskRules

    @property
    def mount(self) -> Mount:
        return Mount(self.files, self.files)

    def survey(self) -> Survey:
        base = _entries(self.before)
        now = {path: what for path, what in self.before.items() if path not in self.difference.removed}
        now |= {path: what for path, what in self.difference.now.items() if path not in self.rules.ignored}
        after = _entries(now, same=base)
        after |= {path: entry for path in self.difference.changed if (entry := self._too_large(path)) is not None}
        return Survey(base, after, compare(base, after, self.rules.ignored))

    def read(self, path: str) -> bytes:
        with opened(self.files) as top, opened_parent(top, path) as (parent, name):
            return read_regular(name, _LIMITS.file_bytes, parent)

    def pristine(self, path: str) -> bytes | None:
        return self.repository.blob(f"{self.rules.base}:{path}") if path in self.before else None

    def close(self) -> None:
        pass

    def _too_large(self, path: str) -> Entry | None:
        size = (self.files / path).lstat().st_size
        if size <= _LIMITS.file_bytes:
            return None
        return Entry(EntryKind.UNREADABLE, detail=f"larger than {_LIMITS.file_bytes} bytes")


def _entries(found: Layout, same: Mapping[str, Entry] | None = None) -> dict[str, Entry]:
    """Return the entries of a tree, folders included; unchanged ones are the same objects as in *same*."""
    entries = {path: _entry(what) for path, what in found.items()}
    folders = {str(folder) for path in found for folder in PurePosixPath(path).parents} - {"."}
    entries |= {folder: Entry(EntryKind.FOLDER) for folder in folders}
    known = same or {}
    return {path: known[path] if known.get(path) == entry else entry for path, entry in entries.items()}


def _entry(what: str) -> Entry:
    sort, _, value = what.partition(" ")
    match sort:
        case "file":
            return Entry(EntryKind.FILE, sha256=value)
        case "exec":
            return Entry(EntryKind.FILE, mode=_EXECUTABLE, sha256=value)
        case "link":
            return Entry(EntryKind.LINK, detail=value)
        case _:
            return Entry(EntryKind.UNREADABLE, detail=what)


_LINK = """\
[ -e {there} ] || [ -L {there} ] || {{ ln -s {here} {there}; made="$made "{there}; }}
"""


def script_of(tools_of: Callable[[Mount], Tools], files: Path) -> str | None:
    """Return the text of a program that runs tests by id; None if no test command is known.

    Args:
        tools_of: What the project's own tools need, given the files.
        files: The files at the desk.
    """
    tools = tools_of(Mount(files, files, writable=True))
    if not tools.test_command:
        return None
    links = "".join(
        _LINK.format(here=shlex.quote(str(link.source)), there=shlex.quote(str(link.target.relative_to(files))))
        for link in tools.links
    )
    built = files.with_name("caches")
    variables = shlex.join(
        f"{name}={value}" for name, value in sorted({**tools.env, **caches.variables(built)}.items())
    )
    return f"""\
#!/bin/sh
# Runs the tests over the files of this desk as redfirst measures them: those with these ids, or all.
mkdir -p {shlex.quote(str(built))} && cd {shlex.quote(str(files))} || exit 1
made=
trap 'for link in $made; do rm -f "$link"; done' EXIT
{links}env -i HOME="$HOME" TERM=dumb {variables} {shlex.join(tools.test_command)} "$@"
"""
