"""The reference shows what there is: keys of the configuration, each with a meaning, and events."""

from __future__ import annotations

from house import config_tables, event_table

from pipeline.config.keys import ANY, LEAVES
from pipeline.matrix.routing.render import refresh

MEND = "renew it with: PYTHONPATH=tests:. python tests/house/"


def test_the_page_of_the_configuration_shows_the_keys_that_there_are() -> None:
    text = config_tables.PAGE.read_text(encoding="utf-8")
    assert text == refresh(text, config_tables.blocks()), f"{MEND}config_tables.py"


def test_every_key_that_a_file_may_have_is_in_a_table() -> None:
    told = {key.strip("`") for rows in config_tables.tables().values() for key, *_ in rows}
    there = {next(word for word in reversed(path) if word != ANY) for path in LEAVES}
    assert there - told == {"quarantine"}, "its entries have a table of their own"


def test_every_key_has_a_meaning() -> None:
    assert not [(name, row[0]) for name, rows in config_tables.tables().items() for row in rows if not row[3]]


def test_the_page_of_events_shows_the_events_that_there_are() -> None:
    text = event_table.PAGE.read_text(encoding="utf-8")
    assert text == refresh(text, event_table.blocks()), f"{MEND}event_table.py"
