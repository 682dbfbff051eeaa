"""Plugins that would split or repeat a measurement are calmed; the package of one that is missing is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from languages.direct import context_of, files_of, measure, write
from languages.measured import ends

from pipeline.judge.evidence.compare import expectations, judge_green
from pipeline.judge.evidence.observation import Ended, RunState
from pipeline.judge.evidence.red import judge_red
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.languages.python.records import what_to_install

if TYPE_CHECKING:
    from pathlib import Path


def test_the_package_of_an_option_a_setting_and_a_module_is_named() -> None:
    for said, packages in {
        "python -m pytest: error: unrecognized arguments: --cov=app --cov-report=term": "pytest-cov",
        "pytest: error: unrecognized arguments: -n": "pytest-xdist",
        "pytest: error: unrecognized arguments: -nauto --dist": "pytest-xdist",
        "pytest: error: unrecognized arguments: --asyncio-mode=auto": "pytest-asyncio",
        "pytest: error: unrecognized arguments: --timeout=5 -n": "pytest-timeout and pytest-xdist",
        "pytest: error: unrecognized arguments: --reuse-db --ds=shop.settings": "pytest-django",
        "pytest: error: unrecognized arguments: --randomly-seed=1": "pytest-randomly",
        "ERROR: Error importing plugin \"xdist.plugin\": No module named 'xdist'": "pytest-xdist",
        "ERROR: Error importing plugin \"pytest_randomly\": No module named 'pytest_randomly'": "pytest-randomly",
        "ERROR: Unknown config option: asyncio_mode": "pytest-asyncio",
        "ERROR: Unknown config option: DJANGO_SETTINGS_MODULE": "pytest-django",
        "ERROR: Missing required plugins: pytest-bdd, pytest-cov": "pytest-bdd and pytest-cov",
    }.items():
        assert what_to_install(said) == f"Install {packages} where the project's tests run", said


def test_what_nobody_knows_is_not_guessed() -> None:
    assert "Install what brings it" in what_to_install("error: unrecognized arguments: --no-such-option")
    assert what_to_install("ImportError: No module named 'shop'") == ""


@pytest.mark.broad(but_first=1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "state", "package"),
    [
        ('addopts = "--disable-plugin-autoload --cov=app"', RunState.UNUSABLE, "pytest-cov"),
        ('addopts = "-p pytest_randomly"', RunState.UNUSABLE, "pytest-randomly"),
        ('addopts = "--disable-plugin-autoload --strict-config"\ntimeout = 5', RunState.CRASHED, "pytest-timeout"),
    ],
)
def test_an_observation_says_which_package_is_missing(
    tmp_path: Path, settings: str, state: RunState, package: str
) -> None:
    files = {"pyproject.toml": f"[tool.pytest.ini_options]\n{settings}\n", "test_it.py": "def test_it(): pass\n"}
    observed = measure(write(tmp_path, files), Selection.nothing())
    assert observed.state is state
    assert f"Install {package} where the project's tests run" in observed.detail


SEES = """
import os


def test_it_runs_in_the_only_process():
    assert "PYTEST_XDIST_WORKER" not in os.environ


def test_no_coverage_is_counted(pytestconfig):
    assert not pytestconfig.pluginmanager.hasplugin("_cov") or pytestconfig.option.no_cov
"""


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
@pytest.mark.slow
def test_every_choice_of_plugins_can_be_measured(tmp_path: Path, options: str) -> None:
    ini = f'[tool.pytest.ini_options]\naddopts = "{options}"\n'
    observed = measure(write(tmp_path, {"pyproject.toml": ini, "test_it.py": SEES}))
    assert observed.state is RunState.COMPLETE
    assert [record.outcome for record in observed.records.values()] == [Ended.PASSED, Ended.PASSED]


OTHER_WORDS = """
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if call.when == "call" and item.name.startswith("test_again"):
        report.outcome = "retried"
        item.ihook.pytest_runtest_logreport(report=report)
        report.outcome = "failed" if call.excinfo else "passed"
    elif call.when == "call" and item.name == "test_strange":
        report.outcome = "quarantined"


def pytest_report_teststatus(report):
    if report.outcome in ("retried", "quarantined"):
        return report.outcome, "R", report.outcome.upper()
"""


@pytest.mark.slow
def test_an_outcome_that_only_a_plugin_knows_spoils_no_run(tmp_path: Path) -> None:
    names = {"test_again": "True", "test_again_in_vain": "False", "test_strange": "True", "test_it": "True"}
    tests = "".join(f"def {name}():\n    assert {value}\n\n" for name, value in names.items())
    observed = measure(write(tmp_path, {"conftest.py": OTHER_WORDS, "test_it.py": tests}))
    assert observed.state is RunState.COMPLETE, observed.detail
    assert ends(observed) == {
        "test_again": Ended.PASSED,
        "test_again_in_vain": Ended.FAILED,
        "test_strange": Ended.FAILED,
        "test_it": Ended.PASSED,
    }


RUNS_AGAIN = """
import pytest
from _pytest.runner import runtestprotocol


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    again = [mark.kwargs for mark in item.iter_markers("flaky")]
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    while again and any(report.failed for report in reports):
        for report in reports if again[0]["told"] else ():
            report.outcome = "rerun" if report.failed else report.outcome
            item.ihook.pytest_runtest_logreport(report=report)
        again.pop()
        item._initrequest()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True


def pytest_report_teststatus(report):
    return ("rerun", "R", "RERUN") if report.outcome == "rerun" else None
"""
SHOP = "CALLS = []\n\n\ndef total(prices):\n    CALLS.append(1)\n    return {}\n"
FLAKY = """
import pytest
import shop


@pytest.mark.flaky(told={})
def test_total():
    assert shop.total([1, 2]) == 3
"""


@pytest.mark.slow
@pytest.mark.parametrize("told", [True, False], ids=["as pytest-rerunfailures", "as flaky"])
def test_a_new_test_that_passes_only_when_it_is_run_again_is_not_green_and_an_old_one_is_as_it_was(
    tmp_path: Path, *, told: bool
) -> None:
    settings = {"pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["flaky"]\n', "conftest.py": RUNS_AGAIN}
    before = write(tmp_path, {**settings, "shop.py": SHOP.format(0), "test_old.py": "def test_old(): pass\n"})
    base, existing = measure(before), files_of(before)
    root = write(before, {"test_new.py": FLAKY.format(told)})
    red = judge_red(base, measure(root), measure(root), context_of(base, existing), task="1", tree="red")
    assert red.legal, red
    sometimes = measure(write(root, {"shop.py": SHOP.format("sum(prices) if len(CALLS) % 2 == 0 else 0")}))
    assert ends(sometimes) == {"test_total": Ended.PASSED, "test_old": Ended.PASSED}
    assert judge_green(red.ledger, sometimes, expectations(base)).not_green == ("test_new.py::test_total",)
    assert judge_green(None, sometimes, expectations(sometimes)).green, "an old test with such a mark"
    always = measure(write(root, {"shop.py": SHOP.format("sum(prices)")}))
    assert judge_green(red.ledger, always, expectations(base)).green
    assert judge_green(None, sometimes, expectations(always)).green, "an old test with such a mark"


GATHERS = """
import pytest

GATHERED = []


def equal(found, wanted):
    if found != wanted:
        GATHERED.append(f"{found!r} is not {wanted!r}")


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if GATHERED:
        report.outcome, report.longrepr = "failed", "\\n".join(GATHERED)
        GATHERED.clear()
        try:
            raise AssertionError(report.longrepr)
        except AssertionError:
            call.excinfo = pytest.ExceptionInfo.from_current()
"""
CHECKS = """
import gathers
import shop


def test_total():
    gathers.equal(shop.total([1, 2]), 3)


def test_nothing_of_ours():
    gathers.equal(1, 2)
"""


@pytest.mark.slow
def test_checks_that_a_plugin_gathers_as_pytest_check_does_are_red_where_they_reach_the_code(tmp_path: Path) -> None:
    write(tmp_path / "installed", {"gathers.py": GATHERS})
    options = '[tool.pytest.ini_options]\naddopts = "-p gathers"\npythonpath = [".", "../installed"]\n'
    before = write(tmp_path / "ours", {"pyproject.toml": options, "shop.py": SHOP.format(0)})
    base, existing = measure(before), files_of(before)
    root = write(before, {"test_new.py": CHECKS})
    once, again = measure(root, trace=True), measure(root, trace=True)
    red = judge_red(base, once, again, context_of(base, existing), task="1", tree="red")
    assert list(red.ledger.red) == ["test_new.py::test_total"]
    assert [refusal.id for refusal in red.illegal] == ["test_new.py::test_nothing_of_ours"]
