"""Chooses this machine's box: bubblewrap where it proved itself, or none if the user says so.

This is the one place that decides. A box is chosen by what a probe inside it could not do, never by the presence of a
program. Where none holds the run is refused: to have none is for the user to say.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.process import Box
from pipeline.sandbox.boxes import canary
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.canary import Proof
from pipeline.sandbox.boxes.limits import BOX_USER
from pipeline.sandbox.boxes.nobox import NoBox

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_APPARMOR: Final = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")


class ProvableBox(Box, Protocol):
    """A box that can prove on this machine that it isolates."""

    owner: int | None
    """The host user of the box's processes, None for the driver's own."""
    networks: frozenset[str]
    """The values of `network` that the box supports."""

    def inside(self, host: Path, target: Path) -> Path:
        """Return the path in the box of a file that is mounted from `host` at `target`."""
        ...

    async def canary(self) -> Proof:
        """Return the proof that the box isolates here; it is tried once for each box."""
        ...


@dataclass(frozen=True)
class Trial:
    """A box that was tried: its description for a person, and the proof."""

    what: str
    box: ProvableBox
    proof: Proof


async def try_boxes(setting: str) -> tuple[Trial, ...]:
    """Return the boxes that were tried, the strongest first; the last one is used, if its proof is ok.

    Args:
        setting: `auto`, `bubblewrap` or `none` (contract 4).
    """
    trials: list[Trial] = []
    for what, box in _candidates(setting):
        trials.append(Trial(what, box, await box.canary()))
        if trials[-1].proof.ok:
            break
    return tuple(trials)


async def open_box(setting: str) -> ProvableBox:
    """Return the box that the configuration asks for, after its proof.

    Args:
        setting: `auto`, `bubblewrap` or `none` (contract 4).

    Raises:
        UserError: no box holds here; the message says why and what to do.
    """
    trials = await try_boxes(setting)
    if trials and trials[-1].proof.ok:
        return trials[-1].box
    raise refusal(trials)


def refusal(trials: Sequence[Trial]) -> UserError:
    """Return the error for a machine where no box works: install bubblewrap, or allow it what it needs."""
    plain = _plain(trials)
    others = "".join(
        f" {trial.what} does not hold either: {trial.proof.why}." for trial in trials if trial.proof is not plain
    )
    return UserError(
        f"Agents cannot be isolated here: {plain.why}.{others} {advice_of(trials)}.",
        Reason.CONFIG,
        pointer="/sandbox",
        actions=("redfirst doctor",),
    )


def advice_of(trials: Sequence[Trial]) -> str:
    """Return what a person can do where no box works."""
    none = 'or set sandbox = "none" in your own configuration: then nothing is isolated'
    return "; ".join([*hinted([_plain(trials).advice]), none])


def _plain(trials: Sequence[Trial]) -> Proof:
    missing = Proof(ok=False, why="bubblewrap (bwrap) is not installed", advice=canary.INSTALL)
    return next((trial.proof for trial in trials if trial.box.owner is None), missing)


def hinted(advice: Sequence[str]) -> list[str]:
    """Return the advice, with AppArmor's settings added where these restrict user namespaces."""
    hints = list(dict.fromkeys(advice))
    if not any("AppArmor" in each for each in hints) and _restricts_namespaces():
        hints.append("AppArmor restricts user namespaces here: give bwrap a profile with `userns,`")
    return hints


def _restricts_namespaces() -> bool:
    try:
        return _APPARMOR.read_text(encoding="ascii").strip() == "1"
    except OSError:
        return False


def _candidates(setting: str) -> Iterator[tuple[str, ProvableBox]]:
    if setting == "none":
        yield "no box", NoBox()
        return
    program = shutil.which("bwrap")
    if program is not None:
        if os.getuid() == 0:
            yield f"bubblewrap as user {BOX_USER}", Bubblewrap(program, BOX_USER)
        yield "bubblewrap", Bubblewrap(program)
