"""JavaScript and TypeScript projects tested with node:test, vitest or jest, whichever the project has.

node and the installed packages are found on the host; tests run in the box, where the packages are shown inside the
view. What a run came to is recorded by scripts of ours (`js`) that node, vitest or jest load. Tested code shares
its process with some of them, so that a record cannot be written by accident or by printing, but code that sets out to
change node's own functions can make its tests pass; with vitest and jest it can also imitate what their processes tell
each other.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from pipeline.boxes.box_folder import private_place
from pipeline.evidence.observation import Observation, RunState
from pipeline.languages.javascript import environment
from pipeline.languages.javascript.command import Unknown, of_words
from pipeline.languages.javascript.project import SOURCES, files_with_tests, read_project
from pipeline.languages.limited_stubs import Scaffolding
from pipeline.languages.runners.outcomes import shortened

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.languages.javascript.command import Invocation
    from pipeline.languages.protocol import Cache, Environment, Missing, Selection, View
    from pipeline.process import Box

_CONTROL: Final = (
    "package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "pnpm-workspace.yaml",
    "bun.lock", "bun.lockb", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".nvmrc", ".node-version",
    ".tool-versions", "node.config.json", "vite.config.*", "vitest.config.*", "vitest.workspace.*", "vitest.setup.*",
    "vitest.projects.*", "jest.config.*", "jest.setup.*", "jest.preset.*", "setuptests.*", "tsconfig.json",
    "tsconfig.*.json", "jsconfig.json", "babel.config.*", ".babelrc", ".babelrc.*", ".swcrc", ".env", ".env.*",
    "webpack.config.*", "rollup.config.*", "*.snap",
)  # fmt: skip
_CONTROL_FOLDERS: Final = frozenset({"__mocks__", "__snapshots__", "patches", ".yarn"})
"""`__mocks__` replaces modules by being there; `patches` changes installed packages."""


class NodeToolchain(Scaffolding):
    """The `Toolchain` of JavaScript and TypeScript projects."""

    name = "node"
    sources: tuple[str, ...] = SOURCES
    stub = 'throw new Error("not implemented")'
    stub_like = re.compile(r"\bthrow\s+(?:new\s+)?Error\(\s*[\"'`]not implemented")
    stub_readers = ("pipeline.languages.javascript.stubs", "pipeline.languages.javascript.stub_pass")
    install_hint = environment.HINT

    def detect(self, worktree: Path) -> bool:
        """Return whether the folder has a package.json."""
        return (worktree / "package.json").is_file()

    async def find_environment(
        self,
        worktree: Path,
        main: Path,
        configured: tuple[str, ...] | None,
        state: Path,  # noqa: ARG002  (nothing is installed)
        search_path: str,
    ) -> Environment | Missing:
        """Return node, the runner and the packages to test with; see `node.environment`."""
        return await environment.find_environment(worktree, main, configured, search_path)

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
        cache: Cache | None = None,  # noqa: ARG002  (what node, vitest and jest compile is a small part of a run)
    ) -> Observation:
        """Run the selected tests (None: all) and return what was observed.

        Every test file is loaded in any case, so the ids of the observation are complete. After a test that took its
        process along, or that had to be ended with it, the rest is run in another one, a few times.

        Args:
            box: Where it runs.
            view: The files; tests may write into them, so the view is disposable.
            env: From `find_environment`.
            selection: Which of the tests to run.
            trace: Note which functions, files and processes the tests reach; slow, for a few named tests.
            timeout_s: For everything together.
            per_test_timeout_s: A limit for each test.
            cache: Not used.

        Raises:
            BoxError: the box did not work.
        """
        # the parser is a shared library that only such projects need
        from pipeline.languages.javascript.bench import Bench  # noqa: PLC0415
        from pipeline.languages.javascript.records import Run  # noqa: PLC0415
        from pipeline.languages.javascript.sources import Sources  # noqa: PLC0415

        invocation, project = _invocation(env), read_project(view.host)
        command = _shown(invocation, selection)
        if isinstance(project, str):
            return Observation(state=RunState.UNUSABLE, detail=project, command=command)
        sources = Sources.read(view.host, project.names)
        files = files_with_tests(sources.files, invocation.arguments) if invocation.runner == "node" else []
        with private_place("redfirst-node-") as place:
            bench = Bench.under(place, box, view, env)
            projects = project.folders_with(invocation.runner, sources.files)
            jobs = bench.jobs(invocation, files, projects, selection, trace=trace)
            request = {"do": "test", "jobs": jobs, "per_test_s": per_test_timeout_s}
            session, completed = await bench.run(request, timeout_s)
        run = Run(sources, session, str(view.workspace), invocation, selection, trace, str(place))
        return run.observe(timed_out=completed.timed_out, command=command)

    async def check_types(self, box: Box, view: View, env: Environment, *, timeout_s: float = 900.0) -> Observation:
        """Return what does not type-check (`tsc --noEmit`) or cannot be parsed, as collection errors; nothing is run.

        Raises:
            BoxError: the box did not work.
        """
        from pipeline.languages.javascript import types  # noqa: PLC0415  (see run_tests)
        from pipeline.languages.javascript.bench import Bench  # noqa: PLC0415
        from pipeline.languages.javascript.sources import Sources  # noqa: PLC0415

        project = read_project(view.host)
        if isinstance(project, str):
            return Observation(state=RunState.UNUSABLE, detail=project)
        sources = Sources.read(view.host, project.names)
        with private_place("redfirst-node-") as place:
            bench = Bench.under(place, box, view, env)
            plan = types.plan(bench, project, sources)
            session, completed = await bench.run({"do": "check", "jobs": plan.jobs}, timeout_s)
        return types.observe(plan, session, sources, str(view.workspace), timed_out=completed.timed_out)

    def is_test_path(self, path: str, observation: Observation) -> bool:
        """Return whether the runner collects the file, or would if it were new."""
        return observation.layout.is_test(path)

    def is_control_path(self, path: str) -> bool:
        """Return whether the file controls how tests run, what is compiled for them, or what they import."""
        *folders, name = path.casefold().split("/")
        return not _CONTROL_FOLDERS.isdisjoint(folders) or any(fnmatchcase(name, pattern) for pattern in _CONTROL)


def _invocation(env: Environment) -> Invocation:
    """Return how the tests are run, out of the environment's own command.

    `find_environment` has made it, so that it names a runner.
    """
    found = of_words(("node", *env.command[1:]), {})
    assert not isinstance(found, Unknown), env.command  # noqa: S101  (see above)
    return found


def _shown(invocation: Invocation, selection: Selection | None) -> tuple[str, ...]:
    """Return the command a person would type for the same test files; long lists are cut."""
    entries = (selection and (selection.ids or selection.files)) or ()
    paths = sorted({entry.partition("::")[0] for entry in entries})
    start = {"node": ("node", *invocation.flags, "--test"), "vitest": ("npx", "vitest", "run"), "jest": ("npx", "jest")}
    return (*start[invocation.runner], *shortened(paths or invocation.arguments))


TOOLCHAIN: Final = NodeToolchain()
