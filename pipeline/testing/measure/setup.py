"""Runs `[toolchains.NAME] setup` once per run, in the private checkout on the host, before any agent (contract 4).

What it makes beside the tracked files (an environment, installed packages) is where `measuring.environment` looks for
the toolchain's environment from then on. What it prints is kept beside the checkout, and in the run where there is one.
"""

from __future__ import annotations

import os
from collections import Counter
from subprocess import STDOUT
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import anyio

from pipeline.run.files import write_atomic
from pipeline.sandbox.redaction import redact
from pipeline.testing.languages.environments.devshell import answer_of
from pipeline.testing.languages.projects.combined import projects_in
from pipeline.testing.measure.measuring import MeasurementContext, UnmeasurableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from pipeline.testing.languages.projects.project import Project

_LIMIT_S: Final = 1800.0
_TAIL: Final = 2000
_KEPT: Final = 1_000_000


async def run_once(ctx: MeasurementContext, keep: Callable[[str, bytes], object] | None = None) -> None:
    """Run the setup command of each toolchain in use, unless this checkout has had it; another command is run, too.

    It widens (it runs outside the box), so from a repository it counts only after `redfirst trust`.

    Args:
        ctx: Where it runs.
        keep: Takes what was printed, as an artifact, where there is a run.

    Raises:
        UnmeasurableError: one failed, or took longer than half an hour.
    """
    for project, name in _prepared(projects_in(ctx.toolchain)):
        argv = ctx.config.toolchains.settings_of(project.name).setup
        done = ctx.checkout.root / f"setup-{quote(name, safe=' ')}.done"
        line = f"{' '.join(argv or ())}\n"
        if argv is None or (done.exists() and done.read_text(encoding="utf-8") == line):
            continue
        what = f"setup of {name}: {' '.join(argv)}"
        ctx.say(f"    {what} ...")
        with ctx.progress.doing(what) as took:
            try:
                await _run(ctx, project.prepared_in, quote(name, safe=" "), argv, keep)
            finally:
                ctx.checkout.seal()  # half an environment is not an agent's work either
        write_atomic(done, line)
        ctx.say(f"    setup of {name}: done ({took})")


def _prepared(projects: Iterable[Project]) -> Iterator[tuple[Project, str]]:
    """Yield a project for each folder in which something is prepared, and a name; members of a workspace share one."""
    places = {(one.name, one.prepared_in): one for one in projects}
    several = Counter(name for name, _ in places)
    for (name, folder), project in places.items():
        yield project, name if several[name] == 1 or not folder else f"{name} in {folder}"


async def _run(
    ctx: MeasurementContext, inside: str, name: str, argv: Sequence[str], keep: Callable[[str, bytes], object] | None
) -> None:
    shown, log = " ".join(argv), ctx.checkout.root / f"setup-{name}.log"
    folder = ctx.checkout.tree / inside
    try:
        with log.open("wb") as output, anyio.fail_after(_LIMIT_S):
            code, _ = await answer_of(argv, folder=folder, environ=ctx.environ, stdout=output.fileno(), stderr=STDOUT)
    except TimeoutError as error:
        raise UnmeasurableError(f"setup {shown} took longer than {_LIMIT_S:.0f} s; see {log}") from error
    except OSError as error:
        raise UnmeasurableError(f"setup {shown} could not be started: {error}") from error
    finally:
        said = redact(_end_of(log), ctx.secrets)
        if keep is not None:
            keep(f"evidence/setup-{name}.log", said)
    if code:
        raise UnmeasurableError(f"setup {shown} ended with {code}: {said.decode(errors='replace')[-_TAIL:].strip()}")


def _end_of(log: Path) -> bytes:
    """Return the end of the command's output, and cut the file to that."""
    with log.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _KEPT))
        said = file.read()
        if size > _KEPT:
            file.seek(0)
            file.write(said)
            file.truncate()
    return said
