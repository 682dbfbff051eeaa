"""How far the steps of a recipe are: what a step reports, where one at work stands, what all of them came to."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  (read by pydantic)
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import Field

from pipeline.engine.machine import TRUNK, Event, Lane, LoopState
from pipeline.recipes.step_table import Checkpoint, StepSignal
from pipeline.safe_names import BareName

if TYPE_CHECKING:
    from collections.abc import Collection


class StepEvent(Event, frozen=True, extra="forbid"):
    """What a step reports. `items` is how many steps each `for_each` over its payload becomes."""

    signal: StepSignal
    items: dict[BareName, int] = Field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StepLane(Lane):
    """A step at work; `attempt` counts how often it was asked."""

    attempt: int = 1


@dataclass(frozen=True, kw_only=True)
class StepsState(LoopState[StepLane]):
    """How far the steps are.

    Args:
        settled: How each step that is over stands, by its name.
        counts: How many steps each `for_each` has become.
    """

    settled: Mapping[str, Checkpoint] = field(default_factory=dict[str, Checkpoint])
    counts: Mapping[str, int] = field(default_factory=dict[str, int])

    def due(self, at_work: Collection[str]) -> tuple[str, ...]:
        """Return the lanes whose step may begin now; who waits for a person is not asked."""
        if len(self.lanes) == 1 and not self.settled:
            return () if TRUNK in at_work else (TRUNK,)
        return tuple(
            name for name, lane in self.lanes.items() if name != TRUNK and lane.gate is None and name not in at_work
        )
