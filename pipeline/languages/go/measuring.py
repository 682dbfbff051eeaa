"""Measures Go tests: compiled in the box, each run in a process of its own.

go says what there is and what does not compile; which tests a package has, and their bytes, are read from the sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from pipeline.languages.go import known_subtests, records
from pipeline.languages.go.boxed_runner import BoxedRunner
from pipeline.languages.go.command import arguments_of
from pipeline.languages.go.project import read_project
from pipeline.languages.runners.outcomes import Unusable, nothing, shortened, unfinished
from pipeline.scratch import scratch_folder

if TYPE_CHECKING:
    from pipeline.evidence.observation import Observation
    from pipeline.languages.go.project import Project, Test
    from pipeline.languages.protocol import Measurement, Selection
    from pipeline.languages.runners.sessions import Session
    from pipeline.process import Completed


async def run_tests(asked: Measurement) -> Observation:
    """Compile and run the selected tests, and return the observation; a subtest runs with its whole test.

    Raises:
        BoxError: the box did not work.
    """
    deadline = anyio.current_time() + asked.timeout_s
    command, selection = _shown(asked), asked.selection
    with scratch_folder("go") as place:
        runner = BoxedRunner.under(place, asked)
        session, completed = await runner.build()
        tail = records.rendered(session)
        project = _project(session, completed, asked)
        if isinstance(project, Unusable):
            return nothing(project, completed, command=command, tail=tail)
        runner.keep()
        known = [test for test in project.tests.values() if _is_chosen(test, selection)]
        tests = [test for test in known if test.unit.executable]
        ran = session.last
        if tests:
            ran, completed = await runner.test(project, tests, max(1.0, deadline - anyio.current_time()))
        ids = frozenset(test.id for test in known) if selection is None or selection.ids is None else selection.ids
        return records.observe(
            project,
            ran,
            ids,
            known_subtests.Memory(asked.cache),
            trace=asked.trace,
            timed_out=completed.timed_out,
            command=command,
            tail=tail,
        )


async def check_types(asked: Measurement) -> Observation:
    """Return the compile errors, tests included, as collection errors; no executable is built and nothing runs.

    Without a cache Go 1.20 and newer compile their own library first, which takes most of a minute.

    Raises:
        BoxError: the box did not work.
    """
    command = ("go", "test", "-run", "^$", "./...")
    with scratch_folder("go") as place:
        session, completed = await BoxedRunner.under(place, asked).build(check=True)
    tail, memory = records.rendered(session), known_subtests.Memory(None)
    project = _project(session, completed, asked)
    if isinstance(project, Unusable):
        return nothing(project, completed, command=command, tail=tail)
    return records.observe(
        project, session.last, frozenset(), memory, trace=False, timed_out=False, command=command, tail=tail
    )


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
