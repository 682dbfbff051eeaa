"""The table `[gates]`: what people are asked, and what follows when nobody answers."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from pipeline.config.base_table import Table


class Gate(StrEnum):
    """The points where a run may stop for a person."""

    PLAN = "plan"
    SPLIT = "split"
    COMMIT = "commit"


class OnTimeout(StrEnum):
    """What follows when nobody answers in time; a gate is never approved by itself."""

    WAIT = "wait"
    REMIND = "remind"
    REJECT = "reject"
    ABANDON = "abandon"


class Gates(Table):
    """`[gates]`: what people are asked, and what follows when they do not answer in time."""

    timeout: Annotated[
        str | None,
        Field(
            pattern=r"^[1-9][0-9]{0,4}[mhd]$",
            description="How long an approval point waits: 30m, 72h, 3d; else for ever",
        ),
    ] = None
    on_timeout: Annotated[OnTimeout, Field(description="What happens after that time")] = OnTimeout.WAIT
    questions: Annotated[
        int, Field(ge=0, le=20, description="Questions of agents that a run may wait with; 0 allows none")
    ] = 0
    points: Annotated[
        tuple[Gate, ...], Field(description="Approval points of which you are told that the run passed them")
    ] = ()
