"""An edit that a reviewer asks for and our code makes: it changes what people read, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from types import CodeType
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.testing.languages.python.cosmetic import edited

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = b'''#!/usr/bin/env python3
"""Money.

>>> add(1, 2)
3
"""

import os  # noqa: F401

# adds to numbers
def add(a, b):  # type: (int, int) -> int
    total = a + b   # the sum
    if total < 0:  # pragma: no cover
        raise ValueError(f"{total = }")
    return total
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("adds to numbers", "Adds two numbers."),
        ("# adds to numbers\n", ""),
        ("# adds to numbers", "# Adds two numbers.\n# See the manual, page 3."),
        ("   # the sum", "  # the sum"),
        ("# the sum", "# la somme est \u00e9gale"),
        ("import os  # noqa: F401\n\n", "import os  # noqa: F401\n\n\n"),
        ("return total\n", "return total"),
        ("a + b", "a  +  b"),
    ],
)
def test_comments_and_blank_space_are_edited(old: str, new: str) -> None:
    result = edited(SOURCE, old, new)
    assert result == SOURCE.replace(old.encode(), new.encode())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("a + b", "a - b", id="code"),
        pytest.param("    return total\n", "    # return total\n", id="code into a comment"),
        pytest.param("# adds to numbers", "import sys", id="a comment into code"),
        pytest.param("# adds to numbers\n", "# x\nimport sys\n", id="a line more"),
        pytest.param("    return total", "return total", id="the block it belongs to"),
        pytest.param("Money.", "Monies.", id="a docstring"),
        pytest.param("add(1, 2)\n3", "add(1, 2)\n4", id="a doctest"),
        pytest.param("{total = }", "{total=}", id="space that an f-string prints"),
        pytest.param("# noqa: F401", "", id="a linter's order gone"),
        pytest.param("# noqa: F401", "# noqa", id="a linter's order widened"),
        pytest.param("# the sum", "# the sum  # type: ignore", id="a type checker's order"),
        pytest.param("(int, int) -> int", "(str, str) -> str", id="a type comment"),
        pytest.param("# the sum", "# pragma: no cover", id="coverage"),
        pytest.param("# the sum", "# nosec", id="a security linter"),
        pytest.param("# the sum", "# fmt: off", id="a formatter"),
        pytest.param("# the sum", "# pylint: disable=all", id="pylint"),
        pytest.param("# the sum", "# mypy: ignore-errors", id="mypy"),
        pytest.param("# adds to numbers", "# vim: set modeline:", id="an editor"),
        pytest.param("# adds to numbers", "# -*- mode: python -*-", id="another editor"),
        pytest.param(
            "# adds to numbers", "# /// script\n# dependencies = ['evil']\n# ///", id="a script's dependencies"
        ),
        pytest.param("import os  # noqa: F401\n", "import os\n# noqa: F401\n", id="an order moved to its own line"),
        pytest.param("#!/usr/bin/env python3", "#!/bin/sh", id="another interpreter"),
        pytest.param("#!/usr/bin/env python3", "\n#!/usr/bin/env python3", id="the interpreter not first any more"),
        pytest.param('"""Money.', '# coding: utf-7\n"""Money.', id="another encoding"),
        pytest.param("# adds to numbers", "# \u202eadds", id="direction"),
        pytest.param("# adds to numbers", "# a\u200bdds", id="without width"),
        pytest.param("# adds to numbers", "# adds\rimport os", id="a line end that some editors do not show"),
        pytest.param("# adds to numbers", "# \x1b[2Jadds", id="a terminal's order"),
        pytest.param("# adds to numbers", "# \x0cadds", id="a form feed"),
        pytest.param("not there", "x", id="nowhere"),
        pytest.param("total", "total", id="more than once"),
        pytest.param("a + b", "(a + b", id="no Python"),
    ],
)
def test_what_anything_else_would_notice_is_not_cosmetic(old: str, new: str) -> None:
    assert edited(SOURCE, old, new) is None


def test_a_place_that_overlaps_itself_is_there_twice() -> None:
    assert edited(b"# aaa\n", "aa", "b") is None


def test_an_encoding_that_is_not_utf8_is_left_alone() -> None:
    assert edited("# coding: latin-1\n# caf\u00e9\n".encode("latin-1"), "# caf", "# a caf") is None
    assert edited(b"# caf\xe9\n", "caf", "a caf") is None


def test_code_that_an_encoding_hides_in_a_comment_is_found(tmp_path: Path) -> None:
    hidden = b"# coding: utf-7\n# +AAo-print('ran')\n"
    (tmp_path / "hidden.py").write_bytes(hidden)
    shown = subprocess.run([sys.executable, tmp_path / "hidden.py"], capture_output=True, check=False).stdout
    assert edited(b"# coding: utf-8\n# +AAo-print('ran')\n", "utf-8", "utf-7") is None
    assert edited(b"#\n# +AAo-print('ran')\n", "#\n", "# coding: utf-7\n") is None
    assert shown in {b"ran\n", b""}, "some versions refuse it"


def test_line_ends_are_kept() -> None:
    dos = b"# won\r\nx = 1\r\n"
    assert edited(dos, "won", "one") == b"# one\r\nx = 1\r\n"
    assert edited(dos, "# won", "# one\n# two") is None
    assert edited(dos, "# won\r\n", "") is None


def test_a_mark_of_the_byte_order_is_kept() -> None:
    marked = b"\xef\xbb\xbf# won\nx = 1\n"
    assert edited(marked, "won", "one") == b"\xef\xbb\xbf# one\nx = 1\n"
    assert edited(marked, "\ufeff# won", "# one") is None
    assert edited(b"# won\n", "# won", "\ufeff# one") is None


def test_syntax_that_only_a_newer_python_has_is_not_brought_in() -> None:
    assert edited(b"x = f'{a[\"b\"]}'\n", "'{a[\"b\"]}'", '"{a["b"]}"') is None
    assert edited(b"x = 'a'\n", "'a'", '"a"') is None


def test_what_cannot_be_parsed_in_a_lifetime_is_refused() -> None:
    assert edited(b"# won\nx = " + b"(" * 5000 + b")" * 5000 + b"\n", "won", "one") is None
    assert edited(b"# won\n" + b"x = 1\n" * 200_000, "won", "one") is None


def test_a_script_block_is_untouchable_as_a_whole() -> None:
    script = b"# /// script\n# dependencies = []\n# ///\nx = 1  # won\n"
    assert edited(script, "[]", "['evil']") is None
    assert edited(script, "won", "one") is None


def code_of(source: bytes) -> tuple[object, ...]:
    def flat(code: CodeType) -> tuple[object, ...]:
        inner = (flat(const) if isinstance(const, CodeType) else repr(const) for const in code.co_consts)
        return (code.co_code, code.co_names, code.co_varnames, tuple(inner))

    return flat(compile(source, "x", "exec"))


PIECES = st.sampled_from(
    [
        "#",
        "\n",
        " ",
        "    ",
        "x",
        "=",
        "1",
        '"',
        "'",
        "(",
        ")",
        "\\",
        ":",
        "if",
        "# type: ignore",
        "f'{",
        "}",
        "\t",
        "a",
    ]
)


@given(st.integers(0, len(SOURCE)), st.integers(0, 12), st.lists(PIECES, max_size=6))
def test_whatever_is_accepted_compiles_to_the_same_code(at: int, length: int, new: list[str]) -> None:
    old = SOURCE[at : at + length].decode()
    result = edited(SOURCE, old, "".join(new))
    if result is not None:
        assert code_of(result) == code_of(SOURCE)
        assert result.count(b"type:") == SOURCE.count(b"type:")
