"""Rust projects tested with cargo: compiled in the box, listed by libtest, each test run as a process of its own.

cargo says what there is and what does not compile; which file a test stands in, and its bytes, are read from the
sources.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.boxes.box_folder import private_place
from pipeline.languages.limited_stubs import Scaffolding
from pipeline.languages.protocol import Selection
from pipeline.languages.runners.outcomes import Unusable, nothing, shortened, unfinished
from pipeline.languages.rust import environment
from pipeline.languages.rust.bench import Bench
from pipeline.languages.rust.messages import ArtifactLine, Documented, excess, is_done

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.evidence.observation import Observation
    from pipeline.languages.protocol import Cache, Environment, Missing, View
    from pipeline.languages.runners.sessions import Session
    from pipeline.languages.rust.project import Doctest, Project
    from pipeline.process import Box, Completed

_CONTROL: Final = frozenset(
    {
        "cargo.toml", "cargo.lock", "build.rs", "rust-toolchain", "rust-toolchain.toml", "clippy.toml", ".clippy.toml",
        "rustfmt.toml", ".rustfmt.toml", "nextest.toml",
    }
)  # fmt: skip


class CargoToolchain(Scaffolding):
    """The `Toolchain` of Rust projects."""

    name = "cargo"
    sources: tuple[str, ...] = (".rs",)
    stub = "todo!()"
    stub_like = re.compile(r"\b(?:todo|unimplemented)!")
    stub_readers = ("pipeline.languages.rust.stubs", "pipeline.languages.rust.stub_pass")
    install_hint = environment.HINT

    def detect(self, worktree: Path) -> bool:
        """Return whether the folder is a cargo package or workspace."""
        return (worktree / "Cargo.toml").is_file()

    async def find_environment(
        self,
        worktree: Path,
        main: Path,  # noqa: ARG002  (the folder of compiled files is never that of a checkout)
        configured: tuple[str, ...] | None,
        state: Path,  # noqa: ARG002  (nothing is installed)
        search_path: str,
    ) -> Environment | Missing:
        """Return the toolchain to test with; see `cargo.environment`."""
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
            selection: Which of the tests to run; all are listed in any case.
            trace: Say what the tests reach: production on the way to a failure, and what their code mentions.
            timeout_s: For compiling and running together.
            per_test_timeout_s: A limit for each test; for an example in the documentation it is how long one may take
                after the one before it, and compiling it is part of that.
            cache: Where the dependencies that the baseline compiled are kept.

        Raises:
            BoxError: the box did not work.
        """
        # the parser is a shared library that only Rust projects need
        from pipeline.languages.rust import project as cargo_project  # noqa: PLC0415
        from pipeline.languages.rust import records  # noqa: PLC0415

        deadline = anyio.current_time() + timeout_s
        selection = selection or Selection()
        command = _shown(env, selection)
        limited: dict[str, object] = {"do": "test", "per_test_s": per_test_timeout_s}
        with private_place("redfirst-cargo-") as place:
            bench = Bench.under(place, box, view, env, cache)
            session, completed = await bench.run({"do": "build"}, timeout_s)
            tail = records.rendered(session)
            executables = [line.message.executable for line in session.of(ArtifactLine)]
            if executables and not session.fault and not completed.timed_out:
                asked = {"do": "list", "executables": executables}
                listed, completed = await bench.run(asked, _left(deadline), frozen=True)
                session = session.then(listed)
                if not is_done(listed) or completed.timed_out:
                    why = unfinished(session, completed, excess(session) or "the tests could not be listed")
                    return nothing(why, completed, command=command, tail=tail)
            project = _project(session, completed, view)
            if isinstance(project, Unusable):
                return nothing(project, completed, command=command, tail=tail)
            bench.keep(project)
            tests = [
                test for test in project.tests.values() if selection.has(test.id, test.path) and not test.is_ignored
            ]
            ran = session.last
            if tests:
                ask = {**limited, "tests": [bench.asked(test) for test in tests], "doctests": []}
                ran, completed = await bench.run(ask, _left(deadline), frozen=True)
            # rustdoc compiles examples, and may start them to list them: what was compiled is open to them when no
            # test runs any more
            packages = [one for line in session.of(Documented) for one in line.packages]
            doctests: list[Doctest] = []
            if packages and is_done(ran) and not completed.timed_out:
                listed, completed = await bench.run({"do": "examples", "packages": packages}, _left(deadline))
                project = cargo_project.with_examples(project, listed)
                doctests = [test for test in project.doctests.values() if selection.has(test.id, test.path)]
                ran = ran.then(listed)
            if doctests and is_done(ran) and not completed.timed_out:
                ask = {**limited, "tests": [], "doctests": bench.examples(doctests, project)}
                shown, completed = await bench.run(ask, _left(deadline))
                ran = ran.then(shown)
        asked = frozenset(test.id for test in (*tests, *doctests))
        return records.observe(
            project, ran, asked, trace=trace, timed_out=completed.timed_out, command=command, tail=tail
        )

    async def check_types(self, box: Box, view: View, env: Environment, *, timeout_s: float = 900.0) -> Observation:
        """Return what does not compile, tests included, as collection errors; no program is made and nothing runs.

        Raises:
            BoxError: the box did not work.
        """
        from pipeline.languages.rust import records  # noqa: PLC0415  (see run_tests)

        command = ("cargo", "check", "--workspace", "--tests")
        with private_place("redfirst-cargo-") as place:
            bench = Bench.under(place, box, view, env, None)
            session, completed = await bench.run({"do": "check"}, timeout_s)
        tail = records.rendered(session)
        project = _project(session, completed, view)
        if isinstance(project, Unusable):
            return nothing(project, completed, command=command, tail=tail)
        return records.observe(project, session, frozenset(), trace=False, timed_out=False, command=command, tail=tail)

    def is_test_path(self, path: str, observation: Observation) -> bool:
        """Return whether tests are written at a path: a test file, or a source that may have test modules."""
        return observation.layout.is_test(path) or (path.endswith(".rs") and not self.is_control_path(path))

    def is_control_path(self, path: str) -> bool:
        """Return whether the file controls how tests are compiled or run."""
        *folders, name = path.casefold().split("/")
        return name in _CONTROL or ".cargo" in folders


def _project(session: Session, completed: Completed, view: View) -> Project | Unusable:
    from pipeline.languages.rust.project import read_project  # noqa: PLC0415  (see run_tests)

    if session.fault or completed.timed_out:
        return unfinished(session, completed)
    return read_project(session, view.files, str(view.workspace))


def _left(deadline: float) -> float:
    return max(1.0, deadline - anyio.current_time())


def _shown(env: Environment, selection: Selection) -> tuple[str, ...]:
    """Return the command a person would type for the same tests; long lists are cut."""
    names = sorted({entry.split("::", 2)[-1] for entry in selection.ids or ()})
    return ("cargo", *env.command[1:], "--workspace", *(("--", "--exact", *shortened(names)) if names else ()))


TOOLCHAIN: Final = CargoToolchain()
