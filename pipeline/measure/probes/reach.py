"""The reach probe: finds tests of a task that enter none of the code that the task changed.

At RED a test that fails without reaching production is refused (matrix 5). One that looks at a signature, at words in
a source file or at whether a file is there does reach the module, fails, and passes later whatever the code does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.languages.protocol import Selection
from pipeline.measure.measuring import changed_paths, measure
from pipeline.measure.probes.evidence import ReachEvidence

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipeline.evidence.observation import Layout, Observation, Reach
    from pipeline.measure.measuring import MeasurementContext

_PROCESS = "process"


async def reach_probe(
    ctx: MeasurementContext,
    production: str,
    tree: str,
    ids: Collection[str],
    layout: Layout,
    traced: Observation | None = None,
) -> ReachEvidence | None:
    """Return which tests enter no function of a changed file; None where it cannot be measured.

    A test that starts a process, or opens a changed file that is no source code, may reach anything. Nothing is said of
    one that was not traced (`reach` is None), as in languages of which no toolchain of ours traces tests that pass.

    Args:
        ctx: The run, or what measures without one.
        production: What RED was measured over.
        tree: The candidate.
        ids: The task's own tests.
        layout: Which files are tests.
        traced: A run of these tests that was traced, where there is one.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    changed = {path for path in changed_paths(ctx, production, tree) if not layout.is_test_side(path)}
    if not ids or not changed:
        return None
    if traced is None:
        what = "the new tests over the new code, traced, must pass"
        traced = await measure(ctx, tree, Selection(ids=frozenset(ids)), trace=True, what=what)
    records = traced.records
    reaches = {entry: records[entry].reach for entry in sorted(ids) if entry in records}
    asked = {entry: reach for entry, reach in reaches.items() if reach is not None}
    if not asked:
        return None
    data = {path for path in changed if not path.endswith(ctx.toolchain.sources)}
    return ReachEvidence(
        changed=tuple(sorted(changed)),
        entering=sum(_enters(reach, changed, data) for reach in asked.values()),
        elsewhere=tuple(entry for entry, reach in asked.items() if not _enters(reach, changed, data)),
    )


def _enters(reach: Reach, changed: Collection[str], data: Collection[str]) -> bool:
    entered = {entry.partition("::")[0] for entry in reach.functions}
    doors = set(reach.doors)
    return bool(entered.intersection(changed)) or _PROCESS in doors or bool(doors.intersection(data))
