"""Everything else that reads what an agent or a user wrote, against programs that were not written here."""

from __future__ import annotations

import os

import pytest
from fuzz import judges
from fuzz.targets import TARGETS
from hypothesis import given, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("REDFIRST_FUZZ_EXAMPLES", "1500"))


@pytest.mark.slow
@pytest.mark.parametrize("target", [name for name in TARGETS if name != "regions"])
@settings(max_examples=EXAMPLES, deadline=None, derandomize="REDFIRST_FUZZ_EXAMPLES" not in os.environ)
@given(st.integers(0, 15), st.integers(0, 7), st.binary(max_size=4) | st.binary(max_size=14))
@pytest.mark.broad
def test_nothing_breaks_and_nothing_is_taken_that_others_refuse(target: str, frame: int, raw: int, data: bytes) -> None:
    TARGETS[target](bytes([2 * frame + (raw == 0)]) + data)


@pytest.mark.parametrize("path", [".git/config", "a/.GIT/x", "git~1", ".git . .", "a/.g\u200cit", "..", "a//b", "/a"])
def test_git_is_a_judge_that_refuses(path: str) -> None:
    assert not judges.git_takes(path)
    assert judges.git_takes("src/a.py")


def test_bash_is_a_judge_that_splits_words() -> None:
    assert judges.bash_words("pytest -k 'a or b' \"c d\"") == ("pytest", "-k", "a or b", "c d")
    assert judges.bash_words("ls {a,b}") == ("ls", "a", "b")
    assert judges.bash_words("ls; id") is None
