"""A configuration of a stranger costs little time, however it is written, and its errors are told in few lines."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, cast

import pytest

from tests.config.reading import read, refused

if TYPE_CHECKING:
    from pathlib import Path

_QUICK_S: Final = 8.0


@pytest.mark.broad(but_first=3)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\n".join(f"a{number}.b = 1" for number in range(20_000)), id="20,000 unknown keys"),
        pytest.param(".".join(["a"] * 40_000) + " = 1", id="a key of 40,000 parts"),
        pytest.param("[" + ".".join(['"$"'] * 40_000) + "]", id="a table of 40,000 quoted parts"),
        pytest.param("a = [ { " + " . ".join(["a"] * 40_000) + " = 1 } ]", id="the key of an inline table"),
        pytest.param('a = """\n' + ".a" * 60_000 + '\n"""', id="a line that looks like a key"),
        pytest.param('a = "' + '\\"' * 200_000, id="a text of quotes without an end"),
        pytest.param('a = """' + '\\"""' * 200_000 + "\\", id="a long text of quotes without an end"),
        pytest.param("base = 0x" + "f" * 10_000, id="a number that has no text"),
    ],
)
@pytest.mark.slow
def test_a_hostile_configuration_is_refused_at_once(tmp_path: Path, text: str) -> None:
    began = time.process_time()
    error = refused(tmp_path, text)
    assert time.process_time() - began < _QUICK_S
    assert len(error.message.splitlines()) < 25
    assert len(error.message) < 6_500


@pytest.mark.broad
@pytest.mark.slow
def test_many_values_are_placed_at_once(tmp_path: Path) -> None:
    text = "[agents.env]\n" + "".join(f'A{number} = "1"\n' for number in range(10_000))
    began = time.process_time()
    loaded = read(tmp_path, text)
    assert time.process_time() - began < _QUICK_S
    assert str(loaded.origins["agents.env.A9999"]) == "redfirst.toml:10001"


def test_of_many_problems_twenty_are_told_and_the_others_counted(tmp_path: Path) -> None:
    error = refused(tmp_path, "\n".join(f"a{number} = 1" for number in range(30)))
    assert len(cast("list[object]", error.details["problems"])) == 20
    assert error.message.splitlines()[-1] == "And 10 more."


def test_text_with_many_dots_is_no_key(tmp_path: Path) -> None:
    dots = ".".join(["a"] * 500)
    strings = f'A = """\n\\"{dots}"" = 1\n"""""\nB = \'\'\'\n{dots} = 1\n\'\'\'\n'
    text = f"# {dots}\nbase = '{dots}' # {dots}\n[agents.env]\n{strings}"
    assert read(tmp_path, text).config.base == dots
