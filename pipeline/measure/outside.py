"""Runs tests that fail in the box once more outside of it, on the user's own terms: what differs is the box's doing.

That starts code of the repository on this machine, with the user's variables and network. So it is done only where the
user asks for it (`[toolchains] outside`, `doctor --tests`), only for tests that failed in the box, in a copy, and for a
bounded time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.boxes.nobox import NoBox
from pipeline.dispatch.redaction import redacted_observation
from pipeline.evidence.compare import passes
from pipeline.languages.protocol import Measurement, Selection, View
from pipeline.measure.measuring import environment, working_box
from pipeline.measure.old_tests.unprotected import named
from pipeline.process import Mount
from pipeline.progress import counted
from pipeline.views.copies import Copies

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from pipeline.evidence.observation import Observation
    from pipeline.measure.measuring import MeasurementContext
    from pipeline.process import Command, Completed

LIMIT_S: Final = 300.0
"""So long they may take together; a test that is not reached is not said to differ."""
MEND: Final = (
    "Give the tests what they need there ([toolchains.NAME] env, setup, .worktreeinclude), or let more of them differ: "
    "[toolchains] may_differ"
)
"""What a person can do about tests that fail in the box alone."""
_NOT_THEIRS: Final = ("GIT_", "REDFIRST_", "PYTHON", "PYTEST_", "VIRTUAL_ENV")
"""Variables of the driver's own start, which say where it runs and not how the project's tests are run."""
_SHOWN: Final = 200


async def passing_outside(ctx: MeasurementContext, tree: str, failed: Collection[str]) -> tuple[str, ...] | None:
    """Return which of the tests that failed in the box pass outside of it; None where nobody asks for it.

    Raises:
        UnmeasurableError: the tests could not be started.
    """
    if not ctx.config.toolchains.outside or not ctx.box.maps_paths or not failed:
        return None
    env = await environment(ctx)
    limits = ctx.config.toolchains.settings_of(ctx.toolchain.name)
    what = f"{counted(len(failed), 'test')} that fail{'s' if len(failed) == 1 else ''} in the box, outside of it"
    ctx.say(f"    {what} ...")
    box = _OwnTerms(NoBox(), ctx.environ)
    copies = Copies(ctx.checkout, "outside", NoBox(), ctx.copies.watch)
    async with ctx.copies.one_at_a_time:
        with working_box(), copies.lent(tree) as folder, ctx.progress.doing(what) as took:
            view, chosen = View(Mount(folder, folder, writable=True)), Selection(ids=frozenset(failed))
            seconds = min(limits.timeout_s, LIMIT_S)
            asked = Measurement(box, view, env, chosen, timeout_s=seconds, per_test_timeout_s=limits.test_timeout_s)
            seen = redacted_observation(await ctx.toolchain.run_tests(asked), ctx.secrets)
    found = tuple(entry for entry in sorted(failed) if passes(seen, entry))
    ctx.say(f"    {what}: {len(found)} of {len(failed)} pass ({took})")
    return found


def difference(baseline: Observation, found: Collection[str]) -> str:
    """Return in words which tests fail in the box alone, and with what the first of them does."""
    return f"{_how_many(found)} in the box alone: {which(baseline, found)}"


def untried(baseline: Observation, failed: Collection[str]) -> str:
    """Return in words which tests fail in the box, where nobody has asked what they do outside of it."""
    whether = "whether they pass outside of it, redfirst doctor --tests finds out, or [toolchains] outside = true"
    return f"{_how_many(failed)} in the box before any change: {which(baseline, failed)}; {whether}"


def _how_many(tests: Collection[str]) -> str:
    return f"{counted(len(tests), 'test')} fail{'s' if len(tests) == 1 else ''}"


def which(baseline: Observation, tests: Collection[str]) -> str:
    """Return the names of tests that fail in the box, and with what the first of them does."""
    first = baseline.records[min(tests)]
    raised = first.fault.chain[0] if first.fault is not None else None
    error = f"{raised.kind}: {raised.message}" if raised is not None else first.reason or str(first.outcome)
    return f"{named(sorted(tests))}; the first with {' '.join(error.split())[:_SHOWN]}"


class _OwnTerms:
    """Runs commands on this machine, with the user's variables beneath those of a measurement."""

    def __init__(self, box: NoBox, environ: Mapping[str, str]) -> None:
        self._box = box
        self._environ = {name: value for name, value in environ.items() if not name.startswith(_NOT_THEIRS)}
        self.name = box.name
        self.maps_paths = box.maps_paths

    def inside(self, host: Path, target: Path) -> Path:
        return self._box.inside(host, target)

    async def run(self, command: Command) -> Completed:
        path = ":".join(filter(None, (command.env.get("PATH"), self._environ.get("PATH"))))
        return await self._box.run(replace(command, env={**self._environ, **command.env, "PATH": path}))
