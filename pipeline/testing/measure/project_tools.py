"""Shows the project's own tools in a box: interpreters, compilers and environments, at their usual paths.

Of several languages an agent gets all. What a tool writes lies in the caches of the agent's role (`dispatch.caches`):
no variable of a measurement may send it elsewhere, and nothing of it is ever seen by a measurement.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence import written_ids
from pipeline.process import WORKSPACE, Command, Completed, Mount
from pipeline.programs import Program, locate
from pipeline.sandbox.redaction import redact
from pipeline.testing.languages.environments.devshell import SYSTEM_PATH
from pipeline.testing.languages.environments.installed import editable_mounts, editable_paths, installed_mounts
from pipeline.testing.languages.projects.combined import environment_of, projects_in
from pipeline.testing.languages.protocol import Environment, View
from pipeline.testing.languages.runners import chosen_tests
from pipeline.testing.languages.table import LANGUAGES
from pipeline.testing.measure import measuring

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pipeline.testing.languages.projects.project import Project


_CACHED: Final = ("CARGO_TARGET_DIR", "GOCACHE", "GOTMPDIR", "XDG_CACHE_HOME", "npm_config_cache")
"""The variables that name a tool's output folders; the caches of an agent's role set them."""


async def kit_of(ctx: measuring.MeasurementContext) -> Kit:
    """Return the tools of every toolchain in use.

    Raises:
        UnmeasurableError: the project has no test environment.
    """
    found = await measuring.environment(ctx)
    pairs = tuple((one, environment_of(found, one)) for one in projects_in(ctx.toolchain))
    return Kit(tuple((one, env) for one, env in pairs if env is not None))


async def tools_for(ctx: measuring.MeasurementContext, files: Iterable[str]) -> Callable[[Mount], Tools]:
    """Return a function from a view's mount to the tools that run the project's tests on it.

    Args:
        ctx: The run, or what measures without one.
        files: What is to be worked on.

    Raises:
        UnmeasurableError: the project has no test environment, or none for these files.
    """
    kit = await kit_of(ctx)
    measuring.require_measurable(await measuring.environment(ctx), ctx.toolchain, files)
    return kit.tools


@dataclass(frozen=True)
class Tools:
    """The mounts, variables and commands that a project's own tools need in a box.

    Args:
        mounts: Read-only mounts.
        env: Variables such as PATH.
        folders: Where the project's programs are on the host; no agent can write there.
        test_command: The toolchain's own command, an argv that runs with test ids behind it; empty if there is none.
        links: Installed packages that the tests find inside the view, where the box shows them through no mount.
    """

    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    folders: tuple[Path, ...] = ()
    test_command: tuple[str, ...] = ()
    links: tuple[Mount, ...] = ()


@dataclass(frozen=True)
class Kit:
    """The tools of all toolchains in use: projects with their environments."""

    parts: tuple[tuple[Project, Environment], ...]

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return the folders of the languages' programs on the host."""
        return tuple(dict.fromkeys(env.prefix / "bin" for _, env in self.parts))

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables of the languages and their development shells; the first language's win."""
        shells = (env.variables.get("PATH", "").split(":") for _, env in self.parts)
        path = (*map(str, self.folders), *(folder for shell in shells for folder in shell), *SYSTEM_PATH)
        found: dict[str, str] = {}
        for _, env in reversed(self.parts):
            found |= {name: value for name, value in env.variables.items() if name not in _CACHED}
        return {
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONNOUSERSITE": "1",
            **found,
            "PATH": ":".join(dict.fromkeys(filter(None, path))),
        }

    def tools(self, mount: Mount) -> Tools:
        """Return the tools for one view; a view mounted at its own path is in no isolating box."""
        isolated = mount.target != mount.reach
        mounts: list[Mount] = []
        paths: list[Path] = []
        packages: list[Mount] = []
        for project, env in self.parts:
            view = project.view(View(mount))
            installed = installed_mounts(env, view)
            mounts += [*editable_mounts(env, view), *(installed if isolated else ()), *env.mounts]
            paths += editable_paths(env, view, isolated=isolated)
            packages += installed
        variables = self.variables
        search = ":".join((*(str(shown.target / ".bin") for shown in packages), variables["PATH"]))
        found = {"PYTHONPATH": ":".join(map(str, paths))} if paths else {}
        command, more = self._test_command(mount)
        return Tools(
            mounts=tuple(dict.fromkeys((*mounts, *more))),
            env={**variables, **found, "PATH": search},
            folders=self.folders,
            test_command=command,
            links=() if isolated else tuple(packages),
        )

    def _test_command(self, mount: Mount) -> tuple[tuple[str, ...], tuple[Mount, ...]]:
        """Return an argv that runs tests when ids are appended, and the mounts that it needs.

        Any end of an id counts that one test has, and ids of projects in folders are translated.
        """
        python, script = locate(sys.executable), Path(chosen_tests.__file__)
        runners = json.dumps([_runner(project, env, mount) for project, env in self.parts])
        ours = (Mount(path, path) for path in (script, Path(written_ids.__file__)))
        return python.argv("-I", "-S", "-B", str(script), runners), (*python.mounts, *ours)


def _command(project: Project, env: Environment, mount: Mount) -> tuple[str, ...]:
    """Return the test command; it names the root for runners that would choose another one for single files."""
    language, workspace = LANGUAGES.get(project.name), project.view(View(mount)).workspace
    option = language.root_option if language is not None else ""
    ignored = project.nested if language is not None and language.ignore_option else ()
    without = (f"{language.ignore_option}={mount.target / folder}" for folder in ignored if language is not None)
    return (*env.command, *((f"{option}={workspace}",) if option else ()), *without)


def _runner(project: Project, env: Environment, mount: Mount) -> dict[str, object]:
    return {
        "name": project.name,
        "folder": project.folder,
        "mark": project.place.marks,
        "sources": project.toolchain.sources,
        "argv": _command(project, env, mount),
    }


def program_for(ctx: measuring.MeasurementContext, word: str, kit: Kit | None) -> Program:
    """Return the host's program that a command starts with; the project's own tools are searched first.

    Raises:
        UserError: there is no such program, or it cannot be run.
        UnmeasurableError: it would bring along what git tracks.
    """
    folders = kit.folders if kit is not None else ()
    program = locate(word, ":".join((*map(str, folders), ctx.search_path)))
    if (shown := _tracked_folder(ctx, program, kit)) is not None:
        why = f"{shown} is tracked, and would be shown with all that is ignored in it; use one that is not"
        raise measuring.UnmeasurableError(f"the environment {why}")
    return program


async def run_in_copy(
    ctx: measuring.MeasurementContext,
    folder: Path,
    program: Program,
    words: Sequence[str],
    kit: Kit | None,
    *,
    timeout_s: float,
    shapes: bool = False,
) -> tuple[Completed, str, str]:
    """Return the result of a command, and its output and errors without secrets.

    Args:
        ctx: The run, or what stands for one.
        folder: A copy that is lent out; the command works in it.
        program: What is started.
        words: Its arguments.
        kit: The project's tools; None where it has none.
        timeout_s: How long it may take.
        shapes: Whether what only looks like a key counts as a secret, too.

    Raises:
        UnmeasurableError: the box does not work.
    """
    workspace = ctx.box.inside(folder, WORKSPACE)
    view = Mount(folder, workspace, writable=True)
    tools = kit.tools(view) if kit is not None else None
    command = Command(
        argv=program.argv(*words),
        cwd=workspace,
        mounts=(view, *(tools.mounts if tools is not None else ()), *program.mounts),
        env=tools.env if tools is not None else {},
        timeout_s=timeout_s,
    )
    with measuring.working_box():
        completed = await measuring.with_repository(ctx.box, folder).run(command)
    said = (redact(each, ctx.secrets, shapes=shapes) for each in (completed.stdout, completed.stderr))
    output, errors = (each.decode(errors="replace").replace(f"{workspace}/", "") for each in said)
    return completed, output, errors


def _tracked_folder(ctx: measuring.MeasurementContext, program: Program, kit: Kit | None) -> Path | None:
    """Return a tracked folder that a program would bring into the box, beside the tests' environment; else None."""
    own = [env.prefix.resolve() for _, env in kit.parts] if kit is not None else []
    sources = [mount.source for mount in program.mounts if mount.source.is_dir()]
    others = [source for source in sources if not any(source.is_relative_to(prefix) for prefix in own)]
    return next((source for source in others if ctx.repository.tracked_in(source)), None)
