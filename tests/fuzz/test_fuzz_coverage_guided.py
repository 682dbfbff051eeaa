"""A taste of `make fuzz`: every target stands a few seconds of fuzzing that is led by coverage."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from fuzz import rustc
from fuzz.targets import TARGETS

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
