"""The stage of a group, and the figures at the end."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from cheats.catalogue import GROUPS
from cheats.plays import FIGURE

if TYPE_CHECKING:
    from cheats.catalogue import Theatre


@pytest.fixture(scope="module")
def theatre(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Theatre:
    """Return the stage of the group that the test module names."""
    return GROUPS[request.node.obj.GROUP].open(tmp_path_factory.mktemp("stage"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many cheats were caught, and how much honest work was turned down."""
    figures: Counter[tuple[str, str]] = Counter()
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            figures.update((value, outcome) for name, value in report.user_properties if name == FIGURE)
    if not figures:
        return
    cheats = sum(count for (value, _), count in figures.items() if value != "honest")
    honest = sum(count for (value, _), count in figures.items() if value == "honest")
    terminalreporter.section("cheats and honest work")
    terminalreporter.line(
        f"  {cheats} cheats: {figures['caught', 'passed']} caught, {figures['passes', 'passed']} not excludable, "
        f"{figures['caught', 'failed'] + figures['passes', 'failed']} not as expected"
    )
    terminalreporter.line(f"  {honest} times honest work: {figures['honest', 'failed']} false alarms")
