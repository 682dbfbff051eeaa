"""Measures Go tests: compiled in the box, each run in a process of its own.

go says what there is and what does not compile; which tests a package has, and their bytes, are read from the sources.

Go's cache is found by content, so what was compiled before is right wherever the files lie; but what a measurement adds
to it stays in a private copy. Tests are given that copy, as some of them compile something; what outlives the
measurement was set aside before the first of them ran.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.sandbox.boxes.box_folder import BoxFolder
from pipeline.scratch import scratch_folder
from pipeline.testing.languages.environments import devshell
from pipeline.testing.languages.go import records
from pipeline.testing.languages.go.environment import arguments_of
from pipeline.testing.languages.go.project import ADAPTER, Project, Test, Unit, read_project
from pipeline.testing.languages.go.records import IDLE
from pipeline.testing.languages.runners import sessions
from pipeline.testing.languages.runners.sessions import Session, Told, Unusable, shortened, unfinished

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.judge.evidence.observation import Observation
    from pipeline.process import Completed
    from pipeline.testing.languages.protocol import Measurement, Selection


async def run_tests(asked: Measurement) -> Observation:
    """Compile and run the selected tests, and return the observation; a subtest runs with its whole test.

    Raises:
        BoxError: the box did not work.
    """
    deadline = anyio.current_time() + asked.timeout_s
    selection = asked.selection
    with scratch_folder("go") as place:
        runner = BoxedRunner.under(place, asked)
        session, completed = await runner.build()
        told = Told(_shown(asked), records.rendered(session))
        project = _project(session, completed, asked)
        if isinstance(project, Unusable):
            return told.nothing(project, completed)
        runner.keep()
        known = [test for test in project.tests.values() if _is_chosen(test, selection)]
        tests = [test for test in known if test.unit.executable]
        ran = session.last
        if tests:
            ran, completed = await runner.test(project, tests, max(1.0, deadline - anyio.current_time()))
        ids = frozenset(test.id for test in known) if selection is None or selection.ids is None else selection.ids
        memory = records.Memory(asked.cache)
        return records.observe(project, ran, ids, memory, told, trace=asked.trace, timed_out=completed.timed_out)


async def check_types(asked: Measurement) -> Observation:
    """Return the compile errors, tests included, as collection errors; no executable is built and nothing runs.

    Without a cache Go 1.20 and newer compile their own library first, which takes most of a minute.

    Raises:
        BoxError: the box did not work.
    """
    with scratch_folder("go") as place:
        session, completed = await BoxedRunner.under(place, asked).build(check=True)
    told = Told(("go", "test", "-run", "^$", "./..."), records.rendered(session))
    project = _project(session, completed, asked)
    if isinstance(project, Unusable):
        return told.nothing(project, completed)
    memory = records.Memory(None)
    return records.observe(project, session.last, frozenset(), memory, told, trace=False, timed_out=False)


def _project(session: Session, completed: Completed, asked: Measurement) -> Project | Unusable:
    if session.fault or completed.timed_out:
        return unfinished(session, completed)
    return read_project(session, asked.view.files, str(asked.view.workspace))


def _is_chosen(test: Test, selection: Selection | None) -> bool:
    if selection is None:
        return True
    if selection.ids is not None and not any(f"{entry}/".startswith(f"{test.id}/") for entry in selection.ids):
        return False
    return selection.files is None or test.source.path in selection.files


def _shown(asked: Measurement) -> tuple[str, ...]:
    """Return the command that a person would type for the same tests; long lists are cut."""
    ids = (asked.selection and asked.selection.ids) or ()
    names = sorted({entry.partition("::")[2].partition("/")[0] for entry in ids})
    words = arguments_of(asked.env)
    chosen = ("-run", f"^({'|'.join(shortened(names))})$") if names else ()
    return ("go", "test", *words.build, *words.test, *(words.patterns or ("./...",)), *chosen, *words.rest)


TARGET: Final = Path("/redfirst-go")
"""The path of compiled files in the box."""

_KEPT: Final = "gocache"
_ALL_ERRORS: Final = "-gcflags=-e"
"""The compiler option to report all errors, not only the first ten: each file has its own."""


@dataclass(frozen=True)
class BoxedRunner(sessions.BoxedRunner):
    """The place of one measurement: `compiled` is the compiler's cache, `tests` holds the executables."""

    compiled: BoxFolder
    tests: BoxFolder

    @classmethod
    def under(cls, place: Path, asked: Measurement) -> BoxedRunner:
        """Create the place: our program, and the folders for compiled files."""
        compiled = BoxFolder.made(place, "cache")
        if asked.cache is not None and not asked.cache.warm:
            compiled.fill(asked.cache.folder / _KEPT)
        program = sessions.lay_out(place, "go")
        return cls(asked, program, compiled, BoxFolder.made(place, "tests"))

    async def build(self, *, check: bool = False) -> tuple[Session, Completed]:
        """Describe the workspace and its errors; unless only `check`ing, build the executables of chosen tests."""
        arguments = arguments_of(self.asked.env)
        has_own_flags = any(word.lstrip("-").partition("=")[0] == "gcflags" for word in arguments.build)
        ask = {
            "do": "check" if check else "build",
            "build": arguments.build if has_own_flags else (*arguments.build, _ALL_ERRORS),
            "test": arguments.test,
            "patterns": arguments.patterns,
            "rest": arguments.rest,
            "cover": self.asked.trace,
            "out": str(self._inside(self.tests)),
            "folders": self._folders(self.asked.selection),
        }
        return await self._run(ask, self.asked.timeout_s, frozen=False)

    async def test(self, project: Project, tests: Sequence[Test], limit_s: float) -> tuple[Session, Completed]:
        """Run tests, each in a process of its own; when traced, first run each executable without any test."""
        units = {test.unit.folder: test.unit for test in tests} if self.asked.trace else {}
        asked = [self._asked(f"{IDLE}{folder}", unit, "^$", project) for folder, unit in sorted(units.items())]
        asked += [self._asked(test.id, test.unit, f"^{test.source.name}$", project) for test in tests]
        limit, trace = self.asked.per_test_timeout_s, self.asked.trace
        ask = {"do": "test", "per_test_s": limit, "trace": trace, "tests": asked}
        return await self._run(ask, limit_s, frozen=True)

    def keep(self) -> None:
        """Keep what the baseline compiled: Go itself, other people's modules, the project."""
        if self.asked.cache is None or not self.asked.cache.warm:
            return
        self.compiled.keep(self.asked.cache.folder / _KEPT)

    def _inside(self, folder: BoxFolder) -> Path:
        return self.asked.box.inside(folder.path, TARGET / folder.path.name)

    def _folders(self, selection: Selection | None) -> list[str] | None:
        """Return the folders of the packages with chosen tests, None for all."""
        if selection is None:
            return None
        by_id = {entry.partition("::")[0] for entry in selection.ids or ()}
        by_file = {path.rpartition("/")[0] or "." for path in selection.files or ()}
        chosen = by_file if selection.ids is None else by_id if selection.files is None else by_id & by_file
        workspace = self.asked.view.workspace
        return sorted(str(workspace if folder == "." else workspace / folder) for folder in chosen)

    def _asked(self, entry: str, unit: Unit, pattern: str, project: Project) -> dict[str, object]:
        """Return the request to start a test as `go test` would, but with our time limit."""
        own = [word for word in unit.arguments if word.startswith("-test.")]
        rest = unit.arguments[len(own) :]
        flags = ["-test.v=true", "-test.count=1", "-test.timeout=0", f"-test.run={pattern}"]
        return {
            "id": entry,
            "argv": [unit.executable, *own, *flags],
            "rest": rest,
            "cwd": f"{project.workspace}/{unit.folder}".rstrip("/"),
        }

    async def _run(self, request: Mapping[str, object], limit_s: float, *, frozen: bool) -> tuple[Session, Completed]:
        """Run our program; if `frozen`, it cannot change the compiled files."""
        asked = {**request, "go": self.asked.env.command[0], "root": str(self.asked.view.workspace)}
        folders = (
            self.compiled.mount(self._inside(self.compiled)),
            self.tests.mount(self._inside(self.tests), writable=not frozen),
        )
        return await self.ask(asked, limit_s, ADAPTER, self._variables, *folders)

    @property
    def _variables(self) -> dict[str, str]:
        """Return the environment variables of go and the tests."""
        return {
            "PATH": devshell.box_path(self.asked.env.prefix, {}),
            "GOCACHE": str(self._inside(self.compiled)),
            "GOTRACEBACK": "single",
            **self.asked.env.variables,
        }
