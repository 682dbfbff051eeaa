"""Handles a model service out of reach: wait and ask again, then ask the next agent, and avoid the service for a while.

A circuit is open for a while after a service failed for good: the dispatches that follow go to a spare at once instead
of waiting for the same failure each. With no spare there is nothing to go to, and the service is asked all the same.

A limit of an account is something else: it ends at a moment that is known, and nothing is gained by asking before.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pipeline.reset_times import as_moment, as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pipeline.config.model import Outage
    from pipeline.dispatch.agent_choice import Choice

_PACE_S: Final = 1.0
"""A limit that has ended by what was said, and has not: so long is waited at least, and twice as long each time."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Circuits:
    """Circuit breakers: which services failed a moment ago, and which limit an account until when.

    Args:
        open_s: How long a circuit stays open, in seconds.
        clock: Seconds that only grow.
        now: Tells the time, by which limits end.
    """

    open_s: float
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = _now
    _failed: dict[str, float] = field(default_factory=dict[str, float], init=False)
    _limits: dict[str, datetime] = field(default_factory=dict[str, datetime], init=False)

    def order(self, choices: Sequence[Choice]) -> Iterable[Choice]:
        """Return the choices whose circuit is closed; all of them if none is."""
        return [choice for choice in choices if not self._is_open(choice.circuit)] or choices

    def failed(self, choice: Choice, not_before: str | None = None) -> None:
        """Open the circuit of a choice that failed, and keep when it may be asked again."""
        self._failed[choice.circuit] = self.clock()
        self._limits.pop(choice.circuit, None)
        if not_before is not None:
            self._limits[choice.circuit] = as_moment(not_before)

    def worked(self, choice: Choice) -> None:
        """Close the circuit of a choice that worked."""
        self._failed.pop(choice.circuit, None)
        self._limits.pop(choice.circuit, None)

    def limit(self, choice: Choice) -> datetime | None:
        """Return when the limit of a choice ends; None where none is known."""
        return self._limits.get(choice.circuit)

    def text_of(self, choice: Choice) -> str | None:
        """Return the same as records have it."""
        limit = self.limit(choice)
        return None if limit is None else as_text(limit)

    def limited_s(self, choice: Choice) -> float:
        """Return for how many seconds a choice is limited yet."""
        limit = self.limit(choice)
        return 0.0 if limit is None else max((limit - self.now()).total_seconds(), 0.0)

    def _is_open(self, circuit: str) -> bool:
        since, limit = self._failed.get(circuit), self._limits.get(circuit)
        failed = since is not None and self.clock() - since < self.open_s
        return failed or (limit is not None and limit > self.now())


@dataclass(frozen=True)
class Turn:
    """An agent that is asked next.

    Args:
        choice: Who.
        pause_s: How many seconds are waited before.
        until: When the limit ends that is waited for; None where something else went wrong.
    """

    choice: Choice
    pause_s: float = 0.0
    until: datetime | None = None


@dataclass
class Turns:
    """Says who is asked when, as long as nobody answers.

    Each agent is asked again after each pause of the configuration, then the next one. Who is limited for longer than
    such a pause is left alone; when all have been asked, the limit that ends first is waited for.

    Args:
        choices: All agents, in order.
        circuits: What is known of their services; told of each failure by whoever asks.
        outage: How long is waited.
    """

    choices: Sequence[Choice]
    circuits: Circuits
    outage: Outage

    def __iter__(self) -> Iterator[Turn]:
        for choice in self.circuits.order(self.choices):
            yield Turn(choice)
            for pause_s in self.outage.backoff_s:
                if self.circuits.limited_s(choice) > min(pause_s, self.outage.wait_s):
                    break
                yield Turn(choice, pause_s)
        yield from self._limited()

    def _limited(self) -> Iterator[Turn]:
        waited_s, pace_s = 0.0, _PACE_S
        while (choice := self.first) is not None:
            pause_s = max(self.circuits.limited_s(choice), pace_s)
            if waited_s + pause_s > self.outage.wait_s:
                return
            waited_s, pace_s = waited_s + pause_s, pace_s * 2
            yield Turn(choice, pause_s, self.circuits.limit(choice))

    @property
    def first(self) -> Choice | None:
        """Return whose limit ends first; None where no limit is known."""
        limited = [(limit, nth) for nth, one in enumerate(self.choices) if (limit := self.circuits.limit(one))]
        return self.choices[min(limited)[1]] if limited else None
