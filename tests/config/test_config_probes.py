"""`[probes]` and `[[quarantine]]`: an entry without an owner or an end is refused with its place."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest
from config.reading import read, refused

if TYPE_CHECKING:
    from pathlib import Path

ENTRY = """
[[quarantine]]
id = "tests/test_a.py::test_slow"
owner = "Ada"
expires = 2026-12-31
why = "needs the network"
"""


@pytest.mark.parametrize("expires", ["2026-12-31", '"2026-12-31"'])
def test_a_quarantine(tmp_path: Path, expires: str) -> None:
    loaded = read(tmp_path, ENTRY.replace("2026-12-31", expires))
    (entry,) = loaded.config.quarantine
    assert (entry.owner, entry.expires) == ("Ada", date(2026, 12, 31))
    assert loaded.values()["quarantine"] == [entry.model_dump(mode="json")]
    assert loaded.widening == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[probes]\nrepeat = 0\n", "probes.repeat"),
        ("[probes]\nmutants = 1000\n", "probes.mutants"),
        ('[probes]\nengine = "mutmut"\n', 'unknown key "engine"'),
        ("[probes]\nmutant = 3\n", 'Did you mean "mutants"'),
        (ENTRY.replace("2026-12-31", '"soon"'), "quarantine.0.expires"),
        (ENTRY.replace('"Ada"', '" "'), "quarantine.0.owner"),
        (ENTRY + 'until = "later"\n', "quarantine.0"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(tmp_path, text).message
