"""Go projects tested with `go test`'s own executables: compiled in the box, each test run as a process of its own.

go says what there is and what does not compile; which tests a package has, and their bytes, are read from the sources.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.boxes.box_folder import private_place
from pipeline.languages.go import environment
from pipeline.languages.go.command import GoTest, parse
from pipeline.languages.limited_stubs import Scaffolding
from pipeline.languages.runners.outcomes import Unusable, nothing, shortened, unfinished

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.evidence.observation import Observation
    from pipeline.languages.go.project import Project, Test
    from pipeline.languages.protocol import Cache, Environment, Missing, Selection, View
    from pipeline.languages.runners.sessions import Session
    from pipeline.process import Box, Completed

_MARKERS: Final = ("go.mod", "go.work")
_CONTROL: Final = frozenset(
    {
        "go.mod", "go.sum", "go.work", "go.work.sum", "go.env", ".golangci.yml", ".golangci.yaml", ".golangci.toml",
        ".golangci.json", "staticcheck.conf", ".go-version", ".goreleaser.yml", ".goreleaser.yaml",
    }
)  # fmt: skip


class GoToolchain(Scaffolding):
    """The `Toolchain` of Go modules and workspaces."""

    name = "go"
    sources: tuple[str, ...] = (".go",)
    stub = 'panic("not implemented")'
    stub_like = re.compile(r"\bpanic\(\s*[\"`]not implemented")
    stub_readers = ("pipeline.languages.go.stubs", "pipeline.languages.go.stub_pass")
    install_hint = environment.HINT

    def detect(self, worktree: Path) -> bool:
        """Return whether the folder is a Go module or workspace."""
        return any((worktree / name).is_file() for name in _MARKERS)

    async def find_environment(
        self,
        worktree: Path,
        main: Path,  # noqa: ARG002  (nothing of a checkout is used)
        configured: tuple[str, ...] | None,
        state: Path,  # noqa: ARG002  (nothing is installed)
        search_path: str,
    ) -> Environment | Missing:
        """Return the toolchain to test with; see `go.environment`."""
        return await environment.find_environment(worktree, configured, search_path)

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
        """Compile, run the selected tests (None: all), and return what was observed.

        Args:
            box: Where it runs.
            view: The files; tests may write into them, so the view is disposable.
            env: From `find_environment`.
            selection: Which of the tests to run; all are listed in any case. A subtest runs with its whole test.
            trace: Say which functions of production the tests enter, which files they open, what they mention.
            timeout_s: For compiling and running together.
            per_test_timeout_s: A limit for each top-level test.
            cache: Where what the baseline compiled is kept.

        Raises:
            BoxError: the box did not work.
        """
        # the parser is a shared library that only Go projects need
        from pipeline.languages.go import bench as go_bench  # noqa: PLC0415
        from pipeline.languages.go import known_subtests, records  # noqa: PLC0415

        deadline = anyio.current_time() + timeout_s
        command = _shown(env, selection)
        with private_place("redfirst-go-") as place:
            bench = go_bench.Bench.under(place, box, view, env, cache)
            session, completed = await bench.build(timeout_s, selection=selection, trace=trace)
            tail = records.rendered(session)
            project = _project(session, completed, view)
            if isinstance(project, Unusable):
                return nothing(project, completed, command=command, tail=tail)
            bench.keep()
            known = [test for test in project.tests.values() if _is_chosen(test, selection)]
            tests = [test for test in known if test.unit.executable]
            ran = session.last
            if tests:
                left = max(1.0, deadline - anyio.current_time())
                ran, completed = await bench.test(project, tests, left, per_test_timeout_s, trace=trace)
            asked = (
                frozenset(test.id for test in known) if selection is None or selection.ids is None else selection.ids
            )
            return records.observe(
                project,
                ran,
                asked,
                known_subtests.Memory(cache),
                trace=trace,
                timed_out=completed.timed_out,
                command=command,
                tail=tail,
            )

    async def check_types(
        self, box: Box, view: View, env: Environment, *, timeout_s: float = 900.0, cache: Cache | None = None
    ) -> Observation:
        """Return what does not compile, tests included, as collection errors; no program is made and nothing runs.

        Without a `cache` Go 1.20 and newer compile their own library first, which takes most of a minute.

        Raises:
            BoxError: the box did not work.
        """
        from pipeline.languages.go import bench as go_bench  # noqa: PLC0415  (see run_tests)
        from pipeline.languages.go import known_subtests, records  # noqa: PLC0415

        command = ("go", "test", "-run", "^$", "./...")
        with private_place("redfirst-go-") as place:
            bench = go_bench.Bench.under(place, box, view, env, cache)
            session, completed = await bench.build(timeout_s, check=True)
        tail = records.rendered(session)
        project = _project(session, completed, view)
        if isinstance(project, Unusable):
            return nothing(project, completed, command=command, tail=tail)
        return records.observe(
            project,
            session.last,
            frozenset(),
            known_subtests.Memory(None),
            trace=False,
            timed_out=False,
            command=command,
            tail=tail,
        )

    def is_test_path(self, path: str, observation: Observation) -> bool:
        """Return whether tests are written at a path: `*_test.go`, and whatever lies in a `testdata` folder."""
        return observation.layout.is_test(path) or (path.endswith("_test.go")) or "testdata" in path.split("/")[:-1]

    def is_control_path(self, path: str) -> bool:
        """Return whether the file controls what is compiled, with which modules, or how it is checked."""
        *folders, name = path.casefold().split("/")
        return name in _CONTROL or "vendor" in folders


def _project(session: Session, completed: Completed, view: View) -> Project | Unusable:
    from pipeline.languages.go.project import read_project  # noqa: PLC0415  (see run_tests)

    if session.fault or completed.timed_out:
        return unfinished(session, completed)
    return read_project(session, view.files, str(view.workspace))


def _is_chosen(test: Test, selection: Selection | None) -> bool:
    if selection is None:
        return True
    if selection.ids is not None and not any(_belongs(entry, test.id) for entry in selection.ids):
        return False
    return selection.files is None or test.source.path in selection.files


def _belongs(entry: str, test: str) -> bool:
    return entry == test or entry.startswith(f"{test}/")


def _shown(env: Environment, selection: Selection | None) -> tuple[str, ...]:
    """Return the command a person would type for the same tests; long lists are cut."""
    names = sorted({entry.partition("::")[2].partition("/")[0] for entry in (selection and selection.ids) or ()})
    found = parse(env.command[2:])
    kept = found if isinstance(found, GoTest) else GoTest()
    chosen = ("-run", f"^({'|'.join(shortened(names))})$") if names else ()
    return ("go", "test", *kept.build, *kept.test, *(kept.patterns or ("./...",)), *chosen, *kept.rest)


TOOLCHAIN: Final = GoToolchain()
