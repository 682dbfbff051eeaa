"""The tables `[budget]`, `[limits]`, `[limits.work]`, `[probes]`, `[gates]`, `[fleet]`, and every table's base. No I/O.

The limits of loops are the matrix's own (`routing.matrix`), `run.spending` keeps to the budget.
"""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from pipeline.data_types import Frozen
from pipeline.matrix.routing.matrix import BOUNDS, MAX_FIX_TASKS, MAX_TASKS
from pipeline.vocabulary import Loop

Seconds = Annotated[int, Field(ge=1)]


class Table(Frozen):
    """A frozen table in which an unknown key is an error, so that a typo does not pass for a setting."""


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


def _limit(loop: Loop, says: str) -> int:
    limit = BOUNDS[loop].limit
    if limit is None:
        raise ValueError(f"{loop} is unbounded and cannot be configured")
    return Field(limit, description=says)


AtLeastOnce = Annotated[int, Field(ge=1)]
Times = Annotated[int, Field(ge=0)]


class Limits(Table):
    """`[limits]`: how often a loop may be taken (matrix 2); the defaults are the matrix's own."""

    plan_review: AtLeastOnce = _limit(Loop.PLAN_REVIEW, "Reviews of one plan; 3 reviews are 2 ways back")
    split_review: AtLeastOnce = _limit(Loop.SPLIT_REVIEW, "Reviews of the tasks of one plan")
    final_review: AtLeastOnce = _limit(Loop.FINAL_REVIEW, "Reviews of the result")
    hygiene: Times = _limit(Loop.HYGIENE, "Drafts that break a rule for drafts and go back")
    plan_rework: Times = _limit(Loop.PLAN_REWORK, "Ways back to the plan in a run")
    split_rework: Times = _limit(Loop.SPLIT_REWORK, "Ways back to the tasks with one plan")
    stub_retry: Times = _limit(Loop.STUB_RETRY, "Second tries at the stubs of a task")
    test_rewrite: Times = _limit(Loop.TEST_REWRITE, "Times that the tests of a task are written again")
    test_diagnosis: Times = _limit(Loop.TEST_DIAGNOSIS, "Diagnoses of what keeps a task from its tests or its code")
    test_design: Times = _limit(Loop.TEST_DESIGN, "Times that a diagnosis orders other tests")
    make_retry: Times = _limit(Loop.MAKE_RETRY, "Second tries of @make at the same tests")
    scope_amend: Times = _limit(Loop.SCOPE_AMEND, "Times that a task gets more files because an agent asks")
    seam: Times = _limit(Loop.SEAM, "Seams that are made so that a task can be tested")
    unnoticed_faults: Times = _limit(
        Loop.UNNOTICED_FAULTS, "Times that tests are written again because they notice no fault"
    )
    build: Times = _limit(Loop.BUILD, "Times that a measured mistake goes back to the one writer of `solo`")
    task_redo: Times = _limit(Loop.TASK_REDO, "Times that a task is done again over tasks accepted meanwhile")
    cosmetic: Times = _limit(Loop.COSMETIC, "Times that redfirst applies cosmetic edits of the final review itself")
    own_steps: Times = _limit(Loop.OWN_STEPS, "Times that a recipe's own steps write between tasks and review")
    tip_moved: Times = _limit(Loop.TIP_MOVED, "Times that commits are put on a branch that has moved again")
    reask: Times = _limit(Loop.REASK, "Times that an agent is asked again after an answer that does not count")
    unusable: AtLeastOnce = _limit(Loop.UNUSABLE, "Dispatches of one role in a row that do not count")
    dispatches: AtLeastOnce = _limit(Loop.DISPATCHES, "Dispatches of a run; 10 more are added for each task")
    max_tasks: Annotated[int, Field(ge=1, description="Tasks of one plan")] = MAX_TASKS
    parallel: Annotated[int, Field(ge=1, le=MAX_TASKS, description="Tasks that are worked on side by side")] = 3
    max_fix_tasks: Annotated[int, Field(ge=1, description="Fix tasks of one review cycle")] = MAX_FIX_TASKS
    work: Work = Work()


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


class Gate(StrEnum):
    """The points where a run may stop for a person."""

    PLAN = "plan"
    SPLIT = "split"
    COMMIT = "commit"


class OnTimeout(StrEnum):
    """What follows when nobody answers in time; a gate is never approved by itself."""

    WAIT = "wait"
    REMIND = "remind"
    REJECT = "reject"
    ABANDON = "abandon"


class Gates(Table):
    """`[gates]`: what people are asked, and what follows when they do not answer in time."""

    timeout: Annotated[
        str | None,
        Field(
            pattern=r"^[1-9][0-9]{0,4}[mhd]$",
            description="How long an approval point waits: 30m, 72h, 3d; else for ever",
        ),
    ] = None
    on_timeout: Annotated[OnTimeout, Field(description="What happens after that time")] = OnTimeout.WAIT
    questions: Annotated[
        int, Field(ge=0, le=20, description="Questions of agents that a run may wait with; 0 allows none")
    ] = 0
    points: Annotated[
        tuple[Gate, ...], Field(description="Approval points of which you are told that the run passed them")
    ] = ()


_PASSWORD = re.compile(r"\A\w+://[^/?]*:[^/?]*@|(?:\A|[\s?&])(?:ssl)?password\s*=")
_USER = re.compile(r"\A(\w+://)?[^@/]*@")


class Fleet(Table):
    """`[fleet]`: the hub and the queue of several machines. Only the user's own file may set it."""

    hub: Annotated[
        str | None,
        Field(min_length=1, description="The bare repository of all machines, as URL or path, the same on each"),
    ] = None
    postgres: Annotated[
        str | None,
        Field(min_length=1, description="The database of the queue, as libpq takes it; PGPASSWORD has the password"),
    ] = None
    wait_s: Annotated[
        float, Field(ge=0, le=86_400, description="Seconds for which a hub that is out of reach is tried")
    ] = 600

    @field_validator("hub", "postgres")
    @classmethod
    def _public(cls, text: str | None) -> str | None:
        if text is not None and _PASSWORD.search(text):  # the text itself is not repeated
            raise ValueError("a password does not belong here. Postgres takes PGPASSWORD or ~/.pgpass, git a helper")
        return text

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.postgres is not None and self.hub is None:
            raise ValueError("postgres needs hub, too: the hub says whose orders they are")
        return self

    @property
    def name(self) -> str:
        """Return what the repository is called on all machines, whoever asks the hub; empty without a hub."""
        plain = _USER.sub(r"\1", (self.hub or "").rstrip("/").removesuffix(".git"))
        name = re.sub(r"[^A-Za-z0-9_-]", "-", re.split(r"[/:]", plain)[-1])
        return f"{name}-{hashlib.sha256(plain.encode()).hexdigest()[:10]}" if plain else ""
