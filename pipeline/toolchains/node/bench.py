"""Where a JavaScript measurement is made: the box, the view with its packages, and a private folder.

For node's own runner there is one job for each test file, as `node --test` has it; vitest and jest start processes by
themselves and are one job.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.process import Command, Completed, Mount, Sandbox
from pipeline.programs import locate
from pipeline.toolchains import devshell
from pipeline.toolchains.installed import installed_mounts, linked
from pipeline.toolchains.node.messages import Session, read_session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.toolchains.node.command import Invocation
    from pipeline.toolchains.protocol import Environment, Selection, View

_PACKAGE: Final = "redfirst_node"
_PROGRAMS: Final = ("runner.py", "channel.py")
_SCRIPTS: Final = "js"
_OUTPUT: Final = 256_000_000
_GRACE_S: Final = 20.0
_RESTARTS: Final = {"node": 3, "vitest": 10, "jest": 10}
"""How many more processes there may be after tests that took theirs along."""


@dataclass(frozen=True)
class Bench:
    """Where one measurement is made."""

    sandbox: Sandbox
    view: View
    env: Environment
    place: Path

    @classmethod
    def under(cls, place: Path, sandbox: Sandbox, view: View, env: Environment) -> Bench:
        """Lay the folder out; the box may run as another user, and the parent is closed to everybody else."""
        package, shared = place / "program" / _PACKAGE, place / "shared"
        package.mkdir(parents=True)
        here = Path(__file__)
        for name in _PROGRAMS:
            shutil.copyfile(here.with_name(name), package / name)
        (package / "__init__.py").touch()
        shutil.copytree(here.with_name(_SCRIPTS), place / "program" / "js")
        for folder in (shared, shared / "cache"):
            folder.mkdir()
            folder.chmod(0o777)
        return cls(sandbox, view, env, place)

    @property
    def node(self) -> str:
        """Return the program."""
        return self.env.command[0]

    def script(self, name: str) -> str:
        """Return where one of our scripts is in the box."""
        return str(self.place / "program" / "js" / name)

    async def run(self, request: Mapping[str, object], limit_s: float) -> tuple[Session, Completed]:
        """Run our runner with its request, and return what it wrote."""
        nonce = secrets.token_hex(16)
        python = locate(sys.executable)
        program = self.place / "program"
        start = f"import sys; sys.path.insert(0, {str(program)!r}); from {_PACKAGE}.runner import main; main()"
        asked = {**request, "nonce": nonce, "timeout_s": limit_s}
        with linked(self.env, self.view, isolated=self.sandbox.maps_paths):
            completed = await self.sandbox.run(
                Command(
                    argv=python.argv("-I", "-S", "-c", start),
                    cwd=self.view.workspace,
                    mounts=(
                        self.view.mount,
                        *self._packages,
                        *self.env.mounts,
                        *(mount for mount in python.mounts if mount not in self.env.mounts),
                        Mount(program, program),
                        Mount(self.place / "shared", self.place / "shared", writable=True),
                    ),
                    env={"PATH": devshell.box_path(self.env.prefix, self.env.variables)},
                    stdin=json.dumps(asked).encode(),
                    timeout_s=limit_s + _GRACE_S,
                    output_limit=_OUTPUT,
                )
            )
        return read_session(completed.stdout, nonce), completed

    @property
    def _packages(self) -> tuple[Mount, ...]:
        if self.sandbox.maps_paths:
            return installed_mounts(self.env, self.view)
        return tuple(Mount(folder.path, folder.path) for folder in self.env.installed)

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment of the tests."""
        path = devshell.box_path(self.env.prefix, self.env.variables)
        programs = [str(self.view.workspace / folder.relative / ".bin") for folder in self.env.installed]
        return {**self.env.variables, **self.env.test_variables, "PATH": ":".join((*programs, path))}

    def plain(self, argv: Sequence[str], stdin: str = "") -> dict[str, object]:
        """Return how a program that is no test is started."""
        return {"argv": [self.node, *argv], "cwd": str(self.view.workspace), "env": self.variables, "stdin": stdin}

    def jobs(
        self, invocation: Invocation, files: Sequence[str], projects: Sequence[str], selection: Selection | None,
        *, trace: bool,
    ) -> list[dict[str, object]]:  # fmt: skip
        """Return how the tests are started.

        Args:
            invocation: How the project does it.
            files: The test files, for node's own runner.
            projects: Packages with a configuration of their own, for the others.
            selection: Which tests to run; all are listed.
            trace: Note what they touch.
        """
        request: dict[str, Any] = {
            "root": str(self.view.workspace),
            "ids": None if selection is None or selection.ids is None else sorted(selection.ids),
            "files": None if selection is None or selection.files is None else sorted(selection.files),
            "trace": trace,
        }
        if invocation.runner == "node":
            return [self._file(invocation, path, request) for path in files]
        more = {
            "arguments": list(invocation.arguments),
            "cache": str(self.place / "shared" / "cache"),
            "home": str(self.view.workspace / self._home(invocation.runner)),
            "projects": list(projects),
        }
        main = "vitest_main.mjs" if invocation.runner == "vitest" else "jest_main.cjs"
        argv = [self.node, *invocation.flags, self.script(main)]
        return [self._job(argv, {**request, **more}, invocation, hints=str(self.place / "shared" / "hints.jsonl"))]

    def _home(self, runner: str) -> str:
        """Return the folder of the package that has the runner installed."""
        having = (folder.relative for folder in self.env.installed if (folder.path / runner).exists())
        return str(Path(next(having, "node_modules")).parent)

    def _file(self, invocation: Invocation, path: str, request: dict[str, Any]) -> dict[str, object]:
        ids: list[str] | None = request["ids"]
        mine = ids if ids is None else [entry for entry in ids if entry.startswith(f"{path}::")]
        if request["files"] is not None and path not in request["files"]:
            mine = []
        ours = self.script("node_test.cjs")
        reporter = [f"--test-reporter={ours}", "--test-reporter-destination=stdout"]
        argv = [self.node, "--require", ours, *invocation.flags, *reporter, str(self.view.workspace / path)]
        return self._job(argv, {**request, "ids": mine, "files": None, "path": path}, invocation, path=path)

    def _job(
        self, argv: list[str], request: dict[str, Any], invocation: Invocation, *, path: str = "", hints: str = ""
    ) -> dict[str, object]:
        return {
            "argv": argv,
            "cwd": str(self.view.workspace),
            "env": {**self.variables, "REDFIRST_CHANNEL": "3,4"},
            "request": request,
            "file": path,
            "hints": hints or None,
            "restarts": _RESTARTS[invocation.runner],
        }
