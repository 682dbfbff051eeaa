"""The boxes that are attacked, and the figures at the end."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import pytest
from attacks.catalogue import Case
from attacks.host import PWNED
from attacks.outcome import applies
from attacks.world import is_demanded, make_box, make_world

if TYPE_CHECKING:
    from collections.abc import Generator

    from attacks.world import World

BOXES = (
    "bubblewrap-overlay",
    *(pytest.param(name, marks=pytest.mark.broad) for name in ("bubblewrap-shadow", "none-shadow")),
)
_FIGURE = "attack"


@pytest.fixture(scope="module", params=BOXES)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    """Return a host behind one kind of box, with one kind of view."""
    name, _, view = str(request.param).partition("-")
    box, why = make_box(name)
    if box is None and is_demanded(name):
        pytest.fail(f"the box {name} has to work on this machine, and does not: {why}")
    if box is None:
        pytest.skip(f"the box {name} does not work on this machine: {why}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTACKED", f"{PWNED}-ENVIRONMENT")  # no name that redaction would look for
        with make_world(tmp_path_factory.mktemp("host"), box, overlay=view == "overlay") as made:
            if view == "overlay" and (fault := made.dispatcher.views.fault) is not None:
                pytest.fail(f"overlay views have to work where bubblewrap does: {fault}")
            yield made


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a kernel box has to block where there is none: it would not be harmless."""
    left_out = [item for item in items if not _applies(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _applies(item: pytest.Item) -> bool:
    params: dict[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    case, box = params.get("case"), params.get("world")
    return not isinstance(case, Case) or not isinstance(box, str) or applies(case, box.partition("-")[0])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print, for each box, how the cases of each category ended; the reports carry it, also from other processes."""
    figures: defaultdict[str, defaultdict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for box, category, end in (value for name, value in report.user_properties if name == _FIGURE):
                figures[box][category]["cases"] += 1
                figures[box][category][end if outcome == "passed" else "failed"] += 1
    for box, categories in sorted(figures.items()):
        terminalreporter.section(f"attacks: {box}")
        total: Counter[str] = Counter()
        for category, counts in sorted(categories.items()):
            terminalreporter.line(_figure(category, counts))
            total += counts
        terminalreporter.line(_figure("all", total))


def _figure(category: str, counts: Counter[str]) -> str:
    words = [f"{counts['cases']:4} cases", f"{counts['expected']:4} as expected"]
    words += [f"{counts[word]} {word}" for word in ("known gap", "failed") if counts[word]]
    return f"  {category:28} {', '.join(words)}"
