"""docs/reference/configuration.md shows the keys that there are, each with a meaning."""

from __future__ import annotations

from house.config_tables import PAGE, blocks, tables

from pipeline.routing.render import refresh

MEND = "renew it with: PYTHONPATH=tests:. python tests/house/config_tables.py"


def test_the_page_shows_the_keys_that_there_are() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == refresh(text, blocks()), MEND


def test_every_key_has_a_meaning() -> None:
    assert not [(name, row[0]) for name, rows in tables().items() for row in rows if not row[3]]
