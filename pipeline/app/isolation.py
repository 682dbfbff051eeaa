"""Opens the box of a run, and says what it holds: to the run's journal and summary, and to `doctor`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipeline.agents.gateway.providers import require_providers
from pipeline.app.doctor_document import Check
from pipeline.config.model import BoxMode, Config
from pipeline.errors import UserError
from pipeline.judge.policy.roles import Network
from pipeline.outcomes import Reason
from pipeline.sandbox.boxes.box import ProvableBox, Trial, advice_of, hinted, open_box, refusal, try_boxes
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.sandbox.views.overlay import overlay_works
from pipeline.vocabulary import ISSUE_ROLES, Role

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


async def box_of(config: Config, roles: Sequence[Role] = ISSUE_ROLES) -> ProvableBox:
    """Return the box that a run with this configuration uses, which asks these roles.

    Raises:
        UserError: no box holds here, or the one that is asked for cannot keep the network of a role.
    """
    box = await open_box(config.sandbox.value)
    refuse_networks(config, box.networks, box.name, roles)
    return box


def refuse_networks(config: Config, networks: frozenset[str], box: str, roles: Sequence[Role] = ISSUE_ROLES) -> None:
    """Return when the box can keep the network of each of these roles.

    Raises:
        UserError: it cannot.
    """
    for role in roles:
        network = config.agent(role).reaches
        if network not in networks:
            raise UserError(
                f'@{role} has network = "{network}", which the box {box} cannot keep; bubblewrap can.',
                Reason.CONFIG,
                pointer=f"/agents/{role}/network",
                actions=("redfirst doctor",),
            )


def isolation(config: Config, box: ProvableBox, roles: Sequence[Role] = ISSUE_ROLES) -> dict[str, str]:
    """Return what isolates the agents of a run that asks these roles, and who may reach the network."""
    networks = sorted({config.agent(role).reaches.value for role in roles})
    facts = {"sandbox": box.name, "network": ", ".join(networks) or "none"}
    if box.owner is not None:
        facts["user"] = str(box.owner)
    if box.name == "none":
        facts["NOTHING WAS ISOLATED"] = "as configured; the network above is what was asked for, not what was kept"
    if out := [f"@{role}" for role in roles if config.agent(role).reaches is Network.OPEN]:
        facts["OPEN NETWORK"] = f"for {', '.join(out)}: what they can read they can send anywhere"
    return facts


async def check_isolation(mode: BoxMode, state: Path) -> list[Check]:
    """Return what was found: the boxes are tried for real, since what one promises is proven by a probe or not at all.

    Args:
        mode: The configured one.
        state: The folder below which views are made; nothing is made there to find out.
    """
    if mode is BoxMode.NONE:
        message = 'sandbox = "none": agents and tests run without isolation, with your rights'
        advice = 'install bubblewrap and set sandbox = "auto"'
        return [Check(id="sandbox", status="warn", message=message, advice=advice)]
    trials = await try_boxes(mode.value)
    if not trials or not trials[-1].proof.ok:
        error = refusal(trials)
        return [Check(id="sandbox", status="fail", message=error.message, advice=advice_of(trials))]
    return [_used(trials), *_views(trials[-1], state)]


def check_networks(config: Config, environ: Mapping[str, str]) -> list[Check]:
    """Return what would make a run refuse the networks of the roles; nothing where none of them has one."""
    roles = [role for role in ISSUE_ROLES if config.agent(role).reaches is not Network.NONE]
    if not roles:
        return []
    try:
        require_providers(config, environ)
        if config.sandbox is BoxMode.NONE:
            refuse_networks(config, NoBox.networks, config.sandbox)
    except UserError as error:
        return [Check(id="network", status="fail", message=error.message, advice="; ".join(error.actions))]
    said = ", ".join(f"@{role} {config.agent(role).reaches}" for role in roles)
    return [Check(id="network", status="ok", message=f"as configured: {said}")]


def _used(trials: Sequence[Trial]) -> Check:
    used = trials[-1]
    message = f"{used.what}: {used.proof.why}"
    better = [f"{trial.what} does not hold: {trial.proof.why}" for trial in trials[:-1]]
    advice = [trial.proof.advice for trial in trials[:-1] if trial.proof.advice]
    if not better:
        return Check(id="sandbox", status="ok", message=message)
    return Check(id="sandbox", status="warn", message="; ".join([message, *better]), advice="; ".join(hinted(advice)))


def _views(used: Trial, state: Path) -> list[Check]:
    there = next(parent for parent in (state, *state.parents) if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return []  # said by another check
    fault = overlay_works(there, used.box.owner)
    message = "overlays: a dispatch costs what it changes"
    if fault is not None:
        message = f"copies of the repository, one for each dispatch: {fault}"
    return [Check(id="views", status="ok", message=message)]
