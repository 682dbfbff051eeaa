"""What is done at the same time comes back in order, and fails as one."""

from __future__ import annotations

from functools import partial

import anyio
import pytest

from pipeline.measure.side_by_side import side_by_side


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


def test_what_one_raises_ends_the_others() -> None:
    async def fails(words: str) -> str:
        raise ValueError(words)

    with pytest.raises(ValueError, match=r"^no$"):
        anyio.run(side_by_side, [anyio.sleep_forever, partial(fails, "no")])
