"""Measures JavaScript tests in the box with node:test, vitest or jest; packages are shown inside the view.

What a run came to is recorded by scripts of ours (`js`) that node, vitest or jest load. Tested code shares its process
with some of them, so that a record cannot be written by accident or by printing, but code that sets out to change
node's own functions can make its tests pass; with vitest and jest it can also imitate what their processes tell each
other.

For node's own runner there is one job for each test file, as `node --test` has it; vitest and jest start processes by
themselves and are one job.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.judge.evidence.observation import Observation, RunState
from pipeline.process import Completed, Mount
from pipeline.sandbox.boxes.box_folder import BoxFolder
from pipeline.scratch import scratch_folder
from pipeline.testing.languages.environments import devshell
from pipeline.testing.languages.environments.installed import installed_mounts, linked
from pipeline.testing.languages.javascript import types
from pipeline.testing.languages.javascript.command import Invocation, Unknown, of_words
from pipeline.testing.languages.javascript.environment import home_of
from pipeline.testing.languages.javascript.project import files_with_tests, read_project
from pipeline.testing.languages.javascript.records import ADAPTER, Run
from pipeline.testing.languages.javascript.sources import Sources
from pipeline.testing.languages.runners import sessions
from pipeline.testing.languages.runners.sessions import Session, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.testing.languages.protocol import Environment, Measurement, Selection


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


_SCRIPTS: Final = "js"
_RESTARTS: Final = {"node": 3, "vitest": 10, "jest": 10}
"""The most new processes that are started after tests ended theirs, by runner."""


@dataclass(frozen=True)
class BoxedRunner(sessions.BoxedRunner):
    """The place of one measurement; `shared` is a folder that the runners share."""

    shared: BoxFolder

    @classmethod
    def under(cls, place: Path, asked: Measurement) -> BoxedRunner:
        """Create the place: our programs, and the runners' shared folder."""
        shared = BoxFolder.made(place, "shared")
        program = sessions.lay_out(place, "javascript", "runner.py", "channel.py")
        shutil.copytree(Path(__file__).with_name(_SCRIPTS), program / _SCRIPTS)
        shared.add("cache")
        return cls(asked, program, shared)

    @property
    def node(self) -> str:
        """Return the path of node."""
        return self.asked.env.command[0]

    def script(self, name: str) -> str:
        """Return the path of one of our scripts in the box."""
        return str(self.program / _SCRIPTS / name)

    async def run(self, request: Mapping[str, object]) -> tuple[Session, Completed]:
        """Run our program with a request, and return the records that it wrote."""
        path = {"PATH": devshell.box_path(self.asked.env.prefix, self.asked.env.variables)}
        shared = self.shared.mount(self.shared.path)
        with linked(self.asked.env, self.asked.view, isolated=self.asked.box.maps_paths):
            return await self.ask(request, self.asked.timeout_s, ADAPTER, path, shared, packages=self._packages)

    @property
    def _packages(self) -> tuple[Mount, ...]:
        if self.asked.box.maps_paths:
            return installed_mounts(self.asked.env, self.asked.view)
        return tuple(Mount(folder.path, folder.path) for folder in self.asked.env.installed)

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables of the tests."""
        path = devshell.box_path(self.asked.env.prefix, self.asked.env.variables)
        programs = [str(self.asked.view.workspace / folder.relative / ".bin") for folder in self.asked.env.installed]
        return {**self.asked.env.variables, **self.asked.env.test_variables, "PATH": ":".join((*programs, path))}

    def program_job(self, argv: Sequence[str], stdin: str = "") -> dict[str, object]:
        """Return the job that runs a program which is no test."""
        return {
            "argv": [self.node, *argv],
            "cwd": str(self.asked.view.workspace),
            "env": self.variables,
            "stdin": stdin,
        }

    def jobs(self, invocation: Invocation, files: Sequence[str], projects: Sequence[str]) -> list[dict[str, object]]:
        """Return the jobs that run the tests.

        Args:
            invocation: How the project does it.
            files: The test files, for node's own runner.
            projects: Packages with a configuration of their own, for the others.
        """
        selection = self.asked.selection
        request: dict[str, Any] = {
            "root": str(self.asked.view.workspace),
            "ids": None if selection is None or selection.ids is None else sorted(selection.ids),
            "files": None if selection is None or selection.files is None else sorted(selection.files),
            "trace": self.asked.trace,
        }
        if invocation.runner == "node":
            return [self._file(invocation, path, request) for path in files]
        more = {
            "arguments": list(invocation.arguments),
            "cache": str(self.shared.path / "cache"),
            "home": os.path.normpath(self.asked.view.workspace / home_of(invocation.runner, self.asked.env.installed)),
            "projects": list(projects),
        }
        main = "vitest_main.mjs" if invocation.runner == "vitest" else "jest_main.cjs"
        argv = [self.node, *invocation.flags, self.script(main)]
        return [self._job(argv, {**request, **more}, invocation, hints=str(self.shared.path / "hints.jsonl"))]

    def _file(self, invocation: Invocation, path: str, request: dict[str, Any]) -> dict[str, object]:
        ids: list[str] | None = request["ids"]
        mine = ids if ids is None else [entry for entry in ids if entry.startswith(f"{path}::")]
        if request["files"] is not None and path not in request["files"]:
            mine = []
        ours = self.script("node_test.cjs")
        reporter = [f"--test-reporter={ours}", "--test-reporter-destination=stdout"]
        argv = [self.node, "--require", ours, *invocation.flags, *reporter, str(self.asked.view.workspace / path)]
        return self._job(argv, {**request, "ids": mine, "files": None, "path": path}, invocation, path=path)

    def _job(
        self, argv: list[str], request: dict[str, Any], invocation: Invocation, *, path: str = "", hints: str = ""
    ) -> dict[str, object]:
        return {
            "argv": argv,
            "cwd": str(self.asked.view.workspace),
            "env": {**self.variables, "REDFIRST_CHANNEL": "3,4"},
            "request": request,
            "file": path,
            "hints": hints or None,
            "restarts": _RESTARTS[invocation.runner],
        }
