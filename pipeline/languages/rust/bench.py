"""Where a Rust measurement is made: the box, the view, and a private folder for what is compiled.

Compiled files of a measurement are its own: cargo tells fresh from stale by file times, which say nothing where trees
are moved about. What the baseline compiled of other people's crates is copied, so that it is compiled once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.boxes.box_folder import BoxFolder
from pipeline.languages.runners import bench
from pipeline.languages.rust.messages import ADAPTER
from pipeline.trees import remove_tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.languages.protocol import Cache, Environment, View
    from pipeline.languages.runners.sessions import Session
    from pipeline.languages.rust.project import Doctest, Project, Test
    from pipeline.process import Box, Completed

TARGET: Final = Path("/redfirst-target")
"""Where a box shows the compiled files: at one path, which is part of what cargo compares."""

_KEPT: Final = "target"
_TEMPORARY: Final = "tmp"


@dataclass(frozen=True)
class Bench(bench.Bench):
    """Where one measurement is made: `compiled` is cargo's folder, `temporary` the one that integration tests fill."""

    compiled: BoxFolder
    temporary: BoxFolder
    cache: Cache | None

    @classmethod
    def under(cls, place: Path, box: Box, view: View, env: Environment, cache: Cache | None) -> Bench:
        """Lay the place out: our program, the folder of compiled files, and the one that integration tests may fill."""
        compiled, temporary = BoxFolder.made(place, "target"), BoxFolder.made(place, _TEMPORARY)
        if cache is not None and not cache.warm:
            compiled.fill(cache.folder / _KEPT)
        compiled.add(_TEMPORARY)
        program = bench.lay_out(place, "rust", "runner.py", "processes.py")
        return cls(box, view, env, program, compiled, temporary, cache)

    @property
    def target(self) -> Path:
        """Return where the box shows what is compiled."""
        return self.box.inside(self.compiled.path, TARGET)

    async def run(
        self, request: Mapping[str, object], limit_s: float, *, frozen: bool = False
    ) -> tuple[Session, Completed]:
        """Run our program; `frozen` if what was compiled is not to be changed by what runs now."""
        folders = [self.compiled.mount(self.target, writable=not frozen)]
        if self.box.maps_paths:  # integration tests are given this folder to write into
            folders.append(self.temporary.mount(self.target / _TEMPORARY))
        asked = {**request, "cargo": self.env.command}
        return await self.ask(asked, limit_s, ADAPTER, self.variables, *folders)

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment of cargo and of the tests."""
        rust = self.env.prefix / "bin"
        return {
            "PATH": f"{rust}:/usr/local/bin:/usr/bin:/bin",
            "CARGO_TARGET_DIR": str(self.target),
            "CARGO_INCREMENTAL": "0",  # nothing is compiled twice here
            "CARGO_TERM_COLOR": "never",
            "CARGO_TERM_PROGRESS_WHEN": "never",
            "RUST_BACKTRACE": "1",
            "RUST_LIB_BACKTRACE": "0",
            "INSTA_UPDATE": "no",
            **self.env.variables,
        }

    def asked(self, test: Test) -> dict[str, object]:
        """Return how one test is started: as cargo would, in the folder of its package."""
        package, libraries = test.unit.package, f"{Path(test.unit.executable).parent}:{self.env.prefix}/lib"
        chosen = () if test.unit.own_harness else ("--exact", test.name, "--nocapture")
        return {
            "id": test.id,
            "argv": [test.unit.executable, *chosen],
            "cwd": str(self.view.workspace / test.unit.folder),
            "env": {
                "CARGO": self.env.command[0],
                "CARGO_MANIFEST_DIR": str(self.view.workspace / test.unit.folder),
                "CARGO_PKG_NAME": package.name,
                "CARGO_PKG_VERSION": package.version,
                "LD_LIBRARY_PATH": f"{libraries}:{self.variables.get('LD_LIBRARY_PATH', '')}".rstrip(":"),
            },
        }

    def examples(self, doctests: Sequence[Doctest], project: Project) -> list[dict[str, object]]:
        """Return how the examples of the packages are started: all of each, as rustdoc takes no name with blanks.

        `names` are those that are wanted, `whole` says whether the package has no others.
        """
        words = (*self.env.command, "--doc", "--no-fail-fast", "--package")
        names: dict[str, list[str]] = {}
        for test in doctests:
            names.setdefault(test.package, []).append(test.name)
        counted = Counter(test.package for test in project.doctests.values())
        return [
            {"package": name, "argv": [*words, name], "names": names[name], "whole": len(names[name]) == counted[name]}
            for name in sorted(names)
        ]

    def keep(self, project: Project) -> None:
        """Keep what the baseline compiled of other people's crates; what is the project's own is compiled again."""
        if self.cache is None or not self.cache.warm:
            return
        own = {unit.package.name for unit in project.units} | {unit.target.name for unit in project.units}
        names = {name for one in own for name in (one, one.replace("-", "_"))}

        def is_own(entry: str) -> bool:
            stem = entry.partition(".")[0].rpartition("-")[0] or entry
            return not {stem, stem.removeprefix("lib")}.isdisjoint(names)

        self.compiled.keep(self.cache.folder / _KEPT, links=True, leave_out=is_own)
        remove_tree(self.cache.folder / _KEPT / _TEMPORARY)
