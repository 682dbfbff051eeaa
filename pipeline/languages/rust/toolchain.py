"""Rust projects tested with cargo: compiled in the box, listed by libtest, each test run as a process of its own.

cargo says what there is and what does not compile; which file a test stands in, and its bytes, are read from the
sources.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.box_folder import private_place
from pipeline.evidence.observation import Observation, RunState
from pipeline.languages import scaffolds
from pipeline.languages.rust import environment
from pipeline.languages.rust.bench import Bench
from pipeline.languages.rust.messages import ArtifactLine, Documented, OutOfTime, Session, excess

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipeline.evidence.classify import Symbol
    from pipeline.languages.protocol import Cache, Environment, Missing, Selection, Stubbed, StubFault, View
    from pipeline.languages.rust.project import Doctest, Test
    from pipeline.process import Completed, Sandbox

_SHOWN: Final = 20
_CONTROL: Final = frozenset(
    {
        "cargo.toml", "cargo.lock", "build.rs", "rust-toolchain", "rust-toolchain.toml", "clippy.toml", ".clippy.toml",
        "rustfmt.toml", ".rustfmt.toml", "nextest.toml",
    }
)  # fmt: skip


class CargoToolchain:
    """The `Toolchain` of Rust projects."""

    name = "cargo"
    sources: tuple[str, ...] = (".rs",)
    stub = "todo!()"
    stub_like = re.compile(r"\b(?:todo|unimplemented)!")
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
        sandbox: Sandbox,
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
            sandbox: Where it runs.
            view: The files; tests may write into them, so the view is disposable.
            env: From `find_environment`.
            selection: Which of the tests to run; all are listed in any case.
            trace: Say what the tests reach: production on the way to a failure, and what their code mentions.
            timeout_s: For compiling and running together.
            per_test_timeout_s: A limit for each test; for an example in the documentation it is how long one may take
                after the one before it, and compiling it is part of that.
            cache: Where the dependencies that the baseline compiled are kept.

        Raises:
            SandboxError: the box did not work.
        """
        # the parser is a shared library that only Rust projects need
        from pipeline.languages.rust import project as cargo_project  # noqa: PLC0415
        from pipeline.languages.rust import records  # noqa: PLC0415

        deadline = anyio.current_time() + timeout_s
        command = _shown(env, selection)
        limited: dict[str, object] = {"do": "test", "per_test_s": per_test_timeout_s}
        with private_place("redfirst-cargo-") as place:
            bench = Bench.under(place, sandbox, view, env, cache)
            session, completed = await bench.run({"do": "build"}, timeout_s)
            tail = records.rendered(session)
            if session.fault or completed.timed_out:
                return _unfinished(session, completed, command, tail)
            executables = [line.message.executable for line in session.records if isinstance(line, ArtifactLine)]
            if executables:
                asked = {"do": "list", "executables": executables}
                listed, completed = await bench.run(asked, _left(deadline), frozen=True)
                session = session.then(listed)
                if not listed.is_done or completed.timed_out:
                    return _unfinished(session, completed, command, tail, "the tests could not be listed")
            project = cargo_project.read_project(session, view.files, str(view.workspace))
            if isinstance(project, cargo_project.Unusable):
                return records.nothing(project, command=command, tail=tail or _text(completed))
            bench.keep(project)
            tests = [test for test in project.tests.values() if _is_chosen(test, selection) and not test.is_ignored]
            ran = Session(session.records[-1:])
            if tests:
                ask = {**limited, "tests": [bench.asked(test) for test in tests], "doctests": []}
                ran, completed = await bench.run(ask, _left(deadline), frozen=True)
            # rustdoc compiles examples, and may start them to list them: what was compiled is open to them when no
            # test runs any more
            packages = [one for line in session.records if isinstance(line, Documented) for one in line.packages]
            doctests: list[Doctest] = []
            if packages and ran.is_done and not completed.timed_out:
                listed, completed = await bench.run({"do": "examples", "packages": packages}, _left(deadline))
                project = cargo_project.with_examples(project, listed)
                doctests = [test for test in project.doctests.values() if _is_chosen(test, selection)]
                ran = ran.then(listed)
            if doctests and ran.is_done and not completed.timed_out:
                ask = {**limited, "tests": [], "doctests": bench.examples(doctests, project)}
                shown, completed = await bench.run(ask, _left(deadline))
                ran = ran.then(shown)
        asked = frozenset(test.id for test in (*tests, *doctests))
        return records.observe(
            project, ran, asked, trace=trace, timed_out=completed.timed_out, command=command, tail=tail
        )

    async def check_types(
        self, sandbox: Sandbox, view: View, env: Environment, *, timeout_s: float = 900.0
    ) -> Observation:
        """Return what does not compile, tests included, as collection errors; no program is made and nothing runs.

        Raises:
            SandboxError: the box did not work.
        """
        from pipeline.languages.rust import project as cargo_project  # noqa: PLC0415  (see run_tests)
        from pipeline.languages.rust import records  # noqa: PLC0415

        command = ("cargo", "check", "--workspace", "--tests")
        with private_place("redfirst-cargo-") as place:
            bench = Bench.under(place, sandbox, view, env, None)
            session, completed = await bench.run({"do": "check"}, timeout_s)
        tail = records.rendered(session)
        if session.fault or completed.timed_out:
            return _unfinished(session, completed, command, tail)
        project = cargo_project.read_project(session, view.files, str(view.workspace))
        if isinstance(project, cargo_project.Unusable):
            return records.nothing(project, command=command, tail=tail or _text(completed))
        return records.observe(project, session, frozenset(), trace=False, timed_out=False, command=command, tail=tail)

    def is_test_path(self, path: str, observation: Observation) -> bool:
        """Return whether tests are written at a path: a test file, or a source that may have test modules."""
        return observation.layout.is_test(path) or (path.endswith(".rs") and not self.is_control_path(path))

    def is_control_path(self, path: str) -> bool:
        """Return whether the file controls how tests are compiled or run."""
        *folders, name = path.casefold().split("/")
        return name in _CONTROL or ".cargo" in folders

    def stub_symbols(self, files: Mapping[str, str], symbols: Sequence[Symbol]) -> Stubbed:
        """Return the files with the symbols' bodies replaced by `todo!()`."""
        from pipeline.languages.rust import stubs  # noqa: PLC0415  (see run_tests)

        return scaffolds.stub_symbols(stubs.stub_symbols, files, symbols)

    def introduced(self, before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Symbol, ...]:
        """Return the new functions, types and constants outside of test regions."""
        from pipeline.languages.rust import stubs  # noqa: PLC0415  (see run_tests)

        return scaffolds.introduced(stubs.introduced, before, after)

    def stub_faults(
        self, before: Mapping[str, str], after: Mapping[str, str], symbols: Sequence[Symbol]
    ) -> tuple[StubFault, ...]:
        """Return what a stub pass changed that is more or other than `todo!()`."""
        from pipeline.languages.rust import stub_pass  # noqa: PLC0415  (see run_tests)

        return scaffolds.stub_faults(stub_pass.stub_faults, before, after, symbols)


def _is_chosen(test: Test | Doctest, selection: Selection | None) -> bool:
    if selection is None:
        return True
    if selection.ids is not None and test.id not in selection.ids:
        return False
    return selection.files is None or test.path in selection.files


def _left(deadline: float) -> float:
    return max(1.0, deadline - anyio.current_time())


def _unfinished(
    session: Session,
    completed: Completed,
    command: tuple[str, ...],
    tail: str,
    detail: str = "compiling the tests reached the time limit",
) -> Observation:
    is_late = completed.timed_out or any(isinstance(line, OutOfTime) for line in session.records)
    state = RunState.TIMED_OUT if is_late else RunState.UNUSABLE
    detail = session.fault or excess(session) or detail
    return Observation(state=state, detail=detail, command=command, tail=tail or _text(completed))


def _text(completed: Completed) -> str:
    return completed.stderr.decode("utf-8", "replace")


def _shown(env: Environment, selection: Selection | None) -> tuple[str, ...]:
    """Return the command a person would type for the same tests; long lists are cut."""
    names = sorted({entry.split("::", 2)[-1] for entry in (selection and selection.ids) or ()})
    rest = () if len(names) <= _SHOWN else (f"... and {len(names) - _SHOWN} more",)
    return ("cargo", *env.command[1:], "--workspace", *(("--", "--exact", *names[:_SHOWN], *rest) if names else ()))


TOOLCHAIN: Final = CargoToolchain()
