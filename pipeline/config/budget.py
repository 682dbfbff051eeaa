"""Table `[budget]`: what a run may spend in all, and within it what roles and phases may.

Nothing here performs I/O; `runs.spending` keeps to it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipeline.config.base_table import Table

Cost = Annotated[float, Field(gt=0, allow_inf_nan=False, description="USD that may be spent; else no limit")]
TokenCount = Annotated[int, Field(ge=1, description="Input and output tokens together; else no limit")]


class BudgetPart(Table):
    """The cost and tokens that may be spent; None means no limit but that of the dispatches."""

    cost_usd: Cost | None = None
    tokens: TokenCount | None = None


class RoleBudgets(Table):
    """`[budget.roles.ROLE]`: what each role may spend."""

    orchestrator: BudgetPart = BudgetPart()
    check: BudgetPart = BudgetPart()
    simplify: BudgetPart = BudgetPart()
    test: BudgetPart = BudgetPart()
    make: BudgetPart = BudgetPart()
    pm: BudgetPart = BudgetPart()
    explore: BudgetPart = BudgetPart()


class PhaseBudgets(Table):
    """`[budget.phases.PHASE]`: what each phase may spend; phases are named as `routes` groups them."""

    plan: BudgetPart = BudgetPart()
    split: BudgetPart = BudgetPart()
    tests: BudgetPart = BudgetPart()
    make: BudgetPart = BudgetPart()
    review: BudgetPart = BudgetPart()
    publish: BudgetPart = BudgetPart()


class Budget(BudgetPart):
    """`[budget]`: what a run may spend in all, and within it what roles and phases may."""

    roles: RoleBudgets = RoleBudgets()
    phases: PhaseBudgets = PhaseBudgets()
