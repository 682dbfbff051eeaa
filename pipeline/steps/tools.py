"""The project's own tools inside an agent's box: its interpreter, its environment, at the paths that it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.steps.measuring import environment
from pipeline.toolchains.protocol import View
from pipeline.toolchains.pytest import editable_mounts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.process import Mount
    from pipeline.steps.context import Context


async def project_tools(ctx: Context) -> tuple[Callable[[Path, Path], tuple[Mount, ...]], dict[str, str]]:
    """Return what a role with a shell needs to run the project's tests: mounts by view, and variables.

    Raises:
        UnmeasurableError: the project has no test environment.
    """
    env = await environment(ctx)

    def mounts(host: Path, workspace: Path) -> tuple[Mount, ...]:
        return (*editable_mounts(env, View(host, workspace)), *env.mounts)

    search_path = f"{env.prefix / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    return mounts, {"PATH": search_path, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}
