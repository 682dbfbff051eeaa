"""A fifth language, for tests: sums such as `double n = n * 2`, and checks such as `two: double 2 = 4`.

Its tests run within the driver, without a process or a box: whole runs in it try what redfirst does, not how it
measures. It is all that a language has to be: a folder, and a line in the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import anyio

from pipeline.process import Mount
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.languages import table
from pipeline.testing.languages.protocol import Environment, Measurement, View

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.judge.evidence.observation import Observation
    from pipeline.testing.languages.protocol import Selection

SUMS = table.Language(
    "sums",
    "languages.sums",
    sources=(".sum",),
    marks=("sums.project",),
    stub_first=True,
)


def add_to_table() -> None:
    """Put the line into the table, before any module has read it."""
    cast("dict[str, table.Language]", table.LANGUAGES)[SUMS.name] = SUMS


def measure(root: Path, selection: Selection | None = None, *, trace: bool = False) -> Observation:
    """Return what a run of the project in `root` showed."""
    env = Environment(("sums",), (), root, ())
    asked = Measurement(NoBox(), View(Mount(root, root)), env, selection, trace)
    return anyio.run(SUMS.toolchain.run_tests, asked)
