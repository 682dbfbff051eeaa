"""Which of the broad cases a whole run of the tests takes: the share that its commit chooses, or all of them.

Broad is what repeats a rule that other tests hold over many agents, boxes, attacks or instants: an hour of them on two
cores. Each commit takes another share (`make test`), so that all are run again and again; `make test-all` takes all,
and so does whoever names files or tests.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

VARIABLE: Final = "TESTS_BROAD"
SHARES: Final = 6
ALL: Final = "all"
_ROOT: Final = Path(__file__).parents[1]


def pytest_configure(config: pytest.Config) -> None:
    """Choose the share, once for all workers."""
    named = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    os.environ.setdefault(VARIABLE, ALL if named else str(_share_of_the_commit()))


def pytest_report_header() -> str:
    """Say which share it is."""
    chosen = os.environ[VARIABLE]
    which = "all" if chosen == ALL else f"share {int(chosen) + 1} of {SHARES}, by the commit; `make test-all` runs all"
    return f"broad cases: {which}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the other shares' cases out."""
    chosen = os.environ[VARIABLE]
    if chosen == ALL:
        return
    left: Sequence[pytest.Item] = [item for item in items if not _is_taken(item, int(chosen))]
    config.hook.pytest_deselected(items=left)
    out = set(left)
    items[:] = [item for item in items if item not in out]


def _is_taken(item: pytest.Item, share: int) -> bool:
    return item.get_closest_marker("broad") is None or zlib.crc32(item.nodeid.encode()) % SHARES == share


def _share_of_the_commit() -> int:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=False)
    return int(done.stdout.strip() or "0", 16) % SHARES
