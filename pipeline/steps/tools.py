"""The project's own tools inside a box: its interpreter, its environment, at the paths that it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dispatch.request import Tools
from pipeline.steps.measuring import environment
from pipeline.toolchains.protocol import View
from pipeline.toolchains.pytest import editable_mounts, editable_paths

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.process import Mount
    from pipeline.steps.context import Context


async def project_tools(ctx: Context) -> Callable[[Mount], Tools]:
    """Return what it takes to run the project's tools on a view, given its folder and where the box shows it.

    Raises:
        UnmeasurableError: the project has no test environment.
    """
    env = await environment(ctx)
    isolated = ctx.sandbox.maps_paths
    variables = {
        "PATH": f"{env.prefix / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
    }

    def tools(mount: Mount) -> Tools:
        view = View(mount)
        paths = editable_paths(env, view, isolated=isolated)
        found = {"PYTHONPATH": ":".join(map(str, paths))} if paths else {}
        return Tools(
            mounts=(*editable_mounts(env, view), *env.mounts),
            env={**variables, **found},
            folders=(env.prefix / "bin",),
            test_command=env.command,
        )

    return tools
