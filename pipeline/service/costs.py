"""What a run cost, by role and by phase: for `show`, and for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pipeline.runs.spending import by_phase, by_role
from pipeline.service.reading import CostLine

if TYPE_CHECKING:
    from pipeline.runs.run import Run
    from pipeline.runs.spending import Spent


def costs_of(run: Run) -> tuple[CostLine, ...]:
    """Return a line for each role, then one for each phase; empty while nobody asked a model."""
    lines = (
        *(_line("role", role, taken) for role, taken in by_role(run).items()),
        *(_line("phase", phase, taken) for phase, taken in by_phase(run).items()),
    )
    return lines if any(line.cost_usd is not None or line.tokens is not None for line in lines) else ()


def cost_text(line: CostLine) -> str:
    """Return the same for a person."""
    return f"{'@' if line.of == 'role' else 'phase '}{line.name}: {line.known}"


def _line(of: Literal["role", "phase"], name: str, taken: Spent) -> CostLine:
    known = taken.asked > 0
    return CostLine(
        of=of,
        name=name,
        dispatches=taken.dispatches,
        cost_usd=taken.cost_usd if known and not taken.unpriced else None,
        tokens=taken.tokens if known and not taken.uncounted else None,
        known=str(taken),
    )
