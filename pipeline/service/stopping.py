"""Stops a run that another process drives: asked once it lets agents answer, asked twice it ends what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from pipeline.errors import UserError
from pipeline.outcomes import Outcome, Reason, status_word
from pipeline.runs.activity_file import read_now
from pipeline.runs.lease import FileLease, driver_of
from pipeline.runs.recipe_run import load_run
from pipeline.service.drivers import stopped_within

if TYPE_CHECKING:
    from pathlib import Path

STOPS_S: Final = (3.0, 30.0)
"""How long a run is waited for after the first signal, which lets agents answer, and after the second."""
_AT_ONCE_S: Final = (1.0, 30.0)
"""The same where nobody is let answer: two signals at once would be one."""


class StoppedDocument(BaseModel):
    """How a run stands that was asked to stop. Where it is not `stopped` yet, `waits_for` says what it lets end."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

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
