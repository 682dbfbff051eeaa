from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.matrix.scheduling.patterns import LONGEST, fault, parsed

NAMES = ("a", "b", "ab", "A", "\u00e9")
PARTS = st.sampled_from([*NAMES, "*", "?", "**", "a*", "*b", "a?", "?*"])
TEXTS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
PATHS = ["/".join(parts) for length in (1, 2, 3) for parts in product(("a", "b", "ab", "ba", "\u00e9"), repeat=length)]


def covers(parts: list[str], names: list[str]) -> bool:
    """Return the same as somebody else would find it: an oracle that shares no code."""
    if not parts:
        return not names
    if parts[0] == "**":
        return any(covers(parts[1:], names[at:]) for at in range(len(names) + 1))
    name = "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in parts[0])
    return bool(names) and bool(re.fullmatch(name, names[0], re.IGNORECASE)) and covers(parts[1:], names[1:])


@given(TEXTS)
def test_a_pattern_covers_what_its_words_say(text: str) -> None:
    parts = text.split("/") if set("*?") & set(text) else [*text.split("/"), "**"]
    pattern = parsed(text)
    for path in PATHS:
        assert pattern.covers(path) == covers(parts, path.split("/")), (text, path)


@given(TEXTS, TEXTS)
def test_two_patterns_that_cover_one_path_meet(left: str, right: str) -> None:
    one, other = parsed(left), parsed(right)
    assert one.meets(other) == other.meets(one)
    if any(one.covers(path) and other.covers(path) for path in PATHS):
        assert one.meets(other)


@pytest.mark.parametrize(
    ("left", "right", "meet"),
    [
        ("src", "src/a.py", True),
        ("src", "srcs", False),
        ("*.py", "a.*", True),
        ("a/*.py", "a/b/*.py", False),
        ("a/**/b", "a/b", True),
        ("a/**/b", "**/c/b", True),
        ("**/*", "x", True),
        ("?.py", "ab.py", False),
        ("SRC/A.py", "src/a.py", True),
        ("\u00e9.py", "e\u0301.py", True),
        ("a*b", "*c", False),
        ("**", "a", True),
    ],
)
def test_whether_two_patterns_meet(left: str, right: str, meet: bool) -> None:
    assert parsed(left).meets(parsed(right)) is meet


@pytest.mark.parametrize(
    "text",
    ["", "/etc", "a//b", "../a", "a/./b", "[ab]", "a\\b", ".git/config", ".GIT", ".workflow/x", "TODO/A.md", "todo",
     "a**", "a" * (LONGEST + 1)],
)  # fmt: skip
def test_what_is_no_pattern_is_refused_with_a_sentence(text: str) -> None:
    assert fault(text)
    with pytest.raises(ValueError, match=re.escape(str(fault(text)))):
        parsed(text)
