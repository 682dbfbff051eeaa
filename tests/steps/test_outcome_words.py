"""How tests ended, told so that the parts are the whole at a glance."""

from __future__ import annotations

import pytest

from pipeline.evidence.observation import Ended
from pipeline.measure.words import in_sum


@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        ([Ended.PASSED] * 20 + [None, None, Ended.SKIPPED], "23 tests: 20 passed, 2 did not run, 1 skipped"),
        ([Ended.TIMED_OUT], "1 test: 1 timed out"),
        ([], "0 tests"),
    ],
)
def test_the_parts_are_the_whole(outcomes: list[Ended | None], told: str) -> None:
    assert in_sum(outcomes) == told
