"""`[budget]`: what a run may spend, all in all, and within it what roles and phases may.

Nothing here performs I/O; `runs.spending` keeps to it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipeline.config.base_table import Closed

Cost = Annotated[float, Field(gt=0, allow_inf_nan=False, description="USD")]
TokenCount = Annotated[int, Field(ge=1, description="Input and output tokens together")]


class Purse(Closed):
    """What may be spent; None = no limit but that of the dispatches."""

    cost_usd: Cost | None = None
    tokens: TokenCount | None = None


class RolePurses(Closed):
    """`[budget.roles.ROLE]`."""

    orchestrator: Purse = Purse()
    check: Purse = Purse()
    simplify: Purse = Purse()
    test: Purse = Purse()
    make: Purse = Purse()
    pm: Purse = Purse()


class PhasePurses(Closed):
    """`[budget.phases.PHASE]`: the phases of a run by name, as `routes` groups them."""

    plan: Purse = Purse()
    split: Purse = Purse()
    tests: Purse = Purse()
    make: Purse = Purse()
    review: Purse = Purse()
    publish: Purse = Purse()


class Budget(Purse):
    """`[budget]`: what a run may cost, all in all, and within it what roles and phases may."""

    roles: RolePurses = RolePurses()
    phases: PhasePurses = PhasePurses()
