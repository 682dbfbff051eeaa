"""A toolchain whose project is in a folder of the repository: `web/` with its package.json, beside other projects.

Its tests run there, and see the whole view: packages of a monorepo import from their siblings. To everybody else its
paths and ids are those of the repository (`outer_paths`).
"""

from __future__ import annotations

import os
import posixpath
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.evidence.observation import Observation, RunState
from pipeline.languages.projects.outer_paths import Place
from pipeline.languages.protocol import (
    Cache,
    EditableRoot,
    Environment,
    Missing,
    Selection,
    Toolchain,
    View,
)
from pipeline.languages.sources.stubs import Stubbed, StubFault
from pipeline.languages.table import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.evidence.red_classes import Symbol
    from pipeline.process import Box, Command, Completed, Mount

_NOTHING: Final = Path("/dev/null")


class Rooted:
    """The `Toolchain` of a project in a folder; everything that is the language's own is the inner toolchain's."""

    def __init__(self, inner: Toolchain, folder: str) -> None:
        """Wrap `inner` for the project in `folder`, a relative path inside the repository."""
        self.inner = inner
        self.place = Place(folder, f"{folder}/" if LANGUAGES[inner.name].ids_by_path else f"{folder}::")
        self.name = inner.name
        self.sources = inner.sources
        self.stub = inner.stub
        self.stub_like = inner.stub_like
        self.install_hint = inner.install_hint

    def detect(self, worktree: Path) -> bool:
        """Return whether the folder looks like a project of this toolchain."""
        return self.inner.detect(worktree / self.place.folder)

    async def find_environment(
        self, worktree: Path, main: Path, configured: tuple[str, ...] | None, state: Path, search_path: str
    ) -> Environment | Missing:
        """Return how the tests are run; looked for in the folder, of the worktree and of the main checkout."""
        if not (worktree / self.place.folder).is_dir():
            return Missing(f"There is no folder {self.place.folder}, where [toolchains.{self.name}] has its project.")
        inside = main / self.place.folder
        found = await self.inner.find_environment(
            worktree / self.place.folder, inside if inside.is_dir() else main, configured, state, search_path
        )
        if isinstance(found, Missing) or self.name != "pytest":  # no other language installs in place by absolute path
            return found
        return _with_siblings(found, (worktree, main), self.place.folder)

    async def run_tests(
        self,
        box: Box,
        view: View,
        env: Environment,
        selection: Selection | None = None,
        *,
        trace: bool = False,
        timeout_s: float = 900.0,
        per_test_timeout_s: float | None = None,
        cache: Cache | None = None,
    ) -> Observation:
        """Run the selected tests below the folder; a tree without the folder has none.

        Raises:
            BoxError: the box did not work.
        """
        problem = self._nowhere(view)
        if problem is not None:
            return problem
        seen = await self.inner.run_tests(
            _Wider(box, view.mount),
            self.view(view),
            env,
            self.place.selected(selection),
            trace=trace,
            timeout_s=timeout_s,
            per_test_timeout_s=per_test_timeout_s,
            cache=cache,
        )
        return self.place.observed(seen)

    async def check_types(self, box: Box, view: View, env: Environment, *, timeout_s: float = 900.0) -> Observation:
        """Return what below the folder does not compile or type-check, as collection errors.

        Raises:
            BoxError: the box did not work.
        """
        problem = self._nowhere(view)
        if problem is not None:
            return problem
        wider = _Wider(box, view.mount)
        return self.place.observed(await self.inner.check_types(wider, self.view(view), env, timeout_s=timeout_s))

    def view(self, view: View) -> View:
        """Return how the folder is shown, given the view of the whole."""
        return View(view.mount.below(self.place.folder, view.workspace / self.place.folder))

    def is_test_path(self, path: str, observation: Observation) -> bool:
        """Return whether the runner collects the file, or would if it were new; only files below the folder are."""
        return self.place.has(path) and self.inner.is_test_path(path, observation)

    def is_control_path(self, path: str) -> bool:
        """Return whether the file controls how tests run; a workspace's file above the folder does as well."""
        return self.inner.is_control_path(path)

    def stub_symbols(self, files: Mapping[str, str], symbols: Sequence[Symbol]) -> Stubbed:
        """Return the files with the bodies of the symbols replaced by a failure."""
        stubbed = self.inner.stub_symbols(self._files(files), self._symbols(symbols))
        return Stubbed(
            {self.place.out(path): text for path, text in stubbed.files.items()},
            tuple(map(self._symbol_out, stubbed.unknown)),
        )

    def introduced(self, before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Symbol, ...]:
        """Return what the files define at their top level that they did not define before."""
        return tuple(map(self._symbol_out, self.inner.introduced(self._files(before), self._files(after))))

    def stub_faults(
        self, before: Mapping[str, str], after: Mapping[str, str], symbols: Sequence[Symbol]
    ) -> tuple[StubFault, ...]:
        """Return what a stub pass changed that is no stub."""
        found = self.inner.stub_faults(self._files(before), self._files(after), self._symbols(symbols))
        return tuple(replace(fault, path=self.place.out(fault.path)) for fault in found)

    def _files(self, files: Mapping[str, str]) -> dict[str, str]:
        inside = ((self._into(path), text) for path, text in files.items())
        return dict(inside)

    def _symbols(self, symbols: Sequence[Symbol]) -> list[Symbol]:
        return [replace(symbol, path=self._into(symbol.path)) for symbol in symbols]

    def _into(self, path: str) -> str:
        """Return a path as seen from the folder, those of siblings included."""
        return posixpath.relpath(path, self.place.folder) if path else path

    def _symbol_out(self, symbol: Symbol) -> Symbol:
        return replace(symbol, path=self.place.out(symbol.path))

    def _nowhere(self, view: View) -> Observation | None:
        """Return what is observed where there is no such folder; a link in its place would lead out of the view."""
        at = os.fspath(view.host)
        for part in self.place.folder.split("/"):
            at = f"{at}/{part}"
            try:
                mode = os.lstat(at).st_mode
            except OSError:
                return Observation(state=RunState.COMPLETE, detail=f"there is no folder {self.place.folder}")
            if not stat.S_ISDIR(mode):
                detail = f"{self.place.folder} is not a folder of the measured files"
                return Observation(state=RunState.UNUSABLE, detail=detail)
        return None


def place_of(toolchain: Toolchain) -> Place | None:
    """Return the folder of the repository in which a toolchain has its project, None for the top."""
    return toolchain.place if isinstance(toolchain, Rooted) else None


def folder_of(toolchain: Toolchain, checkout: Path) -> Path:
    """Return the folder of a checkout in which a toolchain has its project."""
    place = place_of(toolchain)
    return checkout / place.folder if place is not None else checkout


def view_of(toolchain: Toolchain, view: View) -> View:
    """Return how the folder of a toolchain's project is shown, given the view of the whole."""
    return toolchain.view(view) if isinstance(toolchain, Rooted) else view


class _Wider:
    """A box that shows the whole view around the folder that a command is about."""

    def __init__(self, box: Box, whole: Mount) -> None:
        self._box = box
        self._whole = whole
        self.name = box.name
        self.maps_paths = box.maps_paths

    def inside(self, host: Path, target: Path) -> Path:
        return self._box.inside(host, target)

    async def run(self, command: Command) -> Completed:
        return await self._box.run(replace(command, mounts=(self._whole, *command.mounts)))


def _with_siblings(env: Environment, checkouts: tuple[Path, Path], folder: str) -> Environment:
    """Return the environment with what it imports from elsewhere in the checkouts taken from the view.

    To a runner that works in one folder a sibling that is installed in place looks like any other project on the host.
    """
    roots: list[EditableRoot] = list(env.editable_roots)
    for mount in env.mounts:
        checkout = next((one for one in checkouts if mount.target.is_relative_to(one)), None)
        if checkout is not None and mount.source != _NOTHING and not _belongs_to(env.prefix, mount.target):
            inside = mount.target.relative_to(checkout).as_posix()
            roots.append(EditableRoot(mount.target, posixpath.relpath(inside, folder)))
    places = [root.path for root in roots]
    kept = tuple(m for m in env.mounts if not any(m.target.is_relative_to(place) for place in places))
    return replace(env, mounts=kept, editable_roots=tuple(dict.fromkeys(roots)))


def _belongs_to(prefix: Path, target: Path) -> bool:
    return target.is_relative_to(prefix) or prefix.is_relative_to(target)
