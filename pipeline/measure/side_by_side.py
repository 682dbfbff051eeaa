"""Runs several measurements at the same time; an error of one is raised as it is, not in an exception group."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

_Value = TypeVar("_Value")
_MOST: Final = 8
"""However many cores there are: each measurement has a copy of the project, and all that its tests start."""


def usable_cores() -> int:
    """Return how many cores this process may use, at most 8."""
    return min(len(os.sched_getaffinity(0)), _MOST)


async def side_by_side(calls: Sequence[Callable[[], Awaitable[_Value]]]) -> list[_Value]:
    """Return the results of the calls, in their order. If one raises, the others are cancelled and its error is raised.

    Raises:
        Exception: what the first that failed has raised.
    """
    found: dict[int, _Value] = {}
    failed: list[Exception] = []

    async def one(at: int, call: Callable[[], Awaitable[_Value]]) -> None:
        try:
            found[at] = await call()
        except Exception as error:  # noqa: BLE001  (raised below)
            failed.append(error)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for at, call in enumerate(calls):
            tasks.start_soon(one, at, call)
    if failed:
        raise failed[0]
    return [found[at] for at in range(len(calls))]
