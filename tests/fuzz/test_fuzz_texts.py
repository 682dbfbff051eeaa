"""Everything that reads what an agent or a user wrote, against programs that were not written here; a taste of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from fuzz import judges, rustc
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


# --- a taste of `make fuzz`: a few seconds that are led by coverage


RUN = Path(__file__).with_name("run.py")


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris has no wheel for this Python or machine")
@pytest.mark.broad
def test_a_target_stands_three_seconds(target: str) -> None:
    if target == "regions" and not rustc.is_there():
        pytest.skip("there is no rustc; scripts/system-packages.sh installs it")
    done = subprocess.run(
        [sys.executable, str(RUN), "--seconds", "3", target], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout
    counted = re.fullmatch(rf"{target}: (\d+) inputs, nothing broke\n", done.stdout)
    assert counted is not None
    assert int(counted[1]) > 20


def test_an_unknown_target_is_refused_with_the_names_that_there_are() -> None:
    done = subprocess.run(
        [sys.executable, str(RUN), "nonsense"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 2
    assert all(name in done.stderr for name in TARGETS)
