"""Runs our program for Rust in a box: the view, and a private folder for compiled files.

Compiled files of a measurement are its own: cargo tells fresh from stale by file times, which say nothing where trees
are moved about. What the baseline compiled of other people's crates is copied, so that it is compiled once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.boxes.box_folder import BoxFolder
from pipeline.languages.runners import boxed_runner
from pipeline.languages.rust.messages import ADAPTER
from pipeline.trees import remove_tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.languages.protocol import Measurement
    from pipeline.languages.runners.sessions import Session
    from pipeline.languages.rust.project import Doctest, Project, Test
    from pipeline.process import Completed

TARGET: Final = Path("/redfirst-target")
"""The path of compiled files in the box; it is constant, since cargo compares it."""

_KEPT: Final = "target"
_TEMPORARY: Final = "tmp"


@dataclass(frozen=True)
class BoxedRunner(boxed_runner.BoxedRunner):
    """The place of one measurement: `compiled` is cargo's folder, `temporary` the one for integration tests."""

    compiled: BoxFolder
    temporary: BoxFolder

    @classmethod
    def under(cls, place: Path, asked: Measurement) -> BoxedRunner:
        """Create the place: our program, the folder of compiled files, and the one for integration tests."""
        compiled, temporary = BoxFolder.made(place, "target"), BoxFolder.made(place, _TEMPORARY)
        if asked.cache is not None and not asked.cache.warm:
            compiled.fill(asked.cache.folder / _KEPT)
        compiled.add(_TEMPORARY)
        program = boxed_runner.lay_out(place, "rust", "runner.py", "processes.py")
        return cls(asked, program, compiled, temporary)

    @property
    def target(self) -> Path:
        """Return the path of the compiled files in the box."""
        return self.asked.box.inside(self.compiled.path, TARGET)

    async def run(
        self, request: Mapping[str, object], limit_s: float, *, frozen: bool = False
    ) -> tuple[Session, Completed]:
        """Run our program; if `frozen`, it cannot change the compiled files."""
        folders = [self.compiled.mount(self.target, writable=not frozen)]
        if self.asked.box.maps_paths:  # integration tests are given this folder to write into
            folders.append(self.temporary.mount(self.target / _TEMPORARY))
        request = {**request, "cargo": self.asked.env.command}
        return await self.ask(request, limit_s, ADAPTER, self.variables, *folders)

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables of cargo and the tests."""
        rust = self.asked.env.prefix / "bin"
        return {
            "PATH": f"{rust}:/usr/local/bin:/usr/bin:/bin",
            "CARGO_TARGET_DIR": str(self.target),
            "CARGO_INCREMENTAL": "0",  # nothing is compiled twice here
            "CARGO_TERM_COLOR": "never",
            "CARGO_TERM_PROGRESS_WHEN": "never",
            "RUST_BACKTRACE": "1",
            "RUST_LIB_BACKTRACE": "0",
            "INSTA_UPDATE": "no",
            **self.asked.env.variables,
        }

    def asked_of(self, test: Test) -> dict[str, object]:
        """Return the request to start one test as cargo would, in the folder of its package."""
        package, libraries = test.unit.package, f"{Path(test.unit.executable).parent}:{self.asked.env.prefix}/lib"
        chosen = () if test.unit.own_harness else ("--exact", test.name, "--nocapture")
        return {
            "id": test.id,
            "argv": [test.unit.executable, *chosen],
            "cwd": str(self.asked.view.workspace / test.unit.folder),
            "env": {
                "CARGO": self.asked.env.command[0],
                "CARGO_MANIFEST_DIR": str(self.asked.view.workspace / test.unit.folder),
                "CARGO_PKG_NAME": package.name,
                "CARGO_PKG_VERSION": package.version,
                "LD_LIBRARY_PATH": f"{libraries}:{self.variables.get('LD_LIBRARY_PATH', '')}".rstrip(":"),
            },
        }

    def examples(self, doctests: Sequence[Doctest], project: Project) -> list[dict[str, object]]:
        """Return the requests to run the examples of packages: all of each, as rustdoc accepts no name with blanks.

        `names` are those that are wanted, `whole` says whether the package has no others.
        """
        words = (*self.asked.env.command, "--doc", "--no-fail-fast", "--package")
        names: dict[str, list[str]] = {}
        for test in doctests:
            names.setdefault(test.package, []).append(test.name)
        counted = Counter(test.package for test in project.doctests.values())
        return [
            {"package": name, "argv": [*words, name], "names": names[name], "whole": len(names[name]) == counted[name]}
            for name in sorted(names)
        ]

    def keep(self, project: Project) -> None:
        """Keep what the baseline compiled of other people's crates; the project's own code is compiled again."""
        if self.asked.cache is None or not self.asked.cache.warm:
            return
        own = {unit.package.name for unit in project.units} | {unit.target.name for unit in project.units}
        names = {name for one in own for name in (one, one.replace("-", "_"))}

        def is_own(entry: str) -> bool:
            stem = entry.partition(".")[0].rpartition("-")[0] or entry
            return not {stem, stem.removeprefix("lib")}.isdisjoint(names)

        self.compiled.keep(self.asked.cache.folder / _KEPT, links=True, leave_out=is_own)
        remove_tree(self.asked.cache.folder / _KEPT / _TEMPORARY)
