"""`[probes]` and `[[quarantine]]`: an entry without an owner or an end is refused with its place."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest
from config.reading import read, refused

from pipeline.config.layers import Flags
from pipeline.config.tables import Probes

if TYPE_CHECKING:
    from pathlib import Path

ENTRY = """
[[quarantine]]
id = "tests/test_a.py::test_slow"
owner = "Ada"
expires = 2026-12-31
why = "needs the network"
"""


def test_the_defaults(tmp_path: Path) -> None:
    config = read(tmp_path).config
    assert config.probes == Probes()
    assert (config.probes.mutants, config.probes.seconds, config.probes.repeat) == (12, 60, 2)
    assert config.quarantine == ()


def test_keys_of_all_layers(tmp_path: Path) -> None:
    loaded = read(
        tmp_path,
        "[probes]\nmutants = 3\nrevert = false\n",
        environ={"REDFIRST_PROBES__SECONDS": "5"},
        flags=Flags.parse(["probes.repeat=3"]),
    )
    assert loaded.config.probes == Probes(mutants=3, revert=False, seconds=5, repeat=3)
    assert loaded.widening == ()


@pytest.mark.parametrize("expires", ["2026-12-31", '"2026-12-31"'])
def test_a_quarantine(tmp_path: Path, expires: str) -> None:
    loaded = read(tmp_path, ENTRY.replace("2026-12-31", expires))
    (entry,) = loaded.config.quarantine
    assert (entry.owner, entry.expires) == ("Ada", date(2026, 12, 31))
    assert loaded.values()["quarantine"] == [entry.model_dump(mode="json")]
    assert loaded.widening == ()


@pytest.mark.parametrize("key", ["id", "owner", "expires", "why"])
def test_an_entry_lacks_nothing(tmp_path: Path, key: str) -> None:
    lines = [line for line in ENTRY.splitlines() if not line.startswith(key)]
    message = refused(tmp_path, "\n".join(lines)).message
    assert f"quarantine.0.{key}" in message
    assert "redfirst.toml" in message


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
