"""Checks seams: contracts that one step provides and others require, and which a side does not keep to. Pure.

A side that is over keeps to a seam when it says so itself; one that nobody asks, when it is ready.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.recipes.machine import RecipeMachine
    from pipeline.recipes.model import Step
    from pipeline.recipes.steps_state import StepsState


@dataclass(frozen=True)
class Obligation:
    """A seam that not all sides keep to; `open` are the steps that do not, or have not come to say so."""

    seam: str
    provider: str
    consumers: tuple[str, ...]
    open: tuple[str, ...]


def seams_of(step: Step) -> tuple[str, ...]:
    """Return the seams of which a step is a side."""
    return tuple(dict.fromkeys((*step.provides, *step.requires)))


def honours(state: StepsState, name: str, seam: str) -> bool:
    """Return whether a step is over, can be built on, and keeps to a seam."""
    checkpoint = state.settled.get(name)
    return checkpoint is not None and checkpoint.is_usable and seam not in state.open_seams.get(name, ())


def broken_before(machine: RecipeMachine, state: StepsState, step: Step) -> tuple[str, ...]:
    """Return the steps before one that do not keep to a seam that it requires, all of them being over."""
    above = machine.ancestors(step.id)
    sides = dict.fromkeys(one for seam in step.requires for one in above if seam in seams_of(machine.steps[one]))
    return tuple(
        name
        for one in sides
        for name in machine.names(state, one)
        if not all(honours(state, name, seam) for seam in step.requires if seam in seams_of(machine.steps[one]))
    )


def obligations(machine: RecipeMachine, state: StepsState) -> tuple[Obligation, ...]:
    """Return the seams that are open, in the order of the file."""
    found: list[Obligation] = []
    for provider in machine.recipe.steps:
        for seam in provider.provides:
            consumers = tuple(step.id for step in machine.recipe.steps if seam in step.requires)
            names = [name for one in (provider.id, *consumers) for name in machine.names(state, one)]
            open_ = tuple(name for name in names if not honours(state, name, seam))
            if open_:
                found.append(Obligation(seam, provider.id, consumers, open_))
    return tuple(found)
