"""Python projects tested with pytest: how a run is started in the box, and which files are tests.

The command line keeps the project's own configuration and takes away only what would stop early, reorder, parallelise
or measure coverage; the plugin's records are the result.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.boxes.box_folder import private_place
from pipeline.languages.environments import devshell
from pipeline.languages.environments.installed import editable_mounts, editable_paths
from pipeline.languages.limited_stubs import Scaffolding
from pipeline.languages.protocol import Cache, Environment, Missing, Selection, View
from pipeline.languages.python import bytecode, environment
from pipeline.languages.python.messages import Finished, Session
from pipeline.languages.python.records import observe
from pipeline.languages.python.scratch import (
    COMPILED,
    PLUGIN,
    TEMPORARY,
    Scratch,
    answer,
    asked_of,
    places,
    request,
    seconds_by_file,
)
from pipeline.languages.runners import durations
from pipeline.languages.runners.outcomes import TAIL, shortened
from pipeline.process import Box, Command, Completed, Mount

if TYPE_CHECKING:
    from pipeline.boxes.box_folder import BoxFolder
    from pipeline.evidence.observation import Observation

_MAX_CRASHES: Final = 3

_MARKS: Final = (
    "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg", "setup.py", "pyproject.toml",
    "conftest.py", "requirements.txt",
)  # fmt: skip
_CONTROL: Final = (
    "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "setup.cfg",
    "setup.py", "tox.ini", "noxfile.py", ".coveragerc", "sitecustomize.py", "usercustomize.py", "*.pth", "uv.lock",
    "poetry.lock", "requirements*.txt", ".python-version",
)  # fmt: skip


class PytestToolchain(Scaffolding):
    """The `Toolchain` of Python projects."""

    name = "pytest"
    sources: tuple[str, ...] = (".py",)
    stub = "raise NotImplementedError"
    stub_like = re.compile(r"\braise\s+NotImplementedError\b")
    stub_readers = ("pipeline.languages.python.stubs", "pipeline.languages.python.stub_pass")
    install_hint = "install Python (https://www.python.org) and pytest (`pip install pytest`)"

    def detect(self, worktree: Path) -> bool:
        """Return whether the folder looks like a Python project."""
        return any((worktree / mark).is_file() for mark in _MARKS) or any(
            next(worktree.glob(pattern), None) is not None for pattern in ("test_*.py", "tests/**/*.py", "test/**/*.py")
        )

    async def find_environment(
        self, worktree: Path, main: Path, configured: tuple[str, ...] | None, state: Path, search_path: str
    ) -> Environment | Missing:
        """Return the interpreter to test with; see `pytest.environment`."""
        return await environment.find_environment(worktree, main, configured, state, search_path)

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
        """Run the selected tests (None: all) and return what was observed.

        Everything is collected in any case, so the ids of the observation are complete. After a test that killed the
        process the rest is run in a new one, a few times.

        Args:
            box: Where it runs.
            view: The files; tests may write into them, so the view is disposable.
            env: From `find_environment`.
            selection: Which of the collected tests to run.
            trace: Note which production the tests reach; slow, for a few named tests.
            timeout_s: For all processes together.
            per_test_timeout_s: A limit for each test.
            cache: Compiled modules to share between runs; None compiles everything again.

        Raises:
            BoxError: the box did not work.
        """
        sessions: list[Session] = []
        done: set[str] = set()
        output = ""
        deadline = anyio.current_time() + timeout_s
        with private_place("redfirst-tests-") as place:
            scratch = Scratch.under(place)
            folders = places(view, env)
            filled: BoxFolder | None = None
            while True:
                nonce = secrets.token_hex(16)
                isolated = box.maps_paths
                asked = request(
                    view, env, selection, isolated=isolated, trace=trace, limit=per_test_timeout_s, done=done
                )
                folder = scratch.folder(len(sessions), cache, folders)
                filled = filled or folder
                left = max(1.0, deadline - anyio.current_time())
                command = replace(
                    _command(view, env, scratch, folder, cache, left, isolated=isolated),
                    request=asked_of(asked, nonce, folder, view),
                )
                completed = await box.run(command)
                output = _tail(completed, view)
                sessions.append(answer(completed, nonce))
                crashed = sessions[-1].unfinished
                if crashed is None or completed.timed_out or len(sessions) > _MAX_CRASHES:
                    break
                done |= {record.id for record in sessions[-1].records if isinstance(record, Finished)} | {crashed}
            if cache is not None and cache.warm:
                filled.keep(cache.folder, inside=COMPILED)
                bytecode.keep(cache.folder, folders, [mount.target for mount in env.mounts])
                durations.write(cache.folder, seconds_by_file(sessions))
        return observe(sessions, command=_shown(env, selection), tail=output)

    async def check_types(self, box: Box, view: View, env: Environment, *, timeout_s: float = 900.0) -> Observation:
        """Return what cannot be collected: Python has no type check of its own, and this loads every module in use.

        Raises:
            BoxError: the box did not work.
        """
        return await self.run_tests(box, view, env, Selection.nothing(), timeout_s=timeout_s)

    def is_test_path(self, path: str, observation: Observation) -> bool:
        """Return whether pytest collects the file, or would if it were new; a text with examples is one."""
        texts = {record.path for record in observation.records.values() if not record.path.endswith(self.sources)}
        places = {(PurePosixPath(text).parent, PurePosixPath(text).suffix) for text in texts}
        beside = (PurePosixPath(path).parent, PurePosixPath(path).suffix) in places
        return observation.layout.is_test(path) or beside

    def is_control_path(self, path: str) -> bool:
        """Return whether the file controls how tests run or what they import."""
        return any(fnmatchcase(PurePosixPath(path).name, pattern) for pattern in _CONTROL)


def _command(
    view: View,
    env: Environment,
    scratch: Scratch,
    folder: BoxFolder,
    cache: Cache | None,
    timeout_s: float,
    *,
    isolated: bool,
) -> Command:
    names = environment.PYTEST
    starts = (at for at, word in enumerate(env.command) if at and (word == "-m" or Path(word).name in names))
    at = next(starts, len(env.command))
    argv = (
        *env.command[:at],
        str(scratch.start),
        *env.command[at:],
        "-p",
        PLUGIN,
        f"--rootdir={view.workspace}",
        "--continue-on-collection-errors",
        "--maxfail=0",
        "-o",
        f"cache_dir={folder.path / 'pytest-cache'}",
    )
    caches = () if cache is None or cache.warm else (Mount(cache.folder, cache.folder),)
    # what is tested could leave compiled code for tests that are imported after it
    compiled = () if cache is not None and cache.warm else (Mount(folder.path / COMPILED, folder.path / COMPILED),)
    return Command(
        argv=argv,
        cwd=view.workspace,
        mounts=(
            view.mount,
            *editable_mounts(env, view),
            *env.mounts,
            Mount(scratch.program, scratch.program),
            folder.mount(folder.path),
            *compiled,
            *caches,
        ),
        env={
            **env.variables,
            "PATH": devshell.box_path(env.prefix, env.variables),
            "PYTHONPATH": ":".join(map(str, editable_paths(env, view, isolated=isolated))),
            "PYTHONPYCACHEPREFIX": str(folder.path / COMPILED),
            "PYTHONHASHSEED": "0",
            "NO_COLOR": "1",  # not --color, which is an unknown option under `-p no:terminal`
            "PYTHONNOUSERSITE": "1",
            "COVERAGE_FILE": str(folder.path / "coverage"),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(folder.path / "hypothesis"),
            "PYTEST_DEBUG_TEMPROOT": str(folder.path / TEMPORARY),
        },
        timeout_s=timeout_s,
    )


def _tail(completed: Completed, view: View) -> str:
    text = (completed.stdout + completed.stderr).decode("utf-8", "replace")
    return text.replace(f"{view.workspace}/", "")[-TAIL:]


def _shown(env: Environment, selection: Selection | None) -> tuple[str, ...]:
    """Return the command that runs the same tests, with the interpreter and options in use; long lists are cut."""
    chosen = sorted((selection and (selection.ids or selection.files)) or ())
    return (*env.command, *shortened(chosen))


TOOLCHAIN: Final = PytestToolchain()
