"""Stops a run that another process drives: asked once it lets agents answer, asked twice it ends what they do."""

from __future__ import annotations

import os
import select
import signal
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.outcomes import Outcome, Reason, status_word
from pipeline.run.activity_file import read_now
from pipeline.run.lease import FileLease, driver_of
from pipeline.run.recipe_run import load_run
from pipeline.run.store import gone_on

if TYPE_CHECKING:
    from pathlib import Path


def ended_within(folder: Path, seconds: float) -> bool:
    """Return whether nobody drives a run any more; waited for so long at most."""
    driver = _driver(folder)
    if driver is None:
        return True
    try:
        waiting = select.poll()
        waiting.register(driver, select.POLLIN)
        return bool(waiting.poll(seconds * 1000))
    finally:
        os.close(driver)


def asked_to_stop(folder: Path) -> bool:
    """Ask the driver of a run to stop; return whether there is one."""
    driver = _driver(folder)
    if driver is None:
        return False
    try:
        signal.pidfd_send_signal(driver, signal.SIGTERM)
    except ProcessLookupError:
        return False
    finally:
        os.close(driver)
    return True


def stopped_within(folder: Path, *waits: float) -> bool:
    """Ask the driver of a run to stop, once for each wait, the second time at once; return whether nobody drives it."""
    return any(not asked_to_stop(folder) or ended_within(folder, seconds) for seconds in waits)


def _driver(folder: Path) -> int | None:
    """Return a descriptor of the process that drives a run, None where none does."""
    driver = driver_of(folder)
    handle = None if driver is None else driver.open()
    if handle is None or driver_of(folder) == driver:  # it was this very process that held the lease
        return handle
    os.close(handle)
    return None


STOPS_S: Final = (3.0, 30.0)
"""How long a run is waited for after the first signal, which lets agents answer, and after the second."""
_AT_ONCE_S: Final = (1.0, 30.0)
"""The same where nobody is let answer: two signals at once would be one."""


class StoppedDocument(Frozen):
    """How a run stands that was asked to stop. Where it is not `stopped` yet, `waits_for` says what it lets end."""

    schema_: Literal["redfirst.stopped/1"] = Field(default="redfirst.stopped/1", alias="schema")
    ok: Literal[True] = True
    run_id: str
    stopped: bool
    waits_for: tuple[str, ...]
    outcome: Outcome | None
    reason: Reason | None
    safe_next_actions: tuple[str, ...]


def stop(folder: Path, *, now: bool = False) -> StoppedDocument:
    """Ask the process that drives a run to stop, with everything kept so that the run can go on.

    Args:
        folder: Of the run.
        now: End what agents do at once, to be asked again; else they may answer first, since that is paid for.

    Raises:
        UserError: nobody drives the run, or a process of another machine or container does.
    """
    name = folder.name
    if not FileLease.is_held(folder):
        run = load_run(folder, driving=False)
        outcome = run.state.outcome
        how = "queued" if run.queued else status_word(outcome, run.state.reason) if outcome else "interrupted"
        if (host := gone_on(folder)) is not None:
            raise UserError(
                f"Nobody drives {name} here: {host} goes on with it. Stop it there.",
                Reason.SUPERSEDED,
                actions=("redfirst fleet runs",),
            )
        raise UserError(
            f"Nobody drives {name} ({how}), so there is nothing to stop.",
            Reason.USAGE,
            actions=(f"redfirst show {name}",),
        )
    if driver_of(folder) is None and FileLease.is_held(folder):
        raise UserError(
            f"The process that drives {name} cannot be seen from here. Stop it where it was started.",
            Reason.LOCKED,
            path=str(folder / "lock"),
            actions=(f"redfirst show {name}",),
        )
    stopped = stopped_within(folder, *(_AT_ONCE_S if now else STOPS_S[:1]))
    run = load_run(folder, driving=False)
    on = (f"redfirst resume {name}", f"redfirst abandon {name}")
    waits = (f"redfirst stop {name} --now", f"redfirst show {name} --log --follow")
    return StoppedDocument(
        run_id=name,
        stopped=stopped,
        waits_for=() if stopped else tuple(one.what for one in read_now(folder, run.journal.epoch)),
        outcome=run.state.outcome if stopped else None,
        reason=run.state.reason if stopped else None,
        safe_next_actions=() if run.state.has_ended else on if stopped else waits,
    )
