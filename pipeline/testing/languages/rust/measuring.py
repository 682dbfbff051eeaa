"""Measures Rust tests: compiled in the box, listed by libtest, each run in a process of its own.

cargo says what there is and what does not compile; which file a test stands in, and its bytes, are read from the
sources.

Compiled files of a measurement are its own: cargo tells fresh from stale by file times, which say nothing where trees
are moved about. What the baseline compiled of other people's crates is copied, so that it is compiled once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.sandbox.boxes.box_folder import BoxFolder
from pipeline.scratch import scratch_folder
from pipeline.testing.languages.environments import devshell
from pipeline.testing.languages.runners import sessions
from pipeline.testing.languages.runners.sessions import Session, Told, Unusable, shortened, unfinished
from pipeline.testing.languages.rust import project as cargo_project
from pipeline.testing.languages.rust import records
from pipeline.testing.languages.rust.output import ADAPTER, ArtifactLine, Documented, excess, is_done
from pipeline.trees import remove_tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.judge.evidence.observation import Observation
    from pipeline.process import Completed
    from pipeline.testing.languages.protocol import Measurement
    from pipeline.testing.languages.rust.project import Doctest, Project, Test


async def run_tests(asked: Measurement) -> Observation:
    """Compile and run the selected tests, and return the observation.

    The limit for each test is, for an example in the documentation, how long one may take after the one before it;
    compiling it is part of that. The cache holds the dependencies that the baseline compiled.

    Raises:
        BoxError: the box did not work.
    """
    deadline = anyio.current_time() + asked.timeout_s
    limited: dict[str, object] = {"do": "test", "per_test_s": asked.per_test_timeout_s}
    with scratch_folder("cargo") as place:
        runner = BoxedRunner.under(place, asked)
        session, completed = await runner.run({"do": "build"}, asked.timeout_s)
        told = Told(_shown(asked), records.rendered(session))
        executables = [line.message.executable for line in session.of(ArtifactLine)]
        if executables and not session.fault and not completed.timed_out:
            listing = {"do": "list", "executables": executables}
            listed, completed = await runner.run(listing, _left(deadline), frozen=True)
            session = session.then(listed)
            if not is_done(listed) or completed.timed_out:
                why = unfinished(session, completed, excess(session) or "the tests could not be listed")
                return told.nothing(why, completed)
        project = _project(session, completed, asked)
        if isinstance(project, Unusable):
            return told.nothing(project, completed)
        runner.keep(project)
        tests = [test for test in project.tests.values() if asked.selects(test.id, test.path) and not test.is_ignored]
        ran = session.last
        if tests:
            ask = {**limited, "tests": [runner.asked_of(test) for test in tests], "doctests": []}
            ran, completed = await runner.run(ask, _left(deadline), frozen=True)
        # rustdoc compiles examples, and may start them to list them: what was compiled is open to them when no
        # test runs any more
        packages = [one for line in session.of(Documented) for one in line.packages]
        doctests: list[Doctest] = []
        if packages and is_done(ran) and not completed.timed_out:
            listed, completed = await runner.run({"do": "examples", "packages": packages}, _left(deadline))
            project = cargo_project.with_examples(project, listed)
            doctests = [test for test in project.doctests.values() if asked.selects(test.id, test.path)]
            ran = ran.then(listed)
        if doctests and is_done(ran) and not completed.timed_out:
            ask = {**limited, "tests": [], "doctests": runner.examples(doctests, project)}
            shown, completed = await runner.run(ask, _left(deadline))
            ran = ran.then(shown)
    ids = frozenset(test.id for test in (*tests, *doctests))
    return records.observe(project, ran, ids, told, trace=asked.trace, timed_out=completed.timed_out)


async def check_types(asked: Measurement) -> Observation:
    """Return the compile errors, tests included, as collection errors; no executable is built and nothing runs.

    Raises:
        BoxError: the box did not work.
    """
    with scratch_folder("cargo") as place:
        session, completed = await BoxedRunner.under(place, asked).run({"do": "check"}, asked.timeout_s)
    told = Told(("cargo", "check", "--workspace", "--tests"), records.rendered(session))
    project = _project(session, completed, asked)
    if isinstance(project, Unusable):
        return told.nothing(project, completed)
    return records.observe(project, session, frozenset(), told, trace=False, timed_out=False)


def _project(session: Session, completed: Completed, asked: Measurement) -> Project | Unusable:
    if session.fault or completed.timed_out:
        return unfinished(session, completed)
    return cargo_project.read_project(session, asked.view.files, str(asked.view.workspace))


def _left(deadline: float) -> float:
    return max(1.0, deadline - anyio.current_time())


def _shown(asked: Measurement) -> tuple[str, ...]:
    """Return the command that a person would type for the same tests; long lists are cut."""
    names = sorted({entry.split("::", 2)[-1] for entry in (asked.selection and asked.selection.ids) or ()})
    return ("cargo", *asked.env.command[1:], "--workspace", *(("--", "--exact", *shortened(names)) if names else ()))


TARGET: Final = Path("/redfirst-target")
"""The path of compiled files in the box; it is constant, since cargo compares it."""

_KEPT: Final = "target"
_TEMPORARY: Final = "tmp"


@dataclass(frozen=True)
class BoxedRunner(sessions.BoxedRunner):
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
        program = sessions.lay_out(place, "rust")
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
        return {
            "PATH": devshell.box_path(self.asked.env.prefix, {}),
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
