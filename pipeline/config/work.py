"""The table `[limits.work]`: what a worker of the queue may do at once."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from pipeline.config.base_table import Table
from pipeline.config.budget import Cost


class Overlap(StrEnum):
    """What is done with an order whose plan changes the same files as a driven run: begin it all the same, or wait."""

    GO = "go"
    WAIT = "wait"


class Work(Table):
    """`[limits.work]`: how many orders of the queue are driven at once, and when none is begun. Not of a repository."""

    jobs: Annotated[int, Field(ge=1, le=64, description="Drivers of all workers of this machine")] = 2
    per_repo: Annotated[int | None, Field(ge=1, le=64, description="Drivers of one repository")] = None
    per_provider: Annotated[int | None, Field(ge=1, le=64, description="Drivers that ask one provider")] = None
    cost_usd_day: Annotated[Cost | None, Field(description="USD for models in a day, in one repository")] = None
    min_free_mb: Annotated[int, Field(ge=0, description="Room on the disk below which none is begun")] = 1024
    overlap: Annotated[Overlap, Field(description="go; or wait for runs whose plans name the same files")] = Overlap.GO
