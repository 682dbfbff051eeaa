"""Lines for people: as wide as the terminal, broken between words, whole in a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit import make_project
from terminals import on_terminal

from pipeline.characters import columns
from pipeline.faces.cli.text import columned, wrapped

if TYPE_CHECKING:
    from pathlib import Path

PATH = "/home/somebody/state/redfirst/runs/0123456789abcdef/run-GAL-39/tree"


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("short", ["short"]),
        ("  one two three four five", ["  one two three four", "    five"]),
        ("- one two three four five", ["- one two three four", "  five"]),
        (f"see {PATH}, please", ["see", f"  {PATH},", "  please"]),
        ("look at it with redfirst show GAL-1", ["look at it with", " redfirst show GAL-1"]),
        ("look: git -C /w log A..B", ["look:", "  git -C /w log A..B"]),
        ("run this: redfirst show, twice", ["run this:", "  redfirst show,", "  twice"]),
        ("- redfirst run GAL-39 --set a=1 --set b=2", ["- redfirst run GAL-39 --set a=1 --set b=2"]),
        ("世界 世界 世界 世界 世界", ["世界 世界 世界 世界", "  世界"]),
        ("\x1b[32mone two three\x1b[0m four", ["\x1b[32mone two three\x1b[0m four"]),
        ("a    b    c    d    e    f", ["a    b    c    d", "  e    f"]),
        ("look (redfirst show), then go on", ["look", "  (redfirst show),", "  then go on"]),
        (
            "- git -C /w worktree remove /w && git -C /w branch -D b",
            ["- git -C /w worktree remove /w && git -C /w branch -D b"],
        ),
        ("one two: path/of/19--columns", ["one two:", " path/of/19--columns"]),
        ("tests: 1 passed (0.4 s)", ["tests: 1 passed", "  (0.4 s)"]),
    ],
)
def test_a_line_breaks_between_words_and_keeps_what_is_copied(line: str, lines: list[str]) -> None:
    assert wrapped(line, 20) == lines


def test_further_lines_of_a_row_keep_their_own_indent() -> None:
    rows = [("next", "redfirst show\n  says how it stands now")]
    assert columned(rows, 22) == ["  next  redfirst show", "          says how it", "          stands now"]


@given(st.text(st.sampled_from("ab é世- "), max_size=80), st.integers(20, 40))
def test_no_word_is_lost_or_broken_and_no_line_is_too_wide(line: str, width: int) -> None:
    lines = wrapped(line, width)
    assert [word for part in lines for word in part.split()] == line.split()
    assert all(columns(part.rstrip()) <= width or len(part.split()) == 1 for part in lines)
    assert wrapped(line, None) == [line]


@pytest.mark.broad
@pytest.mark.slow
def test_an_error_fits_on_the_terminal_and_is_one_line_in_a_pipe(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    piped = project.redfirst("run", "GAL-404").stderr
    code, shown = on_terminal("run", "GAL-404", cwd=project.root, env=project.environment(), columns=40)
    assert code == 2
    assert len(shown.splitlines()) > len(piped.splitlines())
    assert all(len(line) <= 40 or "redfirst" in line for line in shown.splitlines()), shown
    assert shown.split() == piped.split()
