"""The rules of the house that can be counted."""

from __future__ import annotations

import re
from typing import Final

from house.documents import ROOT

PROMISES: Final = ROOT / "docs" / "testing.md"


def test_the_tests_that_hold_a_promise_are_there() -> None:
    rows = [line.rsplit("|", 2)[1] for line in PROMISES.read_text(encoding="utf-8").splitlines() if "|" in line]
    named = [name for row in rows for name in re.findall(r"`([\w/]+(?:\.py)?)`", row)]
    assert len(named) > 40
    assert [name for name in named if not (ROOT / "tests" / name).exists()] == []
