"""What `doctor` says about isolation: the box that is used and why no better one, and what a view costs here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.cli.reading import Check
from pipeline.config.model import SandboxMode
from pipeline.dispatch.box import refusal, try_boxes
from pipeline.dispatch.canary import INSTALL
from pipeline.dispatch.overlay import overlay_works

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.dispatch.box import Trial

_APPARMOR: Final = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")


async def check_isolation(mode: SandboxMode, state: Path) -> list[Check]:
    """Return what was found: the boxes are tried for real, since what one promises is proven by a probe or not at all.

    Args:
        mode: The configured one.
        state: The folder below which views are made; nothing is made there to find out.
    """
    if mode is SandboxMode.NONE:
        message = 'sandbox = "none": agents and tests run without isolation, with your rights'
        advice = 'install bubblewrap and set sandbox = "auto"'
        return [Check(id="sandbox", status="warn", message=message, advice=advice)]
    trials = await try_boxes(mode.value)
    if not trials or not trials[-1].proof.ok:
        error = refusal(trials, mode.value)
        return [Check(id="sandbox", status="fail", message=error.message, advice="; ".join(_hinted(error.actions)))]
    return [_used(trials), *_views(trials[-1], state)]


def _used(trials: Sequence[Trial]) -> Check:
    used = trials[-1]
    message = f"{used.what}: {used.proof.why}"
    better = [f"{trial.what} does not hold: {trial.proof.why}" for trial in trials[:-1]]
    advice = [trial.proof.advice for trial in trials[:-1] if trial.proof.advice]
    if used.box.name == "landlock":
        better = better or ["bubblewrap (bwrap) is not installed"]
        advice = advice or [INSTALL]
        message += "; it hides less than bubblewrap, and no role can have a network in it"
    if not better:
        return Check(id="sandbox", status="ok", message=message)
    return Check(id="sandbox", status="warn", message="; ".join([message, *better]), advice="; ".join(_hinted(advice)))


def _hinted(advice: Sequence[str]) -> list[str]:
    hint = _apparmor()
    known = any("AppArmor" in each for each in advice)
    return list(dict.fromkeys([*advice, *([hint] if hint and not known else [])]))


def _apparmor() -> str:
    try:
        restricted = _APPARMOR.read_text(encoding="ascii").strip() == "1"
    except OSError:
        return ""
    return "AppArmor restricts user namespaces here: give bwrap a profile with `userns,`" if restricted else ""


def _views(used: Trial, state: Path) -> list[Check]:
    there = next(parent for parent in (state, *state.parents) if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return []  # said by another check
    box = used.box
    fault = overlay_works(there, box.owner) if box.maps_paths else f"{box.name} shows the host's own paths"
    message = "overlays: a dispatch costs what it changes"
    if fault is not None:
        message = f"copies of the repository, one for each dispatch: {fault}"
    return [Check(id="views", status="ok", message=message)]
