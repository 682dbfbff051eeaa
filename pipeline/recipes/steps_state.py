"""Holds how far the steps of a recipe are: what each reported, where one at work stands, what all came to."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  (read by pydantic)
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import Field

from pipeline.engine.machine import TRUNK, Event, Lane, LoopState
from pipeline.recipes.step_table import At, Checkpoint, StepSignal
from pipeline.safe_names import BareName, ObjectName

if TYPE_CHECKING:
    from collections.abc import Collection


class StepEvent(Event, frozen=True, extra="forbid"):
    """What a step reports.

    `items` is how many steps each `for_each` over its payload becomes, `areas` what each of these may change where that
    depends on its item. `tree` has the files as a writer left them; of what only reads there is none. `open_seams` are
    the seams that a role does not say it keeps to; None where the step says nothing of them now. `blockers` are the
    findings that are on record if its review ends with this.
    """

    signal: StepSignal
    items: dict[BareName, int] = Field(default_factory=dict)
    areas: dict[BareName, tuple[tuple[str, ...], ...]] = Field(default_factory=dict)
    tree: ObjectName | None = None
    open_seams: tuple[str, ...] | None = None
    blockers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StepLane(Lane):
    """A step at work: `at` is what it does now, `attempt` how often it was asked, `tree` what it has written so far.

    `open_seams` are those that it does not keep to, as it said last.
    """

    at: At
    attempt: int = 1
    tree: str | None = None
    open_seams: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StepsState(LoopState[StepLane]):
    """How far the steps are.

    Args:
        settled: How each step that is over stands, by its name.
        counts: How many steps each `for_each` has become.
        areas: What each of these may change, where that depends on its item.
        trees: The files as each writer that is over left them, by its name.
        open_seams: The seams that each step that is over does not keep to, by its name.
        blockers: The findings that the last review of each step that is over leaves open, where it leaves any.
    """

    settled: Mapping[str, Checkpoint] = field(default_factory=dict[str, Checkpoint])
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    areas: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict[str, tuple[tuple[str, ...], ...]])
    trees: Mapping[str, str] = field(default_factory=dict[str, str])
    open_seams: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    blockers: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def due(self, at_work: Collection[str]) -> tuple[str, ...]:
        """Return the lanes whose step may begin now; who waits for a person is not asked."""
        if len(self.lanes) == 1 and not self.settled:
            return () if TRUNK in at_work else (TRUNK,)
        return tuple(
            name for name, lane in self.lanes.items() if name != TRUNK and lane.gate is None and name not in at_work
        )
