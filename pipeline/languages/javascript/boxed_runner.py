"""Runs our programs for JavaScript in a box: the view with its packages, and a private folder.

For node's own runner there is one job for each test file, as `node --test` has it; vitest and jest start processes by
themselves and are one job.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.boxes.box_folder import BoxFolder
from pipeline.languages.environments import devshell
from pipeline.languages.environments.installed import installed_mounts, linked
from pipeline.languages.javascript.environment import home_of
from pipeline.languages.javascript.messages import ADAPTER
from pipeline.languages.runners import boxed_runner
from pipeline.process import Mount

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.languages.javascript.command import Invocation
    from pipeline.languages.protocol import Measurement
    from pipeline.languages.runners.sessions import Session
    from pipeline.process import Completed

_SCRIPTS: Final = "js"
_RESTARTS: Final = {"node": 3, "vitest": 10, "jest": 10}
"""The most new processes that are started after tests ended theirs, by runner."""


@dataclass(frozen=True)
class BoxedRunner(boxed_runner.BoxedRunner):
    """The place of one measurement; `shared` is a folder that the runners share."""

    shared: BoxFolder

    @classmethod
    def under(cls, place: Path, asked: Measurement) -> BoxedRunner:
        """Create the place: our programs, and the runners' shared folder."""
        shared = BoxFolder.made(place, "shared")
        program = boxed_runner.lay_out(place, "javascript", "runner.py", "channel.py")
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
