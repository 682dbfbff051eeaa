"""`[toolchains.NAME] setup`: once per run, in the private checkout, on the host, before any agent (contract 4)."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.runs.files import write_atomic
from pipeline.steps.measuring import UnmeasurableError

if TYPE_CHECKING:
    from pipeline.steps.measuring import Apparatus

_LIMIT_S: Final = 1800.0
_TAIL: Final = 2000


async def run_once(ctx: Apparatus) -> None:
    """Run the configured setup command, unless that was done in this checkout.

    It widens (it runs outside the box), so from a repository it counts only after `redfirst trust`.

    Raises:
        UnmeasurableError: it failed, or took longer than half an hour.
    """
    argv = ctx.config.toolchains.of(ctx.toolchain.name).setup
    done = ctx.checkout.root / "setup.done"
    if argv is None or done.exists():
        return
    ctx.say(f"    setup: {' '.join(argv)}")
    try:
        with anyio.fail_after(_LIMIT_S):
            completed = await anyio.run_process(
                list(argv),
                cwd=ctx.checkout.tree,
                env=dict(ctx.environ),
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C at the terminal is for the driver, which knows a safe point
                check=False,
            )
    except TimeoutError as error:
        raise UnmeasurableError(f"setup {' '.join(argv)} took longer than {_LIMIT_S:.0f} s") from error
    except OSError as error:
        raise UnmeasurableError(f"setup {' '.join(argv)} could not be started: {error}") from error
    if completed.returncode:
        tail = completed.stdout.decode(errors="replace")[-_TAIL:]
        raise UnmeasurableError(f"setup {' '.join(argv)} ended with {completed.returncode}: {tail.strip()}")
    ctx.checkout.seal()
    write_atomic(done, f"{' '.join(argv)}\n")
