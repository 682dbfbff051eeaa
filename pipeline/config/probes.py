"""Table `[probes]`: how GREEN tests of a task are tried out, and how long that may take."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipeline.config.base_table import Seconds, Table


class Probes(Table):
    """`[probes]`: which probes run, and their limits."""

    revert: Annotated[bool, Field(description="The accepted tests must still be RED over the old production")] = True
    reach: Annotated[bool, Field(description="Say which tests of the task enter none of the changed code")] = True
    mutants: Annotated[
        int, Field(ge=0, le=500, description="Faults that are put into changed lines, one at a time; 0 for none")
    ] = 12
    seconds: Annotated[Seconds, Field(description="Seconds that these may take for one task")] = 60
    jobs: Annotated[
        int, Field(ge=0, le=16, description="Faults that are tried side by side; 0 is one for each core")
    ] = 0
    repeat: Annotated[
        int, Field(ge=1, le=10, description="How often the task's tests must be GREEN; 1 for no repetition")
    ] = 2
