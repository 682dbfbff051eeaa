"""Runs one command of a project in the box, over a copy of a tree, with the tools of the project's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dispatch.redaction import redact
from pipeline.measure.measuring import UnmeasurableError, working_box
from pipeline.measure.repository_shown import with_repository
from pipeline.process import WORKSPACE, Command, Mount
from pipeline.programs import locate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeline.measure.measuring import MeasurementContext
    from pipeline.measure.project_tools import Kit
    from pipeline.process import Completed
    from pipeline.programs import Program


def program_for(ctx: MeasurementContext, word: str, kit: Kit | None) -> Program:
    """Return the host's program that a command starts with; the project's own tools are searched first.

    Raises:
        UserError: there is no such program, or it cannot be run.
        UnmeasurableError: it would bring along what git tracks.
    """
    folders = kit.folders if kit is not None else ()
    program = locate(word, ":".join((*map(str, folders), ctx.search_path)))
    if (shown := _tracked_folder(ctx, program, kit)) is not None:
        why = f"{shown} is tracked, and would be shown with all that is ignored in it; use one that is not"
        raise UnmeasurableError(f"the environment {why}")
    return program


async def run_in_copy(
    ctx: MeasurementContext,
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
    with working_box():
        completed = await with_repository(ctx.box, folder).run(command)
    said = (redact(each, ctx.secrets, shapes=shapes) for each in (completed.stdout, completed.stderr))
    output, errors = (each.decode(errors="replace").replace(f"{workspace}/", "") for each in said)
    return completed, output, errors


def _tracked_folder(ctx: MeasurementContext, program: Program, kit: Kit | None) -> Path | None:
    """Return a tracked folder that a program would bring into the box, beside the tests' environment; else None."""
    own = [env.prefix.resolve() for _, env in kit.parts] if kit is not None else []
    sources = [mount.source for mount in program.mounts if mount.source.is_dir()]
    others = [source for source in sources if not any(source.is_relative_to(prefix) for prefix in own)]
    return next((source for source in others if ctx.repository.tracked_in(source)), None)
