"""Measures Rust tests: compiled in the box, listed by libtest, each run in a process of its own.

cargo says what there is and what does not compile; which file a test stands in, and its bytes, are read from the
sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from pipeline.languages.runners.outcomes import Unusable, nothing, shortened, unfinished
from pipeline.languages.rust import project as cargo_project
from pipeline.languages.rust import records
from pipeline.languages.rust.boxed_runner import BoxedRunner
from pipeline.languages.rust.messages import ArtifactLine, Documented, excess, is_done
from pipeline.scratch import scratch_folder

if TYPE_CHECKING:
    from pipeline.evidence.observation import Observation
    from pipeline.languages.protocol import Measurement
    from pipeline.languages.runners.sessions import Session
    from pipeline.languages.rust.project import Doctest, Project
    from pipeline.process import Completed


async def run_tests(asked: Measurement) -> Observation:
    """Compile and run the selected tests, and return the observation.

    The limit for each test is, for an example in the documentation, how long one may take after the one before it;
    compiling it is part of that. The cache holds the dependencies that the baseline compiled.

    Raises:
        BoxError: the box did not work.
    """
    deadline = anyio.current_time() + asked.timeout_s
    command = _shown(asked)
    limited: dict[str, object] = {"do": "test", "per_test_s": asked.per_test_timeout_s}
    with scratch_folder("cargo") as place:
        runner = BoxedRunner.under(place, asked)
        session, completed = await runner.run({"do": "build"}, asked.timeout_s)
        tail = records.rendered(session)
        executables = [line.message.executable for line in session.of(ArtifactLine)]
        if executables and not session.fault and not completed.timed_out:
            listing = {"do": "list", "executables": executables}
            listed, completed = await runner.run(listing, _left(deadline), frozen=True)
            session = session.then(listed)
            if not is_done(listed) or completed.timed_out:
                why = unfinished(session, completed, excess(session) or "the tests could not be listed")
                return nothing(why, completed, command=command, tail=tail)
        project = _project(session, completed, asked)
        if isinstance(project, Unusable):
            return nothing(project, completed, command=command, tail=tail)
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
    return records.observe(
        project, ran, ids, trace=asked.trace, timed_out=completed.timed_out, command=command, tail=tail
    )


async def check_types(asked: Measurement) -> Observation:
    """Return the compile errors, tests included, as collection errors; no executable is built and nothing runs.

    Raises:
        BoxError: the box did not work.
    """
    command = ("cargo", "check", "--workspace", "--tests")
    with scratch_folder("cargo") as place:
        session, completed = await BoxedRunner.under(place, asked).run({"do": "check"}, asked.timeout_s)
    tail = records.rendered(session)
    project = _project(session, completed, asked)
    if isinstance(project, Unusable):
        return nothing(project, completed, command=command, tail=tail)
    return records.observe(project, session, frozenset(), trace=False, timed_out=False, command=command, tail=tail)


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
