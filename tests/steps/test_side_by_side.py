"""What is done at the same time comes back in order, and fails as one."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import anyio
import pytest

from pipeline.testing.measure.mutation import side_by_side


def test_results_come_in_the_order_of_the_calls() -> None:
    first_may_end = anyio.Event()
    ended: list[str] = []

    async def first() -> str:
        await first_may_end.wait()
        ended.append("first")
        return "first"

    async def second() -> str:
        ended.append("second")
        first_may_end.set()
        return "second"

    assert anyio.run(side_by_side, [first, second]) == ["first", "second"]
    assert ended == ["second", "first"]


def test_so_many_at_a_time_as_there_are_cores_for_this_process() -> None:
    said = "from pipeline.testing.measure.mutation import usable_cores; print(usable_cores())"
    alone = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}}); {said}"
    told = [subprocess.check_output([sys.executable, "-c", code], text=True).strip() for code in (said, alone)]
    assert told == [str(min(len(os.sched_getaffinity(0)), 8)), "1"]


def test_what_one_raises_ends_the_others() -> None:
    async def fails(words: str) -> str:
        raise ValueError(words)

    with pytest.raises(ValueError, match=r"^no$"):
        anyio.run(side_by_side, [anyio.sleep_forever, partial(fails, "no")])
