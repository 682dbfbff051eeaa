"""One project of a repository: a toolchain, and the folder that it works in.

Its tests run in that folder, and see the whole view: packages of a monorepo import from their siblings. To everybody
else its paths and ids are those of the repository (`Place`).

An id that begins with a path gets the folder in front, `web/a.test.js::x`; one that names packages is told apart from
those of another folder, `web::crate::lib::x`. Both are undone by taking the same text away again.
"""

from __future__ import annotations

import os
import posixpath
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence.observation import CollectionError, Fault, Observation, Reach, RunState, TestRecord
from pipeline.testing.languages.projects import merging
from pipeline.testing.languages.protocol import Missing, OtherBox, PlacedFolder, Selection, View
from pipeline.testing.languages.table import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from pipeline.config.model import Toolchain as Settings
    from pipeline.judge.evidence.red_classes import Symbol
    from pipeline.testing.languages.protocol import Environment, Lookup, Measurement
    from pipeline.testing.languages.toolchain import Toolchain


@dataclass(frozen=True)
class Place:
    """A folder of the repository, and the prefix of its test ids.

    `marks` is what an id has in front outside: the folder with a slash, or with two colons. Without a folder all is the
    same on both sides.
    """

    folder: str
    marks: str

    def outer_path(self, path: str) -> str:
        """Return a path inside the folder as one of the repository; an empty path stays empty."""
        if not path or not self.folder:
            return path
        whole = f"{self.folder}/{path}"
        return posixpath.normpath(whole) if path.startswith("../") else whole

    def inner_path(self, path: str) -> str | None:
        """Return a path of the repository relative to the folder, None if it lies elsewhere."""
        return path.removeprefix(f"{self.folder}/") if self.has(path) else None

    def has(self, path: str) -> bool:
        """Return whether a path of the repository lies below the folder."""
        return not self.folder or path.startswith(f"{self.folder}/")

    def outer_id(self, entry: str) -> str:
        """Return the repository's id of a test."""
        return f"{self.marks}{entry}"

    def inner_id(self, entry: str) -> str | None:
        """Return the runner's id of a test, None for a test of another folder."""
        return entry.removeprefix(self.marks) if entry.startswith(self.marks) else None

    def selected(self, selection: Selection | None) -> Selection | None:
        """Return the selection in the runner's ids and paths; tests elsewhere are left out."""
        if selection is None:
            return None
        inside = (
            None if entries is None else frozenset(name for name in map(inner, entries) if name is not None)
            for entries, inner in ((selection.ids, self.inner_id), (selection.files, self.inner_path))
        )
        return Selection(*inside)

    def observed(self, seen: Observation) -> Observation:
        """Return the observation in paths and ids of the repository."""
        records = {self.outer_id(entry): self._record(record) for entry, record in seen.records.items()}
        found = ((self.outer_path(error.path), self._fault(error.fault)) for error in seen.collection_errors)
        command = ("(cd", self.folder, "&&", *seen.command[:-1], f"{seen.command[-1]})") if seen.command else ()
        return seen.model_copy(
            update={
                "records": records,
                "collection_errors": tuple(CollectionError(path=path, fault=fault) for path, fault in found),
                "files": {self.outer_path(path): digest for path, digest in seen.files.items()},
                "layout": merging.below(seen.layout, self.folder),
                "modules": {name: self.outer_path(path) for name, path in seen.modules.items()},
                "command": command,
            }
        )

    def _record(self, record: TestRecord) -> TestRecord:
        update: dict[str, object] = {
            "id": self.outer_id(record.id),
            "function": self.outer_id(record.function),
            "path": self.outer_path(record.path),
        }
        if record.fault is not None:
            update["fault"] = self._fault(record.fault)
        if record.reach is not None:
            update["reach"] = self._reach(record.reach)
        return record.model_copy(update=update)

    def _fault(self, fault: Fault) -> Fault:
        frames = tuple(one.model_copy(update={"path": self.outer_path(one.path)}) for one in fault.frames)
        return fault.model_copy(update={"frames": frames})

    def _reach(self, reach: Reach) -> Reach:
        return Reach(
            functions=tuple(map(self.outer_path, reach.functions)),
            references=tuple(map(self.outer_path, reach.references)),
            named=tuple(map(self.outer_path, reach.named)),
            doors=tuple(door if door == "process" else self.outer_path(door) for door in reach.doors),
        )


_NOTHING: Final = Path("/dev/null")


@dataclass(frozen=True)
class Project:
    """A toolchain with the folder of its project: `web` beside other projects, empty for the top of the repository.

    Args:
        toolchain: What measures it.
        folder: A relative path inside the repository.
        table: Its command and limits; None where those of each lookup and measurement count.
        asked: Whether the user asks for it; else it was only recognised.
        home: The folder of the workspace that it is a member of: what prepares the project is started there. None:
            its own folder.
        nested: The folders of other projects of the same toolchain inside of it; their tests are theirs.
        alone: Whether no other project of the repository has the same toolchain.
    """

    toolchain: Toolchain
    folder: str = ""
    table: Settings | None = None
    asked: bool = False
    home: str | None = None
    nested: tuple[str, ...] = ()
    alone: bool = True

    @property
    def name(self) -> str:
        """Return the toolchain's name."""
        return self.toolchain.name

    @property
    def key(self) -> str:
        """Return the name that no other project of the repository has: the toolchain's, with the folder if need be."""
        return self.name if self.alone or not self.folder else f"{self.name} in {self.folder}"

    @property
    def prepared_in(self) -> str:
        """Return the folder in which its `setup` is started."""
        return self.folder if self.home is None else self.home

    @property
    def place(self) -> Place:
        """Return the translation of paths and ids between the project's folder and the repository."""
        if not self.folder:
            return Place("", "")
        return Place(self.folder, f"{self.folder}/" if LANGUAGES[self.name].ids_by_path else f"{self.folder}::")

    def owns(self, path: str) -> bool:
        """Return whether a file is a source of the project: by its ending and its folder."""
        return path.endswith(self.toolchain.sources) and self.has(path)

    def has(self, path: str) -> bool:
        """Return whether a path belongs to the project: below its folder, and not below that of a nested one."""
        return self.place.has(path) and not self._is_nested(path)

    def _is_nested(self, path: str) -> bool:
        return any(path.startswith(f"{folder}/") for folder in self.nested)

    def view(self, view: View) -> View:
        """Return the view of the project's folder, given that of the whole repository."""
        return View(view.mount.below(self.folder, view.workspace / self.folder)) if self.folder else view

    def files_inside(self, files: Mapping[str, str]) -> dict[str, str]:
        """Return files by path relative to the project's folder, those of siblings included."""
        return {self._into(path): text for path, text in files.items()}

    def symbols_inside(self, symbols: Sequence[Symbol]) -> list[Symbol]:
        """Return symbols with paths relative to the project's folder."""
        return [replace(symbol, path=self._into(symbol.path)) for symbol in symbols]

    def symbols_outside(self, symbols: Sequence[Symbol]) -> tuple[Symbol, ...]:
        """Return symbols with the paths of the repository."""
        return tuple(replace(symbol, path=self.place.outer_path(symbol.path)) for symbol in symbols)

    def _into(self, path: str) -> str:
        return posixpath.relpath(path, self.folder) if self.folder and path else path

    async def find_environment(self, lookup: Lookup) -> Environment | Missing:
        """Return the environment of the project's tests, looked for in its folder of the worktree and main checkout.

        What the user sets for the tests (`Lookup.variables`) counts more than what was found.
        """
        found = await self._found(lookup)
        if isinstance(found, Missing) or not lookup.variables:
            return found
        variables, of_tests = ({**known, **lookup.variables} for known in (found.variables, found.test_variables))
        return replace(found, variables=variables, test_variables=of_tests)

    async def _found(self, lookup: Lookup) -> Environment | Missing:
        if not self.folder:
            return await self.toolchain.find_environment(lookup)
        worktree, main = lookup.worktree / self.folder, lookup.main / self.folder
        if not worktree.is_dir():
            return Missing(f"There is no folder {self.folder}, where [toolchains.{self.name}] has its project.")
        outer = tuple(one / (self.home or "") for one in (lookup.worktree, lookup.main))
        inner = replace(lookup, worktree=worktree, main=main if main.is_dir() else lookup.main, outer=outer)
        env = await self.toolchain.find_environment(inner)
        if isinstance(env, Missing) or self.name != "pytest":  # no other language installs in place by absolute path
            return env
        return _with_siblings(env, (lookup.worktree, lookup.main), self.folder)

    def limited(self, asked: Measurement) -> Measurement:
        """Return the measurement with the project's own time limits, if it has some."""
        if self.table is None:
            return asked
        return replace(asked, timeout_s=self.table.timeout_s, per_test_timeout_s=self.table.test_timeout_s)

    async def measure(
        self, asked: Measurement, measure: Callable[[Measurement], Awaitable[Observation]]
    ) -> Observation:
        """Return the observation of the project's folder in paths of the repository; an empty one if it is missing.

        Raises:
            BoxError: the box did not work.
        """
        inside = tuple(posixpath.relpath(folder, self.folder or ".") for folder in self.nested)
        if not self.folder:
            return self._without_nested(await measure(replace(asked, elsewhere=inside)))
        inner = replace(
            asked,
            elsewhere=inside,
            # packages of a monorepo import from their siblings: the whole view is shown
            box=OtherBox(asked.box, lambda command: replace(command, mounts=(asked.view.mount, *command.mounts))),
            view=self.view(asked.view),
            selection=self.place.selected(asked.selection),
        )
        return self._without_folder(asked.view) or self._without_nested(self.place.observed(await measure(inner)))

    def _without_nested(self, seen: Observation) -> Observation:
        """Return the observation without what nested projects see themselves: each test counts once."""
        if not self.nested:
            return seen
        collected = frozenset(path for path in seen.layout.collected if not self._is_nested(path))
        records = {entry: record for entry, record in seen.records.items() if not self._is_nested(record.path)}
        return seen.model_copy(
            update={
                "records": records,
                "collection_errors": tuple(one for one in seen.collection_errors if not self._is_nested(one.path)),
                "files": {path: digest for path, digest in seen.files.items() if not self._is_nested(path)},
                "layout": seen.layout.model_copy(update={"collected": collected}),
            }
        )

    def _without_folder(self, view: View) -> Observation | None:
        """Return the observation for a missing folder or a link in its place, None if the folder exists."""
        at = os.fspath(view.host)
        for part in self.folder.split("/"):
            at = f"{at}/{part}"
            try:
                mode = os.lstat(at).st_mode
            except OSError:
                return Observation(state=RunState.COMPLETE, detail=f"there is no folder {self.folder}")
            if not stat.S_ISDIR(mode):
                detail = f"{self.folder} is not a folder of the measured files"
                return Observation(state=RunState.UNUSABLE, detail=detail)
        return None


def _with_siblings(env: Environment, checkouts: tuple[Path, Path], folder: str) -> Environment:
    """Return the environment with imports from elsewhere in the checkouts replaced by the view's files.

    To a runner that works in one folder a sibling that is installed in place looks like any other project on the host.
    """
    roots: list[PlacedFolder] = list(env.editable_roots)
    for mount in env.mounts:
        checkout = next((one for one in checkouts if mount.target.is_relative_to(one)), None)
        belongs = mount.target.is_relative_to(env.prefix) or env.prefix.is_relative_to(mount.target)
        if checkout is not None and mount.source != _NOTHING and not belongs:
            inside = mount.target.relative_to(checkout).as_posix()
            roots.append(PlacedFolder(mount.target, posixpath.relpath(inside, folder)))
    places = [root.path for root in roots]
    mounts = tuple(m for m in env.mounts if not any(m.target.is_relative_to(place) for place in places))
    return replace(env, mounts=mounts, editable_roots=tuple(dict.fromkeys(roots)))
