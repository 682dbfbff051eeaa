"""Plugins that would split or repeat a measurement are calmed; those that a project does not load are left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from languages.direct import measure, write

from pipeline.judge.evidence.observation import Ended, RunState

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SEES = """
import os


def test_it_runs_in_the_only_process():
    assert "PYTEST_XDIST_WORKER" not in os.environ


def test_no_coverage_is_counted(pytestconfig):
    assert not pytestconfig.pluginmanager.hasplugin("_cov") or pytestconfig.option.no_cov
"""


def observe(folder: Path, options: str) -> list[Ended | None]:
    ini = f'[tool.pytest.ini_options]\naddopts = "{options}"\n'
    observed = measure(write(folder, {"pyproject.toml": ini, "test_it.py": SEES}))
    assert observed.state is RunState.COMPLETE
    return [record.outcome for record in observed.records.values()]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param("", id="nothing asked"),
        pytest.param("-n 2", id="workers"),
        pytest.param("-n 2 --cov=.", id="workers and coverage"),
        pytest.param("-p no:xdist", id="one plugin off"),
        pytest.param("-p no:xdist -p no:pytest_cov", id="both off"),
        pytest.param("--disable-plugin-autoload", id="none loaded"),
        pytest.param("--disable-plugin-autoload -p xdist.plugin -n 2", id="one loaded by its module"),
    ],
)
@pytest.mark.broad(but_first=1)
def test_every_choice_of_plugins_can_be_measured(tmp_path: Path, options: str) -> None:
    assert observe(tmp_path, options) == [Ended.PASSED, Ended.PASSED]
