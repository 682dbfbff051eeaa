"""Measures JavaScript tests in the box with node:test, vitest or jest; packages are shown inside the view.

What a run came to is recorded by scripts of ours (`js`) that node, vitest or jest load. Tested code shares its process
with some of them, so that a record cannot be written by accident or by printing, but code that sets out to change
node's own functions can make its tests pass; with vitest and jest it can also imitate what their processes tell each
other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.evidence.observation import Observation, RunState
from pipeline.languages.javascript import types
from pipeline.languages.javascript.boxed_runner import BoxedRunner
from pipeline.languages.javascript.command import Unknown, of_words
from pipeline.languages.javascript.project import files_with_tests, read_project
from pipeline.languages.javascript.records import Run
from pipeline.languages.javascript.sources import Sources
from pipeline.languages.runners.outcomes import shortened
from pipeline.scratch import scratch_folder

if TYPE_CHECKING:
    from pipeline.languages.javascript.command import Invocation
    from pipeline.languages.protocol import Environment, Measurement, Selection


async def run_tests(asked: Measurement) -> Observation:
    """Run the selected tests and return the observation; the cache is not used.

    Every test file is loaded in any case, so the ids of the observation are complete. After a test that took its
    process along, or that had to be ended with it, the rest is run in another one, a few times.

    Raises:
        BoxError: the box did not work.
    """
    invocation, project = _invocation(asked.env), read_project(asked.view.host)
    command = _shown(invocation, asked.selection)
    if isinstance(project, str):
        return Observation(state=RunState.UNUSABLE, detail=project, command=command)
    sources = Sources.read(asked.view.host, project.names)
    own = [path for path in sources.files if not path.startswith(tuple(f"{one}/" for one in asked.elsewhere))]
    files = files_with_tests(own, invocation.arguments) if invocation.runner == "node" else []
    with scratch_folder("node") as place:
        runner = BoxedRunner.under(place, asked)
        jobs = runner.jobs(invocation, files, project.folders_with(invocation.runner, sources.files))
        request = {"do": "test", "jobs": jobs, "per_test_s": asked.per_test_timeout_s}
        session, completed = await runner.run(request)
    run = Run(sources, session, str(asked.view.workspace), invocation, asked.selection, asked.trace, str(place))
    return run.observe(timed_out=completed.timed_out, command=command)


async def check_types(asked: Measurement) -> Observation:
    """Return type errors (`tsc --noEmit`) and syntax errors as collection errors; nothing is run.

    Raises:
        BoxError: the box did not work.
    """
    project = read_project(asked.view.host)
    if isinstance(project, str):
        return Observation(state=RunState.UNUSABLE, detail=project)
    sources = Sources.read(asked.view.host, project.names)
    with scratch_folder("node") as place:
        runner = BoxedRunner.under(place, asked)
        plan = types.plan(runner, project, sources)
        session, completed = await runner.run({"do": "check", "jobs": plan.jobs})
    return types.observe(plan, session, sources, str(asked.view.workspace), timed_out=completed.timed_out)


def _invocation(env: Environment) -> Invocation:
    """Return the test command in the environment's own command.

    `find_environment` has made it, so that it names a runner.
    """
    invocation = of_words(("node", *env.command[1:]), {})
    assert not isinstance(invocation, Unknown), env.command  # noqa: S101  (see above)
    return invocation


def _shown(invocation: Invocation, selection: Selection | None) -> tuple[str, ...]:
    """Return the command that a person would type for the same test files; long lists are cut."""
    entries = (selection and (selection.ids or selection.files)) or ()
    paths = sorted({entry.partition("::")[0] for entry in entries})
    start = {"node": ("node", *invocation.flags, "--test"), "vitest": ("npx", "vitest", "run"), "jest": ("npx", "jest")}
    return (*start[invocation.runner], *shortened(paths or invocation.arguments))
