"""Which box this machine offers: a kernel box that proved itself, or none if the user says so (architecture 6, Box)."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Protocol

from pipeline.dispatch import canary
from pipeline.dispatch.bubblewrap import Bubblewrap
from pipeline.dispatch.canary import Proof
from pipeline.dispatch.nobox import NoBox
from pipeline.errors import UserError
from pipeline.process import Sandbox
from pipeline.routing.vocabulary import Reason

if TYPE_CHECKING:
    from pathlib import Path


class Box(Sandbox, Protocol):
    """A sandbox that can say where it shows a path and prove that it holds."""

    maps_paths: bool
    """Whether mounts appear at their targets; if not, a command must use the host's own paths."""

    def inside(self, host: Path, target: Path) -> Path:
        """Return the path at which a command finds what is mounted from `host` at `target`."""
        ...

    async def canary(self) -> Proof:
        """Return whether the box keeps what it promises here, tried once for its life."""
        ...


async def open_box(setting: str) -> Box:
    """Return the box that the configuration asks for, proven when it is to isolate.

    Args:
        setting: `auto` or `none` (contract 4).

    Raises:
        UserError: bubblewrap is missing or does not hold here; the message says what to do.
    """
    if setting == "none":
        return NoBox()
    program = shutil.which("bwrap")
    if program is None:
        proof = Proof(ok=False, why="bubblewrap (bwrap) is not installed", advice=canary.INSTALL)
    else:
        box = Bubblewrap(program)
        proof = await box.canary()
        if proof.ok:
            return box
    raise UserError(
        f'Agents cannot be isolated here: {proof.why}. {proof.advice}, or set sandbox = "none" in your own '
        "configuration to run them without isolation.",
        Reason.CONFIG,
        pointer="/sandbox",
        actions=(proof.advice,),
    )
