"""Table `[limits]`: how often a loop of the matrix may be taken, and how much a run may ask. Nothing performs I/O."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipeline.config.base_table import Table
from pipeline.config.work import Work
from pipeline.routing.matrix import BOUNDS, MAX_FIX_TASKS, MAX_TASKS
from pipeline.routing.vocabulary import Loop


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
