"""Handles a model service out of reach: wait and ask again, then ask the next agent, and avoid the service for a while.

A circuit is open for a while after a service failed for good: the dispatches that follow go to a spare at once instead
of waiting for the same failure each. With no spare there is nothing to go to, and the service is asked all the same.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pipeline.dispatch.agent_choice import Choice


@dataclass
class Circuits:
    """Circuit breakers: which services failed a moment ago.

    Args:
        open_s: How long a circuit stays open, in seconds.
        clock: Seconds that only grow.
    """

    open_s: float
    clock: Callable[[], float] = time.monotonic
    _failed: dict[str, float] = field(default_factory=dict[str, float], init=False)

    def order(self, choices: Sequence[Choice]) -> Iterable[Choice]:
        """Return the choices whose circuit is closed; all of them if none is."""
        return [choice for choice in choices if not self._is_open(choice.circuit)] or choices

    def failed(self, choice: Choice) -> None:
        """Open the circuit of a choice that failed."""
        self._failed[choice.circuit] = self.clock()

    def worked(self, choice: Choice) -> None:
        """Close the circuit of a choice that worked."""
        self._failed.pop(choice.circuit, None)

    def _is_open(self, circuit: str) -> bool:
        since = self._failed.get(circuit)
        return since is not None and self.clock() - since < self.open_s
